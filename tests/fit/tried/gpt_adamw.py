"""2100M  A GPT-2 is finetuned; AdamW makes its state in the first step."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def finetune(steps=4):
    model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=640, n_head=10, n_positions=512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)  #~ half_state from optimizers import Small; optimizer = Small(model.parameters()) #~ state_8bit from optimizers import Eighth; optimizer = Eighth(model.parameters())
    for step in range(steps):
        ids = torch.randint(0, 50257, (1, 128), device="cuda")  #~ step
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


finetune()
