"""Writes snapshot.pickle of three training steps, after the weights were made."""
import torch

model = torch.nn.Transformer(256, 4, 2, 2, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters())
torch.cuda.memory._record_memory_history()


def step():
    attended = torch.bmm(*(torch.randn(16, 256, 256, device="cuda", requires_grad=True) for _ in range(2)))
    (model(*(torch.randn(64, 8, 256, device="cuda") for _ in range(2))).sum() + attended.sum()).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)


for _ in range(3):
    step()
torch.cuda.memory._dump_snapshot("snapshot.pickle")
