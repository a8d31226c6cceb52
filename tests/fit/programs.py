# SPDX-License-Identifier: MIT
"""Programs for tests/fit/real_programs.py, run in the torch rig: programs.py NAME OUT [SNAPSHOT], or programs.py.

OUT: peaks, retries, out of memory or not.  SNAPSHOT: of its memory, by PyTorch itself.  Without arguments each line of stdin is
run in a child of its own, which need not import PyTorch again: NAME OUT, then what is to be in its environment."""
import ctypes
import json
import os
import sys
import threading
import time

import torch

torch.backends.cudnn.enabled = False
device = torch.device("cuda")


def made(make):
    """Parameters are made on the device, which is quicker here."""
    with device:
        return make()


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.transpose(-1, -2), -1) @ v)
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def step(model, optimizer, x):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def gpt():
    model = made(lambda: torch.nn.Sequential(*(Block(512) for _ in range(4))))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(4):
        step(model, optimizer, torch.empty(8, 256, 512, device=device))


def varlen():
    model = made(lambda: torch.nn.Sequential(*(Block(384) for _ in range(4))))
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(14):
        step(model, optimizer, torch.empty(8, 64 + 37 * (i * 7 % 11), 384, device=device))


def accumulate():
    model = made(lambda: torch.nn.Sequential(*(Block(512) for _ in range(3))))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for i in range(4):
        for part in range(3):
            model(torch.empty(4, 200 + 13 * part, 512, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            kept = [model(torch.empty(16, 333, 512, device=device)) for _ in range(2)]
        del kept


def streams():
    side = [torch.cuda.Stream() for _ in range(2)]
    kept = []
    for i in range(60):
        buckets = [torch.empty((1 + (i * 5 + k * 3) % 9) << 20, device=device) for k in range(4)]
        for k, bucket in enumerate(buckets):
            with torch.cuda.stream(side[k % 2]):
                bucket.add_(1)
                kept.append(torch.empty((2 + (i + k) % 5) << 19, device=device))
            bucket.record_stream(side[k % 2])
        kept = kept[-10:]


def cache():
    keys = torch.empty(0, 4096, device=device)
    for i in range(80):
        keys = torch.cat((keys, torch.empty(8 + i % 17, 4096, device=device)))
        torch.empty(1000 + 411 * (i % 7), 1024, device=device) @ torch.empty(1024, 512, device=device)


def checkpoint():
    from torch.utils.checkpoint import checkpoint as again
    model = made(lambda: torch.nn.ModuleList(Block(512) for _ in range(6)))
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(4):
        x = torch.empty(8, 200 + 50 * (i % 3), 512, device=device, requires_grad=True)
        for block in model:
            x = again(block, x, use_reentrant=False)
        x.sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def emptied():
    for i in range(6):
        kept = [torch.empty((3 + i) << 20, device=device) for _ in range(5)]
        small = [torch.empty(1000 * (k + 1), device=device) for k in range(50)]
        del kept
        torch.cuda.empty_cache()
        torch.empty((40 + 7 * i) << 18, device=device)


def cnn():
    def layer(inside, outside):
        return torch.nn.Sequential(torch.nn.Conv2d(inside, outside, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2))
    model = made(lambda: torch.nn.Sequential(layer(3, 32), layer(32, 64), layer(64, 128), torch.nn.Flatten(), torch.nn.Linear(128 * 12 * 12, 100)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    for i in range(5):
        step(model, optimizer, torch.empty(24 + 8 * (i % 3), 3, 96, 96, device=device))


def limited():
    torch.cuda.set_per_process_memory_fraction(0.2)
    cache()


def changed():
    streams_of_sizes = [(1 + (i * 7) % 11) << 18 for i in range(60)]
    torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:2")
    kept = [torch.empty(size + 1000, device=device) for size in streams_of_sizes[::3]]
    torch.cuda.memory._set_allocator_settings("max_split_size_mb:64")
    for i, size in enumerate(streams_of_sizes):
        kept[i % len(kept)] = torch.empty(3 * size, device=device)


def graphs():
    """Two graphs of one pool, and tensors beside it."""
    model = made(lambda: torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)))
    static, side, pool = torch.empty(256, 512, device=device), torch.cuda.Stream(), None
    with torch.cuda.stream(side), torch.no_grad():
        model(static)
    torch.cuda.current_stream().wait_stream(side)
    kept = []
    for i in range(2):
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
            kept.append((graph, model(static), torch.empty((4 + i) << 20, device=device)))
        pool = graph.pool()
    for graph, *_ in kept * 3:
        graph.replay()
    del kept[0]
    return kept, [torch.empty((3 + i) << 19, device=device) for i in range(12)]


def pools():
    """MemPools one after the other and one inside the other; a block of one outlives it; another thread asks meanwhile."""
    kept = []
    for i in range(6):
        pool, other = torch.cuda.MemPool(), torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            kept.append(torch.empty((3 + i) << 20, device=device))
            gone = torch.empty((5 + i) << 19, device=device)
            thread = threading.Thread(target=lambda size: kept.append(torch.empty(size, device=device)), args=((2 + i) << 19,))
            thread.start()
            thread.join()
        del gone
        with torch.cuda.use_mem_pool(other):
            again = torch.empty((7 - i) << 20, device=device)
            with torch.cuda.use_mem_pool(pool):
                nested = torch.empty((2 + i) << 20, device=device)
        beside = torch.empty((4 + i) << 19, device=device)
        del again, other
        if i % 2:
            torch.cuda.empty_cache()
        with torch.cuda.use_mem_pool(pool):
            torch.empty((1 + i) << 18, device=device)
        del nested, pool, beside
        kept = kept[-5:]


def captures():
    """Two graphs captured at once, by turns, one in a MemPool's pool."""
    pool, kept = torch.cuda.MemPool(), []
    captures.pool = pool  # which must be the last that goes
    for i in range(4):
        graphs, sides = [torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()], [torch.cuda.Stream(), torch.cuda.Stream()]
        inside = []
        for k in range(2):
            with torch.cuda.stream(sides[k]):
                graphs[k].capture_begin(*([pool.id] if k else []), capture_error_mode="relaxed")
        for turn in range(6):
            with torch.cuda.stream(sides[turn % 2]):
                inside.append(torch.empty((1 + i + 2 * turn) << 19, device=device))
            kept.append(torch.empty((2 + turn) << 18, device=device))
        for k in (1, 0):
            with torch.cuda.stream(sides[k]):
                graphs[k].capture_end()
        kept = kept[-8:] + [(graphs, inside)] * (i % 2)
        del graphs, inside
    return kept


def lay(out):
    """What lay where when memory ran out, as PyTorch itself has it: [[bytes, [[bytes, free], ...]], ...] in OUT.layout."""
    def seen(*_):
        segments = torch.cuda.memory._snapshot()["segments"]
        with open(out + ".layout", "w") as file:
            json.dump([[s["total_size"], [[b["size"], b["state"] == "inactive"] for b in s["blocks"]]] for s in segments], file)
    torch.cuda.init()
    torch._C._cuda_attach_out_of_memory_observer(seen)


def end(out, failed, *snapshot):
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot[0])
    if "LD_PRELOAD" in os.environ:
        wait_for_sample()
    stats = torch.cuda.memory_stats()
    with open(out, "w") as file:
        json.dump({"oom": failed, "peak_reserved": stats["reserved_bytes.all.peak"], "retries": stats["num_alloc_retries"],
                   "peak_allocated": stats["allocated_bytes.all.peak"]}, file)
    sys.stdout.flush()
    os._exit(0)


def run(name, out, *snapshot):
    lay(out)
    if snapshot:
        torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="python")
    try:
        globals()[name]()
    except torch.OutOfMemoryError:
        end(out, True, *snapshot)  # while what it held lives: PyTorch crashes where a MemPool goes before its tensors
    end(out, False, *snapshot)


def wait_for_sample():
    """Without one nothing is said of a device."""
    asked = ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked
    until, deadline = asked() + 2, time.monotonic() + 60
    while asked() < until and time.monotonic() < deadline:
        time.sleep(0.005)


def serve():
    import torch._dynamo  # which the first step of an optimizer does
    for line in sys.stdin:
        name, out, *environment = line.split()
        child = os.fork()
        if not child:
            try:
                os.environ.update(pair.split("=", 1) for pair in environment)
                run(name, out)
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        print(os.waitpid(child, 0)[1], flush=True)


run(*sys.argv[1:]) if sys.argv[1:] else serve()
