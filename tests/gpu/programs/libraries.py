# SPDX-License-Identifier: MIT
"""Calls cuBLAS, cuFFT, cuSOLVER and NCCL on one GPU by ctypes; each contains a CUDA runtime of its own."""
import ctypes
import glob
import os
import sys

from finish import finish

places = [os.path.join(path, "nvidia") for path in sys.path] + ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib"]


def library(name):
    found = sorted(path for place in places for path in glob.glob(os.path.join(place, "**", name + ".so.*"), recursive=True))
    return ctypes.CDLL(found[0]) if found else None


codes, kept = {}, []


def call(name, function, *arguments):
    codes[name] = function(*arguments)


def pointer():
    kept.append(ctypes.c_void_p())
    return ctypes.byref(kept[-1])


runtime = library("libcudart")
if runtime:
    call("cudaMalloc", runtime.cudaMalloc, pointer(), ctypes.c_size_t(8 << 20))
cublas, cufft, cusolver, nccl = map(library, ("libcublas", "libcufft", "libcusolver", "libnccl"))
if cublas:
    call("cublasCreate", cublas.cublasCreate_v2, pointer())
    a, one, n = kept[0], ctypes.c_float(1), 256
    call("cublasSgemm", cublas.cublasSgemm_v2, kept[-1], 0, 0, n, n, n, ctypes.byref(one), a, n, a, n, ctypes.byref(one), a, n)
if cufft:
    plan = ctypes.c_int()
    call("cufftPlan1d", cufft.cufftPlan1d, ctypes.byref(plan), 1 << 20, 0x29, 4)
if cusolver:
    call("cusolverDnCreate", cusolver.cusolverDnCreate, pointer())
if nccl:
    call("ncclCommInitAll", nccl.ncclCommInitAll, pointer(), 1, None)
    call("ncclMemAlloc", nccl.ncclMemAlloc, pointer(), ctypes.c_size_t(6 << 20))
finish(codes=codes)
