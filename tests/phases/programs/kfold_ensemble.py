# SPDX-License-Identifier: MIT
"""Cross-validation: the models of all folds are kept, with the gradients of their last steps, and vote at the end."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
features, classes = draw.choice((200, 300, 400)), draw.randint(4, 12)
table = torch.randn(draw.randint(3, 5) * 1000, features, device="cuda")
target = torch.randint(0, classes, (len(table),), device="cuda")
size, epochs = draw.choice((128, 192, 256)), draw.randint(2, 4)


def build():
    hidden = draw.choice((500, 700, 900))
    return nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, classes)).cuda()


def train(rows):
    model = build()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        for part in rows.split(size):
            loss = nn.functional.cross_entropy(model(table[part]), target[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


parts = torch.randperm(len(table), device="cuda").chunk(5)
models = [train(torch.cat(parts[:fold] + parts[fold + 1:])) for fold in range(5)]
if draw.random() < 0.5:
    torch.save([model.state_dict() for model in models], "models.pt")
else:
    with torch.no_grad():
        for part in torch.arange(len(table), device="cuda").split(256):
            sum(model(table[part]).softmax(1) for model in models).argmax(1).cpu()
