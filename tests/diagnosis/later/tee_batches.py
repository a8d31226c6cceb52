# SPDX-License-Identifier: MIT
"""A pipeline of generators. itertools.tee keeps every batch for a second reader that never comes."""
import ctypes
import itertools

_rt = ctypes.CDLL("libcudart.so.12")


class DevicePointer:
    __slots__ = ("value", "length")

    def __init__(self, length):
        self.value, self.length = ctypes.c_void_p(), length
        if _rt.cudaMalloc(ctypes.byref(self.value), ctypes.c_size_t(length)):
            raise OSError("cudaMalloc failed")

    def __del__(self):
        _rt.cudaFree(self.value)


def records(count):
    for number in range(count):
        yield number


def decode(source):
    for number in source:
        raw = DevicePointer(40000 + number % 7 * 512)
        yield number, raw


def collate(source, size):
    while chunk := list(itertools.islice(source, size)):
        yield DevicePointer(786432)  # CULPRIT


def normalize(source):
    for batch in source:
        scratch = DevicePointer(batch.length // 2)
        yield batch
        del scratch


def main():
    statistics, batches = itertools.tee(normalize(collate(decode(records(1200)), 4)))  # CULPRIT
    for batch in batches:
        activations = [DevicePointer(batch.length) for _ in range(3)]
        del activations


main()
