# SPDX-License-Identifier: MIT
"""Trains and frees all that a step made."""
import torch
import torch.nn
import torch.optim

model = torch.nn.Sequential(*[torch.nn.Linear(20, 10) for _ in range(6)])
optimizer = torch.optim.AdamW(model.layers)
for step in range(100):
    activations = model(torch.empty(4))
    model.backward()
    del activations
    optimizer.step()
