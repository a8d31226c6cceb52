# SPDX-License-Identifier: MIT
"""A pipeline of generators. itertools.tee remembers what its slower reader has not read yet, and nobody reads there."""
import ctypes
import itertools

cudart = ctypes.CDLL("libcudart.so.13")


class Batch:
    def __init__(self, n):
        self.handle = ctypes.c_void_p()
        self._take(n)

    def _take(self, n):
        if cudart.cudaMalloc(ctypes.byref(self.handle), ctypes.c_size_t(n)):
            raise MemoryError

    def __del__(self):
        cudart.cudaFree(self.handle)


def upload(names):
    for name in names:
        yield Batch(1_310_720)  # CULPRIT


def augment(batches):
    for batch in batches:
        flipped = Batch(2_500_000)
        yield batch
        del flipped


def statistics(batches):
    yield from (0 for _ in batches)


def main():
    training, inspection = itertools.tee(augment(upload(range(400))))  # CULPRIT
    report = statistics(inspection)
    total = sum(1 for _ in training)
    print(total, report)


main()
