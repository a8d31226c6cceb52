# SPDX-License-Identifier: MIT
"""Collects the predictions of an epoch in a list, joins them at its end, and begins again."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.12")


class Column:
    def __init__(self, n):
        self.n, self.p = n, ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(n)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.p)

    @classmethod
    def concat(cls, columns):
        return cls(sum(column.n for column in columns))


def predict():
    hidden = Column(3 << 20)
    del hidden
    return Column(200_000)


model = Column(300 << 20)
for epoch in range(9):
    predictions = []
    for batch in range(50):
        predictions.append(predict())
        time.sleep(0.0003)
    whole = Column.concat(predictions)
    del predictions, whole
