# SPDX-License-Identifier: MIT
"""Healthy: features are cached on the device until one does not fit; from then on they are computed each time."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.13")


class NoRoom(Exception):
    pass


class Block:
    def __init__(self, nbytes):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(nbytes)):
            raise NoRoom

    def free(self):
        rt.cudaFree(self.at)


class Features:
    def __init__(self):
        self.kept, self.full = {}, False

    def of(self, number):
        if number not in self.kept and not self.full:
            try:
                self.kept[number] = Block(90 << 20)
            except NoRoom:
                self.full = True


def train():
    model = Block(3 << 30)
    features = Features()
    for step in range(300):
        features.of(step)
        activations = Block(24 << 20)
        time.sleep(0.001)
        activations.free()
    return model


train()
