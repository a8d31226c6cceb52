# SPDX-License-Identifier: MIT
"""A thread prefetches batches into a queue; each is kept for a second try that never comes.  The queue is emptied, and an evaluation follows."""
import queue
import random
import sys
import threading

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
features, size, steps = draw.choice((600, 800, 1000)), draw.choice((128, 192, 256)), draw.randint(80, 140)
model = nn.Sequential(nn.Linear(features, 300), nn.ReLU(), nn.Linear(300, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
ready, tries = queue.Queue(draw.randint(4, 10)), {}


def prefetch():
    for number in range(steps):
        ready.put((number, torch.randn(size, features).cuda()))  # CULPRIT


worker = threading.Thread(target=prefetch)
worker.start()
for _ in range(steps):
    number, batch = ready.get()
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    tries[number] = batch  # CULPRIT
worker.join()
with torch.no_grad():
    for _ in range(draw.randint(15, 40)):
        model(torch.randn(2 * size, features, device="cuda")).argmax(1).cpu()
