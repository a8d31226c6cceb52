# SPDX-License-Identifier: MIT
"""Runs in a share of the device (2.5 GiB), with a batch that was made for all of it."""
import ctypes
from typing import List

cudart = ctypes.CDLL("libcudart.so.13")


class CudaError(RuntimeError):
    pass


def cuda_malloc(n_bytes: int) -> ctypes.c_void_p:
    pointer = ctypes.c_void_p()
    code = cudart.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(n_bytes))
    if code:
        raise CudaError(f"cudaMalloc({n_bytes}) returned {code}")
    return pointer


class Block:
    def __init__(self, width: int):
        self.up, self.down = cuda_malloc(width * width * 8), cuda_malloc(width * width * 8)

    def forward(self, batch: int, width: int) -> List[ctypes.c_void_p]:
        return [cuda_malloc(batch * width * 16), cuda_malloc(batch * width * 4)]  # CULPRIT


def train(batch: int, width: int = 2048) -> None:
    blocks = [Block(width) for _ in range(10)]
    for epoch in range(3):
        kept = []
        for block in blocks:
            kept += block.forward(batch, width)  # CULPRIT
        for pointer in kept:
            cudart.cudaFree(pointer)


train(batch=6144)
