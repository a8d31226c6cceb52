# SPDX-License-Identifier: MIT
"""A training that keeps the losses of all samples of each step, for a plot that is never drawn; then an evaluation and an export."""
import ctypes
import random
import sys

draw = random.Random(int(sys.argv[1]))
runtime = ctypes.CDLL("libcudart.so.13")
ranges = ctypes.CDLL("libnvToolsExt.so.1")


class Tensor:
    def __init__(self, size):
        self.at = ctypes.c_void_p()
        if runtime.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(size)):
            sys.exit("out of memory")

    def __del__(self):
        runtime.cudaFree(self.at)


class Trainer:
    def __init__(self):
        self.rows = draw.randint(8, 40) << 10
        self.weights = [Tensor(self.rows * 256) for _ in range(4)]
        self.losses = []

    def layer(self):
        return Tensor(self.rows * 64)

    def step(self, number):
        ranges.nvtxRangePushA(b"train_step_%d" % number)
        activations = [self.layer() for _ in self.weights]
        self.losses.append(Tensor(self.rows * 32))  # CULPRIT
        del activations
        ranges.nvtxRangePop()

    def evaluate(self, batches):
        for _ in range(batches):
            activations = [self.layer() for _ in self.weights]
            del activations

    def export(self, shards):
        for _ in range(shards):
            staging = Tensor(self.rows * 256)
            del staging


trainer = Trainer()
for number in range(draw.randint(70, 150)):
    trainer.step(number)
trainer.evaluate(draw.randint(40, 160))
trainer.export(draw.randint(8, 16))
