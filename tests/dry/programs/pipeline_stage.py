# SPDX-License-Identifier: MIT
"""A stage of PyTorch's pipeline parallelism, with 1F1B."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group()
rank, ranks = dist.get_rank(), dist.get_world_size()
shape = torch.randn(4, 1024, device="cuda")
stage = PipelineStage(nn.Linear(1024, 1024).cuda(), rank, ranks, torch.device("cuda", rank), input_args=(shape,), output_args=(shape,))
schedule = Schedule1F1B(stage, 8, loss_fn=lambda out, wanted: (out - wanted).pow(2).mean())
words = {"target": torch.randn(32, 1024, device="cuda")} if rank == ranks - 1 else {}
schedule.step(*([torch.randn(32, 1024, device="cuda")] if rank == 0 else []), **words)
