# SPDX-License-Identifier: MIT
"""Six ranks with tensor parallelism. Rank 2 was started with another config and does not shard its vocabulary."""
import ctypes
import os

rt = ctypes.CDLL("libcudart.so.13")
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def new(numel):
    out = ctypes.c_uint64()
    if rt.cudaMalloc(ctypes.byref(out), ctypes.c_size_t(2 * numel)):
        raise MemoryError
    return out


class Config:
    hidden, vocab, layers = 1024, 96000, 12
    shard_vocab = RANK != 2


class Block:
    def __init__(self, config):
        self.qkv = new(config.hidden * config.hidden * 3 // WORLD)
        self.mlp = new(config.hidden * config.hidden * 8 // WORLD)


class Model:
    def __init__(self, config):
        rows = config.vocab // WORLD if config.shard_vocab else config.vocab
        self.embedding = new(rows * config.hidden)  # CULPRIT
        self.blocks = [Block(config) for _ in range(config.layers)]


rt.cudaSetDevice(RANK)
model = Model(Config())
for step in range(25):
    live = [new(Config.hidden * 2048) for _ in model.blocks]
    for one in live:
        rt.cudaFree(one)
