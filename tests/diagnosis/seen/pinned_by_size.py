# SPDX-License-Identifier: MIT
"""Uploads are staged in pinned memory that is kept by size. Documents have any length, so that hardly any buffer is used twice."""
import ctypes
import random
import time

cuda = ctypes.CDLL("libcudart.so.12")


class Staging:
    def __init__(self):
        self.by_size = {}

    def pinned(self, nbytes):
        at = ctypes.c_void_p()
        assert cuda.cudaHostAlloc(ctypes.byref(at), ctypes.c_size_t(nbytes), 0) == 0
        return at

    def get(self, nbytes):
        if nbytes not in self.by_size:
            self.by_size[nbytes] = self.pinned(nbytes)  # CULPRIT
        return self.by_size[nbytes]


def upload(staging, length):
    staging.get(4 * length + 400000)  # CULPRIT
    at = ctypes.c_void_p()
    assert cuda.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(4 * length)) == 0
    cuda.cudaFree(at)


def main():
    rng, staging = random.Random(9), Staging()
    for _ in range(320):
        upload(staging, rng.randrange(1000, 90000))
        time.sleep(0.001)


main()
