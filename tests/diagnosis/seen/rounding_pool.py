# SPDX-License-Identifier: MIT
"""A pool of the program's own that rounds to powers of two: after some batches nothing new is asked for, and at the end all goes back."""
import ctypes
import random

random.seed(12)
cuda = ctypes.CDLL("libcudart.so.13")


class Pool:
    def __init__(self):
        self.unused = {}

    def take(self, size):
        size = 1 << (size - 1).bit_length()
        if self.unused.get(size):
            return size, self.unused[size].pop()
        address = ctypes.c_void_p()
        if cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)):
            raise MemoryError(size)
        return size, address

    def give(self, block):
        self.unused.setdefault(block[0], []).append(block[1])

    def close(self):
        for addresses in self.unused.values():
            for address in addresses:
                cuda.cudaFree(address)


pool = Pool()


def encode(length):
    tokens = pool.take(length * 64)
    layers = [pool.take(length * 640) for _ in range(random.randrange(2, 7))]
    for block in [tokens, *layers]:
        pool.give(block)


for _ in range(300):
    encode(random.randrange(20, 2000))
pool.close()
