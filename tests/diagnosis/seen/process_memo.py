# SPDX-License-Identifier: MIT
"""Two worker processes of an executor remember each tile they projected, in a dictionary of the module: the key has the time in it."""
import concurrent.futures
import ctypes
import multiprocessing

remembered = {}


def allocate(size):
    lib = ctypes.CDLL("libcudart.so.12")
    pointer = ctypes.c_void_p()
    code = lib.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size))
    if code:
        raise MemoryError(code)
    return pointer


def free(pointer):
    ctypes.CDLL("libcudart.so.12").cudaFree(pointer)


def project(tile, time):
    if (tile, time) not in remembered:
        remembered[tile, time] = allocate(275000)  # CULPRIT
    scratch = allocate(60000)
    free(scratch)
    return tile


def work(number):
    raw = allocate(410000)
    project(number % 10, number * .04)
    free(raw)
    return number


def main():
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        for first in range(0, 320, 20):
            list(pool.map(work, range(first, first + 20), chunksize=10))


main()
