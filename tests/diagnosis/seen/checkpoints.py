# SPDX-License-Identifier: MIT
"""Six epochs: statistics are collected over an epoch and given back after its checkpoint; the run ends in the midst of the last."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


def array(nbytes):
    p = ctypes.c_uint64()
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)) == 0
    return p


def free(p):
    rt.cudaFree(p)


class Statistics:
    def __init__(self):
        self.rows = []

    def add(self):
        self.rows.append(array(450 << 10))

    def flush(self):
        merged = array(450 * len(self.rows) << 10)
        for row in self.rows:
            free(row)
        self.rows.clear()
        free(merged)


weights = [array(10 << 20) for _ in range(7)]
statistics = Statistics()
for step in range(6 * 40 - 3):
    batch = array(2 << 20)
    if step % 2 == 0:
        statistics.add()
    free(batch)
    if step % 40 == 39:
        statistics.flush()
