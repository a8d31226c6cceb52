# SPDX-License-Identifier: MIT
"""Rotary tables by length, found by functools.cache on a method: every model has its own, every request a model."""
import ctypes
import functools

rt = ctypes.CDLL("libcudart.so.12")


class Vector:
    def __init__(self, n):
        self.p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n * 2)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.p)


class Rotary:
    @functools.cache
    def table(self, length):
        return Vector(64 * length)  # CULPRIT

    def rotate(self, length):
        self.table(length)  # CULPRIT
        return Vector(length * 512)


def generate(prompt):
    rotary = Rotary()
    for extra in range(3):
        rotary.rotate(2048)


for prompt in range(450):
    generate(prompt)
