#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real programs of PyTorch 2.6 in the torch rig: each is recorded once (with SETTINGS), and then run under other capacities and settings.

    real_programs.py RIG [NAME[@SETTINGS]...]

What stormlog-analyze fit says of the recording is compared with the real runs: fits or not, peak reserved, retries.  scripts/torch-rig makes RIG.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import e2e

NAMES = ("gpt", "varlen", "accumulate", "streams", "cache", "checkpoint", "emptied", "cnn", "limited", "changed", "graphs", "pools", "captures",
         "lora", "reentrant", "workspaces", "beams", "swapped", "buckets", "experts",
         "gpt@expandable_segments:True", "varlen@max_split_size_mb:32")
SETTINGS = ("", "max_split_size_mb:32", "expandable_segments:True", "roundup_power2_divisions:4",
            "expandable_segments:True,max_split_size_mb:64")
MIB = 1 << 20


def command(rig, *arguments):
    return [os.path.join(TOP, "tests/torch/enter"), os.path.join(rig, "root"), TOP, os.path.join(rig, "stubs"), os.path.join(rig, "work"),
            "--", "/usr/bin/python3.13", os.path.join(HERE, "programs.py"), *arguments]


def environment(rig, **more):
    library = "/usr/lib/x86_64-linux-gnu/"
    path = ":".join((e2e.SIM, os.path.join(rig, "stubs"), library + "blas", library + "lapack"))
    return dict(LD_LIBRARY_PATH=path, SIM_DEVICES="1", LANG="C.UTF-8", HOME="/nonexistent", **more)


class Programs:
    """Runs programs without the agent, each in a process that has imported PyTorch already.  None: PyTorch crashed by a bug of its own."""

    def __init__(self, rig):
        self.process = subprocess.Popen(command(rig), env={**os.environ, **environment(rig)}, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def really(self, name, vram, settings):
        with tempfile.TemporaryDirectory() as folder:  # a new simulated machine, whose size its first process sets
            out = os.path.join(folder, "out.json")
            self.process.stdin.write(f"{name} {out} SIM_DIR={folder}/sim SIM_VRAM={vram} PYTORCH_CUDA_ALLOC_CONF={settings}\n")
            self.process.stdin.flush()
            if self.process.stdout.readline() != "0\n":
                return None
            with open(out) as file:
                return json.load(file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def recorded(rig, name, vram, settings):
    """Record a program; `out` in the recording's folder is what PyTorch itself reported."""
    with tempfile.TemporaryDirectory() as folder:
        with e2e.Recording(*command(rig, name, os.path.join(folder, "out")), timeout=900,
                           **environment(rig, SIM_VRAM=str(vram), PYTORCH_CUDA_ALLOC_CONF=settings)) as recording:
            recording.out = os.path.join(folder, "out")
            yield recording


def fit(traces, *options):
    done = subprocess.run([os.path.join(e2e.BUILD, "analyzer/stormlog-analyze"), "fit", "--json", *options, traces], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def figures(run):
    """Peak, retries, and how many requests are granted before the one that is not."""
    return run["peak_reserved_bytes"], run["retries"], run["failed_at"] is not None and run["failed_at"]["request"] - 1


def judge(rig, programs, asked):
    name, _, recorded_with = asked.partition("@")
    with recorded(rig, name, 64 << 30, recorded_with) as recording:
        said = fit(recording.traces)
        if not said["reproduces"]:
            print(f"{asked}: no verdict: {said['notes'][0]}", flush=True)
            return 1
        smallest = next(item for item in said["smallest"] if item["settings"] == "")["always_from_bytes"]
        capacities = [smallest * share // 1000 // MIB * MIB for share in (930, 970, 990, 1000, 1100)]
        capacities[3] = smallest
        options = ["--capacity", ",".join(str(c) for c in capacities)]
        for text in SETTINGS:
            options += ["--settings", text]
        runs = fit(recording.traces, *options)["runs"]
    found = {"wrong verdict": [], "other figures": [], "no verdict": []}
    refused = died = 0
    for run in runs:
        real = programs.really(name, run["capacity_bytes"], run["settings"])
        died += real is None
        refused += real is not None and real["oom"]
        kind = ("no verdict" if run["fits"] is None else "wrong verdict" if run["fits"] == (not real or real["oom"]) else
                "other figures" if real and (figures(run) != (real["peak_reserved"], real["retries"], real["oom"] and real["granted"]))
                else None)
        if kind:
            found[kind].append((run["capacity_bytes"], run["settings"], run["fits"], run["peak_reserved_bytes"], run["retries"], real))
    print(f"{asked}: {said['events']} events, {len(runs)} runs, {refused} out of memory, {died} died, "
          + ", ".join(f"{len(rows)} {kind}" for kind, rows in found.items()), flush=True)
    for kind, rows in found.items():
        for row in rows:
            print("   ", kind, *row)
    return len(found["wrong verdict"]) + len(found["other figures"]) + draw(rig, programs, name, smallest * 95 // 100 // MIB * MIB)


def draw(rig, programs, name, vram):
    """
    Record a program that runs out of memory.  Each piece of each segment must be where PyTorch's own snapshot of that instant has it, and
    exactly the settings that fit says would grant the request must grant it.
    """
    with recorded(rig, name, vram, "") as recording:
        ended = fit(recording.traces, *(word for text in SETTINGS for word in ("--settings", text)))["ended_by"]
        with open(recording.out + ".layout") as file:
            real = sorted([size, pieces] for size, pieces in json.load(file))
    if not ended:
        print(f"{name}: it is NOT said how it ended", flush=True)
        return 1
    ended, = ended
    ours = sorted([segment["bytes"], [[piece["bytes"], piece["requested_bytes"] is None] for piece in segment["pieces"]]]
                  for segment in ended["segments"])
    layout = not real or ours == real  # empty while a MemPool is in use: PyTorch's snapshot then has that pool alone
    granted = [text for text in SETTINGS if (run := programs.really(name, vram, text)) and run["granted"] >= ended["request"]]
    print(f"{name}: out of memory at {ended['request']}, {len(real)} segments, {'as' if layout else 'NOT as'} PyTorch's snapshot has them; "
          f"granted by {granted}, {'as' if granted == ended['granted_with'] else 'NOT as'} said", flush=True)
    return not layout or granted != ended["granted_with"]


def main():
    rig, *names = sys.argv[1:]
    tempfile.tempdir = os.path.join(rig, "work")  # a folder that is visible inside the rig
    with Programs(rig) as programs:
        return any([judge(rig, programs, name) for name in names or NAMES])


if __name__ == "__main__":
    sys.exit(main())
