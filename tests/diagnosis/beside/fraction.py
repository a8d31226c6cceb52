# SPDX-License-Identifier: MIT
"""fraction.py PART: the program lets PyTorch have a part of the device, which is less than it needs."""
import sys

import torch
import torch.nn


def share_the_device():
    torch.set_per_process_memory_fraction(float(sys.argv[1]))


share_the_device()
model = torch.nn.Sequential(*[torch.nn.Linear(50, 4) for _ in range(8)])
images = [torch.empty(300) for _ in range(40)]
