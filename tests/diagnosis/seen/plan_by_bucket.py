# SPDX-License-Identifier: MIT
"""Healthy: plans are kept by the shape, rounded up to a power of two; the long ones come late."""
import ctypes
import random
import time

rt = ctypes.CDLL("libcudart.so.13")


class Buffer:
    def __init__(self, nbytes):
        self.at = ctypes.c_void_p()
        assert rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        rt.cudaFree(self.at)


class Planner:
    def __init__(self):
        self.plans = {}

    def plan(self, rows, cols):
        key = 1 << (rows - 1).bit_length(), cols
        if key not in self.plans:
            self.plans[key] = Buffer(key[0] * cols)
        return self.plans[key]


def serve(requests):
    rng, planner = random.Random(8), Planner()
    for request in range(requests):
        rows = int(min(4096, 4 * rng.paretovariate(0.8)) * (1 + request / requests))
        for cols in (256, 384, 512, 1024):
            planner.plan(rows, cols)
        Buffer(rows * 1024)
        time.sleep(0.001)


serve(300)
