# SPDX-License-Identifier: MIT
"""14 GiB of weights, and a profile run of half a GiB."""
import ctypes
import sys
import time
from types import SimpleNamespace as Of


def init_worker_distributed_environment():
    time.sleep(0.01)


class Worker:
    def __init__(self, config):
        self.runtime = ctypes.CDLL("libcudart.so.13")
        free, total = self.look()
        self.vllm_config, self.parallel_config = config, config.parallel_config
        snapshot = [time.time()]
        init_worker_distributed_environment()
        snapshot.append(time.time())
        self.init_snapshot = Of(free_memory=free, total_memory=total, timestamp=snapshot["old" not in sys.argv])
        self.model_runner = Of(model_memory_usage=14 << 30)
        self.requested_memory = total * config.cache_config.gpu_memory_utilization
        self.load_model()

    def look(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def take(self, size):
        assert not self.runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size))

    def load_model(self):
        self.take(14 << 30)

    def allocate_kv_cache(self, size):
        self.take(size)

    def determine_available_memory(self):
        return int(self.requested_memory) - (self.init_snapshot.free_memory - self.look()[0]) - (512 << 20)
