# SPDX-License-Identifier: MIT
"""Serves chats. Each turn appends blocks to the session's key-value cache; a session that ended is not dropped."""
import ctypes
import itertools

_cudart = ctypes.CDLL("libcudart.so.13")
BLOCK_TOKENS = 16
LAYERS = 8


class OutOfBlocks(Exception):
    pass


class BlockManager:
    def __init__(self, block_bytes):
        self.block_bytes = block_bytes

    def take(self):
        address = ctypes.c_void_p()
        if _cudart.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(self.block_bytes)):
            raise OutOfBlocks
        return address

    def give(self, block):
        _cudart.cudaFree(block)


class Session:
    def __init__(self, manager):
        self.manager, self.blocks, self.tokens = manager, [], 0

    def append(self, tokens):
        self.tokens += tokens
        while len(self.blocks) * BLOCK_TOKENS < self.tokens:
            self.blocks.append(self.manager.take())  # CULPRIT


class Server:
    def __init__(self):
        self.manager = BlockManager(LAYERS * BLOCK_TOKENS * 2 * 1024)
        self.scratch = BlockManager(3 << 20)
        self.sessions = {}
        self.weights = [BlockManager(20 << 20).take() for _ in range(LAYERS)]

    def chat(self, user, words):
        session = self.sessions.setdefault(user, Session(self.manager))
        activation = self.scratch.take()
        session.append(words)
        self.scratch.give(activation)


server = Server()
for user, words in zip(range(260), itertools.cycle((40, 75, 12, 110, 63))):
    for turn in range(4):
        server.chat(user, words + turn)
