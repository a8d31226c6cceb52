# SPDX-License-Identifier: MIT
"""Embeddings of words on demand, the sixty-four used last are kept."""
import ctypes
import random
from collections import OrderedDict

cudart = ctypes.CDLL("libcudart.so.13")
random.seed(17)


def malloc(n):
    p = ctypes.c_void_p()
    assert not cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n))
    return p


class LRU(OrderedDict):
    def __init__(self, bound):
        super().__init__()
        self.bound = bound

    def get(self, word):
        if word in self:
            self.move_to_end(word)
            return self[word]
        self[word] = malloc(900 << 10)
        if len(self) > self.bound:
            cudart.cudaFree(self.popitem(last=False)[1])
        return self[word]


cache = LRU(64)
for _ in range(1500):
    cache.get(int(random.expovariate(1 / 60)))
