# SPDX-License-Identifier: MIT
"""Attention masks are made once for each length and stay in a dictionary; training goes on long after all lengths came, then a server runs."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
width = draw.choice((128, 256))
lengths = draw.sample(range(256, 1100, 16), draw.randint(10, 20))
layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True).cuda()
optimizer = torch.optim.SGD(layer.parameters(), 0.01)
masks = {}


def mask_of(length):
    if length not in masks:
        masks[length] = torch.full((length, length), float("-inf"), device="cuda").triu(1)
    return masks[length]


def forward(length, rows):
    return layer(torch.randn(rows, length, width, device="cuda"), src_mask=mask_of(length))


for length in draw.sample(lengths, len(lengths)) + draw.choices(lengths, k=draw.randint(80, 140)):
    optimizer.zero_grad()
    forward(length, 2).mean().backward()
    optimizer.step()
layer.eval()
with torch.no_grad():
    for _ in range(draw.randint(60, 120)):
        forward(draw.choice(lengths), 1)
