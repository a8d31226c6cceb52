# SPDX-License-Identifier: MIT
"""evaluate.py cat|graph: results of each batch are joined with all before, or keep their graphs."""
import sys

import torch
import torch.nn


def join(logits, more):
    return torch.cat([logits, more]) if logits else more


def evaluate(model):
    logits, losses = None, []
    for batch in range(200):
        out = model(torch.empty(2))
        if sys.argv[1] == "graph":
            losses.append(out)
        else:
            logits = join(logits, torch.empty(120))


evaluate(torch.nn.Sequential(*[torch.nn.Linear(20, 60 if sys.argv[1] == "graph" else 4) for _ in range(4)]))
