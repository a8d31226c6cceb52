# SPDX-License-Identifier: MIT
"""Kernels are generated from a template that has the step's seed in it, so no two are the same and each is loaded."""
import ctypes

cu = ctypes.CDLL("libcuda.so.1")


def ok(code, what):
    if code:
        raise RuntimeError("%s: %d" % (what, code))


class Kernel:
    cache = {}

    def __init__(self, source):
        self.module = ctypes.c_void_p()
        ok(cu.cuModuleLoadData(ctypes.byref(self.module), source.encode()), "cuModuleLoadData")  # CULPRIT

    @classmethod
    def compile(cls, template, **values):
        source = template.format(**values)
        if source not in cls.cache:
            cls.cache[source] = cls(source)  # CULPRIT
        return cls.cache[source]


TEMPLATE = "// noise kernel with seed {seed}"


def add_noise(step):
    return Kernel.compile(TEMPLATE, seed=step * 2654435761 % 2 ** 32)  # CULPRIT


def main():
    context = ctypes.c_void_p()
    ok(cu.cuInit(0), "cuInit")
    ok(cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "retain")
    ok(cu.cuCtxSetCurrent(context), "current")
    Kernel.compile("// gelu")
    data = ctypes.c_uint64()
    ok(cu.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(20 << 20)), "alloc")
    for step in range(140):
        work = ctypes.c_uint64()
        ok(cu.cuMemAlloc_v2(ctypes.byref(work), ctypes.c_size_t(1 << 20)), "alloc")
        add_noise(step)
        cu.cuMemFree_v2(work)
    cu.cuMemFree_v2(data)


main()
