# SPDX-License-Identifier: MIT
"""At most twenty-four rooms are open; each message is kept until its room closes. Old and new blocks are mixed at the end."""
import ctypes
import random

cudart = ctypes.CDLL("libcudart.so.12")
rng = random.Random(31)


class Message:
    def __init__(self, size):
        self.data = ctypes.c_void_p()
        if cudart.cudaMalloc(ctypes.byref(self.data), ctypes.c_size_t(size)):
            raise MemoryError(size)

    def __del__(self):
        cudart.cudaFree(self.data)


class Room:
    def __init__(self):
        self.greeting = Message(rng.randrange(200_000, 900_000))
        self.messages = []

    def post(self):
        self.messages.append(Message(rng.randrange(20_000, 300_000)))


rooms = {}
for turn in range(500):
    if len(rooms) < 24 and rng.random() < .3:
        rooms[turn] = Room()
    for name in list(rooms):
        if rng.random() < .15:
            rooms[name].post()
        if rng.random() < .015:
            del rooms[name]
