# SPDX-License-Identifier: MIT
"""A captured buffer for each shape that is met. There are twenty shapes; the rare ones come late."""
import ctypes
import dataclasses
import random

random.seed(2)
api = ctypes.CDLL("libcudart.so.12")


@dataclasses.dataclass
class Captured:
    size: int
    pointer: ctypes.c_void_p = dataclasses.field(default_factory=ctypes.c_void_p)

    def __post_init__(self):
        if api.cudaMalloc(ctypes.byref(self.pointer), ctypes.c_size_t(self.size)):
            raise MemoryError(self.size)

    def close(self):
        api.cudaFree(self.pointer)


class Runner:
    def __init__(self):
        self.captured = {}

    def run(self, bucket):
        if bucket not in self.captured:
            self.captured[bucket] = Captured((bucket + 1) * 65536)
        out = Captured(4096 * (bucket + 1))
        out.close()


runner = Runner()
for request in range(500):
    runner.run(min(19, int(random.expovariate(.35))))
for captured in runner.captured.values():
    captured.close()
