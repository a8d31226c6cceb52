"""1600M  The mean score of each evaluated image keeps the graph of a U-Net."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, wide=32):
        super().__init__()
        self.down = nn.ModuleList(nn.Sequential(nn.Conv2d(3 if not i else wide, wide, 3, padding=1), nn.GroupNorm(4, wide), nn.SiLU()) for i in range(4))
        self.out = nn.Conv2d(wide, 8, 1)

    def forward(self, x):
        for layer in self.down:
            x = layer(x)
        return self.out(x)


def evaluate(net, count=40):
    scores = []
    for at in range(count):
        image = torch.randn(1, 3, 256, 256, device="cuda")  #~ step
        score = net(image).softmax(1).max(1).values.mean()  #~ no_grad torch.set_grad_enabled(False); score = net(image).softmax(1).max(1).values.mean()
        scores.append(score)  #~ free_leak scores.append(score.item())
    return sum(scores) / count


net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    net(torch.randn(1, 3, 256, 256, device="cuda")).mean().backward()
    optimizer.step()
print(evaluate(net))
