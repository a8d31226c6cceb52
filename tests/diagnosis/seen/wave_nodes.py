# SPDX-License-Identifier: MIT
"""A solver on an adaptive mesh is asked for ninety source positions; the nodes of a mesh are looked up by their place, a float."""
import ctypes
import random

cudart = ctypes.CDLL("libcudart.so.13")
random.seed(21)


def take(size):
    p = ctypes.c_void_p()
    if cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)):
        raise MemoryError(size)
    return p


class Nodes:
    def __init__(self):
        self.at = {}

    def node(self, x):
        if x not in self.at:
            self.at[x] = take(9216)  # CULPRIT
        return self.at[x]

    def close(self):
        for node in self.at.values():
            cudart.cudaFree(node)


class Solver:
    def __init__(self, nodes):
        self.nodes = nodes

    def refine(self, source):
        x = source
        for level in range(random.randrange(50, 70)):
            self.nodes.node(x)  # CULPRIT
            x += random.random() / (1 << level % 8)

    def run(self, source):
        field = take(4 << 20)
        self.refine(source)
        trace = take(64 << 10)
        cudart.cudaFree(field)
        cudart.cudaFree(trace)


nodes = Nodes()
solver = Solver(nodes)
for shot in range(90):
    solver.run(shot * 0.25)
nodes.close()
