# SPDX-License-Identifier: MIT
"""A pool of three processes; each keeps the inputs of failed samples for a report."""
import ctypes
import multiprocessing
import os

failed = []


def take(rt, nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


def augment(rt, sample):
    image = take(rt, 600 << 10)  # CULPRIT: asked here
    tmp = take(rt, 2 << 20)
    rt.cudaFree(tmp)
    if sample % 5 == 1:
        failed.append(image)  # CULPRIT: kept here
    else:
        rt.cudaFree(image)


def work(first):
    rt = ctypes.CDLL("libcudart.so.13")
    for sample in range(first, 300, 3):
        augment(rt, sample)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(first,)) for first in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
