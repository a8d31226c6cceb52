# SPDX-License-Identifier: MIT
"""A server that loads a new version of its model now and then, a bit larger each time, after it dropped the one before."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


def alloc(n):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
        raise RuntimeError("out of memory")
    return p


class Model:
    def __init__(self, version):
        self.weights = [alloc((6 << 20) + version * 200000) for _ in range(12)]

    def predict(self):
        out = alloc(500000)
        rt.cudaFree(out)

    def unload(self):
        for p in self.weights:
            rt.cudaFree(p)


model = Model(0)
for request in range(360):
    if request and request % 30 == 0:
        model.unload()
        model = Model(request // 30)
    model.predict()
model.unload()
