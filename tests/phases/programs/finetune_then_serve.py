# SPDX-License-Identifier: MIT
"""Fine-tunes a small language model, whose loop keeps each step's hidden states; then it serves requests."""
import random
import sys

import torch
from torch import nn

draw = random.Random(int(sys.argv[1]))
WIDTH, WORDS = draw.choice((256, 384, 512)), 8000


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True) for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x), x


def tokens(rows, length):
    return torch.randint(WORDS, (rows, length), device="cuda")


def finetune(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    seen = {}
    for step in range(steps):
        logits, hidden = model(tokens(8, 96))
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens(8, 96).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen[step] = hidden.detach().float() * 1.0  # CULPRIT
    return seen


@torch.inference_mode()
def serve(model, requests):
    for _ in range(requests):
        prompt = tokens(1, draw.randint(8, 120))
        for _ in range(draw.randint(2, 9)):
            logits, _ = model(prompt)
            prompt = torch.cat([prompt, logits[:, -1:].argmax(-1)], 1)


model = Model().cuda()
probes = finetune(model, draw.randint(40, 110))
serve(model.eval(), draw.randint(60, 150))
