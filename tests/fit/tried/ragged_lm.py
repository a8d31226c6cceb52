"""2500M  A language model over texts of all lengths; the longest batch does not fit."""
import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, wide=256):
        super().__init__()
        self.embed, self.out = nn.Embedding(8000, wide), nn.Linear(wide, 8000)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(wide, 4, 1024, batch_first=True, dropout=0) for _ in range(4))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def batches(batch=16):
    choose = random.Random(3)
    for _ in range(30):
        length = choose.choice([64, 96, 128, 192, 256, 320, 640])  #~ shorter_longest length = min(480, choose.choice([64, 96, 128, 192, 256, 320, 640]))
        yield torch.randint(0, 8000, (batch, length), device="cuda")  #~ step #~ half_batch yield torch.randint(0, 8000, (batch // 2, length), device="cuda")


model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for ids in batches():
    scores = model(ids)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del scores, loss
