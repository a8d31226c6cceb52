"""1833M  A contrastive queue keeps each batch's keys with their graph."""
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, wide=1024):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2048, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU())
        self.head = nn.Linear(wide, 128)

    def forward(self, x):
        return F.normalize(self.head(self.trunk(x)), dim=1)


class MoCo:
    def __init__(self, length):
        self.query, self.key = Encoder().cuda(), Encoder().cuda()
        self.queue, self.length = [], length

    def loss(self, a, b):
        q = self.query(a)
        k = self.key(b)  #~ no_grad with torch.no_grad(): k = self.key(b)
        negatives = torch.cat([k.detach(), *[x.detach() for x in self.queue]])
        self.queue.append(k)  #~ free_leak self.queue.append(k.detach())
        if len(self.queue) > self.length:
            self.queue.pop(0)
        logits = q @ negatives.T / 0.07
        return F.cross_entropy(logits, torch.arange(len(q), device="cuda"))


def main():
    moco = MoCo(64)
    optimizer = torch.optim.SGD(moco.query.parameters(), lr=0.03, momentum=0.9)
    for step in range(80):
        a = torch.randn(1024, 2048, device="cuda")  #~ step
        b = torch.randn(1024, 2048, device="cuda")
        loss = moco.loss(a, b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
