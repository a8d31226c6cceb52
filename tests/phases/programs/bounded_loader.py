# SPDX-License-Identifier: MIT
"""Loader threads put pinned batches into a bounded queue; each epoch has loaders of its own, which end with it.  A test follows without them."""
import ctypes
import queue
import random
import sys
import threading

draw = random.Random(int(sys.argv[1]))
rt = ctypes.CDLL("libcudart.so.13")
rt.cudaFree(None)
size = draw.randint(1, 4) << 20


def load(batches, full):
    for _ in range(batches):
        host = ctypes.c_void_p()
        rt.cudaMallocHost(ctypes.byref(host), ctypes.c_size_t(size))
        full.put(host)
    full.put(None)


def on_device(bytes_):
    at = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(bytes_)):
        sys.exit("out of memory")
    return at


def epoch(workers, batches):
    full = queue.Queue(maxsize=2 * workers)
    threads = [threading.Thread(target=load, args=(batches, full)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    ended = 0
    while ended < workers:
        host = full.get()
        if host is None:
            ended += 1
            continue
        batch, output = on_device(size), on_device(size // 2)
        rt.cudaFreeHost(host)
        rt.cudaFree(output)
        rt.cudaFree(batch)
    for thread in threads:
        thread.join()


weights = [on_device(12 << 20) for _ in range(10)]
for _ in range(draw.randint(3, 6)):
    epoch(draw.randint(2, 4), draw.randint(10, 30))
for _ in range(draw.randint(50, 100)):
    rt.cudaFree(on_device(size))
for weight in weights:
    rt.cudaFree(weight)
