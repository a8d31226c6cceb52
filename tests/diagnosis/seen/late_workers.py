# SPDX-License-Identifier: MIT
"""Workers join as the load rises: five threads, each with a model of its own, all at work until the end."""
import ctypes
import threading
import time

rt = ctypes.CDLL("libcudart.so.12")


def allocate(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


class Worker(threading.Thread):
    def __init__(self, stop):
        super().__init__()
        self.stop = stop

    def run(self):
        model = [allocate(9 << 20) for _ in range(4)]
        while not self.stop.is_set():
            batch = allocate(2 << 20)
            time.sleep(0.002)
            rt.cudaFree(batch)
        for p in model:
            rt.cudaFree(p)


stop, workers = threading.Event(), []
for _ in range(5):
    workers.append(Worker(stop))
    workers[-1].start()
    time.sleep(0.03)
time.sleep(0.3)
stop.set()
for worker in workers:
    worker.join()
