# SPDX-License-Identifier: MIT
"""Workers load samples onto the device. Each remembers the samples it has delivered so as not to deliver them twice."""
import ctypes
import multiprocessing


class Loader:
    def __init__(self):
        self.rt = ctypes.CDLL("libcudart.so.13")
        self.delivered = []

    def empty(self, n):
        p = ctypes.c_void_p()
        if self.rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
            raise MemoryError
        return p

    def decode(self, key):
        scratch = self.empty(3 << 20)
        sample = self.empty(640 << 10)  # CULPRIT
        self.rt.cudaFree(scratch)
        return sample

    def deliver(self, key):
        sample = self.decode(key)  # CULPRIT
        self.delivered.append((key, sample))
        return key


def work(tasks, results):
    loader = Loader()
    while (key := tasks.get()) is not None:
        results.put(loader.deliver(key))


def main():
    spawn = multiprocessing.get_context("fork")
    tasks, results = [spawn.Queue() for _ in range(2)], spawn.Queue()
    workers = [spawn.Process(target=work, args=(queue, results)) for queue in tasks]
    for worker in workers:
        worker.start()
    for key in range(300):
        tasks[key % 2].put(key)
    for _ in range(300):
        results.get()
    for queue in tasks:
        queue.put(None)
    for worker in workers:
        worker.join()


main()
