"""A training step of eight linear layers and AdamW.  It keeps what each backward pass made, if it is asked to: `python dry.py --leak`."""
import sys

import torch

model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []


def train():
    loss = model(torch.randn(64, 4096, device="cuda")).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if "--leak" in sys.argv:
        kept.append(loss * torch.ones(1 << 21, device="cuda"))


for _ in range(30):
    train()
