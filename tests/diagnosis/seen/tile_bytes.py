# SPDX-License-Identifier: MIT
"""Tiles of a map are cached up to 300 MiB; the bound is met shortly before the end, and the oldest go from then on."""
import collections
import ctypes
import random

cudart = ctypes.CDLL("libcudart.so.13")


class Block:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            self.data = None
            raise MemoryError(size)

    def __del__(self):
        if self.data:
            cudart.cudaFree(self.data)


BOUND = 300 << 20
random.seed(3)
tiles, held = collections.OrderedDict(), 0


def tile(key, size):
    global held
    if key not in tiles:
        tiles[key] = (Block(size), size)
        held += size
        while held > BOUND:
            held -= tiles.popitem(last=False)[1][1]
    return tiles[key]


for view in range(442):
    tile(view, random.randrange(300_000, 1_200_000))
    tile(max(0, view - random.randrange(20)), 700_000)
    overlay = Block(2 << 20)
