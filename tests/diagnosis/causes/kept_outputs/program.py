# SPDX-License-Identifier: MIT
"""Inference under inference_mode; the outputs of all batches stay in a list."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 2048)).cuda().eval()


def predict(loader):
    outputs = []
    for batch in loader:
        outputs.append(model(batch))
    return torch.cat(outputs)


def batches(count):
    for _ in range(count):
        yield torch.empty(4096, 1024, device="cuda")


with torch.no_grad():
    predict(batches(500))
