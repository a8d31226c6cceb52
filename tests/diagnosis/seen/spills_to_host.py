# SPDX-License-Identifier: MIT
"""Healthy: shards that do not fit lie in pinned memory, staged in small pieces; then the work begins."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def raw(call, nbytes):
    at = ctypes.c_void_p()
    if call(ctypes.byref(at), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return at


class OnDevice:
    def __init__(self, nbytes):
        self.at = raw(rt.cudaMalloc, nbytes)


class Staged:
    def __init__(self, nbytes):
        self.pieces = [raw(rt.cudaMallocHost, 1 << 20) for _ in range(4)]


def place(nbytes):
    try:
        return OnDevice(nbytes)
    except MemoryError:
        return Staged(nbytes)


shards = [place(700 << 20) for _ in range(15)]
for step in range(200):
    window = OnDevice(4 << 20)
    time.sleep(0.001)
    rt.cudaFree(window.at)
