#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Python Stormlog from PyPI opens what we write without refusal or warning, and computes our numbers."""
import ast
import importlib
import inspect
import json
import math
import os
import re
import shutil
import subprocess
import sys
import unittest

import real
from e2e import ANALYZE, APPS, BUILD, HERE, Ranks, Recording, script

ROOT = os.path.join(HERE, "..", "..")
GOLDEN = os.path.join(ROOT, "tests", "golden", "stormlog")
OPEN = os.path.join(ROOT, "tests", "real", "programs", "open_stormlog.py")
PYTHON = real.python_of("stormlog")
ANSWERS = ("gap_analysis", "collective_attribution", "cross_rank_analysis")
PROSE = {"description", "remediation", "notes"}


def same(ours, theirs):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return set(ours) - PROSE == set(theirs) - PROSE and all(same(ours[k], theirs[k]) for k in set(ours) - PROSE)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, (int, float)) and isinstance(theirs, (int, float)):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return ours == theirs


class Names(unittest.TestCase):
    """stormlog_native has each public name of Python Stormlog, or doc/from-upstream.md mentions it."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, os.path.join(ROOT, "python"))
        cls.package = subprocess.run([PYTHON, "-c", "import stormlog; print(stormlog.__path__[0])"], capture_output=True, text=True, check=True).stdout.strip()
        with open(os.path.join(ROOT, "doc", "from-upstream.md")) as file:
            cls.page = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", file.read()))))

    def missing(self, what, wanted):
        prefixes = tuple(word for word in self.page if word.endswith("_"))  # the page writes `history_retained_*` for several names
        self.assertEqual([], sorted(name for name, there in wanted if not there and name not in self.page and not name.startswith(prefixes)), what)

    def test_what_it_exports(self):
        for folder, ours in (("", "stormlog_native"), ("tensorflow", "stormlog_native.tensorflow")):
            with open(os.path.join(self.package, folder, "__init__.py")) as file:
                names = ast.literal_eval(re.search(r"__all__ = (\[.*?\])", file.read(), re.S)[1])
            self.assertGreater(len(names), 5)
            module = importlib.import_module(ours)
            self.missing(ours, [(name, hasattr(module, name)) for name in names if not name.startswith("_")])

    def test_methods_fields_and_parameters(self):
        import stormlog_native.cpu_profiler as cpu
        import stormlog_native.tensorflow as tensorflow
        import stormlog_native.tracker as tracker
        native = importlib.import_module("stormlog_native")
        event = tracker.TrackingEvent({name: None for name in importlib.import_module("stormlog_native.telemetry").FIELDS}, timestamp_ns=0, metadata={})
        pairs = {"profiler.py": {"GPUMemoryProfiler": native.GPUMemoryProfiler(), "MemorySnapshot": native.MemorySnapshot, "ProfileResult": native.ProfileResult},
                 "tracker.py": {"MemoryTracker": native.MemoryTracker(), "MemoryWatchdog": native.MemoryWatchdog, "TrackingEvent": event},
                 "cpu_profiler.py": {"CPUMemoryProfiler": cpu.CPUMemoryProfiler(), "CPUMemoryTracker": cpu.CPUMemoryTracker(),
                                     "CPUMemorySnapshot": cpu.CPUMemorySnapshot, "CPUProfileResult": cpu.CPUProfileResult},
                 "tensorflow/profiler.py": {"TFMemoryProfiler": tensorflow.TFMemoryProfiler(), "ProfileResult": tensorflow.TFResults(
                     dict.fromkeys(("start_time", "end_time", "peak_memory_mb", "min_memory_mb", "total_allocations", "total_deallocations",
                                    "snapshots", "function_profiles"), 0.0), function_calls=[]), "MemorySnapshot": native.MemorySnapshot},
                 "tensorflow/context_profiler.py": {"TensorFlowProfiler": tensorflow.TensorFlowProfiler(), "ProfiledLayer": tensorflow.ProfiledLayer},
                 "tensorflow/tracker.py": {"MemoryTracker": tensorflow.TensorFlowMemoryTracker, "TrackingResult": tensorflow.TrackingResult}}
        for path, classes in pairs.items():
            with open(os.path.join(self.package, path)) as file:
                theirs = {one.name: one for one in ast.parse(file.read()).body if isinstance(one, ast.ClassDef)}
            for name, ours in classes.items():
                self.members("%s of %s" % (name, path), theirs[name], ours)

    def members(self, what, theirs, ours):
        kind = ours if inspect.isclass(ours) else type(ours)
        fields = getattr(kind, "__dataclass_fields__", {})
        for one in theirs.body:
            if isinstance(one, ast.AnnAssign):
                self.missing(what, [(one.target.id, one.target.id in fields or hasattr(ours, one.target.id))])
            if isinstance(one, ast.FunctionDef) and (one.name == "__init__" or not one.name.startswith("_")):
                self.missing(what, [(one.name, hasattr(ours, one.name))])
                function = getattr(kind, one.name, None)
                if not callable(function):
                    continue
                taken = inspect.signature(function).parameters
                self.missing("%s.%s" % (what, one.name), [(argument.arg, argument.arg in taken or any(
                    parameter.kind == parameter.VAR_KEYWORD for parameter in taken.values())) for argument in one.args.args + one.args.kwonlyargs])


class Stormlog(unittest.TestCase):
    maxDiff = 4000

    def opened(self, folder):
        done = subprocess.run([PYTHON, "-B", OPEN, folder], capture_output=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr.decode()[-3000:])
        seen = json.loads(done.stdout)
        self.assertEqual(seen["problems"], [])
        return seen

    def analysed(self, traces):
        """Python Stormlog's numbers for the analysis of `traces`, which must equal report.json's."""
        subprocess.run([ANALYZE, "-q", traces], check=True, timeout=600)
        folder = os.path.join(traces, "analysis")
        with open(os.path.join(folder, "report.json")) as file:
            report = json.load(file)
        seen = self.opened(folder)
        self.assertEqual(seen["runs"], [report["run"]["id"]])
        self.assertEqual({os.path.basename(path) for kind, path in seen["attachments"] if kind == "report"},
                         {"report.json", "report.html", "summary.md"})
        self.assertEqual({os.path.basename(path) for kind, path in seen["attachments"] if kind == "native_trace"},
                         {process["trace"] for process in report["processes"]})
        self.assertEqual(set(seen["sessions"]), {process["session_id"] for process in report["processes"]})
        self.assertEqual(seen["bundles"], len({oom["bundle"] for oom in report["ooms"]} - {None}))
        for session, theirs in seen["sessions"].items():
            for answer in ANSWERS:
                ours = report["telemetry"]["per_session"][session][answer]
                self.assertTrue(same(ours, theirs[answer]), "%s of %s: %s, not %s" % (answer, session, ours, theirs[answer]))
        return report, seen

    def test_the_demo(self):
        examples = os.path.join(ROOT, "doc", "examples")
        with Recording("sh", "-c", "%s; exec python3 %s" % (os.path.join(BUILD, "doc", "examples", "solver"), os.path.join(examples, "train.py")),
                       launcher=("--tag", "demo"), code=1, SIM_VRAM="8G", SIM_DEVICES="1", EXAMPLES=os.path.join(BUILD, "doc", "examples")) as run:
            report, seen = self.analysed(run.traces)
        self.assertEqual((len(seen["sessions"]), seen["bundles"]), (2, 2))

    def test_an_error_and_a_kill(self):
        with Recording(os.path.join(APPS, "oom"), "retry") as run:
            report, seen = self.analysed(run.traces)
            self.assertEqual(seen["bundles"], len({oom["bundle"] for oom in report["ooms"]}))
        with Recording(os.path.join(APPS, "kill_me"), kill_when=lambda run: run.process.stdout.readline(), code=None) as run:
            report, seen = self.analysed(run.traces)
            self.assertEqual([session["status"] for session in seen["sessions"].values()], ["interrupted"])

    def test_tables_of_a_report_are_data_frames(self):
        """Report.frame, with the pandas that Python Stormlog brings: a row for each row of report.json, with rank and pid."""
        tables = ("memory", "apis", "libraries")
        show = ("import json, sys; sys.path.insert(0, sys.argv[1]); import stormlog_native\n"
                "report = stormlog_native.report(sys.argv[2])\n"
                "print(json.dumps([json.loads(report.frame(table).to_json(orient='records')) for table in sys.argv[3:]]))")
        with Recording(os.path.join(APPS, "oom"), "retry") as run:
            report, _ = self.analysed(run.traces)
            done = subprocess.run([PYTHON, "-B", "-c", show, os.path.join(ROOT, "python"), run.traces, *tables, "ooms"], capture_output=True, text=True,
                                  timeout=600, env={**os.environ, "STORMLOG_BIN": os.path.dirname(ANALYZE)})
        self.assertEqual(done.returncode, 0, done.stderr)
        *frames, ooms = json.loads(done.stdout)
        (process,) = report["processes"]
        for table, frame in zip(tables, frames):
            self.assertTrue(frame, table)
            self.assertEqual(frame, [dict(row, rank=process["rank"], pid=process["pid"]) for row in process[table]], table)
        self.assertEqual([oom["requested_bytes"] for oom in ooms], [oom["requested_bytes"] for oom in report["ooms"]])

    def test_hidden_memory_that_grows_is_a_gap_to_both(self):
        with script("alloc=100", *["module", "samples=1"] * 8, SIM_VRAM="8G", SIM_MODULE_BYTES="128M", CUDA_MODULE_LOADING="EAGER") as run:
            report, seen = self.analysed(run.traces)
        found = [finding["classification"] for session in seen["sessions"].values() for finding in session["gap_analysis"]]
        self.assertIn("persistent_drift", found)

    def test_eight_ranks_and_the_session_they_share(self):
        def steps(rank):
            return ["device=%d" % rank, "alloc=100", "samples=2", "meet=there", "alloc=%d" % (900 + rank), "samples=2", "meet=done", "free"]
        with Ranks(8, steps) as ranks:
            report, seen = self.analysed(ranks.traces)
            self.assertEqual(len(seen["sessions"]), 8)
            merged = os.path.join(ranks.run.folder, "merged")
            subprocess.run([ANALYZE, "merge", ranks.traces, "-o", merged], check=True, timeout=600)
            (theirs,) = self.opened(merged)["sessions"].values()
        self.assertEqual(theirs["cross_rank_analysis"]["participating_ranks"], list(range(8)))
        self.assertTrue(theirs["cross_rank_analysis"]["first_cause_suspects"])
        self.assertTrue(same(report["cross_rank"], theirs["cross_rank_analysis"]),
                        "%s, not %s" % (report["cross_rank"], theirs["cross_rank_analysis"]))

    def test_its_own_files_are_still_its_own_with_our_report_beside_them(self):
        with Recording("true", preload=False) as run:
            for name in ("completed", "two_sessions"):
                folder = os.path.join(run.folder, name)
                shutil.copytree(os.path.join(GOLDEN, "sinks", name), folder)
                before = self.opened(folder)
                subprocess.run([ANALYZE, "-q", folder], check=True, timeout=600)
                self.assertTrue(os.path.exists(os.path.join(folder, "analysis", "report.json")))
                self.assertEqual(self.opened(folder), before)

    def test_imported_ranks_share_a_session(self):
        """A session of four ranks, with one file for each rank, as separate processes write them."""
        with open(os.path.join(GOLDEN, "cases", "rank4_missing_rank.jsonl")) as file, Recording("true", preload=False) as run:
            events, inputs = [json.loads(line) for line in file], os.path.join(run.folder, "ranks")
            os.mkdir(inputs)
            for rank in sorted({event["rank"] for event in events}):
                with open(os.path.join(inputs, "rank%d.jsonl" % rank), "w") as out:
                    out.writelines(json.dumps(dict(event, session_id="rank-%d" % rank)) + "\n" for event in events if event["rank"] == rank)
            merged = os.path.join(run.folder, "merged")
            subprocess.run([ANALYZE, "merge", inputs, "-o", merged], check=True, timeout=600)
            (theirs,) = self.opened(merged)["sessions"].values()
            report = json.loads(subprocess.run([ANALYZE, "--json", inputs], check=True, timeout=600, capture_output=True).stdout)
        self.assertEqual(theirs["events"], len(events))
        self.assertTrue(theirs["cross_rank_analysis"]["first_cause_suspects"])
        self.assertTrue(same(report["cross_rank"], theirs["cross_rank_analysis"]),
                        "%s, not %s" % (report["cross_rank"], theirs["cross_rank_analysis"]))


if __name__ == "__main__":
    if not PYTHON:
        print("skipped: PyPI does not give Python Stormlog here")
        sys.exit(77)
    unittest.main()
