# SPDX-License-Identifier: MIT
from . import device


class Callback:
    def on_batch_end(self, loop):
        pass


class UpdateMetrics(Callback):
    def __init__(self, collection):
        self.collection = collection

    def on_batch_end(self, loop):
        self.collection.update()


class Loop:
    def __init__(self, callbacks):
        self.callbacks = callbacks
        self.network = [device.request(3 << 20) for _ in range(12)]

    def batch(self):
        parts = [device.request(400_000 + 1000 * i) for i in range(6)]
        for part in parts:
            device.give_back(part)

    def run(self, batches):
        for _ in range(batches):
            self.batch()
            for callback in self.callbacks:
                callback.on_batch_end(self)
