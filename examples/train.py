# SPDX-License-Identifier: MIT
"""A training loop in small, without packages: weights, forward, backward, optimizer, and the ways memory gets lost.

It keeps every loss (a slow leak), calls a library that caches behind its back, and near the end meets a batch that is
too long for a device of 8 GiB.
"""
import ctypes
import os
import sys
import time

MIB = 1 << 20
LAYERS = 24


def load_cuda():
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    print("no libcudart.so: set LD_LIBRARY_PATH to where it is", file=sys.stderr)
    sys.exit(77)


cuda = load_cuda()
cuda.cudaGetErrorString.restype = ctypes.c_char_p
cache = ctypes.CDLL(os.environ.get("EXAMPLE_CACHE", "libcache.so"))


class Tensor:
    """Device memory that goes when Python forgets it."""

    def __init__(self, size):
        self.address = ctypes.c_void_p()
        code = cuda.cudaMalloc(ctypes.byref(self.address), ctypes.c_size_t(size))
        if code:
            self.address = None
            raise MemoryError(f"{cuda.cudaGetErrorString(code).decode()}: tried to allocate {size / MIB:.0f} MiB")

    def __del__(self):
        if self.address:
            cuda.cudaFree(self.address)


class Layer:
    def __init__(self):
        self.weight = Tensor(32 * MIB)
        self.gradient = None
        self.saved = None

    def attention(self, length):
        scores = Tensor(length * 8 * MIB)  # gone when the layer is done
        self.saved = Tensor(length * 12 * MIB)  # kept for the backward pass
        return scores

    def backward(self):
        self.gradient = self.gradient or Tensor(32 * MIB)
        self.saved = None


class Optimizer:
    def __init__(self):
        self.moments = None

    def optimizer_step(self, model):
        if self.moments is None:
            self.moments = [(Tensor(32 * MIB), Tensor(32 * MIB)) for _ in model]
        scratch = Tensor(64 * MIB)
        del scratch


def forward(model, length):
    for layer in model:
        layer.attention(length)
    return Tensor(4 * MIB)


def backward(model):
    for layer in reversed(model):
        layer.backward()


def train(steps):
    model = [Layer() for _ in range(LAYERS)]
    optimizer = Optimizer()
    losses = []
    for step in range(steps):
        length = 20 if step == steps - 3 else 1 + step % 3  # one batch is much longer than the others
        cache.cache_lookup(step // 2)
        loss = forward(model, length)
        losses.append(loss)  # a number would do: this keeps the tensor
        backward(model)
        optimizer.optimizer_step(model)
        if step % 20 == 0:
            print(f"step {step}", flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    try:
        train(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
    except MemoryError as error:
        print(f"train.py: {error}", file=sys.stderr)
        sys.exit(1)
