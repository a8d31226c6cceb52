# SPDX-License-Identifier: MIT
"""Training on device 0; a watcher mirrors each batch to device 1 and compares it with the last one. It never lets go of any."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class on:
    def __init__(self, device):
        self.device = device

    def __enter__(self):
        rt.cudaSetDevice(self.device)

    def __exit__(self, *_):
        rt.cudaSetDevice(0)


class Tensor:
    def __init__(self, nbytes, device=0):
        self.device, self.at = device, ctypes.c_void_p()
        with on(device):
            assert rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)) == 0

    def to(self, device):
        return Tensor(425984, device)

    def __del__(self):
        with on(self.device):
            rt.cudaFree(self.at)


class Watcher:
    def __init__(self):
        self.previous, self.seen = None, []
        self.reference = Tensor(30 << 20, 1)

    def watch(self, batch):
        mirrored = batch.to(1)  # CULPRIT
        self.seen.append(self.previous)  # CULPRIT
        self.previous = mirrored


def main():
    model, watcher = [Tensor(4 << 20) for _ in range(12)], Watcher()
    for _ in range(220):
        batch = Tensor(425984)
        activations = [Tensor(700000) for _ in model[:4]]
        watcher.watch(batch)
        del batch, activations
        time.sleep(0.001)


main()
