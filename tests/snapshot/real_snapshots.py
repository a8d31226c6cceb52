#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Snapshots that real PyTorch writes: real_snapshots.py RIG [CASE...] in the torch rig (scripts/torch-rig), real_snapshots.py PYTHON [CASE...] dry.

PYTHON is an interpreter with a PyTorch from PyPI (doc/dry-run.md).  The figures of each file are compared with torch.cuda.memory_stats() at the dump and with PyTorch's
own _memory_viz.py.  The capacity that `fit` tells is tried: the program must end well on it, and run out of memory 2 MiB below.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fit"))
import real_programs as real

ANALYZE = os.path.join(real.TOP, "build", "analyzer", "stormlog-analyze")
MIB, ALL = 1 << 20, {"max_entries": 1000000}
# Case: program, settings, arguments of _record_memory_history, devices.
CASES = {
    "stacks all": ("gpt", "", {**ALL, "stacks": "all"}, 1),
    "stacks python": ("gpt", "", {**ALL, "stacks": "python"}, 1),
    "max_entries 700": ("gpt", "", {"max_entries": 700, "stacks": "python"}, 1),
    "max_entries 300": ("varlen", "", {"max_entries": 300, "stacks": "all"}, 1),
    "expandable": ("varlen", "expandable_segments:True", {**ALL, "stacks": "python"}, 1),
    "expandable, max_entries": ("varlen", "expandable_segments:True", {"max_entries": 900, "stacks": "python"}, 1),
    "graphs": ("graphs", "", {**ALL, "stacks": "python"}, 1),
    "pools": ("pools", "", {**ALL, "stacks": "python"}, 1),
    "two devices": ("two", "", {**ALL, "stacks": "python"}, 2),
    "record_stream": ("streams", "", {**ALL, "stacks": "python"}, 1),
    "record_stream, max_entries": ("streams", "", {"max_entries": 500, "stacks": "python"}, 1),
    "out of memory": ("refused", "", {**ALL, "stacks": "python"}, 1),
    "context None": ("gpt", "", {**ALL, "context": None}, 1),
    "rounded sizes": ("varlen", "roundup_power2_divisions:4", {**ALL, "stacks": "python"}, 1),
    "split limit": ("varlen", "max_split_size_mb:32", {"max_entries": 2000, "stacks": "python"}, 1),
    "emptied": ("emptied", "", {**ALL, "stacks": "python"}, 1),
}


