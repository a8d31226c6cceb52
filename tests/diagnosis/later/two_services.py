# SPDX-License-Identifier: MIT
"""Two services of one program share a device: the embedder reserves most of it when it starts, the ranker comes second."""
import ctypes
import multiprocessing
import sys


class Gpu:
    def __init__(self):
        self.rt = ctypes.CDLL("libcudart.so.12")

    def reserve(self, mib):
        p = ctypes.c_void_p()
        code = self.rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib * 1024 * 1024))
        if code:
            raise MemoryError("%d MiB: error %d" % (mib, code))
        return p

    def free(self, p):
        self.rt.cudaFree(p)


def embedder(ready, done):
    gpu = Gpu()
    slabs = [gpu.reserve(512) for _ in range(10)]
    ready.set()
    done.wait()
    for p in slabs:
        gpu.free(p)


def ranker(ready, done):
    ready.wait()
    gpu = Gpu()
    try:
        weights = [gpu.reserve(128) for _ in range(6)]
        for query in range(60):
            gpu.free(gpu.reserve(24 + query % 4))
        index = gpu.reserve(1900)  # CULPRIT
    except MemoryError as error:
        sys.exit("ranker: %s" % error)
    finally:
        done.set()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    events = context.Event(), context.Event()
    services = [context.Process(target=target, args=events) for target in (embedder, ranker)]
    for service in services:
        service.start()
    for service in services:
        service.join()
    sys.exit(max(service.exitcode for service in services))
