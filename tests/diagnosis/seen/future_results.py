# SPDX-License-Identifier: MIT
"""A pool of threads decodes frames; the list of futures is kept to the end to look for errors, and with each its result."""
import concurrent.futures
import ctypes
import time

device = ctypes.CDLL("libcudart.so.13")


class Surface:
    def __init__(self, width, height, planes=1):
        self.handle = ctypes.c_void_p()
        code = device.cudaMalloc(ctypes.byref(self.handle), ctypes.c_size_t(width * height * planes))
        if code:
            raise MemoryError

    def __del__(self):
        device.cudaFree(self.handle)


def decode(number):
    bits = Surface(640, 100)
    time.sleep(.001)
    return Surface(640, 360, 2)  # CULPRIT


def show(surface):
    overlay = Surface(1280, 720)


def play(frames):
    errors = []
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for first in range(0, frames, 6):
            futures = [pool.submit(decode, number) for number in range(first, first + 6)]  # CULPRIT
            errors += futures
            for future in futures:
                show(future.result())
    return [future.exception() for future in errors]


play(300)
