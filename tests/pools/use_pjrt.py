# SPDX-License-Identifier: MIT
"""A training step of JAX over a PJRT plugin (the argument); prints at the end what JAX itself holds, and the loss."""
import os
import sys

os.environ["PJRT_NAMES_AND_LIBRARY_PATHS"] = "stand:" + sys.argv[1]
os.environ["JAX_PLATFORMS"] = "stand"
import jax
import jax.numpy as jnp
import numpy


@jax.jit
def forward(parameters, batch):
    return jnp.tanh(batch @ parameters[0]) @ parameters[1]


def step(parameters, batch):
    gradients = jax.grad(lambda p: forward(p, batch).sum())(parameters)
    return [p - 0.01 * g for p, g in zip(parameters, gradients)]


def main():
    parameters = [jax.device_put(numpy.ones((256, 512), numpy.float32)), jax.device_put(numpy.ones((512, 64), numpy.float32))]
    batch = jax.device_put(numpy.ones((64, 256), numpy.float32))
    training = jax.jit(step, donate_argnums=0)
    for _ in range(3):
        parameters = training(parameters, batch)
    jax.block_until_ready(parameters)
    live = sorted((str(a.dtype), a.shape, a.nbytes) for a in jax.live_arrays())
    for dtype, shape, size in live:
        print("live %s[%s] %d" % ({"float32": "f32"}.get(dtype, dtype), ",".join(map(str, shape)), size))
    print("loss -> %.6f" % float(forward(parameters, batch).sum()))
    sys.stdout.flush()
    os._exit(0)


main()
