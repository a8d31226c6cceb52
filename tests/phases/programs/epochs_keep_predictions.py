# SPDX-License-Identifier: MIT
"""Trains and validates in each epoch; the predictions of each validation stay in a history of all epochs.  A test of the model ends it."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
classes, pixels = draw.randint(400, 900), draw.choice((768, 1024))
net = nn.Sequential(nn.Linear(pixels, 1024), nn.GELU(), nn.Linear(1024, classes)).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)


def batches(count, rows):
    for _ in range(count):
        yield torch.randn(rows, pixels, device="cuda"), torch.randint(classes, (rows,), device="cuda")


def run_epoch(loader, training):
    total, outputs = 0.0, []
    for images, labels in loader:
        with torch.set_grad_enabled(training):
            predicted = net(images)  # CULPRIT
            loss = nn.functional.cross_entropy(predicted, labels)
        if training:
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        else:
            outputs.append(predicted)  # CULPRIT
        total += float(loss)
    return total, outputs


history = []
steps, checks = draw.randint(15, 40), draw.randint(8, 16)
for epoch in range(draw.randint(7, 11)):
    run_epoch(batches(steps, 256), True)
    history.append(run_epoch(batches(checks, 512), False))
for _ in range(2):
    run_epoch(batches(draw.randint(30, 60), 512), False)[1].clear()
