# SPDX-License-Identifier: MIT
"""Kernels of a graph library call malloc on the device, so its heap is set to 5 GiB; the graph then does not fit beside it."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.13")
HEAP = 2  # cudaLimitMallocHeapSize


def check(code):
    if code:
        raise RuntimeError("cuda error %d" % code)


def malloc(nbytes):
    p = ctypes.c_void_p()
    check(rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)))
    return p


def configure(heap_mb):
    check(rt.cudaDeviceSetLimit(HEAP, ctypes.c_size_t(heap_mb << 20)))  # CULPRIT


def load_graph(partitions):
    return [(malloc(220 << 20), malloc(40 << 20)) for _ in range(partitions)]


configure(5120)
scratch = malloc(16 << 20)
try:
    load_graph(12)
except RuntimeError as error:
    sys.exit(str(error))
