# SPDX-License-Identifier: MIT
"""A server: busy hours and quiet ones take turns.  A busy hour's sessions stay in a table after they ended; a quiet hour compacts."""
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
cudart = ctypes.CDLL("libcudart.so.13")


class Buffer:
    def __init__(self, size):
        self.pointer = ctypes.c_void_p()
        code = cudart.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(size))
        if code:
            raise RuntimeError("cudaMalloc: %d" % code)

    def __del__(self):
        cudart.cudaFree(self.pointer)


class Session:
    def __init__(self, number, size):
        self.number = number
        self.state = Buffer(size)  # CULPRIT

    def answer(self, turns):
        for _ in range(turns):
            query, scores = Buffer(256 << 10), Buffer(1 << 20)
            del query, scores


sessions = {}
state = draw.randint(2, 5) << 20
page = draw.choice((1, 2, 4)) << 20


def busy(users):
    for _ in range(users):
        session = sessions[len(sessions)] = Session(len(sessions), state)  # CULPRIT
        session.answer(draw.randint(2, 6))


def quiet(pages):
    for _ in range(pages):
        source, target = Buffer(page), Buffer(page)
        del source, target


model = [Buffer(48 << 20) for _ in range(draw.randint(4, 8))]
for hour in range(draw.randint(4, 7)):
    busy(draw.randint(16, 32))
    quiet(draw.randint(150, 300))
