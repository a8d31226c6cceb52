# SPDX-License-Identifier: MIT
"""A table that is rebuilt with twice the room when it is full: it has what it needs after a third of the input."""
import ctypes

cudart = ctypes.CDLL("libcudart.so.13")


class Table:
    def __init__(self):
        self.room, self.used = 1 << 12, 0
        self.slots = self.make(self.room)

    @staticmethod
    def make(room):
        p = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(room * 24)):
            raise MemoryError
        return p

    def rehash(self):
        old, self.room = self.slots, self.room * 2
        self.slots = self.make(self.room)
        cudart.cudaFree(old)

    def insert(self, keys):
        chunk = self.make(keys)
        self.used += keys
        while self.used > 0.7 * self.room:
            self.rehash()
        cudart.cudaFree(chunk)


table = Table()
for chunk in range(400):
    table.insert(5000 if chunk < 130 else 0)
