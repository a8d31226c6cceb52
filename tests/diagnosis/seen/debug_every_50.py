# SPDX-License-Identifier: MIT
"""A game-playing agent. Every fiftieth step a picture of the board features is put aside for a debug panel nobody opens."""
import ctypes
import random

lib = ctypes.CDLL("libcudart.so.12")
random.seed(5)


def device_alloc(n):
    out = ctypes.c_void_p()
    err = lib.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(n))
    assert err == 0, err
    return out.value


def device_free(address):
    assert lib.cudaFree(ctypes.c_void_p(address)) == 0


class Panel:
    def __init__(self):
        self.pictures = {}

    def snap(self, step):
        self.pictures[step] = device_alloc(6 << 20)  # CULPRIT


class Agent:
    def __init__(self):
        self.net = device_alloc(48 << 20)
        self.panel = Panel()

    def act(self, step):
        features = device_alloc(random.randrange(64 << 10, 512 << 10))
        logits = device_alloc(19 * 19 * 4)
        if step % 50 == 0:
            self.panel.snap(step)  # CULPRIT
        device_free(features)
        device_free(logits)


agent = Agent()
for step in range(900):
    agent.act(step)
for picture in agent.panel.pictures.values():
    device_free(picture)
