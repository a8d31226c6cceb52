# SPDX-License-Identifier: MIT
"""Three ranges in each round: fit, validate, save. What validate finds is kept."""
import contextlib
import ctypes
import time

nvtx = ctypes.CDLL("libnvToolsExt.so.1")
rt = ctypes.CDLL("libcudart.so.12")


@contextlib.contextmanager
def annotate(name):
    nvtx.nvtxRangePushA(name.encode())
    try:
        yield
    finally:
        nvtx.nvtxRangePop()


def buffer(mib):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(int(mib * (1 << 20)))):
        raise MemoryError
    return p


def optimize(rounds):
    work = [buffer(10 + rounds % 3), buffer(22)]
    for p in work:
        rt.cudaFree(p)


def confusion(samples):
    return buffer(2.5)  # CULPRIT


def measure(found):
    logits = buffer(7)
    found.append(confusion(1000))  # CULPRIT
    rt.cudaFree(logits)


def write():
    rt.cudaFree(buffer(40))


def main():
    found = []
    for number in range(90):
        with annotate("fit"):
            optimize(number)
        with annotate("validate"):
            measure(found)
        with annotate("save"):
            write()
        time.sleep(0.001)


main()
