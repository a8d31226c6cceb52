#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""snapshot_seeds.py FOLDER [PROGRAM ROUNDS]: small snapshots of each kind (tests/snapshot/made.py), mutated by PROGRAM so many times each."""
import os
import pickle
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "snapshot"))
import made

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
seeds = []
for expandable, drop, old in ((False, 0, False), (True, 10, False), (False, 30, False), (False, 0, True), (False, 10**9, False)):
    allocator = made.Allocator(expandable=expandable)
    made.training(allocator, 1, layers=2)
    allocator.oom(5 << 20, 77, made.frames("a.py:3 f"))
    allocator.empty_cache()
    notes = [{"stage": stage, "name": "ProfilerStep#1", "device": 0, "time_us": allocator.now - 100 + 50 * (stage == "END")} for stage in ("START", "END")]
    whole, _ = made.snapshot(allocator, drop=drop, annotations=notes)
    for protocol in (2, 4):
        seeds.append(os.path.join(folder, f"{len(seeds)}"))
        with open(seeds[-1], "wb") as file:
            file.write(pickle.dumps(made.old(whole) if old else whole, protocol))
if len(sys.argv) > 3:
    sys.exit(subprocess.run([sys.argv[2], sys.argv[3], *seeds]).returncode)
