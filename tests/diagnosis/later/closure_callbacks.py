# SPDX-License-Identifier: MIT
"""An event bus: each step subscribes a closure over its mask, and nobody unsubscribes."""
import collections
import ctypes

api = ctypes.cdll.LoadLibrary("libcudart.so.13")


def checked(result):
    if result:
        raise SystemError("cuda says %d" % result)


def new(count, width=4):
    handle = ctypes.c_uint64()
    checked(api.cudaMalloc(ctypes.byref(handle), ctypes.c_size_t(count * width)))
    return Vector(handle, count)


class Vector:
    def __init__(self, handle, count):
        self.handle, self.count = handle, count

    def __del__(self):
        api.cudaFree(self.handle)


class Bus:
    def __init__(self):
        self.subscribers = collections.defaultdict(list)

    def on(self, event, call):
        self.subscribers[event].append(call)

    def emit(self, event):
        return [call() for call in self.subscribers[event][-1:]]


def apply_dropout(bus, x):
    mask = new(x.count // 4)  # CULPRIT
    bus.on("backward", lambda: mask.count)  # CULPRIT
    return new(x.count)


def step(bus, number):
    x = new(300000 + number % 3 * 1000)
    for _ in range(2):
        x = apply_dropout(bus, x)
    bus.emit("backward")


if __name__ == "__main__":
    bus = Bus()
    weights = [new(1 << 20) for _ in range(4)]
    for number in range(160):
        step(bus, number)
