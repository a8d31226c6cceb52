#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Allocates through ctypes as scripts do: opens libcudart and libcuda by name, RTLD_LOCAL."""
import ctypes
import sys

MB = 1 << 20


def ok(error, what):
    if error:
        sys.exit(f'{what}: {error}')


cudart = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else 'libcudart.so.13')
cuda = ctypes.CDLL('libcuda.so.1')
held = []
for size in range(1, 11):
    p = ctypes.c_void_p()
    ok(cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size * MB)), 'cudaMalloc')
    held.append(p)
for p in held[:7]:
    ok(cudart.cudaFree(p), 'cudaFree')
address = ctypes.c_uint64()
ok(cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(5 * MB)), 'cuMemAlloc_v2')
ok(cuda.cuMemFree_v2(address), 'cuMemFree_v2')
