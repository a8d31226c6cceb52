# SPDX-License-Identifier: MIT
"""Trains, then evaluates without no_grad and keeps the outputs."""
import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.Adam(model.parameters())
loss_of = torch.nn.MSELoss()


def train(steps):
    for _ in range(steps):
        x, y = torch.empty(2048, 512, device="cuda"), torch.empty(2048, 256, device="cuda")
        loss = loss_of(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(batches):
    losses = []
    for _ in range(batches):
        x, y = torch.empty(2048, 512, device="cuda"), torch.empty(2048, 256, device="cuda")
        losses.append(loss_of(model(x), y))
    return torch.stack(losses).mean()


train(20)
evaluate(2000)
