# SPDX-License-Identifier: MIT
"""Trains on a device on which somebody else's notebook still holds five gigabytes."""
import ctypes
import os
import subprocess
import sys

NOTEBOOK = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.12")
rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(5 << 30))
print("ready", flush=True)
sys.stdin.read()
"""


def start_notebook():
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("STORMLOG")}
    other = subprocess.Popen([sys.executable, "-c", NOTEBOOK], env=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    other.stdout.readline()
    return other


def train():
    rt = ctypes.CDLL("libcudart.so.12")

    def zeros(mib):
        p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)):
            raise MemoryError(f"{mib} MiB")
        return p

    weights = [zeros(200) for _ in range(8)]
    for step in range(100):
        activations = [zeros(40) for _ in range(10)]
        for p in activations:
            rt.cudaFree(p)
    moments = [zeros(400) for _ in range(8)]  # CULPRIT
    return weights, moments


other = start_notebook()
try:
    train()
except MemoryError as error:
    print("out of memory:", error, file=sys.stderr)
    raise SystemExit(1)
finally:
    other.stdin.close()
    other.wait()
