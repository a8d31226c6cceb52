# SPDX-License-Identifier: MIT
"""Everything is taken at the start, in slabs; afterwards the program works in them and asks for nothing but a little scratch."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def slab(nbytes):
    address = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return address


class Arena:
    def __init__(self, slabs):
        self.slabs = [slab(48 << 20) for _ in range(slabs)]

    def close(self):
        for address in self.slabs:
            rt.cudaFree(address)


arena = Arena(40)
for _ in range(120):
    scratch = slab(1 << 20)
    time.sleep(0.001)
    rt.cudaFree(scratch)
arena.close()
