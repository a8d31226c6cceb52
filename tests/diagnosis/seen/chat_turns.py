# SPDX-License-Identifier: MIT
"""A chat server: the key-value cache of a conversation grows by pages. A conversation that ends is dropped, but the audit trail keeps its last turn."""
import ctypes
import random

cuda = ctypes.CDLL("libcudart.so.12")
random.seed(11)


class Page:
    __slots__ = ("where",)

    def __init__(self, nbytes):
        self.where = ctypes.c_void_p()
        if cuda.cudaMalloc(ctypes.byref(self.where), ctypes.c_size_t(nbytes)):
            raise MemoryError(nbytes)

    def __del__(self):
        cuda.cudaFree(self.where)


class Cache:
    def __init__(self):
        self.pages = []

    def append(self, tokens):
        while tokens > 0:
            self.pages.append(Page(256 << 10))  # CULPRIT: asked here
            tokens -= 64


class Turn:
    def __init__(self, talk, said):
        self.cache, self.said = talk.cache, said


class Talk:
    def __init__(self):
        self.cache = Cache()
        self.left = random.randint(2, 9)

    def turn(self, said):
        self.cache.append(said)
        self.left -= 1
        return Turn(self, said)


audit = []
model = [Page(6 << 20) for _ in range(20)]
active = [Talk() for _ in range(6)]
for step in range(160):
    at = step % len(active)
    turn = active[at].turn(random.randint(32, 200))
    if active[at].left == 0:
        audit.append(turn)  # CULPRIT: kept here
        active[at] = Talk()
