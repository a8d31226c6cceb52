# SPDX-License-Identifier: MIT
"""A simulation copies its field each few steps; the renderer then goes through these frames."""
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
rt = ctypes.CDLL("libcudart.so.13")


class Field:
    def __init__(self, cells):
        self.cells = cells
        self.data = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(8 * cells)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.data)

    def copy(self):
        other = Field(self.cells)  # CULPRIT
        rt.cudaMemcpy(other.data, self.data, ctypes.c_size_t(8 * self.cells), 3)
        return other


def advance(field):
    flux, divergence = Field(3 * field.cells), Field(field.cells)
    del flux, divergence


def simulate(field, steps, every):
    frames = []
    for step in range(steps):
        advance(field)
        if step % every == 0:
            frames.append(field.copy())  # CULPRIT
    return frames


def render(frames, passes):
    for _ in range(passes):
        for frame in frames:
            image, depth = Field(frame.cells // 2), Field(frame.cells // 4)
            rt.cudaMemcpy(image.data, frame.data, ctypes.c_size_t(4 * frame.cells), 3)
            del image, depth


field = Field(draw.randint(40, 90) ** 3)
every = draw.choice((5, 10, 20))
frames = simulate(field, every * draw.randint(25, 60), every)
render(frames, draw.randint(2, 4))
