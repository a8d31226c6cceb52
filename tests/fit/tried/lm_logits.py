"""2200M  A small language model with a large vocabulary: the loss of all tokens at once."""
import torch
import torch.nn.functional as F
from torch import nn


class LM(nn.Module):
    def __init__(self, dim=256, depth=4, vocab=50000):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x)
        return x @ self.embed.weight.T


def train(lengths, many=4):  #~ half_batch def train(lengths, many=2):
    lm = LM().cuda()
    optimizer = torch.optim.AdamW(lm.parameters(), lr=1e-3)
    for length in lengths:
        ids = torch.randint(0, 50000, (many, length), device="cuda")  #~ step #~ shorter_longest ids = torch.randint(0, 50000, (many, min(length, 240)), device="cuda")
        logits = lm(ids)
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train([128, 192, 160, 256, 224, 320, 384, 320, 448, 512, 400])
