# SPDX-License-Identifier: MIT
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


def allocate(size):
    pointer = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)):
        raise MemoryError(f"{size >> 20} MiB")
    return pointer


class Image:
    def __init__(self, width, height, pointer):
        self.width, self.height, self.pointer = width, height, pointer

    @classmethod
    def of(cls, width, height, channels=4):
        return cls(width, height, allocate(width * height * channels))


def release(*images):
    for image in images:
        rt.cudaFree(image.pointer)
