"""1492M  Style transfer over pictures of mixed size: features of all layers are collected as statistics."""
import random

import torch
from torch import nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 if not i else 32, 32, 3, padding=1) for i in range(5))

    def forward(self, x):
        found = []
        for layer in self.layers:
            x = torch.relu(layer(x))
            found.append(x)
        return found


def gram(f):
    f = f.flatten(2)
    return f @ f.transpose(1, 2) / f.shape[-1]


def collect(net, sizes):
    style = {}
    for at, (h, w) in enumerate(sizes):
        picture = torch.rand(2, 3, h, w, device="cuda")
        style[at] = [gram(f) for f in net(picture)]  #~ free_leak style[at] = [gram(f).detach() for f in net(picture)] #~ no_grad with torch.no_grad(): style[at] = [gram(f) for f in net(picture)]
    return style


choose = random.Random(2)
collect(Features().cuda(), [(16 * choose.randrange(8, 16), 16 * choose.randrange(8, 16)) for _ in range(40)])
