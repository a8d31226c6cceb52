# SPDX-License-Identifier: MIT
"""hip.py fill|steady: takes blocks of 20 MiB from HIP until there is none, or frees each of a hundred."""
import ctypes
import sys

hip = ctypes.CDLL("libamdhip64.so.6")


def take():
    block = ctypes.c_void_p()
    if hip.hipMalloc(ctypes.byref(block), ctypes.c_size_t(20 << 20)):
        sys.exit(1)
    return block


kept = []
for step in range(1000 if sys.argv[1] == "fill" else 100):
    kept.append(take())
    if sys.argv[1] == "steady":
        hip.hipFree(kept.pop())
