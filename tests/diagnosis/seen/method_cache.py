# SPDX-License-Identifier: MIT
"""Positional encodings are cached by length and by the object that asks, which is a new one for each request."""
import contextlib
import ctypes
import functools
import random

rt = ctypes.CDLL("libcudart.so.13")


class Buffer:
    __slots__ = ("address",)

    def __init__(self, size):
        self.address = ctypes.c_void_p()
        assert rt.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(size)) == 0

    def __del__(self):
        rt.cudaFree(self.address)


def logged(function):
    @functools.wraps(function)
    def inner(*args, **keywords):
        return function(*args, **keywords)
    return inner


@logged
def zeros(*shape, itemsize=4):
    size = itemsize
    for n in shape:
        size *= n
    return Buffer(size)


@contextlib.contextmanager
def scratch(size):
    buffer = zeros(size)
    yield buffer
    del buffer


class Request:
    def __init__(self, length):
        self.length = length

    @functools.lru_cache(maxsize=None)  # CULPRIT
    def encoding(self, width):
        return zeros(48, width)  # CULPRIT

    def answer(self):
        with scratch(self.length * 256):
            return self.encoding(512)


def serve():
    picker = random.Random(4)
    weights = [zeros(1024, 1024) for _ in range(6)]
    for number in range(700):
        Request(picker.randrange(100, 900)).answer()
    return weights


serve()
