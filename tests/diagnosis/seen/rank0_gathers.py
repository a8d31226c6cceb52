# SPDX-License-Identifier: MIT
"""Four ranks; rank 0 gathers the results of all every ten steps and gives them back."""
import ctypes
import os
import time

rt = ctypes.CDLL("libcudart.so.12")
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def get(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


def free_all(blocks):
    for p in blocks:
        rt.cudaFree(p)


def gather(result):
    if rank == 0:
        parts = [get(24 << 20) for _ in range(world)]
        free_all(parts)


rt.cudaSetDevice(rank)
model = [get(35 << 20) for _ in range(5)]
for step in range(80):
    result = get(24 << 20)
    if step % 10 == 9:
        gather(result)
    rt.cudaFree(result)
    time.sleep(0.001)
free_all(model)
