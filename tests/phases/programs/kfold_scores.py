# SPDX-License-Identifier: MIT
"""Cross-validation: a model and an optimizer of its own in each fold, scores as numbers, and the best fold's model tested at the end."""
import random
import statistics
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
features, folds = draw.choice((300, 500, 800)), draw.randint(4, 10)
table = torch.randn(draw.randint(8, 16) * 1000, features, device="cuda")
target = torch.randn(len(table), 1, device="cuda")


def build():
    hidden = draw.choice((512, 1024))
    return nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hidden, 1)).cuda()


def train(model, rows):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(draw.randint(2, 4)):
        for part in rows[torch.randperm(len(rows))].split(1024):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(table[part]), target[part]).backward()
            optimizer.step()


@torch.no_grad()
def score(model, rows):
    return statistics.mean(float(nn.functional.mse_loss(model(table[part]), target[part])) for part in rows.split(2048))


parts = torch.randperm(len(table), device="cuda").chunk(folds)
scores, best = [], None
for fold in range(folds):
    model = build()
    train(model, torch.cat(parts[:fold] + parts[fold + 1:]))
    scores.append(score(model, parts[fold]))
    if best is None or scores[-1] <= min(scores):
        best = model
for _ in range(draw.randint(10, 25)):
    score(best, torch.arange(len(table), device="cuda"))
