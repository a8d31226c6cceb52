# SPDX-License-Identifier: MIT
from .tensor import empty


class Adam:
    def __init__(self, parameters):
        self.parameters, self.moments = parameters, {}

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        for index, parameter in enumerate(self.parameters):
            if index not in self.moments:
                self.moments[index] = empty(*parameter.shape), empty(*parameter.shape)
