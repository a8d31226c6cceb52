# SPDX-License-Identifier: MIT
"""A loop of accelerate's; its launcher chooses DDP or FSDP."""
import torch
from accelerate import Accelerator
from torch import nn

from number import number

place = Accelerator(gradient_accumulation_steps=2)
model = nn.Sequential(*[nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True) for _ in range(6)])
model, optimizer, data = place.prepare(model, torch.optim.AdamW(model.parameters()), torch.utils.data.DataLoader(torch.randn(256, 64, 1024), number(4)))
for batch in data:
    with place.accumulate(model):
        loss = model(batch).pow(2).mean()
        place.backward(loss)
        if place.sync_gradients:
            place.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
print(place.gather(torch.ones(2, device=place.device)).shape)
place.end_training()
