# SPDX-License-Identifier: MIT
"""Builds an octree of a point cloud for each scan, by recursion. The trees are kept to compare scans, which nobody does."""
import ctypes
import random

rt = ctypes.CDLL("libcudart.so.12")
random.seed(3)


def reserve(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise MemoryError
    return p


class Node:
    def __init__(self, points, depth):
        self.points = reserve(16 * points)  # CULPRIT
        self.children = []
        if points > 9000 and depth < 9:
            self.split(points, depth)

    def split(self, points, depth):
        for share in (0.5, 0.3):
            self.children.append(Node(int(points * share), depth + 1))


def scan(number):
    cloud = reserve(random.randrange(2 << 20, 3 << 20))
    tree = Node(60000, 0)  # CULPRIT
    rt.cudaFree(cloud)
    return tree


trees = [scan(number) for number in range(70)]
