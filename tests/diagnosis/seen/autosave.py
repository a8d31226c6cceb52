# SPDX-License-Identifier: MIT
"""A thread saves the weights every few steps. It takes a copy first, and the copies wait for a disk that is slow."""
import ctypes
import queue
import threading

rt = ctypes.CDLL("libcudart.so.12")


class Tensor:
    def __init__(self, size):
        self.size, self.pointer = size, ctypes.c_void_p()
        assert not rt.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(size))

    def clone(self):
        return Tensor(self.size)

    def __del__(self):
        rt.cudaFree(self.pointer)


class Autosave(threading.Thread):
    def __init__(self, weights):
        super().__init__(daemon=True)
        self.weights, self.wanted, self.unsaved, self.done = weights, queue.Queue(), [], threading.Event()

    def run(self):
        while (step := self.wanted.get()) is not None:
            self.save(step)
            self.wanted.task_done()
        self.done.set()

    def save(self, step):
        copy = [weight.clone() for weight in self.weights]  # CULPRIT
        self.unsaved.append((step, copy))  # CULPRIT


def forward(weights):
    activations = [Tensor(weight.size // 2) for weight in weights]
    return len(activations)


def train(steps):
    weights = [Tensor(size << 10) for size in (512, 768, 768, 96)]
    autosave = Autosave(weights)
    autosave.start()
    for step in range(steps):
        forward(weights)
        if step % 10 == 9:
            autosave.wanted.put(step)
            autosave.wanted.join()
    autosave.wanted.put(None)
    autosave.done.wait()


train(900)
