# SPDX-License-Identifier: MIT
"""Trains with batches of 32 and evaluates on the whole test set at once."""
import ctypes
import sys

cudart = ctypes.CDLL("libcudart.so.12")


class OutOfMemoryError(RuntimeError):
    pass


class T:
    def __init__(self, rows, columns):
        self.size, self.ptr = rows * columns * 4, ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(self.size)):
            self.ptr = None
            raise OutOfMemoryError(f"tried to allocate {self.size >> 20} MiB")

    def __del__(self):
        if self.ptr:
            cudart.cudaFree(self.ptr)


class Net:
    widths = (784, 4096, 4096, 10)

    def __init__(self):
        self.weights = [T(a, b) for a, b in zip(self.widths, self.widths[1:])]

    def forward(self, rows):
        return [T(rows, width) for width in self.widths]


def train(net, batches):
    for _ in range(batches):
        activations = net.forward(32)
        gradients = [T(a, b) for a, b in zip(net.widths, net.widths[1:])]
        del activations, gradients


def test(net, rows):
    return net.forward(rows)  # CULPRIT


net = Net()
for epoch in range(3):
    train(net, 100)
try:
    test(net, 600_000)  # CULPRIT
except OutOfMemoryError as error:
    sys.exit(f"mango: {error}")
