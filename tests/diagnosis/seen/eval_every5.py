# SPDX-License-Identifier: MIT
"""Forty steps; every fifth is followed by an evaluation whose predictions stay in a dictionary by step, for a plot that is never drawn."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class Tensor:
    def __init__(self, shape, itemsize=4):
        size = itemsize
        for n in shape:
            size *= n
        self.data = ctypes.c_void_p()
        code = rt.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size))
        if code:
            raise RuntimeError(code)

    def __del__(self):
        rt.cudaFree(self.data)


class Net:
    def __init__(self):
        self.weights = [Tensor((1024, 1024)) for _ in range(8)]

    def __call__(self, batch):
        x = batch
        for _ in self.weights:
            x = Tensor((256, 1024))
        return x


def concatenate(parts):
    return Tensor((256 * len(parts), 1024))


def evaluate(net):
    parts = [net(Tensor((256, 1024))) for _ in range(10)]
    return concatenate(parts)  # CULPRIT: asked here


net = Net()
curves = {}
for step in range(1, 41):
    loss = net(Tensor((256, 1024)))
    time.sleep(0.001)
    if step % 5 == 0:
        curves[step] = evaluate(net)  # CULPRIT: kept here
