# SPDX-License-Identifier: MIT
"""What PyTorch does in each case, and what it says of itself afterwards: cases.py CASE OUT.json"""
import json
import os
import sys

import torch

GIB = 1 << 30
torch.backends.cudnn.enabled = False


def network():
    return torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 256)).cuda()


def train(steps=5):
    """Linear, Adam, backward on autograd's thread of the device.  Returns what lives on."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        forward(model, torch.empty(256, 512, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return model, optimizer


def forward(model, batch):
    return model(batch).pow(2).mean()


def pinned():
    kept = [torch.empty(3 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(3)]
    kept[0].cuda(non_blocking=True)
    return kept[:2]


def streams():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        made = torch.empty(5 << 20, dtype=torch.uint8, device="cuda")
    made.record_stream(torch.cuda.current_stream())
    del made
    with torch.cuda.stream(side):
        return torch.empty(6 << 20, dtype=torch.uint8, device="cuda")


def native():
    return train(), pinned(), streams()


def oom():
    kept = train(2)
    for _ in range(2):
        try:
            torch.empty(100 * GIB, dtype=torch.uint8, device="cuda")
            sys.exit("100 GiB were given")
        except torch.OutOfMemoryError:
            pass
    return kept, torch.empty(1 << 20, dtype=torch.uint8, device="cuda")


def retry():
    """Seven of eight GiB are cached in four pieces; five in one come after they have been given back."""
    pieces = [torch.empty(int(1.7 * GIB), dtype=torch.uint8, device="cuda") for _ in range(4)]
    del pieces
    return torch.empty(5 * GIB, dtype=torch.uint8, device="cuda")


def backward_oom():
    """The gradient of one element of 1 GiB is 1 GiB.  First there is room for it; then, after a retry, no more."""
    kept = torch.empty(4 * GIB, dtype=torch.uint8, device="cuda")
    weight = torch.empty(GIB // 4, device="cuda", requires_grad=True)
    (weight[:1] * 2).sum().backward()
    weight.grad = None
    held = torch.empty(5 * GIB // 2, dtype=torch.uint8, device="cuda")
    try:
        (weight[:1] * 2).sum().backward()
        sys.exit("the gradient fitted")
    except torch.OutOfMemoryError:
        return kept, weight, held


def empty_cache():
    kept = train(2)
    large = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    del large
    torch.cuda.empty_cache()
    return kept


def expandable():
    kept = train()
    large = torch.empty(300 << 20, dtype=torch.uint8, device="cuda")
    del large
    torch.cuda.empty_cache()
    return kept, oom()


CASES = {case.__name__: case for case in (native, oom, retry, backward_oom, empty_cache, expandable)}
CASES.update(malloc_async=lambda: (train(), streams()), no_caching=train, library=network)


def main():
    name, out = sys.argv[1:]
    native_backend = name not in ("malloc_async", "no_caching")
    if native_backend:
        torch.cuda.memory._record_memory_history(max_entries=1 << 20, stacks="python")
    kept = CASES[name]()
    torch.cuda.synchronize()
    said = {"torch": torch.__version__, "python": sys.version.split()[0], "stats": torch.cuda.memory_stats()}
    if native_backend:
        snapshot = torch.cuda.memory._snapshot()
        said["segments"], said["trace"] = snapshot["segments"], snapshot["device_traces"][0]
    with open(out, "w") as file:
        json.dump(said, file)
    sys.stdout.flush()
    os._exit(0)  # with everything in `kept` still live


main()
