# SPDX-License-Identifier: MIT
"""Four ranks train alike, but rank 2 has the flag of an old debugging session: it keeps a copy of the gradients."""
import ctypes
import os
import time

rt = ctypes.CDLL("libcudart.so.12")
RANK = int(os.environ["RANK"])


def cuda_malloc(mib):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(int(mib * 1048576))):
        raise MemoryError
    return p


class Parameter:
    def __init__(self, mib):
        self.data, self.grad, self.shadow = cuda_malloc(mib), None, None

    def accumulate(self, debug):
        if self.grad is None:
            self.grad = cuda_malloc(34)
            if debug:
                self.shadow = cuda_malloc(34)  # CULPRIT


def main():
    rt.cudaSetDevice(RANK)
    parameters = [Parameter(34) for _ in range(9)]
    for step in range(60):
        batch = cuda_malloc(12)
        for parameter in parameters:
            activation = cuda_malloc(3)
            parameter.accumulate(debug=RANK == 2)
            rt.cudaFree(activation)
        rt.cudaFree(batch)
        time.sleep(0.002)


main()
