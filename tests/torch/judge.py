#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run the cases in the rig under the agent and compare report.json and the trace with PyTorch and the simulator.

    judge.py RIG [CASE...]

Prints one line per case with what was compared, and below it every difference.  Exits 1 if there is any.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
import e2e
import stormlog_trace

SETTINGS = {
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "malloc_async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "no_caching": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
}
CASES = ("native", "oom", "retry", "backward_oom", "empty_cache", "expandable", "malloc_async", "no_caching", "roles",
         "kept_losses", "kept_hooks", "retained_graph", "kept_tracebacks", "growing_kv")
PASSES = {"native": 5, "oom": 2, "backward_oom": 2, "empty_cache": 2, "expandable": 7, "malloc_async": 5, "no_caching": 5}
# cudaMalloc calls that failed: (those cured by a retry, those on which PyTorch gave up)
FAILED = {"retry": (1, 0), "oom": (0, 2), "backward_oom": (1, 1), "expandable": (0, 2)}
ROW = {"allocated_bytes": "allocated_bytes.all.current", "reserved_bytes": "reserved_bytes.all.current",
       "peak_allocated_bytes": "allocated_bytes.all.peak", "peak_reserved_bytes": "reserved_bytes.all.peak",
       "live_blocks": "allocation.all.current", "ooms": "num_ooms"}


