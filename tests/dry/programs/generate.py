# SPDX-License-Identifier: MIT
"""transformers' generate: the longest case, 64 new tokens, with beams."""
import torch

from number import number
from words import llama

model = llama(8).cuda().half().eval()
prompt = torch.randint(3, 32000, (number(8), 512), device="cuda")
print(model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=64, num_beams=2, do_sample=False).shape)
