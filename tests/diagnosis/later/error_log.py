# SPDX-License-Identifier: MIT
"""Records that cannot be parsed are logged with the exception, whose traceback holds the frames and what lives in them."""
import ctypes
import sys

lib = ctypes.CDLL("libcudart.so.13")


class Mem:
    live = 0

    def __init__(self, n):
        self.p = ctypes.c_void_p()
        self.n = n
        if lib.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)):
            raise MemoryError(n)
        Mem.live += n

    def __del__(self):
        Mem.live -= self.n
        lib.cudaFree(self.p)


class Report:
    def __init__(self):
        self.problems = []

    def failed(self, record):
        self.problems.append((record, sys.exc_info()))  # CULPRIT


def parse(record):
    columns = Mem(1150000)  # CULPRIT
    index = Mem(23000)
    if record % 5 == 3:
        raise ValueError("row %d has no key" % record)
    return columns, index


def load(records, report):
    for record in records:
        try:
            columns, index = parse(record)
        except ValueError:
            report.failed(record)  # CULPRIT
            continue
        sums = Mem(columns.n // 4)
        del columns, index, sums


report = Report()
load(range(500), report)
print(len(report.problems), "problems,", Mem.live, "bytes")
report.problems.clear()
