#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: each finding where it is true, and a run beside it where it must not appear."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import e2e
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)
from e2e import ANALYZE, APPS, Recording

CTYPES = os.path.join(e2e.HERE, "..", "apps", "ctypes_alloc.py")
SCRIPT = os.path.join(e2e.HERE, "..", "apps", "script.py")
MIB = 1 << 20


def app(name):
    return os.path.join(APPS, name)


def script(*steps, **environment):
    """A recording of tests/apps/script.py, which does what its arguments say."""
    return Recording("python3", SCRIPT, *steps, **environment)


def ids(report):
    return {finding["id"] for finding in report["findings"]}


def summary(run, *options, columns=80, code=0):
    done = subprocess.run([ANALYZE, *options, run.traces], capture_output=True, timeout=300,
                          env=dict(os.environ, COLUMNS=str(columns), LC_ALL="C.UTF-8"))
    if done.returncode != code:
        raise AssertionError("exit %d\n%s" % (done.returncode, done.stderr.decode()))
    return done.stdout.decode()


class Ranks:
    """Several ranks of one run at once: steps(rank) are their arguments."""

    def __init__(self, count, steps, devices=None, recorded=None, **environment):
        self.run = Recording("true", preload=False)
        self.traces = self.run.traces
        children = []
        for rank in range(count):
            env = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
            env.update(LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=os.path.join(self.run.folder, "sim"), SIM_DEVICES=str(devices or count),
                       STORMLOG_DIR=self.traces, STORMLOG_RUN_ID="ranks", LD_PRELOAD=e2e.PRELOAD, RANK=str(rank),
                       LOCAL_RANK=str(rank), WORLD_SIZE=str(count), **environment)
            env.pop("STORMLOG_BUILD", None)
            if recorded is not None and rank not in recorded:
                env.pop("LD_PRELOAD")
            children.append(subprocess.Popen(["python3", SCRIPT, *steps(rank)], env=env, stdout=subprocess.DEVNULL))
        for child in children:
            child.wait(120)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.run.__exit__(*error)

    report = Recording.report


class OutOfMemory(unittest.TestCase):
    def test_each_of_two_errors_knows_what_was_free(self):
        with Recording(app("oom"), "retry") as run:
            ooms = run.report()["ooms"]
        self.assertEqual(len(ooms), 2)
        for oom in ooms:
            self.assertIsNotNone(oom["device_free_bytes"])
            self.assertLess(oom["device_free_bytes"], oom["requested_bytes"])

    def test_a_full_device_is_full_and_its_holder_named(self):
        with Recording(app("oom")) as run:
            report, text = run.report(), summary(run)
        self.assertIn("oom.full", ids(report))
        self.assertIn("OUT OF MEMORY", text)
        self.assertRegex(text, r"asked \S+ MiB with \S+ MiB free of \S+ GiB")

    def test_a_neighbour_without_which_it_had_fitted(self):
        def steps(rank):
            return ["device=0", "alloc=5000", "sleep=1.5"] if rank == 0 else ["sleep=0.6", "device=0", "try=4000"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            report = ranks.report()
        self.assertIn("oom.neighbour", ids(report))
        self.assertNotIn("oom.full", ids(report))
        self.assertEqual([other["rank"] for other in report["ooms"][0]["others"]], [0])

    def test_more_than_there_is_and_the_host_are_causes_of_their_own(self):
        with script("alloc=1", "try=900000", "free") as run:
            self.assertEqual({i for i in ids(run.report()) if i.startswith("oom.")}, {"oom.too_large"})
        with script("alloc=1", "pin=512", "free", SIM_PINNED="64M") as run:
            report = run.report()
        self.assertEqual({i for i in ids(report) if i.startswith("oom.")}, {"oom.host"})
        self.assertIsNone(report["ooms"][0]["device"])

    def test_a_stranger_on_the_device_is_named_and_alone_there_is_none(self):
        def steps(rank):
            return ["device=0", "alloc=3000", "sleep=2"] if rank else ["sleep=0.4", "device=0", "alloc=10", "sleep=0.5", "free"]
        with Ranks(2, steps, devices=1, recorded=(0,), SIM_VRAM="8G") as ranks:
            self.assertIn("device.neighbour", ids(ranks.report()))
        with script("alloc=10", "sleep=0.5", "free", SIM_VRAM="8G") as run:
            self.assertNotIn("device.neighbour", ids(run.report()))

    def test_an_injected_error_is_called_that_and_blames_nobody(self):
        with Recording(app("oom"), launcher=("--inject-oom", "1"), code=None) as run:
            report = run.report()
        self.assertIn("oom.injected", ids(report))
        self.assertFalse({"oom.neighbour", "oom.fragmented"} & ids(report))

    def test_the_newest_bundles_are_kept_and_report_json_names_no_other(self):
        with script("alloc=1", "try=900000", "alloc=1", "try=900001", "alloc=2", "try=900002") as run:
            summary(run, "--oom-max-dumps", "2")
            with open(os.path.join(run.traces, "analysis", "report.json")) as file:
                report = json.load(file)
            there = set(os.listdir(os.path.join(run.traces, "analysis", "oom")))
        named = [oom["bundle"] for oom in report["ooms"]]
        self.assertIsNone(named[0])
        self.assertEqual({os.path.basename(path) for path in named[1:]}, there)


class Leaks(unittest.TestCase):
    def test_a_place_that_grows_all_the_time_is_found(self):
        with script("grow=30", "sleep=0.1") as run:
            report = run.report()
        self.assertIn("leak.growing", ids(report))

    def test_a_place_that_frees_everything_is_not(self):
        with script("alloc=30", "free") as run:
            report, text = run.report(), summary(run)
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["leaks"], [])
        self.assertIn("nothing to report", text)

    def test_suppressed_leaks_count_as_meant(self):
        with script("alloc=30") as run, tempfile.NamedTemporaryFile("w") as file:
            file.write("# meant\nleak:script.py\n")
            file.flush()
            self.assertEqual({leak["verdict"] for leak in run.report()["leaks"]}, {"live_at_exit"})
            self.assertEqual({leak["verdict"] for leak in run.report("--suppressions", file.name)["leaks"]}, {"workspace"})
            file.write("memory:x\n")
            file.flush()
            summary(run, "--suppressions", file.name, code=2)


