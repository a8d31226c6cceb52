# SPDX-License-Identifier: MIT
"""An index of vectors that is built by adding lists; the card to be bought has three gigabytes, and it is asked what would fit."""
import ctypes

runtime = ctypes.CDLL("libcudart.so.12")


class Index:
    def __init__(self, dimension):
        self.dimension, self.lists = dimension, []
        self.centroids = self._memory(4096 * dimension * 4)

    def _memory(self, n):
        p = ctypes.c_void_p()
        code = runtime.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n))
        if code:
            raise SystemExit(9)
        return p

    def add(self, vectors):
        codes = self._memory(vectors * self.dimension)
        self.lists.append(self._memory(vectors * self.dimension * 4))  # CULPRIT
        runtime.cudaFree(codes)


index = Index(768)
for part in range(9):
    index.add(150_000)
