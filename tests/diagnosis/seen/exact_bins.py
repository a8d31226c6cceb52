# SPDX-License-Identifier: MIT
"""An allocator of the program's own keeps what is freed in bins of exactly its size. The batches of a tokenizer are hardly ever of one size."""
import collections
import ctypes
import random

random.seed(4)
cuda = ctypes.CDLL("libcudart.so.13")


class Bins:
    def __init__(self):
        self.free = collections.defaultdict(list)

    def take(self, size):
        if self.free[size]:
            return self.free[size].pop()
        address = ctypes.c_void_p()
        if cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)):
            raise MemoryError(size)
        return address

    def give(self, size, address):
        self.free[size].append(address)  # CULPRIT


bins = Bins()


class Array:
    def __init__(self, size):
        self.size = size
        self.address = bins.take(size)

    def close(self):
        bins.give(self.size, self.address)


def collate(lengths):
    return Array(sum(lengths) * 24)  # CULPRIT


def embed(batch):
    hidden = Array(1 << 18)
    hidden.close()


def main():
    table = Array(6 << 20)
    for _ in range(350):
        batch = collate([random.randrange(200, 900) for _ in range(16)])
        embed(batch)
        batch.close()
    table.close()


main()
for size, addresses in bins.free.items():
    for address in addresses:
        cuda.cudaFree(address)
