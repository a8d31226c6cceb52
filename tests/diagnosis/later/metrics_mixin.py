# SPDX-License-Identifier: MIT
"""A trainer of classes: base, mixins, callbacks. The confusion mixin keeps what each validation predicted."""
import abc
import ctypes

_cudart = ctypes.CDLL("libcudart.so.12")


class Storage:
    def __init__(self, nbytes):
        self.handle = ctypes.c_void_p()
        err = _cudart.cudaMalloc(ctypes.byref(self.handle), ctypes.c_size_t(nbytes))
        if err:
            raise RuntimeError(f"cudaMalloc: {err}")

    def __del__(self):
        _cudart.cudaFree(self.handle)


class Tensor:
    def __init__(self, *shape):
        self.shape = shape
        n = 4
        for s in shape:
            n *= s
        self.storage = Storage(n)

    @classmethod
    def like(cls, other):
        return cls(*other.shape)

    def argmax(self):
        return Tensor(self.shape[0], 13)


class Trainer(abc.ABC):
    def __init__(self):
        self.params = [Tensor(512, 512) for _ in range(3)]

    @abc.abstractmethod
    def step(self, batch):
        ...

    def fit(self, steps):
        for number in range(steps):
            batch = Tensor(2048, 32)
            self.on_step_end(number, self.step(batch))

    def on_step_end(self, number, output):
        pass


class GradientMixin:
    def step(self, batch):
        output = super().step(batch)
        grads = [Tensor.like(p) for p in self.params]
        del grads
        return output


class ConfusionMixin:
    def __init__(self):
        super().__init__()
        self.predicted = []

    def on_step_end(self, number, output):
        super().on_step_end(number, output)
        self.predicted.append(output.argmax())  # CULPRIT


class Base(Trainer):
    def step(self, batch):
        hidden = Tensor(2048, 64)
        return Tensor(2048, 10)


class Classifier(ConfusionMixin, GradientMixin, Base):
    pass


Classifier().fit(230)
