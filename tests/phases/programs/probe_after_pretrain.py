# SPDX-License-Identifier: MIT
"""A pretraining whose hooks keep the activations of each step; a linear probe is then trained with steps of another name."""
import contextlib
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
rt = ctypes.CDLL("libcudart.so.13")
nvtx = ctypes.CDLL("libnvToolsExt.so.1")


@contextlib.contextmanager
def span(name):
    nvtx.nvtxRangePushA(name.encode())
    yield
    nvtx.nvtxRangePop()


class Array:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        rt.cudaFree(self.at)


unit = draw.randint(1, 6) << 18
layers = draw.randint(3, 7)
weights = [Array(9 * unit) for _ in range(layers)]
watched = {}


def forward(step):
    made = []
    for layer in range(layers):
        made.append(Array(unit + draw.randint(0, 4) * 4096))
        if layer == layers // 2:
            watched[step] = Array(unit // 2)  # CULPRIT
    return made


def backward(made):
    while made:
        gradient = Array(2 * unit)
        made.pop()
    return gradient


with span("pretrain"):
    for step in range(draw.randint(50, 140)):
        with span("step_%d" % step):
            backward(forward(step))
probe = Array(unit)
with span("probe"):
    for step in range(draw.randint(60, 200)):
        with span("probe_step_%d" % step):
            feature = Array(unit)
            gradient = Array(unit // 2)
            del feature, gradient
