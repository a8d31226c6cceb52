# SPDX-License-Identifier: MIT
"""Numbered iterations with a checkpoint every thirtieth, which copies the weights to a staging area and frees it."""
import contextlib
import ctypes
import time

nvtx, rt = ctypes.CDLL("libnvToolsExt.so.1"), ctypes.CDLL("libcudart.so.12")


@contextlib.contextmanager
def nv(name):
    nvtx.nvtxRangePushA(name.encode())
    yield
    nvtx.nvtxRangePop()


def buf(n):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
        raise MemoryError
    return p


weights = [buf(18 << 20) for _ in range(7)]
for number in range(180):
    with nv(f"iteration_{number}"):
        rt.cudaFree(buf(33 << 20))
    if number % 30 == 29:
        with nv("checkpoint"):
            copies = [buf(18 << 20) for _ in weights]
            for p in copies:
                rt.cudaFree(p)
    time.sleep(0.0005)
