# SPDX-License-Identifier: MIT
"""The norms of a step are given back, until the warm-up of the log is over: from then on it keeps one of each step."""
import ctypes
import random

cudart = ctypes.CDLL("libcudart.so.13")
rng = random.Random(12)


class Tensor:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        cudart.cudaFree(self.data)


class Log:
    def __init__(self, begins):
        self.begins, self.rows = begins, []

    def write(self, step, norm):
        if step >= self.begins:
            self.rows.append(norm)  # CULPRIT


def gradients():
    return [Tensor(rng.randrange(50_000, 900_000)) for _ in range(6)]


def norm_of(parts):
    return Tensor(417_792)  # CULPRIT


log = Log(begins=330)
for step in range(440):
    log.write(step, norm_of(gradients()))  # CULPRIT
