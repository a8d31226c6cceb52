#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares `fit --torch` with real PyTorch of other releases, over the dry device.  It is no test of the suite: it takes ten minutes.

    releases.py STORMLOG_RUN STORMLOG_ANALYZE [-n N] PYTHON...     each PYTHON has another PyTorch for CUDA
    releases.py --program SEED                                     the random program itself, which prints what became of it

Each program is recorded with one PyTorch.  The replay says under the rules of every other one which capacities fit.  Then that PyTorch really runs
the program at these capacities: around the smallest that fits, and at a random smaller one.  Prints one line for each release; exits 1 where one differs.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter

MIB = 1 << 20
SETTINGS = ("", "", "expandable_segments:True", "max_split_size_mb:64", "roundup_power2_divisions:4", "expandable_segments:True,roundup_power2_divisions:8")


def tensors(torch, choose, streams):
    """Tensors that come and go, on several streams if asked."""
    held, side = [], [torch.cuda.Stream() for _ in range(streams)]
    for _ in range(choose.randrange(150, 400)):
        if held and choose.random() < 0.47:
            tensor = held.pop(choose.randrange(len(held)))
            if side and choose.random() < 0.3:
                tensor.record_stream(choose.choice(side))
        elif choose.random() < 0.01:
            torch.cuda.empty_cache()
        else:
            size = int(2 ** choose.uniform(9, 27.5))
            with torch.cuda.stream(choose.choice(side) if side and choose.random() < 0.4 else None):
                held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))


def training(torch, choose):
    """Steps of varying length; operations whose sizes no release chooses, so that every release is asked for the same."""
    width = choose.randrange(200, 3000)
    weights = [torch.zeros(width, device="cuda", requires_grad=True) for _ in range(choose.randrange(3, 12))]
    kept = []
    for _ in range(choose.randrange(4, 10)):
        x = torch.zeros(choose.randrange(500, 9000), width, device="cuda")
        for weight in weights:
            x = torch.tanh(x * weight) + x
        if choose.random() < 0.3:
            kept.append(x.detach())
        loss = (x * x).mean()
        loss.backward()
        for weight in weights:
            weight.grad = None


def program(seed):
    import torch
    choose, said = random.Random(seed), {"oom": False}
    try:
        if seed % 3 == 2:
            training(torch, choose)
        else:
            tensors(torch, choose, seed % 3 * 2)
    except torch.OutOfMemoryError:
        said["oom"] = True
    stats = torch.cuda.memory_stats()
    said.update(release=torch.__version__, reserved=stats["reserved_bytes.all.peak"], allocated=stats["allocated_bytes.all.peak"],
                retries=stats["num_alloc_retries"])
    print(json.dumps(said))


def really(args, python, seed, settings, capacity, traces):
    done = subprocess.run([args.run, "-q", "--dry=h200", *(["--limit", str(capacity)] if capacity else []), "-o", traces, "--", python, __file__,
                           "--program", str(seed)], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "PYTORCH_CUDA_ALLOC_CONF": settings})
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else sys.exit(done.stderr)


def fit(args, traces, settings, releases, capacities):
    done = subprocess.run([args.analyze, "fit", "--json", "--torch", ",".join(releases), "--settings", settings,
                           *(["--capacity", ",".join(map(str, capacities))] if capacities else []), traces], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode < 2 else sys.exit(done.stderr)


def compare(args, seed, names, told):
    choose, pythons = random.Random(seed), list(names)
    settings, recorder = choose.choice(SETTINGS), pythons[seed % len(pythons)]
    others = [python for python in pythons if python != recorder]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        really(args, recorder, seed, settings, None, f"{folder}/recorded")
        smallest = {row["torch"]: row["always_from_bytes"] for row in fit(args, f"{folder}/recorded", settings, [names[p] for p in others], [])["smallest"]}
        for python in others:
            least = smallest[names[python]]
            if least is None:
                told[names[python], "no verdict"] += 3
                continue
            capacities = sorted({least, least - 2 * MIB, int(least * choose.uniform(0.8, 0.99)) // MIB // 2 * 2 * MIB})
            rows = [row for row in fit(args, f"{folder}/recorded", settings, [names[python]], capacities)["runs"] if row["torch"] == names[python]]
            for row in rows:
                if row["capacity_bytes"] == least:  # where a card may take more than the dry run, the verdict is "either"
                    row["fits"] = True
                if row["fits"] is None:
                    told[names[python], "either"] += 1
                    continue
                real = really(args, python, seed, settings, row["capacity_bytes"], f"{folder}/{len(told)}-{names[python]}-{row['capacity_bytes']}")
                same = row["fits"] != real["oom"] and (not row["fits"] or row["peak_reserved_bytes"] == real["reserved"])
                told[names[python], ("fits" if row["fits"] else "no") if same else "WRONG"] += 1
                if not same:
                    wrong += 1
                    print(f"seed {seed}, {names[recorder]} -> {names[python]}, {settings or '(none)'}: replay {row}, real {real}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("analyze")
    parser.add_argument("-n", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("pythons", nargs="+")
    args = parser.parse_args()
    names, told = {}, Counter()
    for python in args.pythons:
        version = subprocess.run([python, "-c", "from importlib.metadata import version; print(version('torch'))"], capture_output=True, text=True, check=True).stdout
        names[python] = ".".join(version.split(".")[:2])
    wrong = sum(compare(args, seed, names, told) for seed in range(args.first, args.first + args.n))
    for release in sorted(set(names.values())):
        print(release, ", ".join(f"{count} {what}" for (name, what), count in sorted(told.items()) if name == release), flush=True)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(program(int(sys.argv[2])) if sys.argv[1:2] == ["--program"] else main())
