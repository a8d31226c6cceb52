# SPDX-License-Identifier: MIT
"""Every sixty steps of a schedule an optimizer gets a new group of states for the same layers; the groups before are never dropped."""
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


class Optimizer:
    def __init__(self):
        self.groups = []

    def add_group(self, layers):
        self.groups.append([Block(2_300_000) for _ in range(layers)])  # CULPRIT

    def step(self, gradients):
        scratch = Block(300_000)
        return len(gradients), scratch


def gradients_of(layers):
    return [Block(150_000) for _ in range(layers)]


optimizer = Optimizer()
for step in range(417):
    if step % 60 == 0 and step:
        optimizer.add_group(6)
    optimizer.step(gradients_of(6))
