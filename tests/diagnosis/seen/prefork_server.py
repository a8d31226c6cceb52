# SPDX-License-Identifier: MIT
"""A server of three forked workers. Each answers requests and remembers, for its statistics, the scores of those that were slow."""
import ctypes
import os
import time


class Worker:
    def __init__(self, number):
        self.rt = ctypes.CDLL("libcudart.so.13")
        self.number, self.slow = number, {}
        self.weights = self.empty(20 << 20)

    def empty(self, nbytes):
        at = ctypes.c_void_p()
        assert self.rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)) == 0
        return at

    def answer(self, request):
        hidden = self.empty(1200000)
        scores = self.empty(276480)  # CULPRIT
        if (request + self.number) % 3 == 0:
            self.slow[request] = scores  # CULPRIT
        else:
            self.rt.cudaFree(scores)
        self.rt.cudaFree(hidden)

    def serve(self, requests):
        for request in range(requests):
            self.answer(request)
            time.sleep(0.001)


children = []
for number in range(3):
    pid = os.fork()
    if not pid:
        Worker(number).serve(240)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
