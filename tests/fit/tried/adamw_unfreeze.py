"""1500M  The backbone is frozen at first; when it is not, AdamW makes its state."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, dim=1024, depth=12):
        super().__init__()
        self.backbone = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)) for _ in range(depth))
        self.head = nn.Linear(dim, 200)

    def forward(self, x):
        for block in self.backbone:
            x = x + block(x)
        return self.head(x)


def train(epochs=4, steps=6):
    net = Net().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)  #~ half_state from optimizers import Small; optimizer = Small(net.parameters()) #~ state_8bit from optimizers import Eighth; optimizer = Eighth(net.parameters())
    for epoch in range(epochs):
        net.backbone.requires_grad_(epoch > 0)
        for _ in range(steps):
            x = torch.randn(256, 1024, device="cuda")  #~ step
            loss = F.cross_entropy(net(x), torch.zeros(256, dtype=torch.long, device="cuda"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train()
