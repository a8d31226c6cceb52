# SPDX-License-Identifier: MIT
"""PEFT's LoRA over a frozen model, with gradient checkpointing."""
import torch
from peft import LoraConfig, get_peft_model

from number import number
from words import llama

base = llama(8)
base.gradient_checkpointing_enable()
base.enable_input_require_grads()
model = get_peft_model(base, LoraConfig(r=16, target_modules=["q_proj", "v_proj"])).cuda().train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
for _ in range(5):
    tokens = torch.randint(0, 32000, (number(4), 512), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
