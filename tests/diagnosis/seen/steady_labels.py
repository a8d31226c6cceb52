# SPDX-License-Identifier: MIT
"""Numbered steps with parts, whose sizes go up and down with the batch, and nothing that stays."""
import contextlib
import ctypes
import random
import time

nvtx = ctypes.CDLL("libnvToolsExt.so.1")
rt = ctypes.CDLL("libcudart.so.13")
random.seed(21)


@contextlib.contextmanager
def range_of(name):
    nvtx.nvtxRangePushA(name.encode())
    yield
    nvtx.nvtxRangePop()


def block(kib):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(kib << 10)):
        raise MemoryError
    return p


weights = [block(20000) for _ in range(4)]
for step in range(150):
    with range_of(f"step_{step}"):
        batch = random.randint(20, 60)
        with range_of("forward"):
            kept = [block(batch * 50) for _ in range(5)]
        with range_of("backward"):
            for p in kept:
                rt.cudaFree(p)
    time.sleep(0.0005)
for p in weights:
    rt.cudaFree(p)
