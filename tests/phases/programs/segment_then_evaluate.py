# SPDX-License-Identifier: MIT
"""A segmentation is trained by a loop that keeps a picture of each step; then it is evaluated."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
side = draw.choice((96, 128, 160))
net = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 5, 1)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
pictures = []


def fit(steps):
    for _ in range(steps):
        found = net(torch.randn(4, 3, side, side, device="cuda"))
        loss = nn.functional.cross_entropy(found, torch.randint(5, (4, side, side), device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pictures.append(found.detach().softmax(1))  # CULPRIT


@torch.no_grad()
def evaluate(batches):
    for _ in range(batches):
        net(torch.randn(8, 3, side, side, device="cuda")).argmax(1)


fit(draw.randint(30, 90))
evaluate(draw.randint(60, 220))
