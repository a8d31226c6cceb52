# SPDX-License-Identifier: MIT
"""Work areas kept by shape, and the last 4096 embeddings by word: shapes and words come as often as in texts, new ones more and more rarely."""
import bisect
import collections
import ctypes
import itertools
import random

cudart = ctypes.CDLL("libcudart.so.13")
random.seed(11)


class Block:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def free(self):
        cudart.cudaFree(self.data)


class Words:
    """Numbers from 0 on; each comes by 1 / (number + 1) ** exponent."""

    def __init__(self, count, exponent):
        self.sums = list(itertools.accumulate((number + 1) ** -exponent for number in range(count)))

    def draw(self):
        return bisect.bisect(self.sums, random.random() * self.sums[-1])


areas, embeddings = {}, collections.OrderedDict()
shapes, words = Words(100_000, 1.4), Words(100_000, 1.1)


def area(shape):
    if shape not in areas:
        areas[shape] = Block(65536 + 1024 * (shape * 7919 % 512))
    return areas[shape]


def embed(word):
    if word not in embeddings:
        embeddings[word] = Block(24576)
    embeddings.move_to_end(word)
    if len(embeddings) > 4096:
        embeddings.popitem(last=False)[1].free()
    return embeddings[word]


for text in range(2500):
    batch = Block(3 << 20)
    area(shapes.draw())
    embed(words.draw())
    batch.free()
