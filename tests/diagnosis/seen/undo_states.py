# SPDX-License-Identifier: MIT
"""The state of a simulation is a frozen dataclass; each state knows the one it came from, for an undo that nobody uses."""
import ctypes
import dataclasses
import typing

nv = ctypes.CDLL("libcudart.so.12")


class Field:
    def __init__(self, cells):
        self.ptr = ctypes.c_void_p()
        if nv.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(cells * 8)):
            raise MemoryError()

    def __del__(self):
        nv.cudaFree(self.ptr)


def zeros(cells):
    return Field(cells)


@dataclasses.dataclass(frozen=True)
class State:
    time: float
    density: Field
    flux: Field = dataclasses.field(default_factory=lambda: zeros(512))
    before: typing.Optional["State"] = None

    def advance(self, dt):
        density = zeros(18000)  # CULPRIT
        scratch = zeros(40000)
        return dataclasses.replace(self, time=self.time + dt, density=density, before=self)  # CULPRIT


state = State(0.0, zeros(18000))
walls = [zeros(200000) for _ in range(2)]
for _ in range(310):
    state = state.advance(1e-3)
while state:  # a chain of 310 states is taken apart without recursion
    state = state.before
