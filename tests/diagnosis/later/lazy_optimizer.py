# SPDX-License-Identifier: MIT
"""Gradients come with the first backward pass, moments with the first step of the optimizer, and a checkpoint now and then."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


class T:
    def __init__(self, n):
        self.n, self.p, self.grad, self.state = n, ctypes.c_void_p(), None, None
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)):
            raise MemoryError(n)

    def __del__(self):
        rt.cudaFree(self.p)


def forward(params):
    return [T(p.n * 2) for p in params]


def backward(params, saved):
    for p in reversed(params):
        saved.pop()
        p.grad = p.grad or T(p.n)


def adam(params):
    for p in params:
        p.state = p.state or (T(p.n), T(p.n))


def checkpoint(params):
    return sum(T(p.n).n for p in params)


params = [T(250000 + 1000 * i) for i in range(24)]
for step in range(80):
    backward(params, forward(params))
    if step >= 10:
        adam(params)
    if step % 25 == 24:
        checkpoint(params)
