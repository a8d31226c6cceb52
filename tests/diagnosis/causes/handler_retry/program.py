import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(1024, 1024) for _ in range(24))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def step(model, optimizer, batch):
    x = torch.randn(batch, 1024, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def careful(model, optimizer, batch):
    try:
        step(model, optimizer, batch)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        step(model, optimizer, batch // 2)


def main():
    model = Net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    step(model, optimizer, 2048)
    for batch in 4096, 6144, 9216:
        careful(model, optimizer, batch)


main()
