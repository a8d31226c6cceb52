# SPDX-License-Identifier: MIT
"""A training loop in small, without packages: weights, forward, backward, optimizer, and the ways memory gets lost.

It keeps every loss (a slow leak), calls a library that caches behind its back, and near the end meets a batch that is
too long for a device of 8 GiB. Steps and their parts are ranges of NVTX, where its library is.
"""
import contextlib
import ctypes
import glob
import os
import sys
import time

MIB = 1 << 20
LAYERS = 24
HERE = os.path.dirname(os.path.abspath(__file__))
# In the folder that EXAMPLES names, beside this file (a copy in a build folder), or in the build folder that was built last.
FOUND = [os.path.dirname(path) for path in sorted(glob.glob(os.path.join(HERE, "..", "..", "*", "doc", "examples", "libtensor.so")), key=os.path.getmtime)]
LIBRARIES = os.environ.get("EXAMPLES") or (HERE if os.path.exists(os.path.join(HERE, "libtensor.so")) else FOUND[-1] if FOUND else None)
if not LIBRARIES:
    sys.exit("train.py: no libtensor.so: build the examples (meson setup build && ninja -C build), or name their folder: EXAMPLES=BUILD/examples")

framework = ctypes.CDLL(os.path.join(LIBRARIES, "libtensor.so"))
cache = ctypes.CDLL(os.path.join(LIBRARIES, "libcache.so"))


def find_nvtx():
    for name in ("libnvToolsExt.so.1", "libnvtx3interop.so.1"):  # up to CUDA 12, from 12.9 on
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    return None


nvtx = find_nvtx()


@contextlib.contextmanager
def span(name):
    if nvtx:
        nvtx.nvtxRangePushA(name.encode())
    try:
        yield
    finally:
        if nvtx:
            nvtx.nvtxRangePop()


class Tensor(ctypes.c_void_p):
    """Device memory that goes when Python forgets it."""

    def __del__(self):
        if self:
            framework.tensor_free(self)


def check(result, function, arguments):
    if not result:
        reason = framework.tensor_error().decode()
        raise MemoryError(f"{reason}: tried to allocate {arguments[0].value / MIB:.0f} MiB")
    return result


framework.tensor_error.restype = ctypes.c_char_p
tensor = framework.tensor_new
tensor.restype, tensor.errcheck = Tensor, check


def mib(count):
    return ctypes.c_size_t(count * MIB)


class Layer:
    def __init__(self):
        self.weight = tensor(mib(32))
        self.gradient = self.scores = self.hidden = None

    def attention(self, length):
        queries = tensor(mib(8 * length))  # gone when attention is done
        self.scores = tensor(mib(8 * length))  # kept for the backward pass
        return queries

    def mlp(self, length):
        self.hidden = tensor(mib(4 * length))

    def backward(self):
        if self.gradient is None:
            self.gradient = tensor(mib(32))
        self.scores = self.hidden = None


class Optimizer:
    def __init__(self):
        self.moments = None

    def step(self, model):
        if self.moments is None:
            self.moments = []
            for _ in model:
                self.moments += tensor(mib(32)), tensor(mib(32))
        update = tensor(mib(64))
        del update


def forward(model, length):
    for layer in model:
        layer.attention(length)
        layer.mlp(length)
    return tensor(mib(4))


def backward(model):
    for layer in reversed(model):
        layer.backward()


def train(steps):
    model = [Layer() for _ in range(LAYERS)]
    optimizer = Optimizer()
    losses = []
    for step in range(steps):
        length = 20 if step == steps - 3 else 1 + step % 3  # one batch is much longer than the others
        with span(f"step_{step}"):
            cache.cache_lookup(step // 2)
            with span("forward"):
                loss = forward(model, length)
            losses.append(loss)  # a number would do: this keeps the tensor
            with span("backward"):
                backward(model)
            with span("optimizer"):
                optimizer.step(model)
        if step % 20 == 0:
            print(f"step {step}", flush=True)
        time.sleep(0.01)


if __name__ == "__main__":
    try:
        train(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
    except MemoryError as error:
        print(f"train.py: {error}", file=sys.stderr)
        sys.exit(1)
