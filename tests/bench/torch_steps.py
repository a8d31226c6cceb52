# SPDX-License-Identifier: MIT
"""torch_steps.py SECONDS: what recording adds to training steps of this PyTorch, as JSON; scripts/bench-torch runs it.

One process does one step recorded and one plain by turns.  Plain means that PyTorch's calls go to its own functions again: the
entries of its libraries' tables of functions are exchanged.  A machine that is busy slows both alike."""
import ctypes
import json
import os
import random
import statistics
import struct
import sys
import time

import torch

LIBRARIES = ("libc10", "libtorch", "libcuda.so")
libc = ctypes.CDLL(None)


def mappings():
    """{path: (first address, behind the last)}"""
    found = {}
    with open("/proc/self/maps") as file:
        for line in file:
            words = line.split()
            if len(words) > 5 and words[5].startswith("/"):
                first, last = (int(word, 16) for word in words[0].split("-"))
                found[words[5]] = (min(found.get(words[5], (first,))[0], first), last)
    return found


def dynamic(base):
    """{tag: address or size} of a library that is mapped at `base`."""
    head = ctypes.string_at(base, 64)
    at, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    for i in range(count):
        kind, _, _, address = struct.unpack("<IIQQ", ctypes.string_at(base + at + i * size, 24))
        if kind == 2:
            break
    tags = {}
    while True:
        tag, value = struct.unpack("<QQ", ctypes.string_at(base + address, 16))
        if not tag:
            return tags
        tags[tag] = value
        address += 16


def tables():
    """[(place of a function's address, its name)] of all libraries of interest."""
    for path, (base, _) in mappings().items():
        if not os.path.basename(path).startswith(LIBRARIES):
            continue
        tags = dynamic(base)
        real = lambda address: address if address > base else base + address  # the loader has added the base to some
        for start, bytes_ in ((tags.get(23, 0), tags.get(2, 0)), (tags.get(7, 0), tags.get(8, 0))):
            data = ctypes.string_at(real(start), bytes_) if start else b""
            for offset, info, _ in struct.iter_unpack("<QQq", data):
                if info & 0xffffffff in (6, 7):  # R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT
                    symbol = ctypes.string_at(real(tags[6]) + (info >> 32) * 24, 24)
                    yield base + offset, ctypes.string_at(real(tags[5]) + struct.unpack_from("<I", symbol)[0])


def functions():
    """{name: address} of what these libraries export.  The recorder answers dlsym itself, so their files are read."""
    found = {}
    for path, (base, _) in mappings().items():
        if not os.path.basename(path).startswith(LIBRARIES):
            continue
        with open(path, "rb") as file:
            data = file.read()
        at, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
        sections = [struct.unpack_from("<IIQQQQII", data, at + i * size) for i in range(count)]
        for _, kind, _, _, offset, bytes_, link, _ in sections:
            for text, _, _, defined, value, _ in struct.iter_unpack("<IBBHQQ", data[offset:offset + bytes_] if kind == 11 else b""):
                if defined and value:
                    begin = sections[link][4] + text
                    found[data[begin:data.index(b"\0", begin)]] = base + value
    return found


class Switch:
    """Sends PyTorch's calls to the recorder's wrappers, or to the functions that they forward to."""

    def __init__(self):
        (first, last), real = next(at for path, at in mappings().items() if "libstormlog_preload" in path), functions()
        self.entries = []
        for at, name in tables():
            value = ctypes.c_uint64.from_address(at)
            if first <= value.value < last and name in real:
                libc.mprotect(ctypes.c_void_p(at & ~4095), ctypes.c_size_t(8192), 3)
                self.entries.append((name, value, value.value, real[name]))
        if not self.entries:
            sys.exit("torch_steps: PyTorch does not call the recorder")

    def set(self, recorded, but=()):
        for name, value, ours, real in self.entries:
            value.value = ours if recorded and name not in but else real


