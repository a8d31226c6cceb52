# SPDX-License-Identifier: MIT
"""Managed matrices with views. A view knows its matrix and the matrix its views, and the collector of cycles was switched off for speed."""
import ctypes
import gc

gc.disable()
rt = ctypes.CDLL("libcudart.so.13")


def managed(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMallocManaged(ctypes.byref(p), ctypes.c_size_t(nbytes), 1):
        raise MemoryError
    return p


class Matrix:
    def __init__(self, rows, columns):
        self.data = managed(rows * columns * 8)
        self.views = []

    def __del__(self):
        rt.cudaFree(self.data)

    def transposed(self):
        self.views.append(View(self))
        return self.views[-1]


class View:
    def __init__(self, matrix):
        self.matrix = matrix


def solve(system):
    a = Matrix(100, 100)  # CULPRIT
    b = Matrix(1, 333)
    a.transposed()
    return b


for system in range(700):
    solve(system)
