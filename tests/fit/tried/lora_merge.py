"""1500M  Adapters are merged into a copy of the model, while the first one stays."""
import copy

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, dim, rank=16):
        super().__init__()
        self.base, self.a, self.b = nn.Linear(dim, dim), nn.Linear(dim, rank, bias=False), nn.Linear(rank, dim, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Model(nn.Module):
    def __init__(self, dim=2048, depth=20):
        super().__init__()
        self.layers = nn.ModuleList(Adapted(dim) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


def merge(model):
    merged = copy.deepcopy(model)  #~ no_second_copy merged = model
    with torch.no_grad():
        for layer in merged.layers:
            layer.base.weight += layer.b.weight @ layer.a.weight
    return merged


def finetune(model, steps=6):
    for p in model.parameters():
        p.requires_grad_(p.shape[0] == 16 or (p.ndim > 1 and p.shape[1] == 16))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    for step in range(steps):
        x = torch.randn(512, 2048, device="cuda")  #~ step
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model = Model().cuda()
finetune(model)
merged = merge(model)
with torch.no_grad():
    for _ in range(4):
        merged(torch.randn(8192, 2048, device="cuda"))
