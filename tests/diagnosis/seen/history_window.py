# SPDX-License-Identifier: MIT
"""A generator yields each frame with the eighty before it, in a deque that is full after a third of the run."""
import collections
import ctypes

gpu = ctypes.CDLL("libcudart.so.12")


class Image:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if gpu.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        gpu.cudaFree(self.at)


def camera(count):
    for number in range(count):
        yield Image(190000)


def with_history(images, length):
    history = collections.deque(maxlen=length)
    for image in images:
        history.append(image)
        yield list(history)


def flow(images):
    field = Image(380000)
    return field


fields = collections.deque((flow(images) for images in with_history(camera(260), 80)), maxlen=2)
