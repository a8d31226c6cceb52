# SPDX-License-Identifier: MIT
import jax
from jax._src import hardware_utils
from say import say

hardware_utils.has_visible_nvidia_gpu = lambda: True  # JAX looks for /dev/nvidia0 before it asks the driver anything

say("version", lambda: jax.__version__)
say("cuda devices", jax.devices, "cuda")
say("devices", lambda: jax.devices("cpu"))
say("sum", lambda: float(jax.device_put(jax.numpy.arange(8.0), jax.devices("cpu")[0]).sum()))
