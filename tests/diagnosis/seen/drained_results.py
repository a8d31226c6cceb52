# SPDX-License-Identifier: MIT
"""Healthy: every result stays on the device until all are there; then each is copied out and freed, one after the other."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class Result:
    def __init__(self, nbytes):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)):
            raise MemoryError

    def take(self, host):
        rt.cudaMemcpy(host, self.at, ctypes.c_size_t(len(host)), 2)
        rt.cudaFree(self.at)


def simulate(count):
    results = []
    for _ in range(count):
        results.append(Result(2200 << 10))
        time.sleep(0.0012)
    return results


def write_out(results):
    host = ctypes.create_string_buffer(4096)
    while results:
        results.pop().take(host)
        time.sleep(0.0009)  # a file is written


write_out(simulate(180))
