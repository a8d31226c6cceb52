# SPDX-License-Identifier: MIT
"""torch.compile of a transformer, training and inference."""
import torch
from torch import nn

model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 4).cuda()
fast, optimizer = torch.compile(model), torch.optim.AdamW(model.parameters())
for _ in range(4):
    fast(torch.randn(8, 128, 512, device="cuda")).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
with torch.no_grad():
    fast(torch.randn(32, 128, 512, device="cuda"))
