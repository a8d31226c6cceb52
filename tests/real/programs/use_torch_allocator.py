# SPDX-License-Identifier: MIT
"""PyTorch's own CUDA allocator over the simulated runtime and driver, with operations that need neither cuBLAS nor cuDNN."""
import gc
import json
import torch
from say import say

MIB = 1 << 20


class Scale(torch.nn.Module):
    """Elementwise operations only: they launch only PyTorch's own kernels, none of which waits for another's result."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(4096, 256))
        self.bias = torch.nn.Parameter(torch.ones(4096, 256))

    def forward(self, data):
        return torch.relu(data * self.factor + self.bias)


def train():
    model = torch.nn.Sequential(*[Scale() for _ in range(4)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        result = model(torch.ones(4096, 256, device="cuda"))
        result.backward(torch.ones_like(result))
        optimizer.step()
    return "trained"


def out_of_memory():
    kept = [torch.empty(1024 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3)]
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        return str(error).split(".")[0], len(kept)


def blocks():
    tensors = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (1, 1000, 300000, 5 * MIB, 50 * MIB)]
    del tensors[1::2]
    tensors.append(torch.empty(7 * MIB, dtype=torch.uint8, device="cuda"))
    return len(tensors)


say("version", lambda: torch.__version__)
say("pinned", lambda: tuple(torch.zeros(3000).pin_memory().shape))
say("blocks", blocks)
say("train", train)
say("out of memory", out_of_memory)
gc.collect()
torch.cuda.synchronize()
statistics = torch.cuda.memory_stats()
print("statistics", json.dumps({name: statistics.get(name) for name in (
    "allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current", "reserved_bytes.all.peak", "num_ooms")}))
torch.cuda.empty_cache()
say("left", torch.cuda.memory_reserved)
