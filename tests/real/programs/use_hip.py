# SPDX-License-Identifier: MIT
"""AMD's own runtime without a device."""
import ctypes
import os
import sys

library = "libamdhip64.so.5"
try:
    hip = ctypes.CDLL(library, mode=os.RTLD_NOW)
except OSError as error:
    print(error)
    sys.exit(77)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from say import say

block, count, size = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_size_t(4096)
hip.hipGetErrorName.restype = ctypes.c_char_p
for name, arguments in (
        ("hipGetDeviceCount", (ctypes.byref(count),)), ("hipMalloc", (ctypes.byref(block), size)),
        ("hipHostMalloc", (ctypes.byref(block), size, 0)), ("hipMallocManaged", (ctypes.byref(block), size, 1)),
        ("hipMallocAsync", (ctypes.byref(block), size, None)), ("hipFree", (None,)), ("hipGetLastError", ())):
    result = getattr(hip, name)(*arguments)
    say(name, lambda: (result, hip.hipGetErrorName(result)))
