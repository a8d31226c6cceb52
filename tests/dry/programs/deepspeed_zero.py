# SPDX-License-Identifier: MIT
"""DeepSpeed's ZeRO 3: weights, gradients and moments of one rank are its share.  Prints the elements of the moments."""
import deepspeed
import torch

model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024, bias=False) for _ in range(4)])
engine, optimizer, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.AdamW(model.parameters()),
    config={"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3}})
for _ in range(3):
    loss = engine(torch.randn(4, 1024, device="cuda", dtype=torch.bfloat16)).float().pow(2).mean()
    engine.backward(loss)
    engine.step()
print(engine.global_rank, engine.dp_world_size, sum(state["exp_avg"].numel() for state in optimizer.optimizer.state.values()))
