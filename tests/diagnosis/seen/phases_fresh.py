# SPDX-License-Identifier: MIT
"""Healthy: each phase unfreezes one more layer and has an optimizer of its own; the old one goes with its moments."""
import ctypes
import time

cuda = ctypes.CDLL("libcudart.so.13")


class Array:
    def __init__(self, nbytes):
        self.nbytes, self.pointer = nbytes, ctypes.c_void_p()
        assert cuda.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        cuda.cudaFree(self.pointer)


class Adam:
    def __init__(self, parameters):
        self.parameters, self.state = parameters, {}

    def step(self):
        for parameter in self.parameters:
            if id(parameter) not in self.state:
                self.state[id(parameter)] = Array(parameter.nbytes), Array(parameter.nbytes)


def run(phases):
    layers = [Array(3 << 20) for _ in range(12)]
    for phase in range(phases):
        optimizer = Adam(layers[-1 - phase:])
        for _ in range(25):
            activations = [Array(1500000) for _ in range(4)]
            optimizer.step()
            del activations
            time.sleep(0.001)


run(10)
