# SPDX-License-Identifier: MIT
"""serve.py SEQUENCES: each sequence has a cache of keys and values, which grows with each token."""
import sys

import torch
import torch.nn
from transformers.cache_utils import DynamicCache

model = torch.nn.Sequential(*[torch.nn.Linear(100, 2) for _ in range(10)])
sequences = [DynamicCache() for _ in range(int(sys.argv[1]))]
for token in range(1000):
    for cache in sequences:
        model(torch.empty(1))
        cache.update(320 / len(sequences))
