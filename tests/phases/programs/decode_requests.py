# SPDX-License-Identifier: MIT
"""A server of a language model: weights, a warm-up of each batch size, then requests.  An answered request gives its pages back."""
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
lib = ctypes.CDLL("libcudart.so.13")


class Block:
    def __init__(self, size):
        self.address = ctypes.c_void_p()
        if lib.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(size)):
            raise MemoryError

    def __del__(self):
        lib.cudaFree(self.address)


PAGE = draw.choice((1, 2)) << 20


class Engine:
    def __init__(self):
        self.weights = [Block(draw.randint(8, 24) << 20) for _ in range(draw.randint(16, 32))]
        self.workspaces = {}
        self.running = {}

    def warm_up(self):
        for size in (1, 2, 4, 8, 16, 32):
            self.workspaces[size] = Block(size << 19)
            for _ in range(3):
                self.forward(size)

    def forward(self, rows):
        hidden = [Block(rows << 16) for _ in range(4)]
        return len(hidden)

    def tick(self):
        for name, left in list(self.running.items()):
            pages, count = left
            if len(pages) >= count:
                del self.running[name]
            elif draw.random() < 0.4:
                pages.append(Block(PAGE))
        if self.running:
            self.forward(min(32, len(self.running)))

    def serve(self, ticks, load):
        for tick in range(ticks):
            if draw.random() < load:
                self.running[tick] = ([Block(PAGE) for _ in range(draw.randint(1, 4))], draw.randint(4, 10))
            self.tick()


engine = Engine()
engine.warm_up()
for load in draw.sample((0.2, 0.7, 0.05), 3):
    engine.serve(draw.randint(120, 260), load)
while engine.running:
    engine.tick()
