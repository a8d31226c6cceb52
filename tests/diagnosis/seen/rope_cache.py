# SPDX-License-Identifier: MIT
"""A rotary cache that is made anew, larger, when a longer text comes; the old one is freed first. Thirty requests, the longest is the 27th."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


def new(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


class Rope:
    length, table = 0, None

    def upto(self, length):
        if length > self.length:
            if self.table:
                rt.cudaFree(self.table)
            self.length, self.table = length, new(length * 1024)
        return self.table


rope = Rope()
weights = [new(4 << 20) for _ in range(12)]
lengths = [40, 70, 55, 90, 90, 81, 130, 120, 60, 140, 150, 90, 170, 200, 180, 199, 220, 100, 260, 240, 255, 300, 310, 90, 200, 330, 512, 300, 20, 500]
for length in lengths:
    rope.upto(length)
    states = [new(length * 8192) for _ in weights]
    for state in states:
        rt.cudaFree(state)
