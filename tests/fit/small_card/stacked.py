"""A training loop whose layers are one nn.Sequential: `stacked` ran out in its first forward pass (--dry=h200 --limit 3G)."""
import torch
from torch import nn

model = nn.Sequential(*(nn.TransformerEncoderLayer(512, 8, batch_first=True) for _ in range(12)), nn.Linear(512, 1000)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    batch = torch.randn(32, 512, 512, device="cuda")
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
