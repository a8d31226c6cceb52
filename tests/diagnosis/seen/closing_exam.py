# SPDX-License-Identifier: MIT
"""Practises for most of its time, then sits one exam whose answers are kept until they are marked."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class Page:
    def __init__(self, nbytes):
        self.ptr = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(nbytes)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.ptr)


def solve(nbytes):
    return Page(nbytes)


def practise(times):
    for _ in range(times):
        sketch, answer = solve(200 << 10), solve(416 << 10)
        time.sleep(0.002)
        del sketch, answer


def exam(questions):
    answers = []
    for _ in range(questions):
        sketch = solve(200 << 10)
        answers.append(solve(416 << 10))
        time.sleep(0.002)
        del sketch
    return len(answers)


def main():
    book = Page(8 << 20)
    practise(260)
    marks = exam(90)
    time.sleep(0.02)
    return book, marks


main()
