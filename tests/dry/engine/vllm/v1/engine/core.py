# SPDX-License-Identifier: MIT
"""A cache of 128 KiB a token."""
from vllm.v1.worker.gpu_worker import Worker


class Spec:
    def max_memory_usage_bytes(self, config):
        return config.model_config.max_model_len * (64 << 10)


def get_kv_cache_configs(config, specs, available):
    if sum(spec.max_memory_usage_bytes(config) for spec in specs[0].values()) > available[0]:
        raise ValueError("a sequence needs more than the available KV cache memory")
    return available


class EngineCore:
    def __init__(self, config):
        worker = Worker(config)
        worker.allocate_kv_cache(get_kv_cache_configs(config, [{"a": Spec(), "b": Spec()}], [worker.determine_available_memory()])[0])
