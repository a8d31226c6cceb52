#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real programs of PyTorch 2.6 in the torch rig: each recorded once, and really run under other capacities and settings.

    real_programs.py RIG [NAME...]

What stormlog-analyze fit says of the recording is held against the real runs: fits or not, peak reserved, retries.  scripts/torch-rig makes RIG.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import e2e

NAMES = ("gpt", "varlen", "accumulate", "streams", "cache", "checkpoint", "emptied", "cnn", "limited", "changed", "graphs", "pools", "captures")
SETTINGS = ("", "max_split_size_mb:32", "expandable_segments:True", "roundup_power2_divisions:4",
            "expandable_segments:True,max_split_size_mb:64")
MIB = 1 << 20


def command(rig, name, out):
    return [os.path.join(TOP, "tests/torch/enter"), os.path.join(rig, "root"), TOP, os.path.join(rig, "stubs"), os.path.join(rig, "work"),
            "--", "/usr/bin/python3.13", os.path.join(HERE, "programs.py"), name, out]


def environment(rig, vram, settings, **more):
    library = "/usr/lib/x86_64-linux-gnu/"
    path = ":".join((e2e.SIM, os.path.join(rig, "stubs"), library + "blas", library + "lapack"))
    found = dict(LD_LIBRARY_PATH=path, SIM_DEVICES="1", SIM_VRAM=str(vram), LANG="C.UTF-8", HOME="/nonexistent", **more)
    if settings:
        found["PYTORCH_CUDA_ALLOC_CONF"] = settings
    return found


def really(rig, name, vram, settings):
    out = os.path.join(rig, "work", f"{name}-real.json")
    if os.path.exists(out):
        os.remove(out)
    with tempfile.TemporaryDirectory(dir=os.path.join(rig, "work")) as sim:  # a machine of its own: the first process decides its size
        done = subprocess.run(command(rig, name, out), env={**os.environ, **environment(rig, vram, settings, SIM_DIR=sim)},
                              capture_output=True, text=True)
    if not os.path.exists(out):
        sys.exit(f"{name}: {done.stderr[-1000:]}")
    with open(out) as file:
        return json.load(file)


def fit(traces, *options):
    done = subprocess.run([os.path.join(e2e.BUILD, "analyzer/stormlog-analyze"), "fit", "--json", *options, traces], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def judge(rig, name):
    out = os.path.join(rig, "work", f"{name}.json")
    with e2e.Recording(*command(rig, name, out), timeout=900, **environment(rig, 64 << 30, "")) as recording:
        said = fit(recording.traces)
        if not said["reproduces"]:
            print(f"{name}: no verdict: {said['notes'][0]}", flush=True)
            return name != "graphs"
        smallest = next(item for item in said["smallest"] if item["settings"] == "")["always_from_bytes"]
        capacities = [smallest * share // 1000 // MIB * MIB for share in (930, 970, 990, 1000, 1100)]
        capacities[3] = smallest
        options = ["--capacity", ",".join(str(c) for c in capacities)]
        for text in SETTINGS:
            options += ["--settings", text]
        runs = {(run["capacity_bytes"], run["settings"]): run for run in fit(recording.traces, *options)["runs"]}
    wrong, peaks, refused, silent = [], 0, 0, 0
    for (capacity, settings), run in runs.items():
        real = really(rig, name, capacity, settings)
        refused += real["oom"]
        if run["fits"] is None:
            silent += 1
        elif run["fits"] == real["oom"]:
            wrong.append((capacity, settings, run["fits"], real))
        elif run["peak_reserved_bytes"] != real["peak_reserved"] or run["retries"] != real["retries"]:
            peaks += 1
            wrong.append((capacity, settings, run["peak_reserved_bytes"], run["retries"], real))
    print(f"{name}: reproduces {said['reproduces']}, {said['events']} events, {len(runs)} runs, {refused} out of memory, "
          f"{len(wrong) - peaks} wrong verdicts, {peaks} other peaks or retries, {silent} without a verdict", flush=True)
    for line in wrong[:6]:
        print("   ", *line)
    return len(wrong) + (not said["reproduces"]) + draw(rig, name, smallest)


def draw(rig, name, smallest):
    """Recorded where it runs out of memory: each piece of each segment is where PyTorch's own snapshot of that instant has it."""
    out = os.path.join(rig, "work", f"{name}-small.json")
    with e2e.Recording(*command(rig, name, out), timeout=900, **environment(rig, smallest * 95 // 100 // MIB * MIB, "")) as recording:
        ended = fit(recording.traces)["ended_by"]
    with open(out + ".layout") as file:
        real = sorted([size, pieces] for size, pieces in json.load(file))
    ours = sorted([segment["bytes"], [[piece["bytes"], piece["requested_bytes"] is None] for piece in segment["pieces"]]]
                  for one in ended for segment in one["segments"])
    print(f"{name}: {len(ended)} out of memory, {len(real)} segments, {'as' if ours == real else 'NOT as'} PyTorch's snapshot has them", flush=True)
    return ours != real


def main():
    rig, *names = sys.argv[1:]
    tempfile.tempdir = os.path.join(rig, "work")  # what the rig sees
    return any([judge(rig, name) for name in names or NAMES])


if __name__ == "__main__":
    sys.exit(main())
