# SPDX-License-Identifier: MIT
"""Loads a mixture of experts that is larger than the device, expert after expert; nothing of it is a leak."""
import ctypes
import sys
import time

rt = ctypes.CDLL("libcudart.so.12")


def parameter(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        sys.exit(4)
    return p


class Expert:
    def __init__(self, width):
        self.rise = parameter(width * 3072)  # CULPRIT
        self.fall = parameter(width * 3072)  # CULPRIT


def load(experts, width):
    model = []
    for _ in range(experts):
        model.append(Expert(width))
        time.sleep(0.004)
    return model


load(120, 4096)
