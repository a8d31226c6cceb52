# SPDX-License-Identifier: MIT
"""Each batch's loss is kept until the next one, a moving window of the last thirty-two gradients norms too."""
import collections
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Scalar:
    def __init__(self, n=512):
        self.p = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.p)


def step(previous, window):
    activations = [Scalar(2 << 20) for _ in range(5)]
    loss = Scalar()
    window.append(Scalar(65536))
    del activations, previous
    return loss


window, loss = collections.deque(maxlen=32), None
for _ in range(500):
    loss = step(loss, window)
print("done")
