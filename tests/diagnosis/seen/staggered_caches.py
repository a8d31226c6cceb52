# SPDX-License-Identifier: MIT
"""Healthy: three forked workers that start one after another; each fills a cache of sixteen answers."""
import ctypes
import os
import random
import time


class Worker:
    def __init__(self, number):
        self.rt = ctypes.CDLL("libcudart.so.13")
        self.rng, self.cache = random.Random(number), {}
        self.weights = self.empty(20 << 20)

    def empty(self, nbytes):
        at = ctypes.c_void_p()
        assert self.rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)) == 0
        return at

    def answer(self):
        hidden, key = self.empty(1200000), self.rng.randrange(40)
        if key not in self.cache:
            if len(self.cache) == 16:
                self.rt.cudaFree(self.cache.pop(next(iter(self.cache))))
            self.cache[key] = self.empty(276480)
        self.rt.cudaFree(hidden)


children = []
for number in range(3):
    time.sleep(0.06)
    pid = os.fork()
    if not pid:
        worker = Worker(number)
        for _ in range(260):
            worker.answer()
            time.sleep(0.001)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
