# SPDX-License-Identifier: MIT
"""Run a program under the agent on the simulated GPU, analyse, and compare report.json with the simulator's journal."""
import base64
import gzip
import io
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sim"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
sys.path.append(os.path.join(HERE, ".."))
import journal
import stacks
try:
    import msgpack
    import numpy
    import stormlog_trace
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)

BUILD = os.environ.get("STORMLOG_BUILD", os.path.join(HERE, "..", "..", "build"))
PRELOAD = os.path.join(BUILD, "agent", "libstormlog_preload.so")
ANALYZE = os.path.join(BUILD, "analyzer", "stormlog-analyze")
ATTACH = os.path.join(BUILD, "tools", "attach", "stormlog-attach")
RUN = os.path.join(BUILD, "agent", "stormlog-run")
SIM = os.path.join(BUILD, "tests", "sim")
APPS = os.path.join(BUILD, "tests", "apps")
SCRIPT = os.path.join(HERE, "..", "apps", "script.py")
EXACT = ("allocations", "frees", "failed_allocations", "implicit_frees", "allocated_bytes", "live_blocks", "live_bytes")
COLUMNS = {1: "u1", 2: "<u2", 3: "<u4", 4: "<f4", 5: "<f8"}  # of the page's data, doc/report-page.md
# Appended to a program with `ctypes`: waits for two more samples, of which the second began after what the program did; at most a minute.
SAMPLED = """
import time
asked = ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked
until, deadline = asked() + 2, time.monotonic() + 60
while asked() < until and time.monotonic() < deadline:
    time.sleep(0.005)
"""
SETTINGS = re.compile(r"STORMLOG_|SIM_|SLURM_|OMPI_|PMI|TORCHELASTIC|(LOCAL_)?RANK$|WORLD_SIZE$|LD_PRELOAD$|GITHUB_|CI_|GIT_")


