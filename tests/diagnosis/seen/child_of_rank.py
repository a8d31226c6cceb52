# SPDX-License-Identifier: MIT
"""Each rank trains on its own device and starts an evaluation in a process of its own, which forgets to choose one."""
import ctypes
import os
import subprocess
import sys
import time

rt = ctypes.CDLL("libcudart.so.13")


def tensor(nbytes):
    at = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)):
        raise MemoryError(nbytes)
    return at


def evaluate():
    weights = [tensor(60 << 20) for _ in range(4)]  # CULPRIT
    for _ in range(30):
        batch = tensor(8 << 20)
        time.sleep(0.001)
        rt.cudaFree(batch)
    return weights


def train(rank):
    rt.cudaSetDevice(rank)
    model = [tensor(100 << 20) for _ in range(8)]
    evaluation = subprocess.Popen([sys.executable, __file__, "evaluate"])  # CULPRIT
    for _ in range(80):
        batch = tensor(16 << 20)
        time.sleep(0.001)
        rt.cudaFree(batch)
    evaluation.wait()
    return model


if sys.argv[1:]:
    evaluate()
else:
    train(int(os.environ["LOCAL_RANK"]))
