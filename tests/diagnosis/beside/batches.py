# SPDX-License-Identifier: MIT
"""batches.py LONGEST: batches are padded to their longest text; one text is much longer than the others."""
import sys
from time import sleep
import torch
import torch.nn

model = torch.nn.Sequential(*[torch.nn.Linear(50, 4) for _ in range(8)])


def pad(length):
    return torch.empty(length)


for step in range(60):
    batch = pad(int(sys.argv[1]) if step == 50 else 40 + step % 7)
    activations = model(batch)
    model.backward()
    del activations, batch
    sleep(0.01)  # on a busy machine the long batch alone may wait for the processor