class Recording:
    """One run in a folder of its own: folder, process, traces/, journal/."""

    def __init__(self, *argv, preload=True, code=0, timeout=600, launcher=None, cwd=None,
                 kill_when=None, during=None, **environment):
        """kill_when(recording) returns at the moment when `process` is to be killed; during(recording) runs beside it."""
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
        if kill_when:
            self.process = subprocess.Popen(argv, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
            kill_when(self)
            self.process.kill()
            said = self.process.communicate()
            self.done = subprocess.CompletedProcess(argv, self.process.returncode, *said)
        elif during:
            self.process = subprocess.Popen(argv, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.folder)
            during(self)
            said = self.process.communicate(timeout=timeout)
            self.done = subprocess.CompletedProcess(argv, self.process.returncode, *said)
        else:
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
        done = subprocess.run([ANALYZE, "--json", *options, self.traces], capture_output=True, timeout=600)
        if done.returncode != code:
            raise AssertionError("stormlog-analyze: exit %s\n%s" % (done.returncode, done.stderr.decode()))
        return stacks.named(json.loads(done.stdout))

    def page(self, read=None):
        """The data of report.html, after report() or another run of the analyzer has written it.  Its commands end with the path that was read, as report.json's do not."""
        with open(os.path.join(self.traces, "analysis", "report.html")) as file:
            found = re.search(r'type="text/plain">([^<]*)<', file.read())
        page = msgpack.unpackb(gzip.decompress(base64.b64decode(found[1])), strict_map_key=False,
                               ext_hook=lambda code, data: numpy.frombuffer(data, COLUMNS[code]))
        answer = page.get("answer")
        for verdict in answer["verdicts"] if answer else []:
            for command in verdict.get("next", []):
                command["command"] = command["command"].removesuffix(" " + os.path.realpath(read or self.traces))
        return {**page, "answer": answer}

    def sinks(self):
        """All events of analysis/telemetry, by session in the order of time."""
        events = []
        for folder, _, names in os.walk(os.path.join(self.traces, "analysis", "telemetry")):
            for name in sorted(names):
                if name.endswith(".jsonl"):
                    with open(os.path.join(folder, name)) as file:
                        events += map(json.loads, file)
        return events

    def truth(self):
        """The journal's processes that made a call which the agent records."""
        return [process for process in journal.load(self.journals) if process.apis or process.in_flight]


def equal_to_journal(run, threads=1, status="completed"):
    """Differences between report and journal of all processes of a run, as sentences; and the report."""
    report, truth, rows, wrong = run.report(), run.truth(), rows_of(run.traces), []
    left = sorted(report["processes"], key=lambda p: (len(p["trace"]), p["trace"]))
    if len(left) != len(truth):
        wrong.append("%d processes in the report, %d in the journal" % (len(left), len(truth)))
    for real in truth:
        mine = next((p for p in left if p["pid"] == real.pid), None)
        if not mine:
            wrong.append("process %d is not in the report" % real.pid)
            continue
        left.remove(mine)
        wrong += differences(mine, real, rows, threads)
        ended = "failed" if status == "completed" and mine["exit_status"] else status
        if (mine["status"], mine["lost_events"], mine["damaged"]) != (ended, 0, False):
            wrong.append("%(status)s, %(lost_events)d lost, damaged %(damaged)s" % mine)
    return wrong, report


def script(*steps, **environment):
    """A recording of tests/apps/script.py, which does what its arguments say."""
    return Recording("python3", SCRIPT, *steps, APPS=APPS, **environment)


class Ranks:
    """Several ranks of one run at once; steps(rank) gives a rank's arguments.  numbered=False: no launcher tells the processes their rank."""

    def __init__(self, count, steps, devices=None, recorded=None, numbered=True, **environment):
        self.run = Recording("true", preload=False)
        self.traces = self.run.traces
        children = []
        for rank in range(count):
            env = {name: value for name, value in os.environ.items() if not SETTINGS.match(name)}
            env.update(LD_LIBRARY_PATH=SIM, SIM_DIR=os.path.join(self.run.folder, "sim"), SIM_DEVICES=str(devices or count),
                       STORMLOG_DIR=self.traces, STORMLOG_RUN_ID="ranks", LD_PRELOAD=PRELOAD, APPS=APPS, RANK=str(rank),
                       LOCAL_RANK=str(rank), WORLD_SIZE=str(count), MEET=self.run.folder, MEMBER=str(rank), **environment)
            env.pop("STORMLOG_BUILD", None)
            if not numbered:
                del env["RANK"], env["LOCAL_RANK"]
            if recorded is not None and rank not in recorded:
                env.pop("LD_PRELOAD")
            children.append(subprocess.Popen(["python3", SCRIPT, *steps(rank)], env=env, stdout=subprocess.DEVNULL))
        for child in children:
            child.wait(600)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.run.__exit__(*error)

    report = Recording.report


CLASSES = {  # calls of one class, one inside the other, are one event (contract, 3); verbs not listed have the class memory
    "call": ("CALL",), "pool": ("POOL_CREATE", "POOL_DESTROY", "POOL_SET", "POOL_TRIM"), "limit": ("LIMIT",),
    "context": ("CONTEXT_CREATE", "CONTEXT_DESTROY", "PRIMARY_RETAIN", "PRIMARY_RELEASE", "DEVICE_RESET"),
    "module": ("MODULE_LOAD", "MODULE_UNLOAD"),
    "graph": ("GRAPH_ALLOC", "GRAPH_FREE", "GRAPH_CREATE", "GRAPH_INSTANTIATE", "GRAPH_LAUNCH", "GRAPH_DESTROY",
              "EXEC_DESTROY", "GRAPH_TRIM"),
    "stream": ("STREAM_CREATE", "STREAM_DESTROY", "EVENT_CREATE", "EVENT_DESTROY"), "external": ("EXTERNAL_IMPORT", "EXTERNAL_DESTROY"),
}
CLASS_OF = {verb: name for name, verbs in CLASSES.items() for verb in verbs}


def rows_of(traces):
    """{exported name: class} of the rows whose calls are events, from the hook table that travels in the trace."""
    rows = {}
    for name in os.listdir(traces):
        if name.endswith(".msgpack.zst"):
            header = stormlog_trace.Trace(os.path.join(traces, name)).header
            for hook in (header or {}).get("hooks", []):
                if header["families"][hook[3]][0] not in ("nvml", "process", "label", "torch"):
                    rows[hook[0]] = CLASS_OF.get(header["verbs"][hook[1]][0], "memory")
    return rows


ENDS = re.compile(r"cuCtx(Destroy|Detach)|cuDevicePrimaryCtx(Release|Reset)|cu(Module|Library)Unload|(cuda|hip)(DeviceReset|ThreadExit|Library"
                  r"Unload|CtxDestroy|DevicePrimaryCtx(Release|Reset)|ModuleUnload)")


def is_known(call, known):
    """A thread sets the device that it set last, and no context has ended since: that is no event."""
    if ENDS.match(call.api):
        known.clear()
    if call.api not in ("cudaSetDevice", "hipSetDevice") or call.result:
        return False
    before, known[call.thread] = known.get(call.thread), call.other
    return before == call.other


def expected_calls(truth, rows):
    """The journal's calls that should be events of their own, as their nesting and what came before decide."""
    by_number, known = {call.number: call for call in truth.calls}, {}
    for call in truth.calls:
        if is_known(call, known):
            continue
        if call.in_flight or call.level == journal.EMBEDDED or call.api not in rows:
            continue
        above, inside_hip = by_number.get(call.parent), False
        while above and (above.level == journal.EMBEDDED or above.api not in rows):
            above = by_number.get(above.parent)
        outer = by_number.get(call.parent)
        while outer:
            inside_hip = inside_hip or outer.api.startswith(("hip", "hsa"))
            outer = by_number.get(outer.parent)
        if call.api.startswith("cu") and inside_hip:  # the simulator's HIP and HSA call CUDA's driver, AMD's do not
            continue
        if above and rows[call.api] in ("call", rows[above.api]):
            continue
        yield call


def expected_apis(truth, rows):
    """{plain name: [calls, failures]} of expected_calls."""
    wanted = {}
    for call in expected_calls(truth, rows):
        counts = wanted.setdefault(journal.plain(call.api), [0, 0])
        counts[0] += 1
        counts[1] += call.result != 0
    return wanted


def differences(process, truth, rows, threads=1):
    """Differences between report.json and the simulator's journal of a process, as sentences; empty is right."""
    wrong = []
    ours = {(row["kind"], row["device"]): row for row in process["memory"]}
    theirs = dict(truth.memory)
    for key in [key for key in theirs if key not in ours and not theirs[key].allocations]:
        # An allocation of a thread without a context failed: only the simulator knows which device it would have had.
        alone = ours.pop((key[0], None), None)
        if alone and (alone["allocations"], alone["failed_allocations"]) == (0, theirs[key].failed_allocations):
            theirs.pop(key)
    for key in sorted(set(ours) | set(theirs), key=str):
        if key not in ours or key not in theirs:
            wrong.append("%s %s is %s" % (*key, "missing in the report" if key in theirs else "not in the journal: %s" % ours[key]))
            continue
        for name in EXACT + (("peak_bytes",) if threads == 1 else ()):
            if ours[key][name] != getattr(theirs[key], name):
                wrong.append("%s %s: %s is %s, was %s" % (*key, name, ours[key][name], getattr(theirs[key], name)))
        if threads > 1 and ours[key]["peak_bytes"] > theirs[key].peak_bytes:
            wrong.append("%s %s: peak above the journal's" % key)
    wanted = expected_apis(truth, rows)
    apis = {row["api"]: [row["calls"], row["failures"]] for row in process["apis"]}
    journalled = {journal.plain(call.api) for call in truth.calls}  # stubs of the simulator write nothing
    for name in sorted(set(wanted) | (set(apis) & journalled)):
        if apis.get(name) != wanted.get(name):
            wrong.append("%s: calls, failures are %s, were %s" % (name, apis.get(name), wanted.get(name)))
    if truth.errors:
        wrong.append("the journal itself: %s" % truth.errors)
    return wrong


def run_alone(name):
    """Run one test of the calling script.  Returns whether it passed, and what it printed."""
    said = io.StringIO()
    tests = unittest.defaultTestLoader.loadTestsFromName(name, sys.modules["__main__"])
    return unittest.TextTestRunner(said, verbosity=2).run(tests).wasSuccessful(), said.getvalue()


def side_by_side(at_once=4):
    """unittest.main for tests that mostly wait for their programs: each runs in a process of its own, several at once."""
    if sys.argv[1:]:
        unittest.main(verbosity=2)
    suites = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    names = [".".join(test.id().split(".")[1:]) for suite in suites for test in suite]
    with multiprocessing.get_context("fork").Pool(at_once, maxtasksperchild=1) as pool:
        results = [(good, print(said, file=sys.stderr, flush=True)) for good, said in pool.imap_unordered(run_alone, names, chunksize=1)]
    print("%d tests, %d failed" % (len(results), sum(not good for good, _ in results)))
    sys.exit(len(results) != len(names) or not all(good for good, _ in results))
