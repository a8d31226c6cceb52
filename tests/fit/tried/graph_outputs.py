"""1400M  An evaluation without torch.no_grad keeps what its model says, and with it the graph."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, dim=512, depth=5):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(dim, dim), nn.ReLU()) for _ in range(depth))
        self.out = nn.Linear(dim, 512)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def evaluate(count=100, batch=2048):
    net, kept = Net().cuda(), []
    for _ in range(count):
        x = torch.randn(batch, 512, device="cuda")  #~ step
        out = net(x)  #~ no_grad with torch.no_grad(): out = net(x)
        kept.append(out)  #~ offload_results kept.append(out.cpu()) #~ free_leak kept.append(out.detach().cpu())
    return kept


print(len(evaluate()))
