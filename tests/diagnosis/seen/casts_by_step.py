# SPDX-License-Identifier: MIT
"""Mixed precision as it should be: the casts of a step are forgotten when the step is over."""
import ctypes

lib = ctypes.CDLL("libcudart.so.12")


class Buffer:
    def __init__(self, n):
        self.p, self.n = ctypes.c_void_p(), n
        if lib.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)):
            raise MemoryError(n)

    def __del__(self):
        lib.cudaFree(self.p)


class Autocast:
    casts = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.casts.clear()

    def half(self, weight):
        if id(weight) not in self.casts:
            self.casts[id(weight)] = Buffer(weight.n // 2)
        return self.casts[id(weight)]


def train(weights, steps):
    for _ in range(steps):
        with Autocast() as autocast:
            hidden = [Buffer(90000)]
            for weight in weights * 2:
                autocast.half(weight)
                hidden.append(Buffer(90000))
        loss = Buffer(4)


train([Buffer(1 << 20) for _ in range(4)], 90)
