# SPDX-License-Identifier: MIT
"""Finds the largest batch that fits by doubling, takes a little less, and then trains with it."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class OutOfMemory(RuntimeError):
    pass


class Tensor:
    def __init__(self, nbytes):
        self.p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(nbytes)):
            rt.cudaGetLastError()
            raise OutOfMemory(nbytes)

    def __del__(self):
        if self.p.value:
            rt.cudaFree(self.p)


class Model:
    def __init__(self):
        self.weights = [Tensor(40 << 20) for _ in range(4)]

    def forward(self, batch):
        x = [Tensor(batch * (3 << 20))]
        for _ in self.weights:
            x.append(Tensor(batch * (2 << 20)))
        return x


def fits(model, batch):
    try:
        model.forward(batch)
    except OutOfMemory:
        return False
    return True


def find_batch(model):
    batch = 8
    while fits(model, batch * 2):
        batch *= 2
    return batch


class Trainer:
    def __init__(self, model, batch):
        self.model, self.batch = model, batch

    def step(self):
        activations = self.model.forward(self.batch)
        gradients = [Tensor(40 << 20) for _ in self.model.weights]
        return len(activations) + len(gradients)

    def fit(self, steps):
        for _ in range(steps):
            self.step()


model = Model()
Trainer(model, find_batch(model) // 2).fit(20)
