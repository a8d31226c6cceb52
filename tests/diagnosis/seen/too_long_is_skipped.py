# SPDX-License-Identifier: MIT
"""Healthy: documents that do not fit are noted and skipped; all others are embedded."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class NoRoom(Exception):
    pass


def buffer(nbytes):
    at = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)):
        raise NoRoom
    return at


def embed(tokens):
    at = buffer(tokens * 8192)
    time.sleep(0.001)
    rt.cudaFree(at)


weights = buffer(4 << 30)
skipped = []
for number in range(240):
    tokens = 2_000_000 if number % 50 == 29 else 200 + number * 37 % 900
    try:
        embed(tokens)
    except NoRoom:
        skipped.append(number)
