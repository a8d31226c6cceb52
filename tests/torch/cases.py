# SPDX-License-Identifier: MIT
"""Runs one case with PyTorch and writes PyTorch's own figures afterwards: cases.py CASE OUT.json"""
import json
import os
import sys
import time

import torch

GIB = 1 << 30
torch.backends.cudnn.enabled = False


def network():
    return torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 256)).cuda()


def train(steps=5):
    """Linear, Adam, backward on autograd's thread of the device.  Returns the objects that stay alive."""
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
    """Four pieces, 6.8 of 8 GiB, are cached; PyTorch gives them back to allocate 5 GiB in one piece."""
    pieces = [torch.empty(int(1.7 * GIB), dtype=torch.uint8, device="cuda") for _ in range(4)]
    del pieces
    return torch.empty(5 * GIB, dtype=torch.uint8, device="cuda")


def backward_oom():
    """The gradient of one element of 1 GiB is 1 GiB.  The first backward pass fits; the second fails after a retry."""
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


class Block(torch.nn.Module):
    """Has a parameter outside any layer, and a buffer."""

    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.scale = torch.nn.Parameter(torch.ones(width, 1024, device="cuda"))
        self.register_buffer("mean", torch.zeros(width, 512, device="cuda"))

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x))) * self.scale.sum()


def roles():
    """Gradients are kept between steps, so every peak after the first step holds parameters, gradients and moments."""
    model = torch.nn.Sequential(*(Block(512) for _ in range(3))).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(6):
        loss = forward(model, torch.empty(4096, 512, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    return model, optimizer


def rounded(tensors):
    """The bytes that PyTorch's allocator takes for these tensors."""
    return sum(-(-tensor.untyped_storage().nbytes() // 512) * 512 for tensor in tensors if tensor.is_cuda)


def roles_of(model, optimizer):
    moments = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    return {"parameters": rounded([*model.parameters(), *model.buffers()]), "optimizer": rounded(moments),
            "gradients": rounded(p.grad for p in model.parameters())}


# Programs that leak: each keeps memory that one line allocates, in every step or every second one.
def kept_losses():
    model, losses = network(), []
    for _ in range(60):
        time.sleep(0.05)  # writing the statistics takes half a second: without these sleeps that would look like a pause at the end
        x = torch.empty(256, 512, device="cuda")
        losses.append(model(x).pow(2))  # LEAK
    return losses


def kept_hooks():
    model, seen = network(), []
    model[0].register_forward_hook(lambda module, inputs, output: seen.append(output.detach().clone()))  # LEAK
    for _ in range(60):
        forward(model, torch.empty(256, 512, device="cuda")).backward()
        model.zero_grad(set_to_none=True)
    return seen


def retained_graph():
    model, kept = network(), []
    for _ in range(60):
        loss = forward(model, torch.empty(256, 512, device="cuda"))  # LEAK
        loss.backward(retain_graph=True)
        model.zero_grad(set_to_none=True)
        kept.append(loss)
    return kept


def kept_tracebacks():
    model, errors = network(), []

    def step(number):
        activations = model(torch.empty(512, 512, device="cuda"))  # LEAK
        if number % 2:
            raise ValueError(number)
        return activations

    for number in range(120):
        try:
            step(number)
        except ValueError as error:
            errors.append(error)
    return errors


def growing_kv():
    model, keys = network(), []
    with torch.no_grad():
        for _ in range(80):
            y = model(torch.empty(64, 512, device="cuda"))
            keys.append(torch.cat([y, y]))  # LEAK
    return keys


LEAKS = (kept_losses, kept_hooks, retained_graph, kept_tracebacks, growing_kv)
CASES = {case.__name__: case for case in (native, oom, retry, backward_oom, empty_cache, expandable, roles, *LEAKS)}
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
        said["roles"] = roles_of(*kept) if name == "roles" else None
        said["segments"], said["trace"] = snapshot["segments"], snapshot["device_traces"][0]
    with open(out, "w") as file:
        json.dump(said, file)
    sys.stdout.flush()
    os._exit(0)  # while everything in `kept` is live


main()
