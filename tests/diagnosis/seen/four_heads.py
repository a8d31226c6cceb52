# SPDX-License-Identifier: MIT
"""Ten steps of a network with four heads; the list of outputs of each step is kept by the progress reporter."""
import ctypes

cudart = ctypes.CDLL("libcudart.so.12")


class Buf:
    def __init__(self, size):
        self.ptr = ctypes.c_uint64()
        err = cudart.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(size))
        assert err == 0

    def __del__(self):
        cudart.cudaFree(self.ptr)


def head(kind):
    size = {"box": 400 << 10, "class": 900 << 10, "mask": 3 << 20, "pose": 700 << 10}[kind]
    return Buf(size)  # CULPRIT: asked here


def network(image):
    features = Buf(12 << 20)
    boxes = head("box")  # CULPRIT: asked here
    classes = head("class")  # CULPRIT: asked here
    masks = head("mask")  # CULPRIT: asked here
    poses = head("pose")  # CULPRIT: asked here
    return boxes, classes, masks, poses


history = []
weights = [Buf(4 << 20) for _ in range(9)]
for step in range(10):
    image = Buf(2 << 20)
    history.append(network(image))  # CULPRIT: kept here
