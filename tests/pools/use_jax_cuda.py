# SPDX-License-Identifier: MIT
"""Arrays in the pool of JAX's real CUDA plugin, over a simulated driver and runtime, which run no kernels.  Prints what JAX holds."""
import json
import os
import sys
import time

os.environ.update(JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1", JAX_PLATFORMS="cuda")
from jax._src import hardware_utils

hardware_utils._NVIDIA_GPU_DEVICES[:] = ["/dev/null"]  # there is no /dev/nvidia0
import jax
import numpy


def load(count):
    return [jax.device_put(numpy.ones((256, 256), numpy.float32)) for _ in range(count)]


arrays = load(3) + [jax.device_put(numpy.ones(1050, numpy.float32))]
del arrays[0]
time.sleep(0.05)  # the agent asks the plugin every 10 ms what is in use
arrays += load(1)
print(json.dumps({"statistics": jax.devices()[0].memory_stats(), "live": sorted(array.nbytes for array in jax.live_arrays())}))
sys.stdout.flush()
os._exit(0)
