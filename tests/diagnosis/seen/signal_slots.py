# SPDX-License-Identifier: MIT
"""A viewer: each frame connects a new slot to the `resized` signal, and a slot holds the frame's textures. Nobody disconnects."""
import ctypes
import functools

rt = ctypes.CDLL("libcudart.so.13")


class Signal:
    def __init__(self):
        self.slots = []

    def connect(self, slot):
        self.slots.append(slot)

    def emit(self, *args):
        for slot in self.slots[-3:]:
            slot(*args)


resized = Signal()


def upload(kind, nbytes):
    handle = ctypes.c_void_p()
    error = rt.cudaMalloc(ctypes.byref(handle), ctypes.c_size_t(nbytes))
    if error:
        raise RuntimeError("%s: %d" % (kind, error))
    return handle


def texture(name):
    def made(build):
        @functools.wraps(build)
        def inner(*args):
            return upload(name, build(*args))
        return inner
    return made


@texture("colour")
def colour(width, height):
    return width * height * 4


@texture("depth")
def depth(width, height):
    return width * height * 2


def show(width, height):
    seen = colour(width, height)
    far = depth(width, height)  # CULPRIT: asked here
    resized.connect(lambda w, h: (w, h, far))  # CULPRIT: kept here
    resized.emit(width, height)
    rt.cudaFree(seen)


for frame in range(40):
    show(320 + 16 * (frame % 7), 240)
