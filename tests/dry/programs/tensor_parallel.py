# SPDX-License-Identifier: MIT
"""FSDP 2 over tensor parallel, on a mesh of two dimensions, with a float8-free state in bfloat16 and a sharded checkpoint in memory."""
import os

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]) // 4, 4), mesh_dim_names=("dp", "tp"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(2048, 8192), nn.Linear(8192, 2048)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


model = nn.Sequential(*[Block() for _ in range(4)]).cuda()
for block in model:
    parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(block, mesh=mesh["dp"], mp_policy=MixedPrecisionPolicy(torch.bfloat16))
fully_shard(model, mesh=mesh["dp"])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.randn(64, 2048, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(len(get_state_dict(model, optimizer)[0]))
