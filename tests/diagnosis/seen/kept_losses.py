# SPDX-License-Identifier: MIT
"""A small regression; the mean loss is printed at the end."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.12")


class Tensor:
    def __init__(self, *shape, itemsize=4):
        self.nbytes = itemsize
        for n in shape:
            self.nbytes *= n
        self.ptr = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(self.nbytes)):
            raise MemoryError("out of memory")

    def __del__(self):
        rt.cudaFree(self.ptr)


class Linear:
    def __init__(self, fan_in, fan_out):
        self.weight = Tensor(fan_in, fan_out)
        self.grad = None

    def __call__(self, x, batch, fan_out):
        self.saved = x
        return Tensor(batch, fan_out)

    def backward(self):
        if self.grad is None:
            self.grad = Tensor(self.weight.nbytes // 4)
        self.saved = None


def mse(prediction, target):
    return Tensor(256, 128)


def train(epochs=3, steps=120):
    layers = [Linear(1024, 1024) for _ in range(4)]
    target = Tensor(256, 1024)
    history = []
    for epoch in range(epochs):
        for step in range(steps):
            x = Tensor(256, 1024)
            for layer in layers:
                x = layer(x, 256, 1024)
            loss = mse(x, target)  # CULPRIT
            for layer in reversed(layers):
                layer.backward()
            history.append(loss)  # CULPRIT
            time.sleep(0.0005)
    print("mean of", len(history))


train()
