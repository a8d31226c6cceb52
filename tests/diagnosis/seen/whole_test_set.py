# SPDX-License-Identifier: MIT
"""Training goes on in 60 MiB; then the test set is scored at once, without batches, and does not fit."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.13")


class Out(Exception):
    pass


def tensor(rows, columns):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(rows * columns * 4)):
        raise Out("%d x %d" % (rows, columns))
    return p


def release(tensors):
    for p in tensors:
        rt.cudaFree(p)


class Encoder:
    widths = (768, 3072, 768)

    def __init__(self):
        self.weights = [tensor(768, w) for w in self.widths]

    def encode(self, rows):
        return [tensor(rows, w) for w in self.widths]  # CULPRIT: asked here


def train_step(encoder):
    release(encoder.encode(2048))


def test(encoder, samples):
    return encoder.encode(samples)  # CULPRIT


encoder = Encoder()
for epoch in range(2):
    for step in range(16):
        train_step(encoder)
try:
    test(encoder, 600000)
except Out as error:
    sys.exit("out of memory: %s" % error)
