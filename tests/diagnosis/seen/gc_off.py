# SPDX-License-Identifier: MIT
"""The collector is off for the sake of latency. Sessions and their decoders refer to each other, so that none is ever freed."""
import ctypes
import gc
import time

gc.disable()
rt = ctypes.CDLL("libcudart.so.12")


class Memory:
    def __init__(self, nbytes):
        self.at = ctypes.c_void_p()
        assert rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)) == 0

    def __del__(self):
        rt.cudaFree(self.at)


class Decoder:
    def __init__(self, session):
        self.session = session  # CULPRIT
        self.cache = Memory(344064)  # CULPRIT

    def token(self):
        return Memory(80000)


class Session:
    def __init__(self):
        self.decoder = Decoder(self)  # CULPRIT

    def run(self):
        for _ in range(3):
            self.decoder.token()


def serve(sessions):
    weights = Memory(60 << 20)
    for _ in range(sessions):
        Session().run()
        time.sleep(0.001)
    return weights


serve(240)
