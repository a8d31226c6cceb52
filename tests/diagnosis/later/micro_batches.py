# SPDX-License-Identifier: MIT
"""Accumulates gradients over micro batches; functions are wrapped by decorators that time and retry."""
import ctypes
import functools
import random
import time
import weakref

cuda = ctypes.CDLL("libcudart.so.13")
random.seed(5)
timings = {}


def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        begin = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            timings[function.__name__] = timings.get(function.__name__, 0) + time.perf_counter() - begin
    return inner


def retry(times):
    def decorate(function):
        @functools.wraps(function)
        def attempt(*args, **kwargs):
            for left in reversed(range(times)):
                try:
                    return function(*args, **kwargs)
                except RuntimeError:
                    if not left:
                        raise
        return attempt
    return decorate


class Buf:
    def __init__(self, n):
        p = ctypes.c_void_p()
        e = cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n))
        if e:
            raise RuntimeError(e)
        self.p, self.n = p, n
        weakref.finalize(self, cuda.cudaFree, p)


@retry(2)
@timed
def forward(batch):
    hidden = Buf(batch.n * 2)
    return Buf(150000), hidden


@retry(2)
@timed
def attention_weights(batch):
    return Buf(204800)  # CULPRIT


@timed
def backward(loss, hidden):
    return Buf(hidden.n)


class Accumulator:
    def __init__(self, every):
        self.every, self.seen, self.maps = every, 0, []

    def add(self, loss, weights):
        self.seen += 1
        self.maps.append(weights)  # CULPRIT
        return self.seen % self.every == 0


def run():
    accumulator = Accumulator(4)
    for _ in range(320):
        batch = Buf(random.randrange(200000, 300000))
        loss, hidden = forward(batch)
        grad = backward(loss, hidden)
        if accumulator.add(loss, attention_weights(batch)):  # CULPRIT
            update = Buf(900000)
            del update
        del batch, loss, hidden, grad


run()
