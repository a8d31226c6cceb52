# SPDX-License-Identifier: MIT
"""Loads one module for each of thirty operators while the graph is traced, and replays the graph after that."""
import ctypes

cuda, cudart = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.13")


class Operator:
    def __init__(self, name):
        self.module = ctypes.c_void_p()
        if cuda.cuModuleLoadData(ctypes.byref(self.module), name.encode() + bytes(32)):
            raise RuntimeError(name)
        self.output = None

    def __call__(self, n):
        out = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(n)):
            raise MemoryError
        cudart.cudaFree(out)


cudart.cudaFree(None)
operators = [Operator(f"op{number}") for number in range(30)]
for replay in range(60):
    for number, operator in enumerate(operators):
        operator(200_000 + 1000 * number)
for operator in operators:
    cuda.cuModuleUnload(operator.module)
