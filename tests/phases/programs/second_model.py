# SPDX-License-Identifier: MIT
"""A teacher is trained, then a student by the same function.  The student's targets of all steps stay in a list.  Both are compared."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
inputs, outputs, rows = draw.choice((400, 784)), draw.choice((1000, 2000)), draw.choice((256, 512))


def network(width, depth):
    layers = [nn.Linear(inputs, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, outputs)).cuda()


def labels(_):
    return torch.randint(outputs, (rows,), device="cuda")


def train(model, targets, steps):
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(steps):
        images = torch.randn(rows, inputs, device="cuda")
        loss = nn.functional.cross_entropy(model(images), targets(images))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Distiller:
    def __init__(self, model):
        self.model = model.eval()
        self.given = []

    @torch.no_grad()
    def __call__(self, images):
        soft = torch.softmax(self.model(images) / 2.0, 1)  # CULPRIT
        self.given.append(soft)  # CULPRIT
        return soft


teacher, student = network(1024, 3), network(256, 1)
train(teacher, labels, draw.randint(40, 90))
distiller = Distiller(teacher)
train(student, distiller, draw.randint(40, 90))
with torch.inference_mode():
    for _ in range(draw.randint(50, 130)):
        images = torch.randn(2 * rows, inputs, device="cuda")
        (teacher(images).argmax(1) == student(images).argmax(1)).sum()
