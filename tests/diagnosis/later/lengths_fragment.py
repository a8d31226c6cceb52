# SPDX-License-Identifier: MIT
"""Sequences of many lengths through a caching allocator: what it keeps is in pieces of the wrong size when the long one comes."""
import ctypes
import os
import random

allocator = ctypes.CDLL(os.path.join(os.environ["CORPUS_LIB"], "..", "..", "apps", "libc10_cuda.so"))
allocator.caching_new.restype = ctypes.c_void_p
random.seed(3)


class Cached:
    def __init__(self, nbytes):
        self.block = allocator.caching_new(ctypes.c_size_t(nbytes))
        if not self.block:
            raise RuntimeError(f"CUDA out of memory. Tried to allocate {nbytes >> 20} MiB")

    def __del__(self):
        if self.block:
            allocator.caching_delete(ctypes.c_void_p(self.block))


class Model:
    def __init__(self):
        self.memory = []

    def read(self, length):
        hidden = Cached(length << 20)
        self.memory.append(Cached(45 << 20))  # CULPRIT
        return hidden

    def summarize(self, length):
        return Cached(length << 20)  # CULPRIT


def main():
    model = Model()
    batch = [model.read(random.randrange(180, 211)) for _ in range(29)]
    del batch
    model.summarize(900)  # CULPRIT


main()
