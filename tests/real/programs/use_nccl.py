# SPDX-License-Identifier: MIT
"""NCCL's NVTX ranges: NCCL pushes a range before it checks its arguments and the device, and then refuses them."""
import ctypes
import glob
import os
import sys
from say import say


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


(path,) = [found for folder in sys.path for found in glob.glob(os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.*"))]
runtime, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(path)
block, communicator, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t(1000)
say("cudaMalloc", runtime.cudaMalloc, ctypes.byref(block), ctypes.c_size_t(1 << 20))
say("ncclAllReduce", nccl.ncclAllReduce, block, block, count, 7, 0, None, None)
say("ncclBroadcast", nccl.ncclBroadcast, block, block, count, 8, 0, None, None)
say("ncclCommInitRank", nccl.ncclCommInitRank, ctypes.byref(communicator), 1, UniqueId(), 0)
