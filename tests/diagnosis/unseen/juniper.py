# SPDX-License-Identifier: MIT
"""Five ranks: two sample, two train, one serves the weights. Their sizes differ since their work does."""
import ctypes
import os
import time

rt = ctypes.CDLL("libcudart.so.12")


def take(mib):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)):
        raise MemoryError
    return p


class Role:
    steps = 70

    def run(self):
        self.setup()
        for _ in range(self.steps):
            self.step()
            time.sleep(0.001)


class Sampler(Role):
    def setup(self):
        self.policy = take(60)

    def step(self):
        rt.cudaFree(take(10))


class Learner(Role):
    def setup(self):
        self.policy, self.moments = take(60), [take(60) for _ in range(2)]

    def step(self):
        activations = [take(30) for _ in range(4)]
        for p in activations:
            rt.cudaFree(p)


class WeightServer(Role):
    def setup(self):
        self.versions = [take(60) for _ in range(3)]

    def step(self):
        rt.cudaFree(self.versions.pop(0))
        self.versions.append(take(60))


rank = int(os.environ["RANK"])
rt.cudaSetDevice(rank)
(WeightServer, Sampler, Sampler, Learner, Learner)[rank]().run()
