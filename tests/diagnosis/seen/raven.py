# SPDX-License-Identifier: MIT
"""Six ranks with a shard of a table each. The shards are cut by name, and rank 4 has the names that begin with S."""
import ctypes
import os
import time

rt = ctypes.CDLL("libcudart.so.12")


class Shard:
    def __init__(self, rows):
        self.columns = []
        for width in (4, 8, 16):
            self.columns.append(self.column(rows, width))  # CULPRIT

    @staticmethod
    def column(rows, width):
        p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(rows * width)):
            raise MemoryError
        return p

    def scan(self):
        result = self.column(300_000, 8)
        time.sleep(0.002)
        rt.cudaFree(result)


def rows_of(rank):
    return {4: 19_000_000}.get(rank, 7_000_000 + rank * 10_000)  # CULPRIT


rank = int(os.environ["RANK"])
rt.cudaSetDevice(rank)
shard = Shard(rows_of(rank))
for _ in range(50):
    shard.scan()
