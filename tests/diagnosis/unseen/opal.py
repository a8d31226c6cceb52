# SPDX-License-Identifier: MIT
"""A trainer, and beside it on the same device an evaluator that holds four copies of the model. The trainer does not fit any more."""
import ctypes
import os
import sys

rt = ctypes.CDLL("libcudart.so.13")


def vram(mib):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)):
        raise MemoryError(f"{mib} MiB")
    return p


class Evaluator:
    def __init__(self):
        self.copies = [vram(1100) for _ in range(4)]  # CULPRIT


class Trainer:
    def __init__(self):
        self.weights, self.moments = vram(1000), None

    def step(self, number):
        rt.cudaFree(vram(120))
        if number == 30:
            self.moments = [vram(1000) for _ in range(3)]  # CULPRIT


def evaluator(ready, stop):
    evaluator = Evaluator()
    os.write(ready, b"r")
    os.read(stop, 1)
    return evaluator


def main():
    (ready, told), (stop, stopper) = os.pipe(), os.pipe()
    if os.fork() == 0:
        evaluator(told, stop)
        os._exit(0)
    os.read(ready, 1)
    trainer = Trainer()
    try:
        for number in range(60):
            trainer.step(number)
    except MemoryError as error:
        print("no memory:", error, file=sys.stderr)
        return 1
    finally:
        os.write(stopper, b"s")
        os.wait()
    return 0


sys.exit(main())