def network(device):
    torch.manual_seed(1)
    layers = [part for _ in range(16) for part in (torch.nn.Linear(64, 64), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.01), torch.zeros(32, 64, device=device)


def step_of(device):
    model, optimizer, batch = network(device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(batch).square().mean().backward()
        optimizer.step()

    return step, model


def with_products(model):
    """Each layer's forward also makes the calls that cuBLAS makes for a product on a GPU, to a driver that does nothing."""
    driver = ctypes.CDLL("libcuda.so.1")
    for part in model:
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda *_: driver.products(3) and None)


def measure(step, ways, seconds):
    """{way: [seconds of processor of its step in each round, all threads]}; a way is called before its step."""
    took = {name: [] for name in ways}
    for _ in range(5):
        for way in ways.values():
            way()
            step()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for name in random.sample(list(ways), len(ways)):
            ways[name]()
            begin = time.process_time()
            step()
            took[name].append(time.process_time() - begin)
    return took


def tenth(values):
    return sorted(values)[len(values) // 10]


def print_row(what, took, base, name, events):
    more = sorted(a - b for a, b in zip(took[name], took[base]))
    middle, step = statistics.median(took[name]) - statistics.median(took[base]), statistics.median(took[base])
    print(json.dumps({"what": what, "way": name, "step_us": step * 1e6, "percent": middle / step * 100, "events": events,
                      "ns": middle * 1e9 / events, "ns_paired": statistics.median(more) * 1e9 / events,
                      "ns_tenth": (tenth(took[name]) - tenth(took[base])) * 1e9 / events, "rounds": len(more)}), flush=True)


def count_events(step, switch):
    """Calls of the report function in one step."""
    calls = [0]
    made = [entry for entry in switch.entries if b"reportMemoryUsageToProfiler" in entry[0]]
    real = {entry[3] for entry in made}
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)
    counter = prototype(lambda *_: calls.__setitem__(0, calls[0] + 1))
    for _, value, _, _ in made:
        value.value = ctypes.cast(counter, ctypes.c_void_p).value
    step()
    switch.set(True)
    return calls[0] if real else 0


def main():
    seconds, gpu = float(sys.argv[1]), torch.cuda.is_available()
    step, model = step_of("cuda" if gpu else "cpu")
    for _ in range(20):
        step()
    record = ctypes.CFUNCTYPE(None, ctypes.c_int)(ctypes.c_size_t.in_dll(libc, "stormlog_api_v1").value and
                                                  ctypes.cast(libc.stormlog_api_v1, ctypes.POINTER(ctypes.c_size_t))[RECORD])
    switch = Switch()
    events = count_events(step, switch)
    if gpu:
        history = torch.cuda.memory._record_memory_history
        ways = {"plain": lambda: (history(None), switch.set(False)), "recorded": lambda: (history(None), switch.set(True), record(1)),
                "no stacks": lambda: (history(None), switch.set(True), record(0)),
                "PyTorch's history": lambda: (switch.set(False), history("all", stacks="python"))}
        took, what = measure(step, ways, seconds), "CUDA allocator"
    else:
        # PyTorch keeps the sizes of CPU blocks where it reports them: its own cost, which no GPU has.  So "plain" has it too.
        reports = {name for name, *_ in switch.entries if b"reportMemoryUsage" in name}
        ways = {"plain": lambda: switch.set(True, reports), "recorded": lambda: (switch.set(True), record(1)),
                "no stacks": lambda: (switch.set(True), record(0)), "not reported": lambda: switch.set(False)}
        took, what = measure(step, ways, seconds), "CPU tensors"
    for name in list(ways)[1:]:
        print_row(what, took, "plain", name, events)
    if gpu:
        return
    with_products(model)
    step()
    switch = Switch()
    kernels = {name for name, *_ in switch.entries if name.startswith(b"cu")}
    took = measure(step, {"plain": lambda: switch.set(True, kernels), "recorded": lambda: switch.set(True)}, seconds)
    print_row("product on a GPU", took, "plain", "recorded", 16 * 3)


RECORD = 9  # in struct stormlog_api of agent/include/stormlog.h, behind `bytes` and eight functions
main()
