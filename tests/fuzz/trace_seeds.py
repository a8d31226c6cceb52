#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""trace_seeds.py CORE_PROGRAM FOLDER [FUZZ_TRACE ROUNDS]: small traces as inputs of fuzz_trace; and the smoke run over them."""
import os
import struct
import subprocess
import sys
import tempfile

program, folder = sys.argv[1], sys.argv[2] or tempfile.mkdtemp(prefix="stormlog-fuzz-")
os.makedirs(folder, exist_ok=True)
seeds = []
for name, args in (("nest", ("nest", 1, 20)), ("blocks", ("train", 2, 2)), ("late", ("late", 2, 30)), ("killed", ("kill", 2, 300, 300000))):
    traces = tempfile.mkdtemp(prefix="stormlog-fuzz-")
    subprocess.run([program, *map(str, args)], env=dict(os.environ, STORMLOG_DIR=traces, STORMLOG_STACKS="none"), check=False)
    trace = ring = b""
    for file in os.listdir(traces):
        with open(os.path.join(traces, file), "rb") as data:
            if file.endswith(".ring"):
                ring = data.read(3 << 20)
            else:
                trace = data.read()
    subprocess.run(["rm", "-rf", traces], check=False)
    seeds.append(os.path.join(folder, name))
    with open(seeds[-1], "wb") as seed:
        seed.write(struct.pack("<I", len(trace)) + trace + ring)
if len(sys.argv) > 3:
    done = subprocess.run([sys.argv[3], sys.argv[4], *seeds], stderr=subprocess.PIPE, text=True)
    print(done.stderr[-2000:])
    sys.exit(done.returncode != 0)
