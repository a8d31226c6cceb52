# SPDX-License-Identifier: MIT
"""A recurrent network is trained, keeps its running loss as a number, and is evaluated with longer sequences."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
width, rows = draw.choice((128, 256)), draw.choice((32, 64))
reader, head = nn.GRUCell(width, width).cuda(), nn.Linear(width, width).cuda()
optimizer = torch.optim.Adam([*reader.parameters(), *head.parameters()])


def read(length):
    state = torch.zeros(rows, width, device="cuda")
    for _ in range(length):
        state = reader(torch.randn(rows, width, device="cuda"), state)
    return head(state)


running = torch.zeros((), device="cuda")
for _ in range(draw.randint(30, 60)):
    loss = read(draw.randint(6, 12)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running.mul_(0.9).add_(loss.detach(), alpha=0.1)
with torch.no_grad():
    for _ in range(draw.randint(40, 80)):
        read(16).mean()
