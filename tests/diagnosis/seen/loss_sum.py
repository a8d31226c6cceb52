# SPDX-License-Identifier: MIT
"""Twenty-four steps: the running loss is a tensor with its graph, so that every activation of every step stays."""
import ctypes

lib = ctypes.CDLL("libcudart.so.12")


class T:
    def __init__(self, n, parents=()):
        self.a = ctypes.c_uint64()
        self.parents = parents
        assert lib.cudaMalloc(ctypes.byref(self.a), ctypes.c_size_t(4 * n)) == 0
        self.n = n

    def __add__(self, other):
        return T(max(self.n, other.n), (self, other))

    def __del__(self):
        lib.cudaFree(self.a)


def linear(x, width):
    return T(x.n // 256 * width // 8, (x,))


def gelu(x):
    return T(x.n, (x,))


def forward(x):
    a = gelu(linear(x, 2048))  # CULPRIT: asked here
    b = gelu(linear(a, 1024))  # CULPRIT: asked here
    return linear(b, 256)  # CULPRIT: asked here


def cross_entropy(logits):
    return T(256, (logits,))


weights = [T(2 << 20) for _ in range(3)]
total = T(256)
for step in range(24):
    batch = T(256 * 640)
    loss = cross_entropy(forward(batch))
    gradients = [T(2 << 20) for _ in weights]
    del gradients
    total = total + loss  # CULPRIT: kept here
print(total.n)
