# SPDX-License-Identifier: MIT
"""generated.py NAME: code that a compiler wrote to a temporary file allocates for a function of the program, which keeps it."""
import ctypes
import sys

rt = ctypes.CDLL("libcudart.so.13")
code = compile("def call(size):\n    block = ctypes.c_void_p()\n    assert not rt.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(size))\n"
               "    return block\n", sys.argv[1], "exec")
names = {"ctypes": ctypes, "rt": rt}
exec(code, names)
history = []


def remember(step):
    history.append(names["call"](1 << 20))


def compute(step):
    rt.cudaFree(names["call"](3 << 20))


for step in range(300):
    compute(step)
    remember(step)
