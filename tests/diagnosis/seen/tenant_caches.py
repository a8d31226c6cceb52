# SPDX-License-Identifier: MIT
"""Six customers share a server; the results of each are cached, those asked for last up to a bound that he pays for."""
import ctypes
import random
from collections import OrderedDict

cudart = ctypes.CDLL("libcudart.so.13")
random.seed(18)


class Buffer:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        assert not cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size))

    def __del__(self):
        cudart.cudaFree(self.data)


class Cache:
    def __init__(self, bound):
        self.rows, self.bound = OrderedDict(), bound

    def get(self, key):
        if key in self.rows:
            self.rows.move_to_end(key)
        else:
            self.rows[key] = Buffer((20 + key % 50) << 13)
            if len(self.rows) > self.bound:
                self.rows.popitem(last=False)
        return self.rows[key]


caches = [Cache(10 + 15 * customer) for customer in range(6)]
for request in range(4000):
    caches[min(5, int(random.triangular(0, 6, 0)))].get(int(random.expovariate(1 / 60)))
    Buffer(4000)
