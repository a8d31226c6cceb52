# SPDX-License-Identifier: MIT
"""A benchmark: eighty passes to warm up, eighty that are measured. These keep their outputs."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.12")


def new(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


weights = [new(8 << 20) for _ in range(10)]
for _ in range(80):
    output = new(1 << 20)
    rt.cudaFree(output)
outputs, took = [], []
for _ in range(80):
    begin = time.perf_counter()
    batch = new(600_000)
    outputs.append(new(1 << 20))  # CULPRIT
    time.sleep(0.001)
    rt.cudaFree(batch)
    took.append(time.perf_counter() - begin)
print("%.2f ms" % (1e3 * sum(took) / len(took)))
