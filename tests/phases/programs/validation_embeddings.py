# SPDX-License-Identifier: MIT
"""The validation of some epochs keeps its embeddings in one list; training goes on after the last of them."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
width, rows = draw.choice((256, 512)), draw.choice((512, 1024))
tower = nn.Sequential(nn.Linear(600, 1024), nn.ReLU(), nn.Linear(1024, width)).cuda()
optimizer = torch.optim.Adagrad(tower.parameters())
embeddings = []


def contrast(steps):
    for _ in range(steps):
        left, right = tower(torch.randn(rows, 600, device="cuda")), tower(torch.randn(rows, 600, device="cuda"))
        optimizer.zero_grad()
        nn.functional.cross_entropy(left @ right.T, torch.arange(rows, device="cuda")).backward()
        optimizer.step()


@torch.inference_mode()
def validate(batches):
    for _ in range(batches):
        embeddings.append(nn.functional.normalize(tower(torch.randn(2 * rows, 600, device="cuda"))))  # CULPRIT


steps, batches = draw.randint(15, 35), draw.randint(10, 25)
for _ in range(draw.randint(3, 6)):
    contrast(steps)
    validate(batches)
contrast(draw.randint(2, 4) * steps)
