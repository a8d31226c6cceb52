# SPDX-License-Identifier: MIT
"""Each rank loads the checkpoint before it chooses its device, so each has a context and a copy on device 0."""
import ctypes
import os
import time

cudart = ctypes.CDLL("libcudart.so.13")


def allocate(nbytes):
    p = ctypes.c_void_p()
    status = cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes))
    if status:
        raise RuntimeError(status)
    return p


def load_checkpoint(path):
    tensors = [allocate(2 << 20) for _ in range(3)]  # CULPRIT
    for p in tensors:
        cudart.cudaFree(p)


def setup(local_rank):
    load_checkpoint("last.ckpt")  # CULPRIT
    cudart.cudaSetDevice(local_rank)


def main():
    setup(int(os.environ["LOCAL_RANK"]))
    model = [allocate(40 << 20) for _ in range(6)]
    for step in range(80):
        x = allocate(6 << 20)
        time.sleep(0.001)
        cudart.cudaFree(x)
    for p in model:
        cudart.cudaFree(p)


main()
