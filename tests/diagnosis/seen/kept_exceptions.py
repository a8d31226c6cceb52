# SPDX-License-Identifier: MIT
"""Validates user records on the device. Bad ones raise; the exceptions are collected, and with them the frames they came through."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Buffer:
    def __init__(self, nbytes):
        self.p = ctypes.c_void_p()
        code = rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(nbytes))
        if code:
            raise MemoryError(code)

    def __del__(self):
        rt.cudaFree(self.p)


def parse(record, columns):
    if record % 7 == 3:
        raise ValueError(f"record {record}: bad checksum")
    return record * 2


def validate(record):
    columns = Buffer(1280 << 10)  # CULPRIT
    index = Buffer(20 << 10)
    return parse(record, (columns, index))


def run(count):
    table = Buffer(32 << 20)
    failures = []
    for record in range(count):
        try:
            validate(record)
        except ValueError as error:
            failures.append(error)  # CULPRIT
    print(len(failures), "of", count, "records are bad")
    return table


run(1200)
