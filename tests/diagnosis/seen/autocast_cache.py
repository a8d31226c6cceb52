# SPDX-License-Identifier: MIT
"""Mixed precision with a cache of casts by the weight's identity; a moving average makes new weights every step, and no cast is ever used twice."""
import contextlib
import ctypes

lib = ctypes.CDLL("libcudart.so.12")


class Buffer:
    __slots__ = ("p", "n")

    def __init__(self, n):
        self.p, self.n = ctypes.c_void_p(), n
        code = lib.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n))
        if code:
            raise MemoryError(code)

    def __del__(self):
        lib.cudaFree(self.p)


class Autocast:
    def __init__(self):
        self.casts = {}
        self.depth = 0

    @contextlib.contextmanager
    def __call__(self):
        self.depth += 1
        try:
            yield self
        finally:
            self.depth -= 1

    def half(self, weight):
        if weight not in self.casts:
            self.casts[weight] = Buffer(weight.n // 2)  # CULPRIT
        return self.casts[weight]


class Average:
    """The evaluated weights are new buffers each time."""
    def __init__(self, weights):
        self.weights = weights

    def swap(self):
        return [Buffer(w.n) for w in self.weights]


def linear(x, weight):
    return Buffer(x.n)


def train(steps):
    autocast = Autocast()
    average = Average([Buffer(300000) for _ in range(3)])
    for _ in range(steps):
        x = Buffer(65536)
        with autocast():
            for weight in average.swap():
                x = linear(x, autocast.half(weight))


train(120)
