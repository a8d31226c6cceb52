# SPDX-License-Identifier: MIT
"""An allocator of the program's own cuts chunks of 96 MiB; a small token that stays in each keeps all of it."""
import ctypes
import time

rt = ctypes.CDLL("libcudart.so.12")


def raw(nbytes):
    at = ctypes.c_void_p()
    if rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(nbytes)):
        raise MemoryError(nbytes)
    return at


class Chunk:
    SIZE = 96 << 20

    def __init__(self):
        self.base, self.top, self.users = raw(self.SIZE), 0, 0


class Bump:
    def __init__(self):
        self.chunks, self.spare = [], []

    def get(self, nbytes):
        if not self.chunks or self.chunks[-1].top + nbytes > Chunk.SIZE:
            self.chunks.append(self.spare.pop() if self.spare else Chunk())  # CULPRIT
        chunk = self.chunks[-1]
        chunk.top += nbytes
        chunk.users += 1
        return chunk

    def put(self, chunk):
        chunk.users -= 1
        if not chunk.users and chunk is not self.chunks[-1]:
            self.chunks.remove(chunk)
            chunk.top = 0
            self.spare.append(chunk)


def main():
    arena, tokens = Bump(), []
    for step in range(4000):
        parts = [arena.get((3 + step % 5) << 20) for _ in range(4)]
        tokens.append(arena.get(4096))
        for chunk in parts:
            arena.put(chunk)
        time.sleep(0.0005)


main()
