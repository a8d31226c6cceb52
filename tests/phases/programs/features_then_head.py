# SPDX-License-Identifier: MIT
"""A frozen backbone computes the features of all batches once; a head is then trained on them for many epochs."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
width, rows = draw.choice((512, 768, 1024)), draw.choice((256, 512))
backbone = nn.Sequential(nn.Linear(3072, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, width)).cuda().eval()


@torch.inference_mode()
def extract(count):
    found = []
    for _ in range(count):
        found.append(backbone(torch.randn(rows, 3072, device="cuda")))  # CULPRIT
    return found


features = extract(draw.randint(30, 80))
head = nn.Linear(width, 100).cuda()
optimizer = torch.optim.AdamW(head.parameters())
for epoch in range(draw.randint(3, 6)):
    draw.shuffle(features)
    for part in features:
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(part.clone()), torch.randint(100, (rows,), device="cuda")).backward()
        optimizer.step()
