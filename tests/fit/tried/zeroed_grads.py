"""1800M  Gradients are zeroed and stay while the next step's activations are made."""
import torch
from torch import nn


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layers = nn.Linear(4096, 8192), nn.ModuleList(nn.Linear(8192 if not i else 512, 512) for i in range(6))

    def forward(self, x):
        x = torch.relu(self.table(x))
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def train(sizes):
    net = Wide().cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)  #~ half_state from optimizers import Small; optimizer = Small(net.parameters())
    for size in sizes:
        optimizer.zero_grad(set_to_none=False)  #~ set_to_none optimizer.zero_grad(set_to_none=True)
        x = torch.randn(size, 4096, device="cuda")  #~ step #~ half_batch x = torch.randn(size // 2, 4096, device="cuda")
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()


train([500, 800, 1100, 1400, 1700, 2000, 2300])
