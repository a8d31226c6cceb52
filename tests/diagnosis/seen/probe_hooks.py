# SPDX-License-Identifier: MIT
"""Trains, and looks at what the second layer does: a hook copies its output for statistics at the end."""
from smalltorch import Adam, Linear, Sequential, empty


class Probe:
    def __init__(self):
        self.outputs = []

    def __call__(self, module, inputs, output):
        copy = empty(*output.shape)  # CULPRIT
        self.outputs.append(copy)  # CULPRIT


def main():
    model = Sequential(Linear(512, 1024), Linear(1024, 320), Linear(320, 16))
    probe = Probe()
    model.layers[1].register_forward_hook(probe)
    optimizer = Adam(model.parameters())
    for step in range(250):
        batch = empty(192, 512)
        loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(len(probe.outputs), "outputs seen")


main()
