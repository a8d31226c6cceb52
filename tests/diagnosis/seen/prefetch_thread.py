# SPDX-License-Identifier: MIT
"""A reader thread stages batches for the trainer; a staged batch that was used is parked for reuse, and never reused."""
import ctypes
import queue
import threading
import time

cudart = ctypes.CDLL("libcudart.so.13")


def malloc(nbytes):
    p = ctypes.c_void_p()
    if cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError(nbytes)
    return p


class Stager(threading.Thread):
    def __init__(self, batches):
        super().__init__(name="stager", daemon=True)
        self.out, self.batches = queue.Queue(4), batches

    def stage(self, index):
        return malloc(2 << 20)  # CULPRIT

    def run(self):
        for index in range(self.batches):
            self.out.put(self.stage(index))  # CULPRIT
        self.out.put(None)


def main():
    weights = [malloc(16 << 20) for _ in range(6)]
    stager = Stager(240)
    stager.start()
    parked = []
    while (batch := stager.out.get()) is not None:
        hidden = malloc(9 << 20)
        time.sleep(0.0005)
        cudart.cudaFree(hidden)
        parked.append(batch)
    for p in weights + parked:
        cudart.cudaFree(p)


main()
