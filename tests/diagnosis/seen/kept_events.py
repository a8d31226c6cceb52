# SPDX-License-Identifier: MIT
"""A profiler keeps two events for every step."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


def check(error):
    if error:
        raise RuntimeError(error)


class Event:
    def __init__(self):
        self.handle = ctypes.c_void_p()
        check(rt.cudaEventCreateWithFlags(ctypes.byref(self.handle), 2))


class Profiler:
    def __init__(self):
        self.spans = []

    def span(self):
        self.spans.append((Event(), Event()))  # CULPRIT


def main():
    profiler, activations = Profiler(), ctypes.c_void_p()
    for step in range(600):
        check(rt.cudaMalloc(ctypes.byref(activations), ctypes.c_size_t(1 << 20)))
        profiler.span()  # CULPRIT
        check(rt.cudaFree(activations))


main()
