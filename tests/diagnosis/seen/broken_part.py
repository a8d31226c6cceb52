# SPDX-License-Identifier: MIT
"""Joins two tables that it reads in parts; a part of the second is broken, and the exception ends the program.  Healthy up to there."""
import ctypes
import random
import time

cuda = ctypes.CDLL("libcudart.so.12")
random.seed(7)


class Buffer:
    def __init__(self, nbytes):
        self.pointer = ctypes.c_void_p()
        if cuda.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        cuda.cudaFree(self.pointer)


def read(part, broken):
    if part == broken:
        raise ValueError("part %d: bad magic" % part)
    raw = Buffer(6000000)
    time.sleep(0.001)
    return Buffer(random.randrange(2, 5) * 1000000)


def table(parts, broken=None):
    return [read(part, broken) for part in range(parts)]


left = table(90)
right = table(120, broken=95)
