# SPDX-License-Identifier: MIT
"""A ray tracer recurses in its kernels and asks for 8 KiB of stack a thread; the driver sets so much aside for every thread there can be."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def check(code, what):
    if code:
        raise RuntimeError("%s: %d" % (what, code))


def prepare(depth):
    check(rt.cudaDeviceSetLimit(0, ctypes.c_size_t(depth * 512)), "limit")  # CULPRIT


prepare(16)
scene = ctypes.c_void_p()
check(rt.cudaMalloc(ctypes.byref(scene), ctypes.c_size_t(60 << 20)), "scene")
for tile in range(30):
    rays = ctypes.c_void_p()
    check(rt.cudaMalloc(ctypes.byref(rays), ctypes.c_size_t(8 << 20)), "rays")
    time.sleep(0.005)
    rt.cudaFree(rays)
