# SPDX-License-Identifier: MIT
"""Three worker processes with queues of their own. The one for audio appends to its filter bank with every file."""
import ctypes
import multiprocessing as mp


class Worker(mp.get_context("fork").Process):
    def __init__(self, kind, tasks):
        super().__init__()
        self.kind, self.tasks = kind, tasks

    def run(self):
        self.rt = ctypes.CDLL("libcudart.so.13")
        self.setup()
        while (task := self.tasks.get()) is not None:
            getattr(self, self.kind)(task)

    def setup(self):
        self.model = self.tensor(64 << 20)
        self.filters = []

    def tensor(self, n):
        p = ctypes.c_void_p()
        if self.rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
            raise MemoryError
        return p

    def text(self, task):
        self.rt.cudaFree(self.tensor(300_000 + task))

    def image(self, task):
        self.rt.cudaFree(self.tensor(5_000_000 + 4096 * task))

    def audio(self, task):
        wave = self.tensor(1_000_000)
        self.filters.append(self.tensor(555_008))  # CULPRIT
        self.rt.cudaFree(wave)


def main():
    workers = [Worker(kind, mp.get_context("fork").Queue()) for kind in ("text", "image", "audio")]
    for worker in workers:
        worker.start()
    for task in range(250):
        for worker in workers:
            worker.tasks.put(task)
    for worker in workers:
        worker.tasks.put(None)
    for worker in workers:
        worker.join()


main()
