# SPDX-License-Identifier: MIT
"""The losses of all pixels of each step are kept; after the training they are stacked for quantiles, and an evaluation follows."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
side, rows = draw.choice((64, 96, 128)), draw.choice((16, 32))
net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1)).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.01)
curve = []
for _ in range(draw.randint(40, 100)):
    clean = torch.rand(rows, 1, side, side, device="cuda")
    error = (net(clean + 0.1 * torch.randn_like(clean)) - clean).square()  # CULPRIT
    optimizer.zero_grad()
    error.mean().backward()
    optimizer.step()
    curve.append(error.detach())  # CULPRIT
errors = torch.stack(curve).flatten(1)
spread = errors.std(1).cpu()
with torch.no_grad():
    for _ in range(draw.randint(40, 120)):
        net(torch.rand(2 * rows, 1, side, side, device="cuda")).mean()
