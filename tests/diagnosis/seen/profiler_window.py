# SPDX-License-Identifier: MIT
"""A profiler samples every seventh step with its inputs, for a file that is written where a path was given. None was."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


def empty(nbytes):
    at = ctypes.c_void_p()
    assert rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)) == 0
    return at


class Array:
    def __init__(self, nbytes):
        self.nbytes, self.at = nbytes, empty(nbytes)

    def clone(self):
        return Array(self.nbytes)

    def __del__(self):
        rt.cudaFree(self.at)


class Profiler:
    def __init__(self, path=None, every=7):
        self.path, self.every, self.step, self.events = path, every, 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.flush()

    def flush(self):
        if self.path:
            self.events.clear()

    def record(self, name, inputs):
        if self.step % self.every == 0:
            self.events.append((name, [value.clone() for value in inputs]))  # CULPRIT
        if len(self.events) > 40:
            self.flush()

    def next_step(self):
        self.step += 1


def main():
    weights = [Array(5 << 20) for _ in range(6)]
    with Profiler() as profiler:
        for _ in range(420):
            x, y = Array(221184), Array(221184)
            profiler.record("matmul", (x, y))
            out = Array(1 << 20)
            del out
            profiler.next_step()
            time.sleep(0.0008)
    del weights


main()
