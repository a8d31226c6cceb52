# SPDX-License-Identifier: MIT
"""Batches are staged by a context manager, all of them in the ExitStack of the whole epoch."""
import contextlib
import ctypes

runtime = ctypes.CDLL("libcudart.so.12")


def cuda_malloc(size):
    pointer = ctypes.c_void_p()
    status = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
    if status:
        raise RuntimeError("cudaMalloc: %d" % status)
    return pointer


@contextlib.contextmanager
def device_memory(size):
    pointer = cuda_malloc(size)
    try:
        yield pointer
    finally:
        runtime.cudaFree(pointer)


@contextlib.contextmanager
def staged(batch):
    with device_memory(222000) as pixels, device_memory(1800):  # CULPRIT
        yield pixels


def forward(pixels):
    with device_memory(900000):
        pass


def epoch(model, batches):
    with contextlib.ExitStack() as stack:
        for batch in range(batches):
            pixels = stack.enter_context(staged(batch))  # CULPRIT
            forward(pixels)


with device_memory(12 << 20) as model:
    epoch(model, 280)
