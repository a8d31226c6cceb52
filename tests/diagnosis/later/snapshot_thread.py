# SPDX-License-Identifier: MIT
"""Writes a checkpoint after every epoch in the background; what was written stays in the list of jobs."""
import concurrent.futures as cf
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class Tensor(object):
    def __init__(self, nbytes):
        self._as_parameter_ = ctypes.c_void_p()
        self.nbytes = nbytes
        rc = rt.cudaMalloc(ctypes.byref(self._as_parameter_), ctypes.c_size_t(nbytes))
        if rc:
            raise RuntimeError("out of memory: %d" % nbytes)

    def __del__(self):
        rt.cudaFree(self._as_parameter_)


class Checkpointer(object):
    def __init__(self):
        self.pool = cf.ThreadPoolExecutor(1)
        self.jobs = []

    def save(self, state):
        frozen = {name: Tensor(t.nbytes) for name, t in state.items()}  # CULPRIT
        self.jobs.append((self.pool.submit(self._write, frozen), frozen))  # CULPRIT

    def _write(self, frozen):
        time.sleep(.002)
        return len(frozen)


def main(epochs=12):
    state = dict(("p%d" % i, Tensor(5500000)) for i in range(4))
    saver = Checkpointer()
    for epoch in range(epochs):
        for batch in range(30):
            x = Tensor(700000)
            y = Tensor(1400000)
            del x, y
        saver.save(state)  # CULPRIT
    saver.pool.shutdown()


main()
