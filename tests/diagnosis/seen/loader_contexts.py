# SPDX-License-Identifier: MIT
"""Ten workers load batches, and each puts its batch on the device itself: a context for each of them, until training has no room."""
import ctypes
import os
import sys
import time

WORKERS = 10


def empty(nbytes):
    rt = ctypes.CDLL("libcudart.so.13")
    at = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)):
        raise MemoryError(nbytes)
    return at


def collate(batch):
    return empty(batch << 20)  # CULPRIT


def work(ready, stop):
    batch = collate(4)
    os.write(ready, b".")
    os.read(stop, 1)
    return batch


def start():
    (ready, told), (stop, stopped) = os.pipe(), os.pipe()
    for _ in range(WORKERS):
        if not os.fork():
            os.close(stopped)
            work(told, stop)
            os._exit(0)
    for _ in range(WORKERS):
        os.read(ready, 1)
    return stopped


def train(steps):
    rt = ctypes.CDLL("libcudart.so.13")
    model = [empty(200 << 20) for _ in range(10)]
    for step in range(steps):
        activations = [empty((20 + step) << 20) for _ in range(6)]
        time.sleep(0.004)
        for block in activations:
            rt.cudaFree(block)
    return model


stopped, code = start(), 0
try:
    train(120)
except MemoryError:
    code = 1
os.close(stopped)
for _ in range(WORKERS):
    os.wait()
sys.exit(code)
