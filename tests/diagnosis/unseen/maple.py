# SPDX-License-Identifier: MIT
from tern import device, loop, metrics

accuracy = metrics.Accuracy(4096)
training = loop.Loop([loop.Callback(), loop.UpdateMetrics(metrics.Collection(metrics.Mean(64), accuracy))])
training.run(500)
for block in accuracy.seen + training.network:
    device.give_back(block)
