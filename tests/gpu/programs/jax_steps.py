# SPDX-License-Identifier: MIT
"""JAX: a few training steps of a small network; with and without its preallocation (the environment says)."""
import sys

import jax
import jax.numpy as jnp

from finish import finish

device = jax.devices(sys.argv[1] if len(sys.argv) > 1 else "cuda")[0]
with jax.default_device(device):
    weights = [jnp.ones((512, 512)) / 512 for _ in range(4)]

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x ** 2).mean()

    step = jax.jit(lambda weights, x: [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights, x))])
    for _ in range(10):
        weights = step(weights, jnp.ones((256, 512)))
    jax.block_until_ready(weights)
    finish(jax=jax.__version__, loss=float(loss(weights, jnp.ones((256, 512)))), statistics=device.memory_stats())
