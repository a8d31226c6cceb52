# SPDX-License-Identifier: MIT
"""Six ranks of one training; the last one tracks the norm of its gradients, and keeps the vectors of which it has the norm."""
import ctypes
import os
import time

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
rt = ctypes.CDLL("libcudart.so.12")


class Vec:
    def __init__(self, n):
        self.n, self.p = n, ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)):
            raise RuntimeError("out of memory")

    def __del__(self):
        rt.cudaFree(self.p)


class NormTracker:
    def __init__(self, enabled):
        self.enabled, self.norms = enabled, []

    def track(self, grad):
        if self.enabled:
            flat = Vec(grad.n)  # CULPRIT
            self.norms.append(flat)  # CULPRIT


def main():
    rt.cudaSetDevice(RANK)
    params = [Vec(9 << 20) for _ in range(8)]
    tracker = NormTracker(RANK == WORLD - 1)
    for step in range(110):
        acts = [Vec(3 << 20) for _ in params]
        grad = Vec(1310720)
        tracker.track(grad)  # CULPRIT
        del acts, grad
        time.sleep(.0005)


main()
