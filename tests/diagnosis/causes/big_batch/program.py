# SPDX-License-Identifier: MIT
"""Texts of different lengths; one batch is far longer than the others."""
import random
import torch

random.seed(1)
torch.manual_seed(1)


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


model = torch.nn.Sequential(*(Block(768) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
lengths = [random.randrange(100, 260) for _ in range(60)]
lengths[50] = 900


def train():
    for length in lengths:
        x = torch.empty(32, length, 768, device="cuda")
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


train()
