# SPDX-License-Identifier: MIT
"""Workers that only read files ask the runtime for a scratch value at their start, and each has a context from then on."""
import ctypes
import multiprocessing
import time


def device_memory(nbytes):
    rt = ctypes.CDLL("libcudart.so.13")
    at = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return rt, at


def seed_of(worker):
    rt, at = device_memory(512)  # CULPRIT
    rt.cudaFree(at)
    return worker * 7919


def read_files(worker, queue):
    seed = seed_of(worker)
    for item in range(40):
        queue.put(seed + item)
        time.sleep(0.002)


def train():
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    readers = [fork.Process(target=read_files, args=(worker, queue)) for worker in range(5)]
    for reader in readers:
        reader.start()
    rt, weights = device_memory(1500 << 20)
    for step in range(5 * 40):
        queue.get()
        if step % 10 == 0:
            _, batch = device_memory(60 << 20)
            rt.cudaFree(batch)
    for reader in readers:
        reader.join()
    rt.cudaFree(weights)


train()
