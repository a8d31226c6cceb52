# SPDX-License-Identifier: MIT
"""Layers are unfrozen one phase after another, each time with a new optimizer. The schedules keep the old ones and their moments."""
import ctypes
import time

cuda = ctypes.CDLL("libcudart.so.13")


def device_alloc(nbytes):
    pointer = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(nbytes)):
        raise RuntimeError("out of memory")
    return pointer


class Array:
    def __init__(self, nbytes):
        self.nbytes, self.pointer = nbytes, device_alloc(nbytes)

    def __del__(self):
        cuda.cudaFree(self.pointer)


class Adam:
    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.state = parameters, rate, {}

    def step(self):
        for parameter in self.parameters:
            if id(parameter) not in self.state:
                self.state[id(parameter)] = Array(parameter.nbytes), Array(parameter.nbytes)  # CULPRIT


class Schedule:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self):
        self.optimizer.rate *= 0.95


class Trainer:
    def __init__(self):
        self.layers = [Array(3 << 20) for _ in range(14)]
        self.schedules = []

    def unfreeze(self):
        optimizer = Adam(self.layers[-3:], 1e-3)
        self.schedules.append(Schedule(optimizer))  # CULPRIT
        return optimizer

    def run(self, phases):
        for _ in range(phases):
            optimizer = self.unfreeze()
            for _ in range(22):
                activations = [Array(1500000) for _ in range(4)]
                optimizer.step()
                del activations
                time.sleep(0.001)
            for schedule in self.schedules:
                schedule.step()


Trainer().run(12)
