# SPDX-License-Identifier: MIT
"""Embeds a corpus, stacks the rows into one table, lets the rows go and builds an index from the table."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.12")


class Array:
    def __init__(self, nbytes):
        self.ptr, self.nbytes = ctypes.c_void_p(), nbytes
        if rt.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(nbytes)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.ptr)


def encode(document):
    tokens = Array(72 << 10)
    time.sleep(0.003)
    del tokens
    return Array(320 << 10)


def stack(rows):
    return Array(sum(row.nbytes for row in rows))


def build_index(table):
    for level in range(4):
        lists = Array(1 << 20)
        time.sleep(0.01)
        del lists
    return table


def main():
    weights = Array(20 << 20)
    rows = [encode(document) for document in range(220)]
    table = stack(rows)
    rows.clear()
    build_index(table)
    return weights


main()
