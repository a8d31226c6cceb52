# SPDX-License-Identifier: MIT
"""transformers' Whisper: a training step of speech to text, with convolutions over time."""
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

from number import number

model = WhisperForConditionalGeneration(WhisperConfig(d_model=512, encoder_layers=4, decoder_layers=4, encoder_attention_heads=8, decoder_attention_heads=8)).cuda()
batch, optimizer = number(8), torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_features=torch.randn(batch, 80, 3000, device="cuda"), labels=torch.randint(0, 50000, (batch, 100), device="cuda")).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
