# SPDX-License-Identifier: MIT
"""Three worker processes of a multiprocessing pool featurize records. What a worker worked on stays in a global of its module."""
import ctypes
import multiprocessing as mp
import time

SEEN = []
lib = None


def start_worker():
    global lib
    lib = ctypes.CDLL("libcudart.so.13")


def gpu_empty(nbytes):
    ptr = ctypes.c_void_p()
    error = lib.cudaMalloc(ctypes.byref(ptr), ctypes.c_size_t(nbytes))
    if error:
        raise MemoryError(nbytes)
    return ptr


def tokenize(record):
    temporary = gpu_empty(100000 + 13 * (record % 50))
    lib.cudaFree(temporary)
    return record


def featurize(record):
    tokenize(record)
    features = gpu_empty(458752)  # CULPRIT
    SEEN.append((record, features))  # CULPRIT
    time.sleep(.002)
    return record * 2


if __name__ == "__main__":
    with mp.get_context("spawn").Pool(3, initializer=start_worker) as pool:
        time.sleep(.5)
        print(sum(pool.imap_unordered(featurize, range(420), chunksize=5)))
        pool.close()
        pool.join()
