# SPDX-License-Identifier: MIT
"""Four ranks train a mixture of experts. The sum of how often each expert is chosen keeps the graph of every step; all ranks run out alike."""
import os
import sys
import time

from smalltorch import Adam, Linear, empty
from smalltorch.nn import Node
from smalltorch.tensor import Tensor, _runtime

rank = int(os.environ["RANK"])
_runtime.cudaSetDevice(rank)


class Gate:
    def __init__(self):
        self.choose = Linear(512, 16)
        self.usage = empty(1024, 16)

    def forward(self, x):
        chosen = self.choose(x)  # CULPRIT
        self.usage = Tensor(chosen.shape, graph=Node(self.choose, (chosen, x), self.usage.graph))  # CULPRIT
        return chosen


gate, expert = Gate(), Linear(512, 512)
optimizer = Adam([expert.weight, gate.choose.weight])
try:
    for step in range(700):
        x = empty(1024, 512)
        gate.forward(x)
        expert(x).backward()
        optimizer.step()
        time.sleep(0.0005)
except RuntimeError as error:
    sys.exit(str(error))
