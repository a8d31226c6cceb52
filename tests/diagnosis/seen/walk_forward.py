# SPDX-License-Identifier: MIT
"""Walk-forward validation: the window was to move, and begins with the first month each time; all of it is given back each time."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.13")


class Array:
    def __init__(self, size):
        self.size, self.data = size, ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            sys.exit("out of memory")

    def __del__(self):
        rt.cudaFree(self.data)


def window(month, length=24):
    return Array(month * 280_000)  # CULPRIT: not of `length` months


def fit(data):
    hidden = Array(data.size // 3 * 4)
    return hidden.size


for month in range(24, 400):
    fit(window(month))
