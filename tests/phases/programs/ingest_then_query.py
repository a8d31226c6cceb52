# SPDX-License-Identifier: MIT
"""A vector index: all chunks are loaded to the device, and queries then go through them."""
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
cuda = ctypes.CDLL("libcudart.so.13")


class Slab:
    def __init__(self, nbytes):
        self.nbytes = nbytes
        self.base = ctypes.c_void_p()
        if cuda.cudaMalloc(ctypes.byref(self.base), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        cuda.cudaFree(self.base)


class Index:
    def __init__(self):
        self.chunks = []

    def add(self, nbytes):
        raw = Slab(2 * nbytes)
        normed = Slab(nbytes)  # CULPRIT
        del raw
        self.chunks.append(normed)  # CULPRIT

    def search(self, many):
        for chunk in self.chunks[::max(1, len(self.chunks) // many)]:
            scores = Slab(chunk.nbytes // 16)
            top = Slab(4096)
            cuda.cudaMemcpy(top.base, chunk.base, ctypes.c_size_t(4096), 3)
            del scores, top


index = Index()
chunk = draw.randint(2, 9) << 20
for _ in range(draw.randint(30, 90)):
    index.add(chunk)
for _ in range(draw.randint(30, 70)):
    index.search(draw.randint(4, 12))
