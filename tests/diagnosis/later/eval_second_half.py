# SPDX-License-Identifier: MIT
"""Half of the run trains; then every step is followed by an evaluation that keeps what it decoded."""
import ctypes
import random

so = ctypes.CDLL("libcudart.so.12")
random.seed(77)


def make(nbytes):
    class Block:
        pass
    b = Block()
    b.at, b.nbytes = ctypes.c_void_p(), nbytes
    code = so.cudaMalloc(ctypes.byref(b.at), ctypes.c_size_t(nbytes))
    if code:
        raise RuntimeError("cudaMalloc failed with %d" % code)
    return b


def drop(*many):
    for b in many:
        so.cudaFree(b.at)


def train_step(model):
    acts = [make(random.randrange(1, 5) << 20) for _ in model]
    grads = [make(2 << 20) for _ in model]
    drop(*acts, *grads)


def beam(width):
    first = make(333 * 1024)  # CULPRIT
    second = make(width * 333 * 512)
    drop(second)
    return first


def evaluate(model, hypotheses):
    probe = make(1 << 20)
    hypotheses.append(beam(3))  # CULPRIT
    drop(probe)


def main():
    model = [make(4 << 20) for _ in range(6)]
    hypotheses = []
    for number in range(240):
        train_step(model)
        if number >= 120:
            evaluate(model, hypotheses)  # CULPRIT
    drop(*model, *hypotheses)


main()
