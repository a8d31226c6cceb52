# SPDX-License-Identifier: MIT
"""Saving copies the model and the optimizer's state on the device, which the steps before leave no room for."""
import ctypes
import sys
import time

rt = ctypes.CDLL("libcudart.so.12")


class Array:
    def __init__(self, size):
        self.size, self.data = size, ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            sys.exit("out of memory")

    def copy(self):
        return Array(self.size)

    def __del__(self):
        rt.cudaFree(self.data)


def step(batch):
    return sum(a.size for a in [Array(batch << 15) for _ in range(12)])


def save(state):
    return [a.copy() for a in state]  # CULPRIT: a copy of all there is


state = [Array(24 << 20) for _ in range(60)]
for number in range(200):
    step(512 + number * 37 % 512)
    time.sleep(0.001)
save(state)
