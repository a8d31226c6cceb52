# SPDX-License-Identifier: MIT
"""A translator with ranges around encode, decode and rescore. The n-best lists of the middle one are kept for a cache that is never asked."""
import contextlib
import ctypes
import random
import time

marks = ctypes.CDLL("libnvToolsExt.so.1")
rt = ctypes.CDLL("libcudart.so.12")
random.seed(6)


@contextlib.contextmanager
def marked(name):
    marks.nvtxRangePushA(name.encode())
    try:
        yield
    finally:
        marks.nvtxRangePop()


class Block:
    def __init__(self, words, width):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(words * width)):
            raise MemoryError

    def __del__(self):
        rt.cudaFree(self.at)


class Translator:
    def __init__(self):
        self.model = [Block(8000, 4096) for _ in range(4)]
        self.lists = []

    def read(self, words):
        return [Block(words, 8192) for _ in range(6)]

    def search(self, memory, words):
        self.lists.append(Block(20, 51200))  # CULPRIT
        return Block(words, 2048)

    def score(self, best):
        return Block(64, 65536)

    def translate(self, words):
        with marked("encode"):
            memory = self.read(words)
        with marked("decode"):
            best = self.search(memory, words)  # CULPRIT
        with marked("rescore"):
            self.score(best)


translator = Translator()
for _ in range(140):
    translator.translate(random.randint(10, 60))
    time.sleep(0.0005)
