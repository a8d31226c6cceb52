"""994M  A retrieval index on the card grows by torch.cat."""
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, dim=768):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(300, 2048), nn.ReLU(), nn.Linear(2048, dim))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=-1)


class Index:
    def __init__(self):
        self.vectors = None

    def add(self, new):
        self.vectors = new if self.vectors is None else torch.cat([self.vectors, new])  #~ offload_results self.vectors = new.cpu() if self.vectors is None else torch.cat([self.vectors, new.cpu()])


def build(batches=60, many=2048):
    tower, index = Tower().cuda().eval(), Index()
    for _ in range(batches):
        texts = torch.rand(many, 300).cuda()
        with torch.inference_mode():
            index.add(tower(texts))
    return index


print(build(100).vectors.shape)
