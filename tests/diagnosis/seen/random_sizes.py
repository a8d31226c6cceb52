# SPDX-License-Identifier: MIT
"""A server of requests of all sizes. Up to forty are alive at once, each for as long as it takes."""
import ctypes
import heapq
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(99)


class Request:
    def __init__(self, until):
        self.until = until
        self.parts = [self.part(int(random.lognormvariate(13, 1.4))) for _ in range(random.randint(1, 4))]

    @staticmethod
    def part(nbytes):
        p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes + 1)):
            raise MemoryError
        return p

    def finish(self):
        for p in self.parts:
            rt.cudaFree(p)

    def __lt__(self, other):
        return self.until < other.until


alive = []
for now in range(1800):
    heapq.heappush(alive, Request(now + random.randint(2, 60)))
    while len(alive) > 40 or alive[0].until <= now:
        heapq.heappop(alive).finish()
for request in alive:
    request.finish()
