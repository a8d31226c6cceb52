# SPDX-License-Identifier: MIT
"""launch_ray.py AGENT TRACES: two workers of Ray that record, by doc/launching.md."""
import os
import sys

import ray

import rank_takes

ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", runtime_env={"env_vars": {
    "LD_PRELOAD": sys.argv[1], "STORMLOG_DIR": sys.argv[2], "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}})


@ray.remote(num_cpus=1)
class Worker:
    def take(self, mib):
        return rank_takes.work(mib)


workers = [Worker.remote() for _ in range(2)]
print(ray.get([worker.take.remote(3 + i) for i, worker in enumerate(workers)]))
ray.shutdown()
