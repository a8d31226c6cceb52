# SPDX-License-Identifier: MIT
import os


class ParallelConfig:
    def __init__(self, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1):
        self.tensor_parallel_size, self.pipeline_parallel_size, self.data_parallel_size = tensor_parallel_size, pipeline_parallel_size, data_parallel_size
        self.distributed_executor_backend = None
        self.__post_init__()

    def __post_init__(self):
        if self.tensor_parallel_size > 1 and self.distributed_executor_backend != "external_launcher":
            raise ValueError("World size is larger than the number of available GPUs (1) in this node")
        print(*[os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")])
