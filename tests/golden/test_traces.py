#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Traces of earlier versions, which every later one must read: test_traces.py STORMLOG-ANALYZE [--update].

traces/CASE/ holds a run's files, with rings compressed (they are mostly empty), or its summary; and expected.json, the part of
report.json that does not depend on the machine.  --make CASE FOLDER makes a new case of a trace folder.  gpu/ holds what tests/gpu/run
recorded on an H200, and gpu/results.json what each program said of itself there."""
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

GOLDEN = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(GOLDEN, ".."))
import stacks  # noqa: E402
HERE, GPU = os.path.join(GOLDEN, "traces"), os.path.join(GOLDEN, "gpu")
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
        for name in os.listdir(case):
            if name != "expected.json":
                shutil.copy(os.path.join(case, name), folder)
        done = subprocess.run([analyze, "--json", folder], capture_output=True, check=True)
    found = stacks.named(json.loads(done.stdout))
    lines = sorted({"%(file)s:%(line)s %(function)s" % frame for leak in found["leaks"] for frame in leak["stack"] if frame["language"] == "python"})
    for process in found["processes"]:
        if len(process["labels"]) > 100:  # XLA has a range for each instruction
            process["labels"] = len(process["labels"])
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


def against_the_program(reports):
    """Where PyTorch's own statistics on the card were others than the report's, one line each."""
    with open(os.path.join(GPU, "results.json")) as file:
        results = json.load(file)
    for name, result in results.items():
        said = result.get("facts", {}).get("statistics") or {}  # JAX's have other names
        for process in reports.get(os.path.join(GPU, name), {"processes": []})["processes"]:
            for row in process["pytorch"]:
                for ours, theirs in (("peak_allocated_bytes", "allocated_bytes.all.peak"), ("peak_reserved_bytes", "reserved_bytes.all.peak"),
                                     ("allocated_bytes", "allocated_bytes.all.current"), ("reserved_bytes", "reserved_bytes.all.current")):
                    if row[ours] != said.get(theirs, row[ours]):
                        yield "%s: %s is %d, PyTorch said %d" % (name, ours, row[ours], said[theirs])


def too_great(reports):
    """Where tensors were more than the pool that they are in, one line each."""
    for case, found in reports.items():
        for process in found["processes"]:
            for row in process["pytorch"]:
                if (row["peak_allocated_bytes"] or 0) > (row["peak_reserved_bytes"] or 0):
                    yield "%s: %d bytes of tensors in a pool of %d" % (case, row["peak_allocated_bytes"], row["peak_reserved_bytes"])


def main():
    analyze = sys.argv[1]
    if "--make" in sys.argv:
        make(*sys.argv[sys.argv.index("--make") + 1:][:2])
    wrong, reports = 0, {}
    for case in sorted(os.path.join(root, case) for root in (HERE, GPU) for case in os.listdir(root) if not case.endswith(".json")):
        path, found = os.path.join(case, "expected.json"), report(analyze, case)
        reports[case] = found
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
    for difference in [*against_the_program(reports), *too_great(reports)]:
        wrong += 1
        print(difference)
    return wrong != 0


sys.exit(main())
