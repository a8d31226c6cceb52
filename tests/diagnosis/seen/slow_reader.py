# SPDX-License-Identifier: MIT
"""Two frames are taken from the queue for three that are put into it: every frame is freed in the end, but it grows without a bound."""
import ctypes
from collections import deque

cudart = ctypes.CDLL("libcudart.so.13")


class Frame:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        cudart.cudaFree(self.data)


class Reader:
    def __init__(self):
        self.waiting = deque()

    def offer(self):
        self.waiting.append(Frame(311_296))  # CULPRIT

    def take(self):
        frame = self.waiting.popleft()
        scaled = Frame(90_000)
        return frame, scaled


reader = Reader()
for tick in range(840):
    reader.offer()  # CULPRIT
    if tick % 3:
        reader.take()
