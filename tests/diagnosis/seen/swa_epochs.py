# SPDX-License-Identifier: MIT
"""Training with restarts: each epoch makes a new optimizer, whose moments the scheduler's list of old optimizers keeps."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")
SHAPES = [(512, 1024), (1024, 1024), (1024, 256), (256, 4096), (4096, 64)]


def device_array(rows, columns, width=4):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(rows * columns * width)):
        raise MemoryError
    return Buffer(p)


class Buffer:
    def __init__(self, p):
        self.p = p

    def __del__(self):
        rt.cudaFree(self.p)


class Momentum:
    def __init__(self, shapes):
        self.shapes, self.state = shapes, {}

    def step(self):
        for index, shape in enumerate(self.shapes):
            if index not in self.state:
                self.state[index] = device_array(*shape, width=8)  # CULPRIT: asked here
        scratch = device_array(64, 1024)
        del scratch


class Restarts:
    def __init__(self):
        self.seen = []

    def attach(self, optimizer):
        self.seen.append(optimizer)  # CULPRIT: kept here
        return optimizer


weights = [device_array(*shape) for shape in SHAPES]
schedule = Restarts()
for epoch in range(9):
    optimizer = schedule.attach(Momentum(SHAPES))
    for batch in range(14):
        inputs = device_array(32, 3000)
        hidden = [device_array(32, columns) for _, columns in SHAPES]
        optimizer.step()
        time.sleep(0.0005)
        del hidden, inputs
