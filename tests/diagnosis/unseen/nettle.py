# SPDX-License-Identifier: MIT
"""A batch that does not fit is cut in two until it does, and the run goes on with that size."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class NoRoom(Exception):
    pass


class Activations:
    def __init__(self, rows):
        self.p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(rows << 20)):
            self.p = None
            raise NoRoom

    def __del__(self):
        if self.p:
            rt.cudaFree(self.p)


def find_batch(rows):
    while rows:
        try:
            Activations(rows)
            return rows
        except NoRoom:
            rows //= 2
    raise SystemExit(1)


weights = Activations(1500)
rows = find_batch(10_000)
for _ in range(200):
    Activations(rows)
print("batch of", rows)
