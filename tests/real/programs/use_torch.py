# SPDX-License-Identifier: MIT
import torch
from say import say

say("version", lambda: (torch.__version__, torch.version.cuda))
say("is_available", torch.cuda.is_available)
say("device_count", torch.cuda.device_count)
say("init", torch.cuda.init)
say("mem_get_info", torch.cuda.mem_get_info)
say("zeros", lambda: torch.zeros(3, device="cuda"))
say("pinned", lambda: torch.zeros(3).pin_memory())
say("memory_stats", lambda: len(torch.cuda.memory_stats()))
say("nccl", lambda: torch.cuda.nccl.version() if hasattr(torch.cuda.nccl, "version") else None)
say("arch list", torch.cuda.get_arch_list)
layer = torch.nn.Linear(8, 8)
loss = layer(torch.ones(4, 8)).sum()
loss.backward()
say("trains on the CPU", lambda: tuple(layer.weight.grad.shape))
