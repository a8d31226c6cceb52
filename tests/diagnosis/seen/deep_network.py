# SPDX-License-Identifier: MIT
"""Five steps of forty-eight layers: activations rise through the forward pass and fall through the backward pass."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


def array(n):
    p = ctypes.c_uint64()
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)) == 0
    return p


class Block:
    def __init__(self):
        self.w = array(1 << 20)
        self.g = None

    def forward(self):
        self.saved = array(600 << 10)

    def backward(self):
        self.g = self.g or array(1 << 20)
        rt.cudaFree(self.saved)


blocks = [Block() for _ in range(48)]
for step in range(5):
    for b in blocks:
        b.forward()
    for b in reversed(blocks):
        b.backward()
