#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeded pairs of runs of real PyTorch over the dry device: `diff` names the seeded difference first, and its terms add up to the byte.

    because.py STORMLOG_RUN STORMLOG_ANALYZE PYTHON [SEED...]     ten minutes, so no test of the suite; it fails below nine right of ten
    because.py --program KEY=VALUE...                             the program of both runs

A pair is a term and what differs.  Everything else of both programs is drawn from the seed.
"""
import ctypes
import json
import random
import subprocess
import sys
import tempfile

MIB = 1 << 20


def program(seed, batch=0, kept=0, small=512, gaps=0, temporary=0, emptied=0, pool=0, driver=0, weights=0, steps=4):
    """A training loop, and one thing more for each argument."""
    import torch
    choose, held = random.Random(seed), []
    width = choose.randrange(512, 2048)
    layers = [torch.zeros(width, device="cuda", requires_grad=True) for _ in range(4)]
    table = torch.zeros((40 + weights) * MIB // 4, device="cuda")
    for _ in range(20000):
        held.append(torch.empty(small, dtype=torch.uint8, device="cuda"))
    if driver:
        address = ctypes.c_void_p()
        runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(driver * MIB)) == 0
    if pool:
        mine = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(mine):
            work = torch.empty(pool * MIB, dtype=torch.uint8, device="cuda")
            del work
    if temporary:
        work = torch.empty(temporary * MIB, dtype=torch.uint8, device="cuda")
        del work
        if emptied:
            torch.cuda.empty_cache()
    if gaps:
        blocks = [torch.empty(6 * MIB, dtype=torch.uint8, device="cuda") for _ in range(3 * gaps)]
        held.extend(block for i, block in enumerate(blocks) if i % 3 == (0 if gaps > 0 else 1))
        del blocks
    for _ in range(steps):
        x = torch.zeros(1000 + batch, width, device="cuda")
        if kept:
            held.append(torch.zeros(kept * MIB // 4, device="cuda"))
        for layer in layers:
            x = torch.tanh(x * layer) + x
        x.square().mean().backward()
        for layer in layers:
            layer.grad = None
        del x
    held.append(torch.zeros(400 * MIB // 4, device="cuda"))
    return table


# term, line or None, what the run after has, what the run before has, settings after, card after
PAIRS = [
    ("requests", "held.append(torch.zeros(kept", dict(kept=24), {}, "", None),
    ("requests", "held.append(torch.zeros(kept", dict(kept=60), dict(kept=3), "", None),
    ("requests", "table = torch.zeros(", dict(weights=120), {}, "", None),
    ("requests", "table = torch.zeros(", {}, dict(weights=90), "", None),
    ("requests", None, dict(batch=9000, steps=1), dict(steps=1), "expandable_segments:True", None),
    ("rounding", None, dict(small=520), {}, "", None),
    ("rounding", None, dict(small=1030), dict(small=1024), "", None),
    ("rounding", None, {}, dict(small=600), "", None),
    ("fragments", None, dict(gaps=40), {}, "", None),
    ("fragments", None, dict(gaps=30), {}, "", None),
    ("fragments", None, {}, dict(gaps=60), "", None),
    ("cache", None, dict(temporary=300), dict(temporary=300, emptied=1), "", None),
    ("cache", None, dict(temporary=200, emptied=1), dict(temporary=200), "", None),
    ("cache", None, dict(temporary=350), {}, "", None),
    ("pools", None, dict(pool=200), {}, "", None),
    ("pools", None, {}, dict(pool=90), "", None),
    ("libraries", None, dict(driver=150), {}, "", None),
    ("libraries", None, dict(driver=64), dict(driver=500), "", None),
    ("settings", None, dict(gaps=40), dict(gaps=40), "after:expandable_segments:True", None),
    ("settings", None, dict(temporary=300), dict(temporary=300), "after:expandable_segments:True", None),
    ("settings", None, dict(weights=37, kept=21), dict(weights=37, kept=21), "after:roundup_power2_divisions:2", None),
    ("outside", None, {}, {}, "", "l4"),
]


def record(run, python, seed, arguments, settings, card, traces):
    done = subprocess.run([run, "-q", f"--dry={card or 'h200'}", "-o", traces, "--", python, __file__, "--program", f"seed={seed}",
                           *(f"{key}={value}" for key, value in arguments.items())], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "PYTORCH_CUDA_ALLOC_CONF": settings})
    if done.returncode:
        sys.exit(done.stderr)


def main(run, analyze, python, *seeds):
    right = exact = 0
    with open(__file__) as file:
        source = file.readlines()
    for seed, (term, line, after, before, settings, card) in enumerate(PAIRS):
        if seeds and str(seed) not in seeds:
            continue
        both, last = ("", settings[6:]) if settings.startswith("after:") else (settings, settings)
        with tempfile.TemporaryDirectory() as folder:
            record(run, python, seed, before, both, None, f"{folder}/before")
            record(run, python, seed, after, last, card, f"{folder}/after")
            done = subprocess.run([analyze, "diff", "--json", f"{folder}/before", f"{folder}/after"], capture_output=True, text=True, check=True)
        because = json.loads(done.stdout)["because"]
        first = because["terms"][0]
        adds_up = sum(row["change_bytes"] for row in because["terms"]) == because["after"]["peak_bytes"] - because["before"]["peak_bytes"]
        of_lines = sum(row["change_bytes"] for row in next(row for row in because["terms"] if row["term"] == "requests")["lines"])
        adds_up &= of_lines == next(row for row in because["terms"] if row["term"] == "requests")["change_bytes"]
        named = first["lines"][0]["what"] if line and first["lines"] else None
        is_right = first["term"] == term and (not line or line in source[int(named.split(":")[1].split()[0]) - 1])
        right, exact = right + is_right, exact + adds_up
        print(f"{seed:2} {term:10} {'right' if is_right else 'WRONG'} {'exact' if adds_up else 'NOT EXACT'} "
              f"{'replayed' if because['replayed'] else because['before']['no_replay'] or because['after']['no_replay']}: "
              + ", ".join(f"{row['term']} {row['change_bytes'] / MIB:+.1f}" for row in because["terms"] if row["change_bytes"]), flush=True)
    pairs = len(seeds) or len(PAIRS)
    print(f"{right} right, {exact} exact of {pairs}")
    return exact < pairs or 10 * right < 9 * pairs


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        program(**{pair.partition("=")[0]: int(pair.partition("=")[2]) for pair in sys.argv[2:]})
    else:
        sys.exit(main(*sys.argv[1:]))
