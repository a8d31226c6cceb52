# SPDX-License-Identifier: MIT
"""Leaves large weights on the CPU as they are: their values decide nothing, and their pages stay untouched. `--init` keeps them."""
LARGE = 100_000  # elements
FILLS = ("trunc_normal_", "normal_", "uniform_", "kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_", "orthogonal_")


def skip(module):
    def without(fill):
        def filled(tensor, *args, **kwargs):
            return tensor if tensor.device.type == "cpu" and tensor.numel() > LARGE else fill(tensor, *args, **kwargs)

        return filled

    for name in FILLS:
        setattr(module, name, without(getattr(module, name)))
