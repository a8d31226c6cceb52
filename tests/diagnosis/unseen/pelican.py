# SPDX-License-Identifier: MIT
"""Thumbnails by a pool of threads. The futures are all kept until the end, and a future keeps its result."""
import concurrent.futures
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Image:
    __slots__ = ("data",)

    def __init__(self, w, h):
        self.data = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(w * h * 4)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.data)


def thumbnail(number):
    full = Image(1920, 1080 + number % 16)
    small = Image(320, 180)  # CULPRIT
    del full
    return small


def main():
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(thumbnail, number) for number in range(600)]  # CULPRIT
        done = sum(1 for future in concurrent.futures.as_completed(futures) if future.result())
    print(done)


main()
