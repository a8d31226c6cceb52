#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small training in which the blocks of each role have a size of their own.  Only a step's batch and activations are freed before the
end.  The last step ends after the forward pass, at the peak.  With a number above 1: trains so many models in turn and frees gradients after each step."""
import ctypes
import sys

runtime = ctypes.CDLL("libcudart.so.13")
PARAMETER, GRADIENT, MOMENT, ACTIVATION, SCRATCH, BATCH, LAYERS = 1 << 20, 3 << 19, 5 << 18, 7 << 20, 11 << 18, 13 << 18, 4


class Buffer:
    def __init__(self, nbytes):
        self.pointer = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        runtime.cudaFree(self.pointer)


class Layer:
    def __init__(self):
        self.weight, self.gradient = Buffer(PARAMETER), None

    def forward(self, x):
        return Buffer(ACTIVATION)

    def backward(self):
        if self.gradient is None:
            self.gradient = Buffer(GRADIENT)


class Adam:
    def __init__(self, layers):
        self.layers, self.moments = layers, None

    def step(self):
        if self.moments is None:
            self.moments = [(Buffer(MOMENT), Buffer(MOMENT)) for _ in self.layers]


def convolution_workspace():
    return Buffer(SCRATCH)


def train(last, give_back):
    layers = [Layer() for _ in range(LAYERS)]
    optimizer, scratch = Adam(layers), convolution_workspace()
    for step in range(6):
        batch = Buffer(BATCH)
        activations = [layer.forward(batch) for layer in layers]
        if last and step == 5:
            return layers, optimizer, scratch, batch, activations
        del activations
        for layer in layers:
            layer.backward()
        optimizer.step()
        for layer in layers if give_back else ():
            layer.gradient = None


def main(models):
    for model in range(models):
        held = train(model == models - 1, models > 1)
    return held


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1)
