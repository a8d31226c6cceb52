# SPDX-License-Identifier: MIT
"""Eight threads that start one after the other, each with a work area of its own that it gives back at its end."""
import ctypes
import threading
import time

rt = ctypes.CDLL("libcudart.so.13")


def get(n):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
        raise MemoryError(n)
    return p


class Worker(threading.Thread):
    def __init__(self, number, stop):
        super().__init__(name=f"worker-{number}")
        self.number, self.stop = number, stop

    def run(self):
        area = get(4 << 20)
        while not self.stop.is_set():
            out = get(70000 + self.number)
            time.sleep(.0004)
            rt.cudaFree(out)
        rt.cudaFree(area)


stop = threading.Event()
workers = [Worker(i, stop) for i in range(8)]
for worker in workers:
    worker.start()
    time.sleep(.03)
time.sleep(.15)
stop.set()
for worker in workers:
    worker.join()
