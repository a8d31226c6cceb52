#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""file_seeds.py FOLDER [FUZZ_FILES ROUNDS]: inputs of each target of fuzz_files in FOLDER/TARGET, and the smoke runs over them; without
it also what small golden traces hold."""
import glob
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "hostile"))
import traces as t  # noqa: E402
import zstandard  # noqa: E402

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "traces")
SLOW = {"reports": 6}  # times as long as the others
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../analyzer/exports/list.c")) as rows:
    FORMATS = len(re.findall(r"\bE\(\w+\)", rows.read()))
SETTINGS = b"""# limits\n[check]\nmax-peak = 20GiB\nmax-growth = 1M/step_#\nbaseline = base.json\ntolerance = 5%\nno-oom = yes
fits = 24G\nfail-on = critical\nstrict = no\n[watch]\nrule = used > 90% for 5s => message\nrule = full-in < 10min => file /x
rule = growth > 1G/hour => command echo\nrule = unlike >= 3.5 => bundle d\n[other]\nx = y\n"""
SUPPRESSIONS = b"# meant\nleak:libfoo.so\nleak:^train.py*forward$\nleak:a*a*a*a*b\n"
BASELINE = b"""{"schema": "stormlog.baseline", "schema_version": 1, "total": {"peak": {"bytes": 4096, "what": "peak"}}, "library": {},
"stack": {"00ff": {"bytes": 7, "what": "train.py:3 f"}}, "leak": {}, "label": {"step_#": {"bytes": 1}}, "growth": {"step_#": {"bytes": null}}}"""
BUNDLE = b"""{"schema_version": 1, "bundle_name": "oom_dump_1", "reason": "oom", "event_count": 1, "files": ["events.json"]}\n=\n[{"timestamp_ns": 5,
"event_type": "alloc", "device_id": 0, "allocated_bytes": 7, "context": "x"}]\n=\n{"exception_type": "OutOfMemoryError"}\n=\n{"python": "3.11"}
\n=\n[{"address": "0x10", "bytes": 4096, "stack": ["a", "b"]}]"""


def trace():
    maps = [{"def": "frame", "id": 1, "function": "forward", "file": "/home/u/train.py", "line": 3},
            {"def": "python_stack", "id": 1, "frames": [1]}, {"def": "text", "id": 1, "text": "step_# x"},
            {"def": "module", "base": 1 << 20, "end": 2 << 20, "path": "/lib/x.so", "build_id": "aa", "ns": t.T0},
            {"def": "native_stack", "id": 1, "pcs": struct.pack("<2Q", (1 << 20) + 8, (1 << 20) + 64)},
            {"def": "thread", "id": 1, "tid": 7, "name": "main", "ns": t.T0}, {"def": "device", "device": 0, "name": "GPU", "ns": t.T0},
            {"def": "sample", "ns": t.T0 + 5, "begin_ns": t.T0, "device": 0, "free_bytes": 1, "total_bytes": 9, "used_bytes": 8, "processes": [[7, 8]]},
            {"def": "communicator", "handle": 1, "rank": 0, "world_size": 1, "device": 0, "name": "c", "ns": t.T0}]
    events = t.Thread().events(7, api=[t.PUSH, t.MALLOC, t.TORCH_ALLOC, t.MALLOC, t.TORCH_FREE, t.FREE, t.POP], kind=[0, 1, 10, 1, 10, 11, 0],
                               duration_ns=3, address=[0, 4096, 8192, 1 << 20, 8192, 4096, 0], bytes=[0, 4096, 512, 1 << 21, 512, 0, 0],
                               result=[0, 0, 0, 2, 0, 0, 0], python=1, native=1, label=[1, 0, 0, 0, 0, 0, 1])
    return t.header() + t.defs(maps) + events + t.footer(), maps


def contents(bytes_):
    at, parts = 0, []
    while at < len(bytes_):
        _, _, kind, thread, _, _, _, size, *_ = t.INDEX.unpack_from(bytes_, at)
        content = zstandard.ZstdDecompressor().decompressobj().decompress(bytes_[at + t.INDEX.size:at + t.INDEX.size + size])
        parts.append(struct.pack("<BBI", kind, thread, len(content)) + content)
        at += t.INDEX.size + size
    return b"".join(parts)


def ring(maps):
    whole = t.ring("/x/rank-00000-1.msgpack.zst", b"".join(t.record(t.packed(one)) for one in maps))
    table, header, segment = 16 + 16 + 16 + 40 + 16 + 24 + 256 + 512, 64 << 10, 256 << 10
    inside = whole[header:header + 4096].rstrip(b"\0")
    return struct.pack("<HHH", table, 512, len(inside)) + whole[:table] + whole[table:table + 512] + inside + whole[segment:segment + 4096]


def members(bytes_):
    name = b"rank-00000-1.msgpack.zst"
    return struct.pack("<I", len(name)) + name + struct.pack("<Q", len(bytes_)) + bytes_ + struct.pack("<I", 0)


def main(folder, fuzzer=None, rounds="0"):
    whole, maps = trace()
    seeds = {"exports": [bytes([i]) + contents(whole) for i in range(FORMATS)], "redact": [contents(whole)], "reports": [contents(whole)], "rings": [ring(maps)],
             "packs": [members(whole)], "bundles": [BUNDLE], "settings": [SETTINGS], "suppressions": [SUPPRESSIONS], "baselines": [BASELINE]}
    for path in [] if fuzzer else glob.glob(os.path.join(GOLDEN, "*", "rank-*.msgpack.zst")):
        with open(path, "rb") as file:
            golden = contents(file.read()).replace(b"/lib", b"/lab")  # a library that is there is read anew by each run
        seeds["redact"].append(golden[:60000])
        seeds["reports"].append(golden[:60000])
        seeds["exports"] += [bytes([i]) + golden[:60000] for i in range(FORMATS)]
    folder = folder or tempfile.mkdtemp(prefix="stormlog-fuzz-")
    for target, each in seeds.items():
        paths = [t.write(os.path.join(folder, target, "seed%d" % i), seed) for i, seed in enumerate(each)]
        if not fuzzer:
            continue
        done = subprocess.run([fuzzer, str(int(rounds) // len(paths) // SLOW.get(target, 1)), *paths], env=dict(os.environ, FUZZ=target), timeout=250)
        print(target, done.returncode)
        if done.returncode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
