# SPDX-License-Identifier: MIT
"""PyTorch, NCCL and CuPy on one device: mixture.py C10_CUDA NCCL.  They are stand-ins, and each reaches the driver in another way."""
import ctypes
import sys

import cupy

torch, nccl = map(ctypes.CDLL, sys.argv[1:])
torch.caching_new.restype = ctypes.c_void_p


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def weights(count, size):
    return [torch.caching_new(ctypes.c_size_t(size)) for _ in range(count)]


def stat(which):
    value = ctypes.c_uint64()
    assert not nccl.ncclCommMemStats(comm, which, ctypes.byref(value))
    return value.value


kept = weights(124, 2 << 20)
comm = ctypes.c_void_p()
assert not nccl.ncclCommInitRank(ctypes.byref(comm), 1, UniqueId(), 0)
arrays = [cupy.empty(1 << 20) for _ in range(31)]
print(stat(3))
assert not nccl.ncclCommSuspend(comm, 1)
print(stat(1), stat(3))
assert not nccl.ncclCommResume(comm)
del arrays[:10]
