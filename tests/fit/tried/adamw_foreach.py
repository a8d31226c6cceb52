"""1700M  A decoder's optimizer makes its state in the first step; AdamW takes all parameters at once."""
import torch
from torch import nn


def train(steps=4, dim=768):
    net = nn.Sequential(*(nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(12))).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=True)  #~ half_state from optimizers import Small; optimizer = Small(net.parameters())
    for _ in range(steps):
        x = torch.randn(64, dim, device="cuda")  #~ step
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
