# SPDX-License-Identifier: MIT
"""The batch doubles every second epoch, as a recipe for large-batch training says, until the activations do not fit."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.12")


def new(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        sys.exit("out of memory")
    return p


class Layer:
    def __init__(self):
        self.weight = new(8 << 20)

    def forward(self, batch):
        return new(batch << 18)  # CULPRIT: asked here


def train(layers, batch):
    activations = [layer.forward(batch) for layer in layers]  # CULPRIT: asked here
    for a in activations:
        rt.cudaFree(a)


layers = [Layer() for _ in range(12)]
batch = 32
for epoch in range(20):
    for step in range(6):
        train(layers, batch)
    if epoch % 2:
        batch *= 2  # CULPRIT: grows here
