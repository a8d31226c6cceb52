# SPDX-License-Identifier: MIT
"""A cache in blocks of 16 tokens, of which one is the engine's own.  A token takes 128 KiB, half of them in layers that may keep 4096 tokens at most."""
import os
import signal
import sys
from types import SimpleNamespace as Of

from vllm.v1.worker.gpu_worker import Worker


def get_kv_cache_configs(config, specs, available):
    blocks = available[0] // config.block
    if config.blocks_of(config.model_config.max_model_len) > blocks - 1:
        raise ValueError("a sequence needs more than the available KV cache memory")
    return [Of(num_blocks=blocks)]


class EngineCore:
    def __init__(self, config):
        config.block = 16 * (64 if config.window else 128) << 10
        config.blocks_of = lambda tokens: -(-tokens // 16) + (-(-min(tokens, 4096) // 16) if config.window else 0)
        worker = Worker(config)
        worker.allocate_kv_cache(get_kv_cache_configs(config, [{"layer": None}], [worker.determine_available_memory()])[0].num_blocks * config.block)
        if "early" in sys.argv:
            os.kill(os.getpid(), signal.SIGKILL)
