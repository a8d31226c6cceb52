# SPDX-License-Identifier: MIT
from . import device


class Metric:
    def __init__(self, nbytes):
        self.state = device.request(nbytes)

    def update(self):
        pass


class Mean(Metric):
    pass


class Accuracy(Metric):
    def __init__(self, nbytes):
        super().__init__(nbytes)
        self.seen = []

    def update(self):
        self.seen.append(device.request(96 * 1024))  # CULPRIT


class Collection:
    def __init__(self, *metrics):
        self.metrics = metrics

    def update(self):
        for metric in self.metrics:
            metric.update()
