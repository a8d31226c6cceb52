# SPDX-License-Identifier: MIT
"""Prompts are kept by key, at most seventy-two; the bound is reached when four fifths of the run are over."""
import ctypes
import random
import time
from collections import OrderedDict

cudart = ctypes.CDLL("libcudart.so.12")
rng = random.Random(9)
weights = ctypes.c_void_p()
assert not cudart.cudaMalloc(ctypes.byref(weights), ctypes.c_size_t(50_000_000))


class Prompt:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        cudart.cudaFree(self.data)


cache = OrderedDict()
for request in range(260):
    key = int(rng.paretovariate(.4)) % 700
    if key in cache:
        cache.move_to_end(key)
    else:
        cache[key] = Prompt((1 + key % 5) * 400_000)
        if len(cache) > 72:
            cache.popitem(last=False)
    Prompt(1_500_000)
    time.sleep(.001)
