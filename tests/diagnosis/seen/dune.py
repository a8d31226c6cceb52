# SPDX-License-Identifier: MIT
"""Monte Carlo tree search. After each move the root goes down one level, and the new root keeps its parent."""
import ctypes
import random

libcudart = ctypes.CDLL("libcudart.so.13")
random.seed(1)


def device_memory(size):
    at = ctypes.c_void_p()
    if libcudart.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size)):
        raise MemoryError("device")
    return at


class Position:
    def __init__(self, parent=None):
        self.parent = parent
        self.board = device_memory(50_176)  # CULPRIT
        self.replies = {}

    def __del__(self):
        libcudart.cudaFree(self.board)

    def expand(self, depth):
        if depth == 0:
            return 0
        move = random.randrange(3)
        if move not in self.replies:
            self.replies[move] = Position(self)  # CULPRIT
        return 1 + self.replies[move].expand(depth - 1)


def play(moves):
    root = Position()
    for _ in range(moves):
        for _ in range(8):
            root.expand(5)
        net = device_memory(2_000_000)
        libcudart.cudaFree(net)
        root = max(root.replies.values(), key=lambda reply: len(reply.replies))


play(70)
