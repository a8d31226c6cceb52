"""1560M  accelerate, SGD with momentum, and averaged weights beside the model."""
import copy

import torch
from accelerate import Accelerator
from torch import nn


class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model)  #~ no_second_copy self.model = copy.deepcopy(model.cpu()); model.cuda()

    @torch.no_grad()
    def update(self, model):
        for mine, theirs in zip(self.model.parameters(), model.parameters()):
            mine.mul_(0.99).add_(theirs.to(mine.device), alpha=0.01)


def main():
    accelerator = Accelerator()
    net = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(8))).to(accelerator.device)
    average = Average(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  #~ half_state from optimizers import Small; optimizer = Small(net.parameters())
    net, optimizer = accelerator.prepare(net, optimizer)
    for step in range(4):
        x = torch.randn(64, 1024, device=accelerator.device)  #~ step
        optimizer.zero_grad()
        accelerator.backward(net(x).square().mean())
        optimizer.step()
        average.update(net)


main()
