# SPDX-License-Identifier: MIT
"""A recorder of states grows until memory is out; the error is caught, printed, and the program ends well."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


class Full(Exception):
    pass


def malloc(nbytes):
    p = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(nbytes)):
        raise Full
    return p


class World:
    def __init__(self):
        self.field = malloc(200 << 20)

    def snapshot(self):
        return malloc(90 << 20)  # CULPRIT: asked here

    def step(self):
        forces = malloc(50 << 20)
        rt.cudaFree(forces)


def simulate(world, steps):
    trajectory = []
    for _ in range(steps):
        world.step()
        trajectory.append(world.snapshot())  # CULPRIT: kept here
    return trajectory


try:
    simulate(World(), 500)
except Full:
    print("device memory is full, stopping early")
