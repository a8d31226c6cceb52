# SPDX-License-Identifier: MIT
"""A generator of tiles is left at the first tile that will do. Somebody keeps the generators, and each holds the picture that it cuts."""
import ctypes

rt = ctypes.CDLL("libcudart.so.13")


class Memory:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.at)


def empty(size):
    return Memory(size)


def tiles(number):
    picture = empty(900000)  # CULPRIT
    for tile in range(16):
        view = empty(65536)
        yield number * 16 + tile, picture, view


class Search:
    def __init__(self):
        self.open = []

    def first(self, number):
        candidates = tiles(number)
        self.open.append(candidates)  # CULPRIT
        for key, _, _ in candidates:
            if key % 5 == 3:
                return key
        return None


def main():
    search = Search()
    index = [empty(8 << 20) for _ in range(4)]
    for number in range(500):
        search.first(number)
        empty(number % 9 * 4096 + 4096)
    del index
    search.open.clear()


main()
