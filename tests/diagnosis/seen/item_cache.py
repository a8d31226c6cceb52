# SPDX-License-Identifier: MIT
"""A cache holds the encodings of the last 40 texts, however long; the texts get twelve times as long, and it does not fit any more."""
import collections
import ctypes
import sys

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


cache = collections.OrderedDict()


def encode(text, length):
    if text not in cache:
        cache[text] = Block(length * 160_000)  # CULPRIT
        if len(cache) > 40:
            cache.popitem(last=False)
    return cache[text]


try:
    for text in range(400):
        length = 100 if text < 300 else 1300
        scores = Block(length * 2_000)
        encode(text, length)
        encode(max(0, text - text % 9), length)
except MemoryError as error:
    sys.exit(str(error))
