# SPDX-License-Identifier: MIT
"""Resolution rises from 64 to 256 in four phases, without labels; each phase gives back what the one before had."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def image(side, channels):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(side * side * channels * 4)):
        raise MemoryError
    return p


def phase(side, steps):
    buffers = [image(side, 64) for _ in range(3)]
    for _ in range(steps):
        batch = [image(side, 48) for _ in range(4)]
        for p in batch:
            rt.cudaFree(p)
        time.sleep(0.0003)
    for p in buffers:
        rt.cudaFree(p)


weights = image(1024, 16)
for side in (64, 128, 192, 256):
    phase(side, 80)
rt.cudaFree(weights)
