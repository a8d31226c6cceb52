# SPDX-License-Identifier: MIT
"""Masks for crops, cached by functools.lru_cache without a bound; the key holds a float that is almost never seen twice."""
import ctypes
import functools
import random

rt = ctypes.CDLL("libcudart.so.13")
rng = random.Random(5)


def zeros(*shape):
    nbytes = 4
    for n in shape:
        nbytes *= n
    where = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(where), ctypes.c_size_t(nbytes)):
        raise MemoryError(shape)
    return where


@functools.lru_cache(maxsize=None)
def mask(height, width, sigma):
    return zeros(height, width)  # CULPRIT


@functools.lru_cache(maxsize=None)
def grid(height, width):
    return zeros(2, height, width)


def crop(image):
    height, width = 64 * rng.randint(1, 4), 64 * rng.randint(1, 4)
    m = mask(height, width, round(rng.gauss(1, .3), 2 if image % 4 == 0 else 5))
    g = grid(height, width)
    out = zeros(3, height, width)
    rt.cudaFree(out)
    return m, g


image_buffer = zeros(3, 2000, 1500)
for image in range(300):
    crop(image)
