# SPDX-License-Identifier: MIT
"""A slow leak below large epochs: 48 KiB a batch, under a dataset of half a gigabyte that comes and goes."""
import ctypes
import random

R = ctypes.CDLL("libcudart.so.13")
random.seed(31)


class Slab:
    def __init__(self, nbytes):
        self.p = ctypes.c_void_p()
        if R.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        R.cudaFree(self.p)


class Sampler:
    def __init__(self):
        self.weights = {}

    def draw(self, epoch, batch):
        key = (epoch, batch)
        if key not in self.weights:
            self.weights[key] = Slab(49152)  # CULPRIT
        return self.weights[key]


def epoch_data():
    return [Slab(random.randrange(40, 60) << 20) for _ in range(10)]


def fit(sampler, epochs=8, batches=60):
    for epoch in range(epochs):
        data = epoch_data()
        for batch in range(batches):
            sampler.draw(epoch, batch)  # CULPRIT
            work = [Slab(random.randrange(1 << 16, 1 << 22)) for _ in range(3)]
            del work
        del data


fit(Sampler())
