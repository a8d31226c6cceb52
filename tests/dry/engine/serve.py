# SPDX-License-Identifier: MIT
"""Usage: serve.py LONGEST_CONTEXT [eager]"""
import sys
from types import SimpleNamespace as Of

from flashinfer.jit.core import JitSpec
from vllm.v1.engine.core import EngineCore

JitSpec().build_and_load().run(1)
EngineCore(Of(model_config=Of(max_model_len=int(sys.argv[1]), enforce_eager=len(sys.argv) > 2),
              cache_config=Of(gpu_memory_utilization=0.9), scheduler_config=Of(max_num_seqs=256)))
