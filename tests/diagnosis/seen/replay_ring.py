# SPDX-License-Identifier: MIT
"""A replay buffer: chunks are appended at one line until it is full, and replaced one by one at another.  Healthy."""
import ctypes
import random

cuda = ctypes.CDLL("libcudart.so.13")
random.seed(11)


class Chunk:
    def __init__(self, nbytes):
        self.pointer = ctypes.c_void_p()
        if cuda.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        cuda.cudaFree(self.pointer)


class Replay:
    def __init__(self, capacity):
        self.capacity, self.chunks, self.oldest = capacity, [], 0

    def add(self):
        if len(self.chunks) < self.capacity:
            self.chunks.append(Chunk(5000000))
            return
        self.chunks[self.oldest] = Chunk(5000000)
        self.oldest = (self.oldest + 1) % self.capacity


replay = Replay(60)
for step in range(3000):
    batch = Chunk(random.randrange(100000, 900000))
    if step % 30 == 0:
        replay.add()
    del batch
