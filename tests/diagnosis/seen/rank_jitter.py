# SPDX-License-Identifier: MIT
"""Six ranks, whose batches differ by a few percent as sentences do."""
import ctypes
import os
import random
import time

rt = ctypes.CDLL("libcudart.so.12")


def cuda_empty(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


def main():
    rank = int(os.environ["RANK"])
    random.seed(rank)
    rt.cudaSetDevice(int(os.environ["LOCAL_RANK"]))
    weights = [cuda_empty(26 << 20) for _ in range(8)]
    for step in range(60):
        tokens = random.randint(3900, 4096)
        layers = [cuda_empty(tokens * 1024) for _ in range(6)]
        time.sleep(0.002)
        for p in layers:
            rt.cudaFree(p)
    for p in weights:
        rt.cudaFree(p)


main()
