# SPDX-License-Identifier: MIT
"""Each epoch's weights are cloned into a list, of which only the last are loaded for the test."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
width = draw.choice((512, 640, 768))
model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU()) for _ in range(draw.randint(3, 5))], nn.Linear(width, 10)).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
criterion = nn.CrossEntropyLoss()
checkpoints = []


def fit(steps):
    for _ in range(steps):
        loss = criterion(model(torch.randn(128, width, device="cuda")), torch.randint(10, (128,), device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def snapshot():
    return {name: value.detach().clone() for name, value in model.state_dict().items()}  # CULPRIT


steps = draw.randint(12, 30)
for epoch in range(draw.randint(9, 14)):
    fit(steps)
    checkpoints.append((epoch, snapshot()))  # CULPRIT
model.load_state_dict(checkpoints[-1][1])
model.eval()
with torch.inference_mode():
    for _ in range(draw.randint(40, 120)):
        model(torch.randn(512, width, device="cuda")).argmax(1)
