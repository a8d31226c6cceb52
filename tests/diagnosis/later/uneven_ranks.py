# SPDX-License-Identifier: MIT
"""Six ranks: batches differ by a few per cent, and the first rank reads the vocabulary for all before it starts."""
import ctypes
import os
import random
import time

rank = int(os.environ["RANK"])
rt = ctypes.CDLL("libcudart.so.12")
random.seed(rank)


def take(n):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
        raise MemoryError(n)
    return p


def give(*blocks):
    for p in blocks:
        rt.cudaFree(p)


rt.cudaSetDevice(rank)
if rank == 0:
    vocabulary = take(30 << 20)
    give(vocabulary)
model = [take(10 << 20) for _ in range(8)]
for step in range(70):
    batch = random.randrange(60, 64)
    give(take(batch << 18), take(batch << 17))
    time.sleep(.0005)
give(*model)
