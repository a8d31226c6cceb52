# SPDX-License-Identifier: MIT
"""Run a program under the agent on the simulated GPU, analyse, and hold report.json against the simulator's journal."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sim"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import journal

BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build"))
PRELOAD = os.path.join(BUILD, "agent", "libstormlog_preload.so")
ANALYZE = os.path.join(BUILD, "analyzer", "stormlog-analyze")
RUN = os.path.join(BUILD, "agent", "stormlog-run")
SIM = os.path.join(BUILD, "tests", "sim")
APPS = os.path.join(BUILD, "tests", "apps")
EXACT = ("allocations", "frees", "failed_allocations", "implicit_frees", "allocated_bytes", "live_blocks", "live_bytes")
SETTINGS = re.compile(r"STORMLOG_|SIM_|SLURM_|OMPI_|PMI|TORCHELASTIC|(LOCAL_)?RANK$|WORLD_SIZE$|LD_PRELOAD$")


class Recording:
    """One run in a folder of its own: folder, process, traces/, journal/."""

    def __init__(self, *argv, preload=True, code=0, timeout=120, launcher=None, cwd=None, **environment):
        self.folder = tempfile.mkdtemp(prefix="stormlog-e2e-")
        self.traces = os.path.join(self.folder, "traces")
        self.journals = os.path.join(self.folder, "journal")
        os.mkdir(self.journals)
        clean = {name: value for name, value in os.environ.items() if not SETTINGS.match(name)}
        clean.update(LD_LIBRARY_PATH=SIM, SIM_JOURNAL=self.journals, SIM_DIR=os.path.join(self.folder, "sim"),
                     SIM_DEVICES="2", STORMLOG_DIR=self.traces)
        if preload and not launcher:
            clean["LD_PRELOAD"] = PRELOAD
        clean.update({name: str(value) for name, value in environment.items()})
        clean.pop("STORMLOG_BUILD", None)
        argv = [str(arg) for arg in argv]
        if launcher:
            argv = [RUN, *launcher, "--", *argv]
        self.done = subprocess.run(argv, env=clean, capture_output=True, timeout=timeout, cwd=cwd or self.folder)
        if code is not None and self.done.returncode != code:
            raise AssertionError("%s: exit %s, not %s\n%s%s" % (argv, self.done.returncode, code,
                                                                self.done.stdout.decode(), self.done.stderr.decode()))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        shutil.rmtree(self.folder, ignore_errors=True)

    def files(self):
        return sorted(os.listdir(self.traces)) if os.path.isdir(self.traces) else []

    def report(self, *options, code=0):
        done = subprocess.run([ANALYZE, "--json", *options, self.traces], capture_output=True, timeout=300)
        if done.returncode != code:
            raise AssertionError("stormlog-analyze: exit %s\n%s" % (done.returncode, done.stderr.decode()))
        return json.loads(done.stdout)

    def truth(self):
        """The journal's processes that made a call which the agent records."""
        return [process for process in journal.load(self.journals) if process.apis or process.in_flight]


def recorded_names(traces):
    """Plain names of the rows whose calls are events, from the hook table that travels in the trace."""
    import stormlog_trace
    names = set()
    for name in os.listdir(traces):
        if name.endswith(".msgpack.zst"):
            header = stormlog_trace.Trace(os.path.join(traces, name)).header
            names.update(journal.plain(hook[0]) for hook in header["hooks"] if header["families"][hook[3]][0] != "nvml")
    return names


def differences(process, truth, threads=1, recorded=None):
    """What report.json says of a process against what the simulator did, as a list of sentences; empty is right."""
    wrong = []
    ours = {(row["kind"], row["device"]): row for row in process["memory"]}
    theirs = {key: row for key, row in truth.memory.items()}
    for key in sorted(set(ours) | set(theirs), key=str):
        if key not in ours or key not in theirs:
            wrong.append("%s %s is %s" % (*key, "missing in the report" if key in theirs else "not in the journal: %s" % ours[key]))
            continue
        for name in EXACT + (("peak_bytes",) if threads == 1 else ()):
            if ours[key][name] != getattr(theirs[key], name):
                wrong.append("%s %s: %s is %s, was %s" % (*key, name, ours[key][name], getattr(theirs[key], name)))
        if threads > 1 and ours[key]["peak_bytes"] > theirs[key].peak_bytes:
            wrong.append("%s %s: peak above the journal's" % key)
    apis = {row["api"]: row for row in process["apis"]}
    for name, row in apis.items():
        calls, failures = (truth.apis[name].calls, truth.apis[name].failures) if name in truth.apis else (0, 0)
        if (row["calls"], row["failures"]) != (calls, failures):
            wrong.append("%s: %d calls, %d failed; were %d, %d" % (name, row["calls"], row["failures"], calls, failures))
    for name in truth.apis:
        if recorded and name in recorded and name not in apis:
            wrong.append("%s: %d calls, none recorded" % (name, truth.apis[name].calls))
    if truth.errors:
        wrong.append("the journal itself: %s" % truth.errors)
    return wrong
