# SPDX-License-Identifier: MIT
"""search.py ATTEMPTS: a search for the fastest algorithm asks for a workspace as often, and one failed call of the program follows."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.13")
held = ctypes.c_void_p()
assert not rt.cudaMalloc(ctypes.byref(held), ctypes.c_size_t(7 << 30))


def find_algorithm(attempts):
    workspace = ctypes.c_void_p()
    return [rt.cudaMalloc(ctypes.byref(workspace), ctypes.c_size_t((1200 + 8 * n) << 20)) for n in range(attempts)]


def convolve():
    if all(find_algorithm(int(sys.argv[1]))):
        sys.exit("no algorithm worked")


convolve()
