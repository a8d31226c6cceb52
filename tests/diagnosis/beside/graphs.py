# SPDX-License-Identifier: MIT
"""graphs.py SIZES: a graph is captured for each size of batch, with a private pool of its own."""
import sys

import torch
import torch.nn

model = torch.nn.Sequential(*[torch.nn.Linear(20, 10) for _ in range(6)])
recorded = {}


def replay(size):
    if size not in recorded:
        with torch.graph():
            recorded[size] = model(torch.empty(size))
        recorded[size] = recorded[size][-1:]


for batch in range(200):
    replay(1 + batch % int(sys.argv[1]))
