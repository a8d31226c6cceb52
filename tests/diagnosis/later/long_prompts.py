# SPDX-License-Identifier: MIT
"""One prompt in 19 is long; its work area goes to an overflow list that is emptied nowhere."""
import ctypes

CUDA = ctypes.CDLL("libcudart.so.12")


class OutOfDeviceMemory(Exception):
    pass


class Workspace:
    overflow = []

    def __init__(self, limit):
        self.limit = limit
        self.block = self._get(limit)

    @staticmethod
    def _get(n):
        address = ctypes.c_void_p(0)
        if CUDA.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(n)):
            raise OutOfDeviceMemory(n)
        return address

    def reserve(self, n):
        if n <= self.limit:
            return self.block
        extra = self._get(n)  # CULPRIT
        self.overflow.append(extra)  # CULPRIT
        return extra

    def close(self):
        for block in [self.block] + self.overflow:
            CUDA.cudaFree(block)


def answer(workspace, tokens):
    area = workspace.reserve(tokens * 2048)  # CULPRIT
    out = Workspace._get(tokens * 8 + 512)
    CUDA.cudaFree(out)
    return area


def main():
    workspace = Workspace(1 << 20)
    for prompt in range(800):
        answer(workspace, 1536 if prompt % 19 == 11 else 40 + prompt % 300)
    workspace.close()


main()
