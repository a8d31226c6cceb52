# SPDX-License-Identifier: MIT
"""Tensors of TensorFlow's GPU over a simulated driver and runtime, which run no kernels.  Prints what it says is in use."""
import json
import os
import sys

import numpy
import tensorflow

with tensorflow.device("/GPU:0"):
    kept = [tensorflow.constant(numpy.ones((256, 256), numpy.float32)) for _ in range(4)]
    kept.append(tensorflow.constant(numpy.ones(1050, numpy.float32)))
    del kept[0]
    kept.append(tensorflow.zeros([512, 512]))
print(json.dumps({"device": kept[-1].device, **tensorflow.config.experimental.get_memory_info("GPU:0")}))
sys.stdout.flush()
os._exit(0)
