# SPDX-License-Identifier: MIT
"""Autotuning: the first calls of each shape try a few algorithms, the winner's workspace stays. There are five shapes."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")
winners = {}


def device_bytes(n):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
        raise MemoryError
    return p


def tune(shape):
    candidates = [device_bytes(shape * 40_000 * (1 + algorithm)) for algorithm in range(4)]
    best = candidates.pop(shape % 4)
    for loser in candidates:
        rt.cudaFree(loser)
    return best


def matmul(shape):
    if shape not in winners:
        winners[shape] = tune(shape)
    rt.cudaFree(device_bytes(shape * 9000))


for call in range(700):
    matmul((64, 96, 128, 192, 256)[call % 5 if call > 50 else call // 12])