class Dry:
    """The programs with a PyTorch from PyPI over the dry device; as real.Programs, and with snapshots."""

    def __init__(self, python):
        words = [os.path.join(real.TOP, "build/agent/stormlog-run"), "--dry=h200", "-o", tempfile.mkdtemp(), "--", "env", "-u", "LD_PRELOAD", python, "-c"]
        said = subprocess.run([*words, "import os, torch; print(os.environ['STORMLOG_DRY_CARD'].replace(chr(10), ';'), torch.__version__.split('+')[0], sep=chr(10))"], capture_output=True, text=True)
        card, self.release = said.stdout.splitlines()[-2:]
        self.card = [line for line in card.split(";") if not line.startswith(("name", "memory"))]
        code = f"import sys, os; print(os.environ['STORMLOG_DRY'], flush=True); sys.argv = ['programs']; exec(open({os.path.join(real.HERE, 'programs.py')!r}).read())"
        self.process = subprocess.Popen([*words, code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.folder = self.process.stdout.readline().strip()

    def ask(self, name, out, vram, **environment):
        """False: the program died."""
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(self.folder + "/lib", folder + "/lib")
            card = "\\n".join([*self.card, f"memory={vram}"])
            words = [f"{key}={value}" for key, value in {**environment, "STORMLOG_DRY": folder}.items()]
            self.process.stdin.write(f"{name} {out} STORMLOG_DRY_CARD={card} " + " ".join(words) + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline() == "0\n"

    def really(self, name, vram, settings):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out.json")
            if not self.ask(name, out, vram, PYTORCH_CUDA_ALLOC_CONF=settings):
                return None
            with open(out) as file:
                return json.load(file)

    def dump(self, name, settings, history, devices, folder):
        path = os.path.join(folder, "s.pickle")
        if not self.ask(name, os.path.join(folder, "out"), 64 << 30, PYTORCH_CUDA_ALLOC_CONF=settings, HISTORY=json.dumps(history, separators=(",", ":")), SNAPSHOT=path,
                        STORMLOG_DRY_DEVICES=devices, TORCH_SYMBOLIZE_MODE="dladdr"):
            return path, None
        with open(path + ".stats") as file:
            return path, json.load(file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


class Rig(real.Programs):
    release = "2.6.0"

    def __init__(self, rig):
        super().__init__(rig)
        self.rig = rig

    def dump(self, name, settings, history, devices, folder):
        path = os.path.join(folder, "s.pickle")
        done = subprocess.run(real.command(self.rig, name, os.path.join(folder, "out"), path), capture_output=True, text=True,
                              env={**os.environ, **real.environment(self.rig, SIM_VRAM=str(64 << 30), SIM_DIR=os.path.join(folder, "sim"), HISTORY=json.dumps(history), TORCH_SYMBOLIZE_MODE="dladdr",  # the rig has no addr2line
                                                                    PYTORCH_CUDA_ALLOC_CONF=settings), "SIM_DEVICES": str(devices)})
        if done.returncode:
            sys.exit(f"{name}: {done.stderr[-2000:]}")
        with open(path + ".stats") as file:
            return path, json.load(file)


def of(rows, device):
    return next(row for row in rows if row["device"] == device)


def compare(path, stats, whole):
    """Differences of figures.  A block that other streams still use is "active" in memory_stats(), and no more "allocated"."""
    done = subprocess.run([ANALYZE, "report", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return [done.stderr.strip()]
    process, = json.loads(done.stdout)["processes"]
    wrong = []
    for device, one in enumerate(stats):
        if not one["reserved_bytes.all.peak"]:
            continue
        row, facts = of(process["pytorch"], device), of(process["snapshot"]["devices"], device)
        rows = {"reserved_bytes": "reserved_bytes.all.current", "allocated_bytes": "active_bytes.all.current", "live_blocks": "active.all.current"}
        if whole:
            rows.update(peak_reserved_bytes="reserved_bytes.all.peak", peak_allocated_bytes="active_bytes.all.peak")
            wrong += [f"peak requested {facts['requested_peak_bytes']}, {one['requested_bytes.all.peak']}"] * (
                facts["requested_peak_bytes"] != one["requested_bytes.all.peak"])
        drawn, active = one["viz"]
        wrong += [f"_memory_viz.py draws {drawn} and {active} in blocks"] * (drawn != row["reserved_bytes"] or active != row["allocated_bytes"])
        wrong += [f"device {device} {ours}: {row[ours]} here, {one[theirs]} there" for ours, theirs in rows.items() if row[ours] != one[theirs]]
    return wrong


def try_out(programs, path, name, settings, stats, whole):
    """What a window tells is what the program needs at least: there it is tried below only."""
    done = subprocess.run([ANALYZE, "fit", "--json", "--torch", ".".join(programs.release.split(".")[:2]), "--settings", settings, path], capture_output=True, text=True)
    said = json.loads(done.stdout)
    if not said["reproduces"]:
        return "no verdict: " + (said["notes"] or [""])[0], []
    smallest, = (one for one in said["smallest"] if one["device"] == 0)
    low, high = smallest["least_bytes"], smallest["always_from_bytes"]
    if high is None:
        return "no capacity is told", []
    beside = stats[0]["beside"]
    wrong = []
    fits = programs.really(name, high + beside, settings) if whole else {"oom": False}
    if not fits or fits["oom"]:
        wrong.append(f"fit says {high}, and it runs out of memory there")
    below = programs.really(name, low + beside - 2 * MIB, settings)
    if below and not below["oom"]:
        wrong.append(f"fit says at least {low}, and it does with 2 MiB less")
    return f"{low / MIB:.0f} MiB" if low == high else f"{low / MIB:.0f} to {high / MIB:.0f} MiB", wrong


def main():
    where, *names = sys.argv[1:]
    if os.path.isdir(where):
        tempfile.tempdir = os.path.join(where, "work")
    failed = 0
    with (Rig if os.path.isdir(where) else Dry)(where) as programs:
        print(f"PyTorch {programs.release}\n\n| case | events | figures | smallest capacity | tried |\n|---|---|---|---|---|", flush=True)
        for case in names or CASES:
            name, settings, history, devices = CASES[case]
            with tempfile.TemporaryDirectory() as folder:
                path, stats = programs.dump(name, settings, history, devices, folder)
                if not stats:
                    print(f"| {case} | 0 | this release has no such thing | | |", flush=True)
                    continue
                whole = history.get("max_entries") == ALL["max_entries"] and name != "refused"
                wrong = compare(path, stats, whole)
                events = of(json.loads(subprocess.run([ANALYZE, "report", "--json", path], capture_output=True, text=True).stdout)["processes"][0]["snapshot"]["devices"], 0)["events"]
                told, off = try_out(programs, path, name, settings, stats, whole) if devices == 1 and name != "refused" else ("", [])
                if os.environ.get("KEEP"):
                    shutil.copy(path, os.path.join(os.environ["KEEP"], f"{programs.release}-{case}.pickle".replace(" ", "-")))
            print(f"| {case} | {events} | {'equal' if not wrong else '; '.join(wrong)} | {told} | {'right' if told and not off else '; '.join(off)} |", flush=True)
            failed += bool(wrong or off)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
