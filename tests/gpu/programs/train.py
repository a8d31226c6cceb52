# SPDX-License-Identifier: MIT
"""Trains a small transformer or CNN in PyTorch and prints PyTorch's own statistics, which those of the recording must equal."""
import argparse
import os
import statistics
import time

import torch
from torch import nn

from finish import finish

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=("transformer", "cnn"), default="transformer")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--device", default="cuda")
parser.add_argument("--allocator-bytes", type=int, help="of PyTorch's memory fraction; says whether training fitted")
for flag in ("compile", "graph", "workers", "ddp", "oom", "oom-retry", "history", "profiler"):
    parser.add_argument("--" + flag, action="store_true")
options = parser.parse_args()
ON_GPU = options.device == "cuda"


class Transformer(nn.Module):
    def __init__(self, words=2000, width=256):
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(width, words)

    def forward(self, tokens):
        return self.out(self.layers(self.words(tokens)))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Samples(torch.utils.data.Dataset):
    def __init__(self, image):
        self.image = image

    def __len__(self):
        return 16 * options.steps

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        if self.image:
            return torch.rand(3, 32, 32, generator=generator), index % 10
        tokens = torch.randint(2000, (129,), generator=generator)
        return tokens[:-1], tokens[1:]


def synchronize():
    if ON_GPU:
        torch.cuda.synchronize()


def train():
    torch.manual_seed(1)
    model = (Transformer() if options.model == "transformer" else cnn()).to(options.device)
    if options.ddp:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531", RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
        torch.distributed.init_process_group("nccl" if ON_GPU else "gloo")
        model = nn.parallel.DistributedDataParallel(model)
    if options.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), capturable=options.graph and ON_GPU)
    data = iter(torch.utils.data.DataLoader(Samples(options.model == "cnn"), 16, num_workers=2 * options.workers, pin_memory=ON_GPU))

    def step(inputs, wanted):
        optimizer.zero_grad(set_to_none=not options.graph)
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, -2), wanted.flatten())
        loss.backward()
        optimizer.step()
        return loss

    times = []
    for number, batch in enumerate(data):
        synchronize()
        start = time.perf_counter()
        batch = [part.to(options.device) for part in batch]
        if options.graph and number == 3:
            kept = batch
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                loss = step(*kept)
        if options.graph and number >= 3:
            for mine, new in zip(kept, batch):
                mine.copy_(new)
            graph.replay()
        elif options.graph:
            with torch.cuda.stream(torch.cuda.Stream()):
                loss = step(*batch)
            synchronize()
        else:
            loss = step(*batch)
        synchronize()
        times.append(time.perf_counter() - start)
    return model, float(loss), times


def out_of_memory():
    """Run out of memory and catch the error.  With --oom-retry the cache is full, so PyTorch empties it and tries again."""
    free, _ = torch.cuda.mem_get_info()
    if options.oom_retry:
        cached = [torch.empty(free // 4, dtype=torch.uint8, device="cuda") for _ in range(3)]
        del cached
        return torch.empty(free // 2, dtype=torch.uint8, device="cuda").numel()
    try:
        torch.empty(2 * free, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return "caught"


def limited():
    """Train under a memory fraction, which limits what PyTorch's allocator may reserve."""
    torch.cuda.set_per_process_memory_fraction(options.allocator_bytes / torch.cuda.get_device_properties(0).total_memory)
    try:
        train()
    except torch.OutOfMemoryError:
        return False
    return True


if options.allocator_bytes:
    finish(fits=limited())
    raise SystemExit
if options.history:
    torch.cuda.memory._record_memory_history(stacks="python")
if options.profiler:
    with torch.profiler.profile(profile_memory=True) as profile:
        model, loss, times = train()
else:
    model, loss, times = train()
facts = {"loss": loss, "step_seconds": statistics.median(times[len(times) // 2:]), "torch": torch.__version__}
if options.oom or options.oom_retry:
    facts["out_of_memory"] = out_of_memory()
if ON_GPU:
    synchronize()
    names = ("allocated_bytes.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.current", "reserved_bytes.all.peak",
             "allocation.all.allocated", "allocation.all.freed", "num_ooms", "num_alloc_retries")
    facts["statistics"] = {name: torch.cuda.memory_stats().get(name) for name in names}
if options.history:
    events = [event for trace in torch.cuda.memory._snapshot()["device_traces"] for event in trace]
    facts["history"] = {action: sum(e["action"] == action for e in events) for action in {e["action"] for e in events}}
finish(**facts)
