# SPDX-License-Identifier: MIT
"""A small GPT in an ordinary training loop; the recordings beside it ran out of memory in its first forward and second backward pass (--dry=h200 --limit)."""
import sys

import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F

WORDS, WIDTH, LENGTH = 4096, 256, 256


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(8))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, x):
        x = self.words(x) + self.places(torch.arange(LENGTH, device=x.device))
        for layer in self.layers:
            if "checkpoint" in sys.argv:
                x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        return self.head(x)


model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    tokens = torch.randint(0, WORDS, (int(sys.argv[1]), LENGTH)).cuda()
    loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
