# SPDX-License-Identifier: MIT
"""workers.py end|kill: workers that only read import a module that makes a context; the parent trains."""
import ctypes
import os
import signal
import subprocess
import sys
import time

rt = ctypes.CDLL("libcudart.so.13")


def warm_up():
    return rt.cudaFree(None)


if sys.argv[1] == "worker":
    warm_up()
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()
workers = [subprocess.Popen([sys.executable, __file__, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
for worker in workers:
    worker.stdout.readline()
held = []
for layer in range(40):
    held.append(ctypes.c_void_p())
    assert not rt.cudaMalloc(ctypes.byref(held[-1]), ctypes.c_size_t(50 << 20))
time.sleep(0.3)
for worker in workers:
    if sys.argv[1] == "kill":
        os.kill(worker.pid, signal.SIGKILL)
    worker.stdin.close()
    worker.wait()
for block in held:
    rt.cudaFree(block)
