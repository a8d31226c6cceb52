"""950M  A detector over images of many sizes: what is cached for one does not fit the next."""
import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, wide=48):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3 if not i else wide, wide, 3, padding=1, bias=False) for i in range(5))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


choose = random.Random(5)
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for at in range(40):
    x = torch.randn(2, 3, 8 * choose.randrange(20, 44), 8 * choose.randrange(20, 44), device="cuda")  #~ step #~ half_batch x = torch.randn(1, 3, 8 * choose.randrange(20, 44), 8 * choose.randrange(20, 44), device="cuda")
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
