# SPDX-License-Identifier: MIT
"""A rank of a job: allocates as many MiB as its argument says.  work() returns the process id."""
import ctypes
import os
import sys


def work(mib):
    cudart, p = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return os.getpid()


if __name__ == "__main__":
    work(int(sys.argv[1]))
