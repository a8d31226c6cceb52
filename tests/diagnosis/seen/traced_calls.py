# SPDX-License-Identifier: MIT
"""A decorator for timing that keeps each call's arguments and result, to print the slowest at the end."""
import ctypes
import functools
import time

rt = ctypes.CDLL("libcudart.so.12")
slowest = []


def traced(name=None):
    def decorate(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            begin = time.perf_counter()
            result = function(*args, **kwargs)
            slowest.append((time.perf_counter() - begin, name or function.__name__, args, result))  # CULPRIT
            return result
        return inner
    return decorate


class Dev:
    def __init__(self, kib):
        self.p = ctypes.c_void_p()
        assert not rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(kib << 10))

    def __del__(self):
        rt.cudaFree(self.p)


def load(number):
    return Dev(512)


@traced("resize")
def resize(image):
    return Dev(196)  # CULPRIT


def classify(image):
    features = Dev(88)
    return Dev(4)


def serve(requests):
    models = [Dev(2048), Dev(2048)]
    for number in range(requests):
        small = resize(load(number))  # CULPRIT
        classify(small)


serve(240)
slowest.sort(key=lambda row: -row[0])
