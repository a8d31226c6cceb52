"""2G  The sum of the losses keeps each step's graph, which retain_graph does not free."""
import torch
from torch import nn


def train(batches, many=1024):
    model = nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    for _ in range(batches):
        x = torch.randn(many, 2048, device="cuda")  #~ step
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), torch.randint(0, 10, (many,), device="cuda"))
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss  #~ offload_results total += loss.item()


train(200)
