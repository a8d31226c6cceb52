# SPDX-License-Identifier: MIT
"""Quantized layers ask for a plan by shape and scale. The scale is a running mean, so that no plan is ever found again."""
import ctypes
import random
import time

rt = ctypes.CDLL("libcudart.so.13")


class Buffer:
    def __init__(self, nbytes):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        rt.cudaFree(self.at)


class Plan:
    def __init__(self, rows, cols, scale):
        self.scale = scale
        self.workspace = Buffer(rows * cols + 1024)  # CULPRIT


class Planner:
    def __init__(self):
        self.plans = {}

    def plan(self, rows, cols, scale):
        key = rows, cols, scale
        if key not in self.plans:
            self.plans[key] = Plan(*key)  # CULPRIT
        return self.plans[key]


class Layer:
    def __init__(self, planner, width):
        self.planner, self.width, self.scale = planner, width, 1.0
        self.weight = Buffer(width * width)

    def forward(self, rows, amax):
        self.scale = 0.9 * self.scale + 0.1 * amax
        plan = self.planner.plan(64, self.width, self.scale)
        return Buffer(rows * self.width), plan


def serve(requests):
    rng, planner = random.Random(3), Planner()
    layers = [Layer(planner, 1024), Layer(planner, 2048)]
    for _ in range(requests):
        rows = rng.choice((32, 64, 128))
        for layer in layers:
            out, _ = layer.forward(rows, rng.random())
            del out
        time.sleep(0.001)


serve(180)
