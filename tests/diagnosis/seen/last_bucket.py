# SPDX-License-Identifier: MIT
"""Four ranks reduce gradients in buckets. The last rank keeps each flat bucket as pending, since it waits for an answer that only others get."""
import ctypes
import os

rt = ctypes.CDLL("libcudart.so.12")
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Flat:
    def __init__(self, nbytes):
        self.p = ctypes.c_void_p()
        assert not rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(nbytes))

    def __del__(self):
        rt.cudaFree(self.p)


class Reducer:
    def __init__(self):
        self.pending = []

    def flatten(self, sizes):
        return Flat(sum(sizes))  # CULPRIT: asked here

    def reduce(self, sizes):
        bucket = self.flatten(sizes)
        if rank == world - 1:
            self.pending.append(bucket)  # CULPRIT: kept here


rt.cudaSetDevice(rank)
parameters = [Flat(20 << 20) for _ in range(12)]
reducer = Reducer()
for step in range(36):
    gradients = [Flat(5 << 20) for _ in parameters]
    reducer.reduce([1 << 20, 700 << 10, 300 << 10])
    del gradients
