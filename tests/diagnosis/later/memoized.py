# SPDX-License-Identifier: MIT
"""Rotary tables are memoized by a float that is another one each time."""
import ctypes
import functools
import math

dll = ctypes.CDLL("libcudart.so.12")


def device_array(n):
    p = ctypes.c_void_p()
    if dll.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)) != 0:
        raise MemoryError
    return type("Array", (), {"p": p, "n": n, "__del__": lambda self: dll.cudaFree(self.p)})()


@functools.lru_cache(maxsize=None)
def rotary(scale, dim):
    return device_array(dim * 4096)  # CULPRIT


class Attention:
    def __init__(self, dim):
        self.qkv = device_array(3 * dim * dim)
        self.dim = dim

    def forward(self, length):
        table = rotary(math.log(length + 1.5), self.dim)  # CULPRIT
        q = device_array(int(length) * self.dim)
        scores = device_array(int(length) ** 2)
        return table, q, scores


def serve():
    layers = [Attention(64), Attention(64)]
    for request in range(400):
        for layer in layers:
            layer.forward(100 + request % 5 * 10 + request * 1e-3)


serve()
