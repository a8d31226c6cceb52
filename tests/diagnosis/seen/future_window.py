# SPDX-License-Identifier: MIT
"""A pool of threads works eight frames ahead; results are taken in order and dropped."""
import collections
import concurrent.futures
import ctypes
import time

device = ctypes.CDLL("libcudart.so.13")


class Surface:
    def __init__(self, size):
        self.handle = ctypes.c_void_p()
        if device.cudaMalloc(ctypes.byref(self.handle), ctypes.c_size_t(size)):
            raise MemoryError

    def __del__(self):
        device.cudaFree(self.handle)


def decode(number):
    bits = Surface(60000)
    time.sleep(.001)
    return Surface(460800)


def play(frames):
    window = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for number in range(frames):
            window.append(pool.submit(decode, number))
            if len(window) > 8:
                window.popleft().result()
        while window:
            window.popleft().result()


play(250)
