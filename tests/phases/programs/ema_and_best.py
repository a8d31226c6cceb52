# SPDX-License-Identifier: MIT
"""Training with an exponential mean of the weights, an evaluation in each epoch, and the best weights kept in place of the former ones."""
import copy
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
channels = draw.choice((32, 48, 64))
model = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                      nn.Conv2d(channels, channels, 3, stride=2, padding=1), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(64 * channels, 1000)).cuda()
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
steps, epochs = draw.randint(10, 25), draw.randint(6, 12)


def images(rows):
    return torch.randn(rows, 3, 64, 64, device="cuda")


def step():
    model.train()
    loss = nn.functional.cross_entropy(model(images(16)), torch.randint(1000, (16,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, value in zip(ema.parameters(), model.parameters()):
            mean.lerp_(value, 0.001)
    return loss.item()


@torch.no_grad()
def accuracy(net, count):
    hits = torch.zeros((), device="cuda")
    for _ in range(count):
        hits += (net(images(32)).argmax(1) == 0).sum()
    return hits.item() + draw.random()


best, best_score, losses = None, -1.0, []
for epoch in range(epochs):
    losses += [step() for _ in range(steps)]
    score = accuracy(ema, draw.randint(5, 10))
    if score > best_score:
        best, best_score = {name: value.clone() for name, value in ema.state_dict().items()}, score
ema.load_state_dict(best)
accuracy(ema, draw.randint(30, 60))
