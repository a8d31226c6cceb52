# SPDX-License-Identifier: MIT
"""Answers requests with a beam whose width comes with the request, unchecked. One asks for 512."""
import ctypes
import json
import sys

L = ctypes.CDLL("libcudart.so.13")
REQUESTS = [json.dumps({"id": i, "beam": 4 + i % 3, "tokens": 90 + i % 40}) for i in range(140)]
REQUESTS[118] = json.dumps({"id": 118, "beam": 512, "tokens": 96})


class Beam:
    def __init__(self, width, tokens, hidden=16384):
        self.states = []
        for layer in range(8):
            self.states.append(self.buffer(width * tokens * hidden * 2))  # CULPRIT

    @staticmethod
    def buffer(n):
        p = ctypes.c_void_p()
        if L.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(n)):
            raise MemoryError(f"cannot allocate {n} bytes")
        return p

    def close(self):
        while self.states:
            L.cudaFree(self.states.pop())


def answer(request):
    beam = Beam(request["beam"], request["tokens"])  # CULPRIT
    logits = Beam.buffer(request["beam"] * 128000)
    L.cudaFree(logits)
    beam.close()


def main():
    weights = [Beam.buffer(100 << 20) for _ in range(12)]
    for line in REQUESTS:
        try:
            answer(json.loads(line))
        except MemoryError as error:
            sys.exit(f"request failed: {error}")
    return weights


main()
