# SPDX-License-Identifier: MIT
"""transformers' Mixtral: experts that are chosen by values which no kernel has computed."""
import torch
from transformers import MixtralConfig, MixtralForCausalLM

from number import number

model = MixtralForCausalLM(MixtralConfig(vocab_size=8000, hidden_size=512, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=8,
                                         num_key_value_heads=4, num_local_experts=8)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    tokens = torch.randint(0, 8000, (number(4), 256), device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
