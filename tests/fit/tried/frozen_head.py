"""1200M  A small head on a frozen backbone: its scores are kept with the graph that made them."""
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self, dim=512):
        super().__init__()
        self.backbone = nn.Sequential(*(nn.Sequential(nn.Linear(dim, dim), nn.GELU()) for _ in range(6))).requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(dim, 256), nn.Tanh())

    def forward(self, x):
        return self.head(self.backbone(x))


def score(count=160, batch=4096):
    net, scores = Scorer().cuda(), []
    for _ in range(count):
        x = torch.randn(batch, 512, device="cuda")  #~ step #~ half_batch x = torch.randn(batch // 2, 512, device="cuda")
        out = net(x)  #~ no_grad with torch.no_grad(): out = net(x)
        scores.append(out)  #~ offload_results scores.append(out.detach().cpu()) #~ free_leak scores.append(out.detach())
    return scores


print(len(score()))
