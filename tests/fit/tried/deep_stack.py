"""1500M  The activations of forty blocks do not fit."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(wide), nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Stack(nn.Module):
    def __init__(self, wide=256, deep=40):
        super().__init__()
        self.enter, self.blocks, self.leave = nn.Linear(32, wide), nn.ModuleList(Block(wide) for _ in range(deep)), nn.Linear(wide, 32)

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)  #~ checkpointing x = checkpoint(block, x, use_reentrant=False)
        return self.leave(x)


net = Stack().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(128, 64, 32, device="cuda")  #~ step #~ half_batch x = torch.randn(64, 64, 32, device="cuda")
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
