# SPDX-License-Identifier: MIT
"""Segments pictures. One of them is a panorama, and its masks take as much as everything else together."""
import ctypes
import time

lib = ctypes.CDLL("libcudart.so.13")


class Image:
    def __init__(self, height, width):
        self.height, self.width = height, width


class GPUArray:
    def __init__(self, n):
        self.address = ctypes.c_void_p()
        if lib.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(n)):
            raise MemoryError(n)

    def __del__(self):
        lib.cudaFree(self.address)


def masks(image, classes=12):
    return GPUArray(image.height * image.width * classes)  # CULPRIT


def segment(image):
    pixels = GPUArray(image.height * image.width * 3)
    features = [GPUArray(image.height * image.width // (4 << level)) for level in range(4)]
    return masks(image), pixels, features


def main():
    model = [GPUArray(25 << 20) for _ in range(5)]
    for number in range(260):
        picture = Image(480, 640) if number != 171 else Image(3000, 16000)
        segment(picture)
        time.sleep(0.0005)
    return model


main()
