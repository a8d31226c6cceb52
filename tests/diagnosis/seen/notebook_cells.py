# SPDX-License-Identifier: MIT
"""A notebook's shell runs cells; what a cell's last line gives is kept in Out, and the plots of a cell go with the next."""
import ctypes

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


class Shell:
    def __init__(self):
        self.names, self.out = {"smooth": smooth, "plot": plot}, {}

    def run(self, number, source):
        code = compile(source, "<ipython-input-%d>" % number, "eval")
        self.out[number] = eval(code, self.names)  # CULPRIT: kept here


def smooth(width):
    return Block(width * 9_000)  # CULPRIT: asked here


def plot(width):
    return len([Block(width * 700) for _ in range(3)])


shell = Shell()
for number in range(120):
    shell.run(number, "plot(%d)" % (100 + number % 7) if number % 3 else "smooth(%d)" % (90 + number % 5))
