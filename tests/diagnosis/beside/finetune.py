# SPDX-License-Identifier: MIT
"""finetune.py OPTIMIZER: the first step makes the optimizer's state, which does not fit."""
import sys

import torch
import torch.nn
import torch.optim

model = torch.nn.Sequential(*[torch.nn.Linear(124, 4) for _ in range(24)])
optimizer = getattr(torch.optim, sys.argv[1])(model.layers)
for step in range(3):
    batch = torch.empty(2)
    activations = model(batch)
    model.backward()
    del activations
    optimizer.step()
