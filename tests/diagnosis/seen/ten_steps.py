# SPDX-License-Identifier: MIT
"""Ten steps. The gradients come with the first, the optimizer's state with its first step, a moving average with the sixth; then nothing is new."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Var:
    def __init__(self, numel):
        self.numel, self.grad, self.state = numel, None, {}
        self.p = alloc(numel)


def alloc(numel):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(numel * 4)):
        raise MemoryError
    return p


def backward(params):
    for v in params:
        v.grad = v.grad or alloc(v.numel)


def adam(params):
    for v in params:
        for name in ("m", "v"):
            if name not in v.state:
                v.state[name] = alloc(v.numel)


def average(params):
    for v in params:
        if "ema" not in v.state:
            v.state["ema"] = alloc(v.numel)


params = [Var(1000 * (i + 1)) for i in range(30)]
for step in range(10):
    activations = [alloc(200000) for _ in range(6)]
    for a in activations:
        rt.cudaFree(a)
    backward(params)
    adam(params)
    if step > 4:
        average(params)
