# SPDX-License-Identifier: MIT
"""A server swaps its model for a newer one. The requests' queue holds the method of the model it was made with, and so every model that ever was."""
import ctypes
import sys

cudart = ctypes.CDLL("libcudart.so.12")


class Weights:
    def __init__(self, mib):
        self.p = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.p), ctypes.c_size_t(mib << 20)):
            raise MemoryError("cudaMalloc: out of memory")

    def __del__(self):
        if self.p:
            cudart.cudaFree(self.p)


class Model:
    def __init__(self, version):
        self.version = version
        self.layers = [Weights(90) for _ in range(4)]  # CULPRIT

    def predict(self, x):
        y = Weights(2)
        return self.version


class Server:
    def __init__(self):
        self.model = Model(0)
        self.routes = []

    def swap(self, version):
        self.model = Model(version)  # CULPRIT
        self.routes.append(self.model.predict)  # CULPRIT

    def handle(self, number):
        if number % 25 == 24:
            self.swap(number)
        self.model.predict(number)


server = Server()
try:
    for number in range(1000):
        server.handle(number)
except MemoryError as error:
    sys.exit(str(error))
