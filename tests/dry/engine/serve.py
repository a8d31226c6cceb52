# SPDX-License-Identifier: MIT
"""Usage: serve.py LONGEST_CONTEXT [eager] [worker] [early] [two] [old] [fused] [window]"""
import os
import signal
import sys
from types import SimpleNamespace as Of

from flashinfer.jit.core import JitSpec
from vllm.v1.engine.core import EngineCore

if "worker" in sys.argv and os.fork():
    os.wait()
    sys.exit()
JitSpec().build_and_load().run(1)
EngineCore(Of(model_config=Of(max_model_len=int(sys.argv[1]), enforce_eager="eager" in sys.argv, get_hidden_size=lambda: 4096),
              compilation_config=Of(pass_config=Of(fuse_allreduce_rms="fused" in sys.argv, flashinfer_max_size=lambda workers: 64 << 20)),
              scheduler_config=Of(max_num_batched_tokens=8192),
              cache_config=Of(gpu_memory_utilization=0.9, num_gpu_blocks_override=None), window="window" in sys.argv,
              parallel_config=Of(tensor_parallel_size=2 if "two" in sys.argv else 1)))
if "worker" in sys.argv:
    os.kill(os.getpid(), signal.SIGKILL)
