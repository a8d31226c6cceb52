# SPDX-License-Identifier: MIT
def get_max_concurrency_for_kv_cache_config(config, pool):
    return pool.num_blocks / config.blocks_of(config.model_config.max_model_len)
