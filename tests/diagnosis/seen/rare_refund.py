# SPDX-License-Identifier: MIT
"""A shop's recommender: one request in 25 is a refund, whose features are computed and forgotten by nobody."""
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(4)
refunds = {}


def features(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


def purchase(order):
    f = features(200000)
    rt.cudaFree(f)


def refund(order):
    refunds[order] = features(180000)  # CULPRIT


model = features(50 << 20)
for order in range(500):
    (refund if random.random() < 0.04 else purchase)(order)
