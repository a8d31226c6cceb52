# SPDX-License-Identifier: MIT
"""Exponential averaging starts after two thirds of the run, and takes a copy of the weights once."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def zeros(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


class Trainer:
    average_from = 200

    def __init__(self):
        self.weights = [zeros(22 << 20) for _ in range(6)]
        self.average = None

    def training_step(self):
        hidden = [zeros(8 << 20) for _ in range(3)]
        for p in hidden:
            rt.cudaFree(p)

    def run(self, steps):
        for step in range(steps):
            self.training_step()
            if step == self.average_from:
                self.average = [zeros(22 << 20) for _ in self.weights]
            time.sleep(0.0004)


Trainer().run(300)
