# SPDX-License-Identifier: MIT
"""Downloads and decodes with three attempts. Each failed attempt is remembered as an exception, chained to the one before."""
import ctypes

gpu = ctypes.CDLL("libcudart.so.13")


class Scratch:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if gpu.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)):
            raise MemoryError

    def __del__(self):
        gpu.cudaFree(self.at)


class Corrupt(Exception):
    pass


def decode(name, attempt):
    frame = Scratch(409_600)  # CULPRIT
    if (name * 31 + attempt * 17) % 4 == 0:
        raise Corrupt(name)
    return frame


class Fetcher:
    def __init__(self):
        self.problem = None

    def fetch(self, name):
        for attempt in range(3):
            try:
                return decode(name, attempt)
            except Corrupt as error:
                error.__context__ = self.problem
                self.problem = error  # CULPRIT
        return None


fetcher = Fetcher()
index = Scratch(17 << 20)
for name in range(1000):
    fetcher.fetch(name)
fetcher.problem.__context__ = None  # a chain of hundreds would recurse when it is freed
