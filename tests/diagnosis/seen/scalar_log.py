# SPDX-License-Identifier: MIT
"""Ten terms of a loss are logged; the logger keeps each as it is on the device."""
import ctypes

cudart = ctypes.CDLL("libcudart.so.13")


class Block:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            self.data = None
            raise MemoryError(size)

    def __del__(self):
        if self.data:
            cudart.cudaFree(self.data)


class Log:
    def __init__(self):
        self.rows = {}

    def scalar(self, name, size):
        self.rows.setdefault(name, []).append(Block(size))  # CULPRIT


log = Log()


def reconstruction(step):
    log.scalar("l1", 20_000)
    log.scalar("l2", 20_000)
    log.scalar("ssim", 20_000)


def perceptual(step):
    log.scalar("low", 20_000)
    log.scalar("middle", 20_000)
    if step % 2:
        log.scalar("high", 20_000)


def regularize(step):
    log.scalar("kl", 20_000)
    log.scalar("entropy", 20_000)
    log.scalar("norm", 20_000)
    log.scalar("total", 20_000)


for step in range(150):
    batch, activations = Block(900_000), [Block(400_000) for _ in range(5)]
    reconstruction(step)
    perceptual(step)
    regularize(step)
