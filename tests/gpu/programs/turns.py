# SPDX-License-Identifier: MIT
"""Makes training steps and runs them when it is told, so that several of these programs can take turns.

Reads lines: "make NAME [DEVICE]", "run STEPS", "end".  Answers each with a line of JSON; `run` with the seconds of the steps together.
HISTORY=python|all turns PyTorch's own history on."""
import json
import os
import sys
import time

import torch
from torch import nn

if os.environ.get("HISTORY"):
    torch.cuda.memory._record_memory_history(stacks=os.environ["HISTORY"], max_entries=1000000)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.inside = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.inside(self.between(x))


def transformer(batch, length, width, layers, device):
    model = nn.Sequential(*[Block(width, width // 64) for _ in range(layers)], nn.Linear(width, 2000)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    words, wanted = torch.randn(batch, length, width, device=device), torch.randint(2000, (batch * length,), device=device)

    def step():
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(words).flatten(0, 1), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return step


def layers(batch, width, device):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(30)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=.01)
    batch = torch.randn(batch, width, device=device)

    def step():
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return step


STEPS = {  # bound by the GPU, where there is one, or by the processor
    "transformer, GPU": lambda device: transformer(32, 512, 768, 12, device) if device == "cuda" else transformer(1, 32, 64, 2, device),
    "transformer, processor": lambda device: transformer(4, 128, 768, 12, device) if device == "cuda" else transformer(1, 8, 64, 2, device),
    "layers, GPU": lambda device: layers(8192, 2048, device) if device == "cuda" else layers(64, 128, device),
    "layers, processor": lambda device: layers(32, 64, device),
}


def answer(**facts):
    print(json.dumps(facts), flush=True)


def main():
    step, device = None, "cpu"
    answer(torch=torch.__version__, steps=list(STEPS))
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "make":
            device, step = ("cuda" if torch.cuda.is_available() else "cpu"), None
            if device == "cuda":
                torch.cuda.empty_cache()
            torch.manual_seed(1)
            step = STEPS[rest](device)
            answer(made=rest)
        elif word == "run":
            begun = time.perf_counter()
            for _ in range(int(rest)):
                step()
            if device == "cuda":
                torch.cuda.synchronize()
            answer(seconds=time.perf_counter() - begun)
        else:
            break


main()
