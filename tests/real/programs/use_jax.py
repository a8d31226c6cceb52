# SPDX-License-Identifier: MIT
import jax
from say import say

say("version", lambda: jax.__version__)
say("cuda devices", jax.devices, "cuda")
say("devices", jax.devices)
say("sum", lambda: float(jax.numpy.arange(8.0).sum()))
say("memory", lambda: jax.devices()[0].memory_stats())
