#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""trace_seeds.py CORE_PROGRAM FOLDER [FUZZ_TRACE FUZZ_FRAMES ROUNDS]: makes small traces as inputs of fuzz_trace, and runs the fuzzers
over them.  FOLDER/frames has the content of their frames, without the ring."""
import os
import struct
import subprocess
import sys
import tempfile

try:
    import zstandard
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)
INDEX = struct.Struct("<IIIIQQIIQQQ")  # doc/trace-format.md


def contents(trace):
    """The content of a trace's frames, as an input of fuzz_trace.c with -DFRAMES."""
    at, parts = 0, []
    while at + INDEX.size <= len(trace):
        _, _, kind, thread, _, _, _, size, *_ = INDEX.unpack_from(trace, at)
        frame = trace[at + INDEX.size:at + INDEX.size + size]
        if len(frame) < size:
            break  # torn by the kill
        content = zstandard.ZstdDecompressor().decompress(frame, max_output_size=1 << 26)
        parts.append(struct.pack("<BBI", kind, thread, len(content)) + content)
        at += INDEX.size + size
    return b"".join(parts)


program, folder = sys.argv[1], sys.argv[2] or tempfile.mkdtemp(prefix="stormlog-fuzz-")
os.makedirs(os.path.join(folder, "frames"), exist_ok=True)
seeds, frame_seeds = [], []
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
    frame_seeds.append(os.path.join(folder, "frames", name))
    with open(frame_seeds[-1], "wb") as seed:
        seed.write(contents(trace))
for fuzzer, inputs in zip(sys.argv[3:5], (seeds, frame_seeds)):
    done = subprocess.run([fuzzer, sys.argv[5], *inputs], stderr=subprocess.PIPE, text=True)
    print(done.stderr[-2000:])
    if done.returncode:
        sys.exit(1)
