# SPDX-License-Identifier: MIT
"""A notebook's cell is run again and again, under a name with a number and a hash; its second buffer stays in a dictionary."""
import ctypes
import hashlib

rt = ctypes.CDLL("libcudart.so.13")


class Buffer:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        rt.cudaFree(self.data)


CELL = """
for image in range(25):
    pixels = Buffer(700_000)
    scores = Buffer(300_000)
    kept[run, image % 3] = scores
"""
names = {"Buffer": Buffer, "kept": {}}
for number in range(2, 60):
    names["run"] = number
    file = "<ipython-input-%d-%s>" % (number, hashlib.md5(str(number).encode()).hexdigest()[:12])
    exec(compile(CELL, file, "exec"), names)  # CULPRIT: asked and kept in the cell's lines