class Arenas(unittest.TestCase):
    """An allocator that takes most of the device in one block hides what is inside."""

    def findings(self, library, mib):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, library)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-"], check=True, input=b"""
                int cudaMalloc(void **p, unsigned long size);
                int arena(unsigned long mib) { void *p; return cudaMalloc(&p, mib << 20); }""")
            with script("library=" + path, "arena=%d" % mib, SIM_VRAM="8G") as run:
                return [finding for finding in run.report()["findings"] if finding["id"] == "allocator.arena"]

    def test_jax_and_tensorflow_are_said_with_the_setting_that_opens_them(self):
        self.assertIn("XLA_PYTHON_CLIENT_PREALLOCATE", self.findings("xla_cuda_plugin.so", 6000)[0]["recommendation"])
        self.assertIn("TF_FORCE_GPU_ALLOW_GROWTH", self.findings("libtensorflow_cc.so.2", 6000)[0]["recommendation"])

    def test_small_blocks_and_other_libraries_are_not(self):
        self.assertEqual(self.findings("xla_cuda_plugin.so", 60), [])
        self.assertEqual(self.findings("libmine.so", 6000), [])


class RankComparison(unittest.TestCase):
    def test_ranks_that_do_the_same_have_no_finding(self):
        with Ranks(4, lambda rank: ["device=%d" % rank, "alloc=100", "free"]) as ranks:
            self.assertFalse({i for i in ids(ranks.report()) if i.startswith("ranks.")})

    def test_an_outlier_and_where_it_first_differed(self):
        with Ranks(5, lambda rank: ["device=%d" % rank, "alloc=100", "alloc=%d" % (900 if rank == 3 else 100), "free"]) as ranks:
            report = ranks.report()
        found = [finding for finding in report["findings"] if finding["id"] == "ranks.outlier"]
        self.assertEqual([finding["rank"] for finding in found], [3])
        self.assertRegex(found[0]["description"], r"first differ at allocation 2: rank 3 asked 900 MiB at script.py:\d+ \w+, rank \d 100 MiB")

    def test_a_context_on_anothers_device(self):
        def steps(rank):
            return ["device=0", "alloc=8", "device=1", "alloc=500", "sleep=0.5"] if rank else ["device=0", "alloc=500", "sleep=0.5"]
        with Ranks(2, steps) as ranks:
            found = [finding for finding in ranks.report()["findings"] if finding["id"] == "ranks.stray_context"]
        self.assertEqual([(finding["rank"], finding["device"]) for finding in found], [(1, 0)])

    def test_who_ran_out_first_by_the_clock(self):
        def steps(rank):
            return ["device=%d" % rank, "alloc=10", "sleep=%s" % (0.2 if rank == 1 else 1.0), "try=900000"]
        with Ranks(3, steps) as ranks:
            first = [finding for finding in ranks.report()["findings"] if finding["id"] == "ranks.first"]
        self.assertEqual([finding["rank"] for finding in first], [1])

    def test_one_session_of_all_ranks(self):
        with Ranks(3, lambda rank: ["device=%d" % rank, "alloc=100"]) as ranks:
            report = ranks.report()
            self.assertIsNotNone(report["cross_rank"])
            sink = os.path.join(ranks.run.folder, "merged")
            subprocess.run([ANALYZE, "merge", ranks.traces, "-o", sink], check=True, timeout=60)
            with open(os.path.join(sink, "manifest.json")) as file:
                manifest = json.load(file)
        self.assertEqual(len(manifest["sessions"]), 1)


class Hidden(unittest.TestCase):
    def test_contexts_and_code_by_name(self):
        with script("module", "module", "alloc=10", "sleep=0.4", SIM_MODULE_BYTES="64M", CUDA_MODULE_LOADING="EAGER") as run:
            hidden = run.report()["run"]["devices"][0]["hidden"]
        by = {(name["what"]): name for name in hidden}
        self.assertEqual(by["code"]["bytes"], 128 * MIB)
        self.assertIn("context", by)
        self.assertEqual(by["code"]["library"], "script.py")

    def test_without_code_there_is_no_code(self):
        with script("alloc=10", "sleep=0.4") as run:
            hidden = run.report()["run"]["devices"][0]["hidden"]
        self.assertNotIn("code", {name["what"] for name in hidden})


class Telemetry(unittest.TestCase):
    def samples(self, run, *options):
        summary(run, *options)
        folder = os.path.join(run.traces, "analysis", "telemetry")
        events = []
        for root, _, files in os.walk(folder):
            for name in files:
                if name.startswith("segment-"):
                    with open(os.path.join(root, name)) as file:
                        events += [json.loads(line) for line in file]
        return events

    def test_no_more_samples_than_asked_and_the_peak_is_among_them(self):
        with script("grow=200", "free") as run:
            events = self.samples(run, "--telemetry-samples", "16")
            peak = run.report()["processes"][0]["memory"][0]["peak_bytes"]
        samples = [event for event in events if event["event_type"] == "sample"]
        self.assertLessEqual(len(samples), 16)
        self.assertEqual(max(event["allocator_reserved_bytes"] for event in samples), peak)
        for event in events:
            self.assertGreaterEqual(event["device_used_bytes"], event["allocator_reserved_bytes"])

    def test_an_alert_where_the_device_was_nearly_full_and_none_elsewhere(self):
        with script("alloc=7000", "sleep=0.4", SIM_VRAM="8G") as run:
            self.assertIn("warning", {event["event_type"] for event in self.samples(run)})
        with script("alloc=50", "sleep=0.4", SIM_VRAM="8G") as run:
            self.assertFalse({"warning", "critical"} & {event["event_type"] for event in self.samples(run)})


class Page(unittest.TestCase):
    def test_no_line_is_wider_than_the_terminal_and_none_ends_in_a_word(self):
        with Recording(app("oom"), "retry") as run, Recording("python3", CTYPES) as other:
            for one in (run, other):
                wide = summary(one, columns=120).split()
                for columns in (60, 80, 100):
                    text = summary(one, columns=columns)
                    for line in text.splitlines():
                        if "report:" not in line and "next:" not in line:
                            self.assertLessEqual(len(line), columns, line)
                    self.assertLessEqual(set(text.split()), set(wide) | {"<"})

    def test_the_script_owns_what_it_asks_through_ctypes(self):
        with Recording("python3", CTYPES) as run:
            report, text = run.report(), summary(run)
        self.assertEqual({row["library"] for row in report["processes"][0]["libraries"]}, {"ctypes_alloc.py"})
        for name in ("libpython", "libffi", "_ctypes"):
            self.assertNotIn(name, text)

    def test_a_quiet_run_is_quiet(self):
        with script("alloc=30", "free") as run:
            text = summary(run)
        self.assertIn("nothing to report", text)
        self.assertLessEqual(len(text.splitlines()), 7, text)


class Upstream(unittest.TestCase):
    """tools of Python Stormlog open what we write."""

    def setUp(self):
        self.tool = os.environ.get("STORMLOG_INTEROP")
        if not self.tool or not os.environ.get("STORMLOG_UPSTREAM"):
            self.skipTest("STORMLOG_UPSTREAM (a checkout) and STORMLOG_INTEROP (its harness) are not set")

    def check(self, traces):
        subprocess.run([ANALYZE, "-q", traces], check=True, timeout=120)
        done = subprocess.run([sys.executable, self.tool, "check", os.path.join(traces, "analysis")], capture_output=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout.decode()[-3000:] + done.stderr.decode()[-2000:])

    def test_an_error_a_kill_and_eight_ranks(self):
        with Recording(app("oom"), "retry") as run:
            self.check(run.traces)
        with Recording(app("kill_me"), kill_after=0.5, code=None) as run:
            self.check(run.traces)
        with Ranks(8, lambda rank: ["device=%d" % rank, "alloc=100", "alloc=20", "free"]) as ranks:
            self.check(ranks.traces)


if __name__ == "__main__":
    unittest.main()
