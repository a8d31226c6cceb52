# SPDX-License-Identifier: MIT
"""Handles are freed by weakref.finalize, whose callback is a method of the object that it waits for: none is collected before the end."""
import ctypes
import weakref

so = ctypes.CDLL("libcudart.so.12")


class Handle:
    def __init__(self, size):
        self.pointer = ctypes.c_void_p()
        if so.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def release(self):
        if self.pointer:
            so.cudaFree(self.pointer)
            self.pointer = None


class Workspace(Handle):
    def __init__(self, size):
        super().__init__(size)
        weakref.finalize(self, self.release)  # CULPRIT


def convolve(image, kernel):
    workspace = Workspace(kernel * 50000)  # CULPRIT
    out = Handle(120000)
    out.release()


def filters():
    image = Handle(4 << 20)
    for number in range(330):
        convolve(image, 3)
    image.release()


filters()
