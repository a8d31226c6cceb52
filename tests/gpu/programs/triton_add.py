# SPDX-License-Identifier: MIT
"""Triton: compiles, loads and runs a kernel; its module takes memory that no allocation shows."""
import torch
import triton
import triton.language as tl

from finish import finish


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


x = torch.ones(100000, device="cuda")
out = torch.empty_like(x)
add[(triton.cdiv(x.numel(), 1024),)](x, x, out, x.numel(), block=1024)
torch.cuda.synchronize()
finish(triton=triton.__version__, right=bool((out == 2).all()), reserved_bytes=torch.cuda.memory_reserved())
