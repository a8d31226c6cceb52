# SPDX-License-Identifier: MIT
"""An expert's weights and moments are made when a token comes to it for the first time; then training goes on, and a test follows."""
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
rt = ctypes.CDLL("libcudart.so.13")
nvtx = ctypes.CDLL("libnvToolsExt.so.1")


class Storage:
    def __init__(self, size):
        self.address = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(size)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.address)


class Expert:
    def __init__(self, size):
        self.weight = Storage(size)
        self.moments = [Storage(size), Storage(size)]


class Layer:
    def __init__(self, count, size):
        self.count, self.size, self.experts = count, size, {}

    def expert(self, number):
        if number not in self.experts:
            self.experts[number] = Expert(self.size)
        return self.experts[number]

    def route(self, tokens):
        for number in draw.sample(range(self.count), tokens):
            self.expert(number)
            out = Storage(self.size // 4)
            del out


layers = [Layer(draw.randint(10, 20), draw.randint(2, 5) << 19) for _ in range(draw.randint(2, 3))]
for step in range(draw.randint(140, 260)):
    nvtx.nvtxRangePushA(b"step_%d" % step)
    for layer in layers:
        layer.route(draw.randint(2, 4))
    nvtx.nvtxRangePop()
for _ in range(draw.randint(50, 90)):
    for layer in layers:
        layer.route(2)