class Case:
    def __init__(self, rig, name):
        self.name, self.wrong, self.counts = name, [], {}
        root, library = os.path.join(rig, "root"), "/usr/lib/x86_64-linux-gnu/"
        path = ":".join((e2e.SIM, os.path.join(rig, "stubs"), library + "blas", library + "lapack"))
        out = os.path.join(rig, "work", name + ".json")
        self.run = e2e.Recording(
            os.path.join(HERE, "enter"), root, TOP, os.path.join(rig, "stubs"), os.path.join(rig, "work"), "--",
            "/usr/bin/python3.13", os.path.join(HERE, "cases.py"), name, out, timeout=900, LD_LIBRARY_PATH=path, SIM_DEVICES=1,
            LANG="C.UTF-8", HOME="/nonexistent", **SETTINGS.get(name, {}))
        with open(out) as file:
            self.said = json.load(file)
        self.report = self.run.report()
        self.process, = self.report["processes"]
        self.trace, = stormlog_trace.open_folder(self.run.traces)
        self.events = self.trace.events()
        self.history = self.said.get("trace")

    def differ(self, what, ours, theirs):
        if ours != theirs:
            self.wrong.append("%s: %s here, %s there" % (what, ours, theirs))

    def compare_driver(self):
        truth, = self.run.truth()
        self.wrong += e2e.differences(self.process, truth, e2e.rows_of(self.run.traces), threads=2)
        self.counts["calls"] = sum(row["calls"] for row in self.process["apis"])

    def compare_totals(self):
        stats = self.said["stats"]
        if self.history is None:
            self.differ("rows of PyTorch's blocks", self.process["pytorch"], [])
            if self.name == "malloc_async":
                pool, = (row for row in self.process["memory"] if row["kind"] == "pool")
                self.differ("pool memory in use", pool["live_bytes"], stats["allocated_bytes.all.current"])
            return
        row, = self.process["pytorch"]
        for ours, theirs in ROW.items():
            self.differ(ours, row[ours], stats[theirs])
        self.counts["totals"] = len(ROW)

    def named(self, *names):
        """[{column: value}] of the events whose verb or call is one of these, in order of time."""
        both = {i + 1: (self.trace.header["verbs"][hook[1]][0].lower(), hook[0]) for i, hook in enumerate(self.trace.hooks)}
        ids = {i: name for i, pair in both.items() for name in pair if name in names}
        rows = []
        for i, api in enumerate(self.events["api"]):
            if int(api) in ids:
                rows.append({column: int(self.events[column][i]) for column in self.events} | {"name": ids[int(api)]})
        return rows

    def compare_blocks(self):
        """Compares every block of the history, in order: address, size, totals after it."""
        ours = self.named("block_alloc", "block_free", "block_oom")
        names = {"alloc": "block_alloc", "free_requested": "block_free", "oom": "block_oom"}
        theirs = [entry for entry in self.history if entry["action"] in names]
        self.differ("block events", len(ours), len(theirs))
        allocated = 0
        for i, (event, entry) in enumerate(zip(ours, theirs)):
            if event["name"] == "block_oom" == names[entry["action"]]:
                continue
            if (event["name"], event["address"]) != (names[entry["action"]], entry["addr"]) or event["bytes"] < entry["size"] \
                    or event["bytes"] >= entry["size"] + (2 << 20):
                self.wrong.append("block event %d: %s %x %d here, %s there" % (
                    i, event["name"], event["address"], event["bytes"], {k: entry[k] for k in ("action", "addr", "size")}))
                break
            allocated += event["bytes"] if entry["action"] == "alloc" else -event["bytes"]
            self.differ("allocated after event %d" % i, event["extra"], allocated)
            self.compare_stack(i, event, entry)
        self.counts["blocks"] = len(theirs)

    def compare_stack(self, i, event, entry):
        if entry["action"] != "alloc":
            return
        frames = [(frame["name"], frame["filename"], frame["line"]) for frame in entry.get("frames", [])]
        mine = [(function.rpartition(".")[2], file, line) for function, file, line in self.trace.stack(event["python"])
                if line is not None]  # a frame without a line is CPython's own, around a constructor
        borrowed = self.trace.header["flags"].index("borrowed")
        if event["flags"] >> borrowed & 1:
            self.counts["borrowed"] = self.counts.get("borrowed", 0) + 1
            names = [function for function, _, _ in mine]
            if frames or "backward" not in names or "main" not in names:
                self.wrong.append("block event %d: borrowed %s, PyTorch has %s" % (i, names, frames))
        else:
            self.counts["stacks"] = self.counts.get("stacks", 0) + 1
            self.differ("stack of block event %d" % i, mine, [(name.rpartition(".")[2], file, line) for name, file, line in frames])

    def compare_segments(self):
        """Segments are the driver's blocks: both have the same addresses and sizes in the same order."""
        made = {"segment_alloc": "cudaMalloc", "segment_free": "cudaFree", "segment_map": "cuMemMap", "segment_unmap": "cuMemUnmap"}
        theirs = [entry for entry in self.history if entry["action"] in made]
        ours = [event for event in self.named(*made.values()) if event["result"] == 0 and event["address"]]
        for kind in ("segment_alloc", "segment_free"):
            self.differ(kind, [e["address"] for e in ours if e["name"] == made[kind]],
                        [e["addr"] for e in theirs if e["action"] == kind])
        sizes = [e["size"] for e in theirs if e["action"] == "segment_alloc"]
        self.differ("sizes of segments", [e["bytes"] for e in ours if e["name"] == "cudaMalloc"], sizes)
        mapped = {True: {}, False: {}}  # PyTorch records one range, but calls the driver for each page
        for entry in theirs:
            if entry["action"] == "segment_map":
                mapped[True].update(dict.fromkeys(range(entry["addr"], entry["addr"] + entry["size"], 2 << 20)))
        for event in ours:
            if event["name"] == "cuMemMap":
                mapped[False].update(dict.fromkeys(range(event["address"], event["address"] + event["bytes"], 2 << 20)))
        self.differ("pages PyTorch mapped and we have not seen", len(set(mapped[True]) - set(mapped[False])), 0)
        live = sum(row["live_bytes"] for row in self.process["memory"] if row["kind"] in ("device", "vmm"))
        self.differ("segments that live", live, sum(segment["total_size"] for segment in self.said["segments"]))
        self.counts["segments"] = len(theirs)

    def compare_ooms(self):
        cured, given_up = FAILED.get(self.name, (0, 0))
        ooms = self.report["ooms"]
        self.differ("recovered", [oom["recovered"] for oom in ooms].count(True), cured)
        self.differ("not recovered", len({oom["bundle"] for oom in ooms if oom["recovered"] is False}), given_up)
        self.differ("unknown outcome", [oom["recovered"] for oom in ooms].count(None), 0)
        for oom in ooms:  # also that of the backward pass, which fails on a thread without Python
            lines = [frame["function"] for frame in oom["stack"] if (frame["file"] or "").endswith("/cases.py")]
            self.differ("line of the out-of-memory", self.name in lines or "oom" in lines, True)
        self.counts["ooms"] = len(ooms)

    def compare_labels(self):
        entries = {row["label"]: row["entries"] for row in self.process["labels"]}
        wanted = PASSES.get(self.name)
        if wanted:
            self.differ("backward passes", entries.get("backward_#"), wanted)
        self.counts["labels"] = sum(entries.values())

    def compare_roles(self):
        """Compares roles with PyTorch's tensors. Gradients of activations may add to those of parameters."""
        wanted = self.said.get("roles")
        if not wanted:
            return
        found = {row["role"]: row["bytes_at_peak"] for row in self.process["roles"]}
        self.differ("parameters", found.get("parameters"), wanted["parameters"])
        self.differ("optimizer", found.get("optimizer"), wanted["optimizer"])
        self.differ("gradients there", found.get("gradients", 0) >= wanted["gradients"], True)
        self.differ("share of unknown below 10 %", found.get("unknown", 0) < 0.1 * sum(found.values()), True)
        self.counts["roles"] = len(found)

    def leaking_line(self):
        """The line of the case's function in cases.py that is marked LEAK, or None if none is."""
        function = None
        with open(os.path.join(HERE, "cases.py")) as file:
            for number, line in enumerate(file, 1):
                function = line[4:line.index("(")] if line.startswith("def ") else function
                if function == self.name and "# LEAK" in line:
                    return number
        return None

    def compare_leak(self):
        """The answer names the line of a leak, and has no LEAK if nothing leaks."""
        leaks = [verdict for verdict in self.report["answer"]["verdicts"] if verdict["word"] == "LEAK"]
        line = self.leaking_line()
        places = [(os.path.basename(one["file"] or ""), one["line"]) for leak in leaks for one in leak["lines"]]
        named = ("cases.py", line) in places if line else bool(leaks)
        self.differ("the leak", named, line is not None)
        self.counts["leaks"] = len(leaks)

    def judge(self):
        self.differ("status", self.process["status"], "completed")
        self.differ("lost events", self.process["lost_events"], 0)
        self.differ("unknown frees", self.process["unknown_frees"], 0)
        if self.history is not None:
            self.differ("version", self.process["capabilities"]["pytorch"], "c10 " + ".".join(self.said["torch"].split(".")[:2]))
        self.compare_driver()
        self.compare_totals()
        self.compare_ooms()
        self.compare_labels()
        self.compare_roles()
        self.compare_leak()
        if self.history is not None:
            self.compare_blocks()
            self.compare_segments()


def main():
    rig, *names = sys.argv[1:]
    failed = 0
    for name in names or CASES:
        case = Case(rig, name)
        case.judge()
        print("%-14s %-5s %s" % (name, "WRONG" if case.wrong else "ok",
                                 ", ".join("%s %d" % pair for pair in case.counts.items())), flush=True)
        for sentence in case.wrong[:12]:
            print("    " + sentence[:600])
        failed += bool(case.wrong)
        if not os.environ.get("TORCH_RIG_KEEP"):
            case.run.__exit__()
        else:
            print("    " + case.run.folder)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
