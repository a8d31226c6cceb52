# SPDX-License-Identifier: MIT
"""Element-wise kernels from source text. The text holds a step number, so each is compiled and loaded anew."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
cudart = ctypes.CDLL("libcudart.so.13")


def checked(code):
    if code:
        raise RuntimeError(code)


class Kernel:
    cache = {}

    def __init__(self, source):
        self.handle = ctypes.c_void_p()
        checked(cuda.cuModuleLoadData(ctypes.byref(self.handle), source.encode() + bytes(64)))

    @classmethod
    def compile(cls, source):
        if source not in cls.cache:
            cls.cache[source] = cls(source)
        return cls.cache[source]


class Array:
    def __init__(self, n):
        self.n, self.p = n, ctypes.c_void_p()
        checked(cudart.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(4 * n)))

    def __del__(self):
        cudart.cudaFree(self.p)


def scale(x, step):
    out = Array(x.n)
    Kernel.compile(f"__global__ void scale_{step}(float *x) {{ x[i] *= {1 / (step + 1)}f; }}")  # CULPRIT
    return out


def main():
    x = Array(1 << 20)
    for step in range(150):
        x = scale(x, step)


main()
