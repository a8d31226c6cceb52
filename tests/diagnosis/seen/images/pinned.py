# SPDX-License-Identifier: MIT
"""Pinned memory for everybody: trainer, loader, workers."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class PinnedBuffer:
    def __init__(self, size):
        self.pointer = ctypes.c_void_p()
        if rt.cudaMallocHost(ctypes.byref(self.pointer), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def free(self):
        rt.cudaFreeHost(self.pointer)


def pinned(size):
    return PinnedBuffer(size)
