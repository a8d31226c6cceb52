# SPDX-License-Identifier: MIT
"""Trains in batches, and at the end validates with the whole set at once."""
import ctypes

lib = ctypes.CDLL("libcudart.so.13")


def tensor(*shape):
    size = 4
    for n in shape:
        size *= n
    p = ctypes.c_void_p()
    error = lib.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size))
    if error:
        raise RuntimeError("cuda error %d" % error)
    return p


def release(tensors):
    for p in tensors:
        lib.cudaFree(p)


def forward(rows, layers):
    return [tensor(rows, 512) for _ in range(layers)]  # CULPRIT


def train(rows, layers):
    for start in range(0, rows, 256):
        activations = forward(256, layers)
        gradients = [tensor(512, 512) for _ in range(layers)]
        release(activations + gradients)


def validate(rows, layers):
    release(forward(rows, layers))  # CULPRIT


weights = [tensor(512, 512) for _ in range(6)]
train(40000, 6)
validate(20000, 6)  # CULPRIT
report = tensor(100)
release(weights + [report])
