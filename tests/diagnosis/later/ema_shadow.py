# SPDX-License-Identifier: MIT
"""Fine-tunes a small network with a moving average of its weights. Usage: ema_shadow.py [--steps N] [--width N]"""
import argparse
import ctypes
import dataclasses
import itertools

_lib = ctypes.CDLL("libcudart.so.12")


def cuda_check(code):
    if code != 0:
        raise RuntimeError(f"CUDA error {code}")


@dataclasses.dataclass
class Array:
    size: int
    ptr: ctypes.c_void_p = dataclasses.field(default_factory=ctypes.c_void_p)

    def __post_init__(self):
        cuda_check(_lib.cudaMalloc(ctypes.byref(self.ptr), ctypes.c_size_t(self.size * 4)))

    def clone(self):
        return Array(self.size)

    def __del__(self):
        if self.ptr:
            _lib.cudaFree(self.ptr)


class Ema:
    def __init__(self, named, decay):
        self.decay = decay
        self.shadow = {name: array.clone() for name, array in named.items()}
        self.updates = itertools.count()

    def update(self, named):
        number = next(self.updates)
        for name, array in named.items():
            self.shadow[f"{name}.{number}"] = array.clone()  # CULPRIT


class Net:
    def __init__(self, width, depth):
        self.named = {f"layer{i}.weight": Array(width * width) for i in range(depth)}

    def __call__(self, batch):
        out = []
        x = batch
        for name in self.named:
            x = Array(batch.size)
            out.append(x)
        return out


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--width", type=int, default=192)
    parser.add_argument("--depth", type=int, default=3)
    return parser.parse_args()


def main(args):
    net = Net(args.width, args.depth)
    ema = Ema(net.named, .999)
    for step in range(args.steps):
        activations = net(Array(64 * args.width))
        grads = [Array(args.width * args.width + 64) for _ in activations]
        del activations, grads
        ema.update(net.named)  # CULPRIT
    return 0


if __name__ == "__main__":
    raise SystemExit(main(parse()))
