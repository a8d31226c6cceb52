# SPDX-License-Identifier: MIT
"""NCCL and cuBLAS by ctypes; each has a CUDA runtime of its own inside."""
import ctypes
import glob
import os
import sys
from say import say

places = [os.path.join(path, "nvidia") for path in sys.path if os.path.isdir(os.path.join(path, "nvidia"))]


def library(pattern):
    found = sorted(path for place in places for path in glob.glob(os.path.join(place, "**", pattern), recursive=True))
    return ctypes.CDLL(found[0])


handle, block, version = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
cublas = library("libcublas.so.*")
say("cublasCreate", cublas.cublasCreate_v2, ctypes.byref(handle))
say("cublasGetVersion", lambda: (cublas.cublasGetVersion_v2(None, ctypes.byref(version)), version.value))
say("cublasGetCudartVersion", cublas.cublasGetCudartVersion)
nccl = library("libnccl.so.*")
say("ncclGetVersion", lambda: (nccl.ncclGetVersion(ctypes.byref(version)), version.value))
say("ncclMemAlloc", nccl.ncclMemAlloc, ctypes.byref(block), ctypes.c_size_t(1 << 21))
say("ncclCommInitAll", nccl.ncclCommInitAll, ctypes.byref(handle), 1, None)
nccl.ncclGetLastError.restype = ctypes.c_char_p
say("ncclGetLastError", nccl.ncclGetLastError, None)
