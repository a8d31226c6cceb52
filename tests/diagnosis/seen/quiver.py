# SPDX-License-Identifier: MIT
"""Gradients are accumulated in half precision. At step 88 of the hundred the norm overflows, and one branch makes full copies of everything."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def half(n):
    p = ctypes.c_void_p()
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(2 * n)) == 0
    return p


def single(n):
    p = ctypes.c_void_p()
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(4 * n)) == 0
    return p


def free(*blocks):
    for block in blocks:
        rt.cudaFree(block)


def unscale(sizes):
    return [single(8 * n) for n in sizes]  # CULPRIT


def step(number, sizes):
    gradients = [half(n) for n in sizes]
    time.sleep(0.001)
    if number == 88:
        copies = unscale(sizes)  # CULPRIT
        free(*copies)
    free(*gradients)


sizes = (2_000_000, 5_000_000, 3_000_000, 1_000_000)
weights = [half(n) for n in sizes]
for number in range(120):
    step(number, sizes)
free(*weights)
