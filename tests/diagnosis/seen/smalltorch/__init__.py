# SPDX-License-Identifier: MIT
"""A framework in small: tensors, layers with hooks, losses and optimizers."""
from .nn import Linear, Sequential
from .optim import Adam
from .tensor import Tensor, empty

__all__ = ["Adam", "Linear", "Sequential", "Tensor", "empty"]
