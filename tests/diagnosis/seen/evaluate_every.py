# SPDX-License-Identifier: MIT
"""Every twenty-five steps an evaluation takes four times what a step takes, and gives it back."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.12")


class Tensor:
    def __init__(self, mib):
        self.ptr = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(mib << 20)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.ptr)


def forward(mib):
    return [Tensor(mib) for _ in range(4)]


def evaluate():
    logits = [forward(6) for _ in range(4)]
    return len(logits)


weights = [Tensor(30) for _ in range(5)]
for step in range(250):
    forward(6)
    if step % 25 == 24:
        evaluate()
    time.sleep(0.0005)
