#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Traces of earlier versions, which every later one must read: test_traces.py STORMLOG-ANALYZE [--update].

traces/CASE/ holds a run's files, with rings compressed (they are mostly empty), or its summary; and expected.json, the part of
report.json that does not depend on the machine.  --make CASE FOLDER makes a new case of a trace folder."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import zstandard
except ImportError:
    print("skipped: python3-zstandard is needed to open the rings")
    sys.exit(77)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "traces")
PROCESS = ("rank", "local_rank", "world_size", "pid", "trace", "status", "events", "lost_events", "unknown_frees",
           "damaged", "in_flight", "memory", "apis", "pytorch", "labels")
OOM = ("rank", "device", "timestamp_ns", "api", "code", "scope", "requested_bytes", "live_bytes", "device_free_bytes",
       "device_total_bytes", "recovered", "injected")


def rewrite(source, target, change):
    with open(source, "rb") as file:
        data = change(file.read())
    with open(target, "wb") as file:
        file.write(data)


def report(analyze, case):
    with tempfile.TemporaryDirectory(prefix="stormlog-golden-") as folder:
        for name in os.listdir(os.path.join(HERE, case)):
            path = os.path.join(HERE, case, name)
            if name.endswith(".ring.zst"):
                rewrite(path, os.path.join(folder, name[:-4]), zstandard.ZstdDecompressor().decompress)
            elif name != "expected.json":
                shutil.copy(path, folder)
        done = subprocess.run([analyze, "--json", folder], capture_output=True, check=True)
    found = json.loads(done.stdout)
    lines = sorted({"%(file)s:%(line)s %(function)s" % frame for leak in found["leaks"] for frame in leak["stack"] if frame["language"] == "python"})
    return {**({"lines": lines} if lines else {}),
            "processes": [{key: process[key] for key in PROCESS} for process in found["processes"]],
            "ooms": [{key: oom[key] for key in OOM} for oom in found["ooms"]],
            "leaks": sorted([leak["kind"], leak["device"], leak["bytes"], leak["blocks"]] for leak in found["leaks"])}


def make(case, folder):
    target = os.path.join(HERE, case)
    os.makedirs(target)
    for name in os.listdir(folder):
        if name.endswith(".ring"):
            rewrite(os.path.join(folder, name), os.path.join(target, name + ".zst"), zstandard.ZstdCompressor(19).compress)
        elif name.endswith(".msgpack.zst"):
            shutil.copy(os.path.join(folder, name), target)


def main():
    analyze = sys.argv[1]
    if "--make" in sys.argv:
        make(*sys.argv[sys.argv.index("--make") + 1:][:2])
    wrong = 0
    for case in sorted(os.listdir(HERE)):
        path, found = os.path.join(HERE, case, "expected.json"), report(analyze, case)
        if "--update" in sys.argv:
            with open(path, "w") as file:
                json.dump(found, file, indent=1, sort_keys=True)
                file.write("\n")
            continue
        with open(path) as file:
            expected = json.load(file)
        if found != expected:
            wrong += 1
            for key in expected:
                for ours, theirs in zip(found.get(key, []) + [None], expected[key] + [None]):
                    if ours != theirs:
                        print(case, key, "\n  is  ", json.dumps(ours, sort_keys=True), "\n  was ", json.dumps(theirs, sort_keys=True))
    return wrong != 0


sys.exit(main())
