# SPDX-License-Identifier: MIT
"""Healthy: sessions and decoders refer to each other; the collector frees them in waves, the last of which is not full."""
import ctypes
import gc
import time

rt = ctypes.CDLL("libcudart.so.12")
gc.set_threshold(400, 4, 4)


class Memory:
    def __init__(self, nbytes):
        self.at = ctypes.c_void_p()
        assert rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        rt.cudaFree(self.at)


class Decoder:
    def __init__(self, session):
        self.session, self.cache, self.words = session, Memory(344064), [[] for _ in range(6)]


class Session:
    def __init__(self):
        self.decoder = Decoder(self)

    def run(self):
        for _ in range(3):
            Memory(80000)


def serve(sessions):
    weights = Memory(60 << 20)
    for _ in range(sessions):
        Session().run()
        time.sleep(0.001)
    return weights


serve(300)
