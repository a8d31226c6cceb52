# SPDX-License-Identifier: MIT
"""Puts the features of each day into a store that is written in C++; the store keeps every version of a column."""
import ctypes
import os


class FeatureStore:
    def __init__(self):
        self._c = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "libfeatures.so"))
        self._c.store_open.restype = ctypes.c_void_p
        self._c.store_latest.restype = ctypes.c_size_t
        self._store = ctypes.c_void_p(self._c.store_open())

    def __setitem__(self, name, rows):
        self._c.store_put(self._store, name.encode(), ctypes.c_size_t(rows))

    def __getitem__(self, name):
        return self._c.store_latest(self._store, name.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._c.store_close(self._store)


def build_features(store, day):
    store["clicks"] = 51200
    store["views"] = 51200
    return store["clicks"] + store["views"] + day


with FeatureStore() as store:
    print(sum(build_features(store, day) for day in range(150)))
