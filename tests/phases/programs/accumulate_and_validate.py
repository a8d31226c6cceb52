# SPDX-License-Identifier: MIT
"""Gradients of several small batches are added up before a step; a validation in each epoch, and a test with larger batches at the end."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
width, parts = draw.choice((256, 320)), draw.randint(2, 6)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 3 * width, batch_first=True), 2).cuda()
head = nn.Linear(width, 2).cuda()
everything = [*encoder.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(everything, 1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)


def predict(rows, length):
    return head(encoder(torch.randn(rows, length, width, device="cuda")).mean(1))


def train(steps):
    for _ in range(steps):
        for _ in range(parts):
            truth = torch.randint(2, (4,), device="cuda")
            (nn.functional.cross_entropy(predict(4, draw.randrange(32, 128, 16)), truth) / parts).backward()
        nn.utils.clip_grad_norm_(everything, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()


@torch.no_grad()
def validate(batches, rows):
    confusion = torch.zeros(2, 2, device="cuda")
    for _ in range(batches):
        guess = predict(rows, 64).argmax(1)
        confusion.index_put_((guess, torch.randint(2, (rows,), device="cuda")), torch.ones((), device="cuda"), accumulate=True)
    return confusion.cpu()


steps, checks = draw.randint(5, 10), draw.randint(3, 7)
reports = []
for epoch in range(draw.randint(4, 8)):
    train(steps)
    reports.append(validate(checks, 8))
validate(draw.randint(20, 40), 64)
