# SPDX-License-Identifier: MIT
"""Programs for tests/fit/real_programs.py, run in the torch rig: programs.py NAME OUT [SNAPSHOT], or programs.py.

OUT gets peaks, retries, the number of granted requests, and whether memory ran out; SNAPSHOT gets PyTorch's own snapshot, made with the arguments in HISTORY.  Without arguments each line of stdin
(NAME OUT, then variables of the environment, of which SNAPSHOT may be one) is run in a child of its own, which need not import PyTorch again."""
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
    """Call `make` with parameters made on the device, which is quicker here."""
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
    captures.pool = pool  # keeps the pool until the end: it must be destroyed last
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


class Lora(torch.nn.Module):
    def __init__(self, width, out, rank):
        super().__init__()
        self.base = torch.nn.Linear(width, out, bias=False).requires_grad_(False)
        self.down, self.up = torch.nn.Linear(width, rank, bias=False), torch.nn.Linear(rank, out, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def lora():
    """Frozen weights and small trained ones, under autocast, with an evaluation on merged weights."""
    model = made(lambda: torch.nn.ModuleList(torch.nn.Sequential(Lora(768, 3072, 8 + 4 * i), torch.nn.GELU(), Lora(3072, 768, 8)) for i in range(5)))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for i in range(6):
        x = torch.empty(2 + i % 3, 384, 768, device=device)
        with torch.autocast("cuda", torch.bfloat16):
            for block in model:
                x = x + block(x)
        x.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if i % 3 == 2:
            with torch.inference_mode():
                merged = [layer.base.weight + layer.up.weight @ layer.down.weight for block in model for layer in (block[0], block[2])]
                y = torch.empty(8, 300, 768, device=device)
                for k in range(0, len(merged), 2):
                    y = torch.nn.functional.gelu(y @ merged[k].t()) @ merged[k + 1].t()
            del merged, y


def reentrant():
    """Reentrant checkpoints of pairs of blocks, lengths that vary, dropout."""
    from torch.utils.checkpoint import checkpoint as again
    model = made(lambda: torch.nn.ModuleList(torch.nn.Sequential(Block(320), torch.nn.Dropout(0.1), Block(320)) for _ in range(4)))
    head = made(lambda: torch.nn.Linear(320, 8000))
    optimizer = torch.optim.RMSprop([*model.parameters(), *head.parameters()], momentum=0.9)
    for i in range(8):
        length = 40 + (i * 97) % 331
        x = torch.empty(6, length, 320, device=device, requires_grad=True)
        for pair in model:
            x = again(pair, x, use_reentrant=True)
        torch.nn.functional.cross_entropy(head(x).flatten(0, 1), torch.zeros(6 * length, dtype=torch.long, device=device)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def workspaces():
    """A U-net that tries workspaces for each new shape, as a benchmark of algorithms does, and keeps an average of its weights."""
    def layer(inside, outside):
        return torch.nn.Sequential(torch.nn.Conv2d(inside, outside, 3, padding=1), torch.nn.GroupNorm(8, outside), torch.nn.SiLU())
    down = made(lambda: torch.nn.ModuleList((layer(8, 32), layer(32, 64), layer(64, 128))))
    up = made(lambda: torch.nn.ModuleList((layer(192, 64), layer(96, 32))))
    parameters = [*down.parameters(), *up.parameters()]
    optimizer = torch.optim.Adam(parameters)
    average, tried = [p.detach().clone() for p in parameters], {}
    for i in range(7):
        side = (48, 64, 48, 80, 64)[i % 5]
        if side not in tried:
            for size in (64, 17, 128, 3, 40):
                torch.empty(size * side * side * 37, dtype=torch.uint8, device=device)
            tried[side] = torch.empty(side * side << 10, dtype=torch.uint8, device=device)
        x, kept = torch.empty(4, 8, side, side, device=device), []
        for k, part in enumerate(down):
            x = part(x)
            kept.append(x)
            x = torch.nn.functional.max_pool2d(x, 2) if k < 2 else x
        for k, part in enumerate(up):
            x = part(torch.cat((torch.nn.functional.interpolate(x, scale_factor=2.0), kept[1 - k]), 1))
        x.sum().backward()
        del x, kept
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(average, parameters, 0.01)


def beams():
    """A beam search: keys and values grow by turns on two streams, and are reordered into new ones."""
    side = torch.cuda.Stream()
    for prompt in (90, 310, 170):
        cache = [torch.empty(2, 8, 12, prompt, 64, device=device) for _ in range(6)]
        for token in range(24):
            order = torch.zeros(8, dtype=torch.long, device=device)
            scores = torch.empty(8, 50000, device=device).log_softmax(-1)
            for k, old in enumerate(cache):
                grown = torch.cat((old, torch.empty(2, 8, 12, 1, 64, device=device)), 3)
                if token % 4 == 3:
                    side.wait_stream(torch.cuda.current_stream())
                    with torch.cuda.stream(side):
                        grown.record_stream(side)
                        grown = grown.index_select(1, order)
                    grown.record_stream(torch.cuda.current_stream())
                    torch.cuda.current_stream().wait_stream(side)
                cache[k] = grown
            del scores, old, grown


def swapped():
    """Warms up with SGD, goes on with Adam in double precision states, freezes half, drops the optimizer's state between."""
    model = made(lambda: torch.nn.ModuleList(Block(448) for _ in range(4)))
    for phase, make in enumerate((lambda p: torch.optim.SGD(p, 0.1), lambda p: torch.optim.Adam(p, amsgrad=True), torch.optim.Adagrad)):
        for k, block in enumerate(model):
            block.requires_grad_(phase < 2 or k % 2 == 0)
        optimizer = make([p for p in model.parameters() if p.requires_grad])
        for i in range(3):
            x = torch.empty(4, 150 + 60 * phase + 40 * i, 448, device=device, requires_grad=True)
            for block in model:
                x = block(x)
            x.sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=phase != 1)
        saved = {name: value.detach().clone() for name, value in model.named_parameters()}
        del optimizer, x
        for p in model.parameters():
            p.grad = None
        if phase == 1:
            torch.cuda.empty_cache()
        del saved


def buckets():
    """Gradients are flattened into buckets and reduced on another stream while the backward pass goes on."""
    model = made(lambda: torch.nn.Sequential(*(Block(384) for _ in range(5))))
    optimizer, comm = torch.optim.Adam(model.parameters()), torch.cuda.Stream()
    filled, pending = [], []

    def send():
        flat = torch.cat([p.grad.flatten() for p in filled])
        comm.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(comm):
            reduced = torch.empty_like(flat).copy_(flat)
            flat.record_stream(comm)
        pending.append((reduced, list(filled)))
        filled.clear()

    def hook(p):
        filled.append(p)
        if sum(q.numel() for q in filled) > 1 << 20:
            send()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)
    for i in range(5):
        model(torch.empty(6, 120 + 50 * (i % 4), 384, device=device)).sum().backward()
        send()
        torch.cuda.current_stream().wait_stream(comm)
        for reduced, parameters in pending:
            at = 0
            for p in parameters:
                p.grad = reduced[at:at + p.numel()].view_as(p)
                at += p.numel()
        pending.clear()
        del reduced
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def experts():
    """A mixture of experts, to which uneven parts of the tokens go; several sizes of heads, a long and a short context by turns."""
    gates = made(lambda: torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)) for _ in range(8)))
    optimizer = torch.optim.NAdam(gates.parameters())
    for i in range(8):
        x = torch.empty((9000, 2500)[i % 2] + 700 * i, 256, device=device, requires_grad=True)
        shares = [1 + (i * 31 + k * k * 7) % 23 for k in range(8)]
        parts = [x.shape[0] * share // sum(shares) for share in shares]
        out = torch.zeros_like(x)
        at = 0
        for expert, part in zip(gates, parts):
            chosen = torch.arange(at, at + part, device=device)
            out = out.index_add(0, chosen, expert(x.index_select(0, chosen)))
            at += part
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def two():
    """A model on each of two devices; what the first makes goes to the second."""
    halves = [torch.nn.Sequential(*(Block(256) for _ in range(2))).to(f"cuda:{d}") for d in range(2)]
    optimizer = torch.optim.Adam([p for half in halves for p in half.parameters()])
    for _ in range(3):
        halves[1](halves[0](torch.empty(8, 128, 256, device=device)).to("cuda:1")).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def refused():
    kept = [torch.empty((1 + i) << 20, device=device) for i in range(12)]
    del kept[::3]
    torch.empty(100 << 30, dtype=torch.uint8, device=device)


def lay(out):
    """Write PyTorch's own layout at the moment when memory ran out to OUT.layout: [[bytes, [[bytes, free], ...]], ...]."""
    def seen(*_):
        segments = torch.cuda.memory._snapshot()["segments"]
        with open(out + ".layout", "w") as file:
            json.dump([[s["total_size"], [[b["size"], b["state"] == "inactive"] for b in s["blocks"]]] for s in segments], file)
    torch.cuda.init()
    torch._C._cuda_attach_out_of_memory_observer(seen)


def beside(d):
    """Bytes of a device that PyTorch's allocator does not have."""
    free, total = torch.cuda.mem_get_info(d)
    return total - free - torch.cuda.memory_reserved(d)


def drawn(d):
    """Bytes of a device in PyTorch's own drawing of a snapshot: in all, and in blocks that are not free."""
    from torch.cuda import _memory_viz
    snapshot = torch.cuda.memory._snapshot()
    snapshot["segments"] = [s for s in snapshot["segments"] if s["device"] == d]
    rows = [line.rsplit(" ", 1) for line in _memory_viz.memory(snapshot, lambda text: text).splitlines()]
    return [sum(int(size) for _, size in rows), sum(int(size) for name, size in rows if ";active_" in name)]


def end(out, failed, *snapshot):
    if snapshot:
        torch.cuda.memory._dump_snapshot(snapshot[0])
        with open(snapshot[0] + ".stats", "w") as file:
            json.dump([{**torch.cuda.memory_stats(d), "beside": beside(d), "viz": drawn(d)} for d in range(torch.cuda.device_count())], file)
    if "LD_PRELOAD" in os.environ:
        wait_for_sample()
    stats = torch.cuda.memory_stats()
    with open(out, "w") as file:
        json.dump({"oom": failed, "peak_reserved": stats["reserved_bytes.all.peak"], "retries": stats["num_alloc_retries"],
                   "peak_allocated": stats["allocated_bytes.all.peak"], "granted": stats["allocation.all.allocated"]}, file)
    sys.stdout.flush()
    os._exit(0)


def run(name, out, *snapshot):
    lay(out)
    if snapshot:
        torch.cuda.memory._record_memory_history(**json.loads(os.environ.get("HISTORY", '{"max_entries": 1000000, "stacks": "python"}')))
    try:
        globals()[name]()
    except torch.cuda.OutOfMemoryError:
        end(out, True, *snapshot)  # before tensors and MemPools are destroyed: PyTorch crashes if a MemPool goes first
    end(out, False, *snapshot)


def wait_for_sample():
    """Wait for a sample of the device, without which fit says nothing of it."""
    asked = ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked
    until, deadline = asked() + 2, time.monotonic() + 60
    while asked() < until and time.monotonic() < deadline:
        time.sleep(0.005)


def serve():
    import torch._dynamo  # the first step of an optimizer imports it; here it is done once for all children
    for line in sys.stdin:
        name, out, *environment = line.split()
        child = os.fork()
        if not child:
            try:
                os.environ.update(pair.replace("\\n", "\n").split("=", 1) for pair in environment)
                run(name, out, *(path for path in [os.environ.get("SNAPSHOT")] if path))
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        print(os.waitpid(child, 0)[1], flush=True)


run(*sys.argv[1:]) if sys.argv[1:] else serve()
