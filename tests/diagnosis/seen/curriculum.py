# SPDX-License-Identifier: MIT
"""Sequences get longer as the training goes on; each step gives back what it took."""
import contextlib
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")
nvtx = ctypes.CDLL("libnvToolsExt.so.1")


@contextlib.contextmanager
def span(name):
    nvtx.nvtxRangePushA(name.encode())
    yield
    nvtx.nvtxRangePop()


class Memory:
    def __init__(self, nbytes):
        self.p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(nbytes)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.p)


def train_step(length):
    with span("forward"):
        activations = [Memory(length * 12288) for _ in range(8)]
    with span("backward"):
        gradients = [Memory(length * 4096) for _ in range(8)]
    return len(activations) + len(gradients)


def main():
    weights = [Memory(15 << 20) for _ in range(8)]
    for step in range(200):
        with span(f"step_{step}"):
            train_step(64 + 3 * step)
        time.sleep(0.0005)
    return weights


main()
