# SPDX-License-Identifier: MIT
"""Keeps the best model of each epoch so that it can be averaged later. Every epoch is the best so far."""
import ctypes

cuda = ctypes.CDLL("libcudart.so.13")


def checked(code, what):
    if code:
        raise RuntimeError(f"{what} failed: {code}")


def _raw(nbytes):
    p = ctypes.c_void_p()
    checked(cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)), "cudaMalloc")
    return p


def release(p):
    checked(cuda.cudaFree(p), "cudaFree")


class Model:
    sizes = (3 << 20, 5 << 20, 700 << 10, 96 << 10)

    def __init__(self):
        self.parameters = [_raw(n) for n in self.sizes]

    def state_dict(self):
        return [_raw(n) for n in self.sizes]  # CULPRIT

    def forward(self):
        work = [_raw(n // 2) for n in self.sizes]
        for p in work:
            release(p)


def run_epoch(model):
    for _ in range(25):
        model.forward()


def main():
    model, best, score = Model(), [], 0.0
    for epoch in range(14):
        run_epoch(model)
        now = 1 - 1 / (epoch + 2)
        if now > score:
            score = now
            best.append(model.state_dict())  # CULPRIT
    for snapshot in best:
        for p in snapshot:
            release(p)


main()
