# SPDX-License-Identifier: MIT
"""A work area that is made anew when it is too small, so it grows for a while, and then never again."""
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.13")
random.seed(8)


def malloc(n):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
        raise MemoryError
    return p


class Workspace:
    def __init__(self):
        self.p, self.n, self.old = None, 0, []

    def need(self, n):
        if n > self.n:
            if self.p:
                rt.cudaFree(self.p)
            self.p, self.n = malloc(n), n
        return self.p


workspace = Workspace()
weights = [malloc(3 << 20) for _ in range(10)]
for step in range(500):
    workspace.need(random.randrange(1 << 20, 40 << 20))
    out = malloc(100000)
    rt.cudaFree(out)
rt.cudaFree(workspace.p)
for p in weights:
    rt.cudaFree(p)
