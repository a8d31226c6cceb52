# SPDX-License-Identifier: MIT
"""pool.py GIB: a pool keeps what was freed, up to its release threshold."""
import ctypes
import sys
import time

rt = ctypes.CDLL("libcudart.so.13")
pool, threshold = ctypes.c_void_p(), ctypes.c_uint64(1 << 62)


def configure():
    assert not rt.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 0)
    assert not rt.cudaMemPoolSetAttribute(pool, 4, ctypes.byref(threshold))


def build(parts):
    blocks = [ctypes.c_void_p() for _ in range(parts)]
    for block in blocks:
        assert not rt.cudaMallocAsync(ctypes.byref(block), ctypes.c_size_t(128 << 20), None)
    for block in blocks:
        assert not rt.cudaFreeAsync(block, None)
    rt.cudaStreamSynchronize(None)


configure()
build(8 * int(sys.argv[1]))
time.sleep(0.4)
