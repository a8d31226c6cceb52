# SPDX-License-Identifier: MIT
"""fork_alone.py 0|1|2: forks, with no GPU call, one before and after (1), also in a hook of the fork (2).  From 3.12 on Python warns of other threads."""
import ctypes
import os
import sys
import time
import warnings

warnings.simplefilter("always")


def allocate():
    if sys.argv[1] != "0":
        pointer = ctypes.c_void_p()
        assert ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0


allocate()
if sys.argv[1] == "2":
    os.register_at_fork(after_in_parent=allocate)
time.sleep(0.05)
child = os.fork()
if not child:
    os._exit(3)
assert os.waitpid(child, 0)[1] == 3 << 8
allocate()
