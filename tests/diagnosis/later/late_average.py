# SPDX-License-Identifier: MIT
"""Averages the weights from three quarters of the training on: sixty blocks that come late and once."""
import ctypes

rt = ctypes.CDLL("libcudart.so.12")


class Weight:
    def __init__(self, n):
        self.n, self.p = n, ctypes.c_void_p()
        assert rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)) == 0

    def __del__(self):
        rt.cudaFree(self.p)


class Average:
    def __init__(self, model):
        self.copies = [Weight(w.n) for w in model]


def main():
    model = [Weight(400000 + i * 1000) for i in range(60)]
    average = None
    for step in range(240):
        activations = [Weight(300000) for _ in range(8)]
        del activations
        if step == 180:
            average = Average(model)
    return average


main()
