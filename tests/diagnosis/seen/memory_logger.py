# SPDX-License-Identifier: MIT
"""Four ranks. The progress bar asks for the free memory of device 0 on each rank: that makes a context there."""
import ctypes
import os

rt = ctypes.CDLL("libcudart.so.12")
rank = int(os.environ["LOCAL_RANK"])


def allocate(nbytes):
    p = ctypes.c_void_p()
    assert rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)) == 0
    return p


class Bar:
    def free_memory(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        rt.cudaSetDevice(0)  # CULPRIT
        rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))  # CULPRIT
        rt.cudaSetDevice(rank)
        return free.value

    def update(self, step):
        return "%d %d" % (step, self.free_memory())


rt.cudaSetDevice(rank)
weights = [allocate(24 << 20) for _ in range(10)]
bar = Bar()
for step in range(30):
    work = allocate(16 << 20)
    if step % 10 == 0:
        bar.update(step)
    rt.cudaFree(work)
