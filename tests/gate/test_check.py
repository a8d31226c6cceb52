#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze check: each limit can fail and can pass, baselines hold when code moves, and the formats for CI are valid.

Longer than other files: limits, baselines and formats are tested with the same recorded programs."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "hostile")]
from e2e import ANALYZE, BUILD, SIM, Recording
import outside
import traces

DEMO = os.path.join(BUILD, "tests", "analyzer", "make_demo_trace")

# Holds some MiB and frees them, leaks others; SHIFT is code before it, which moves its lines.
PROGRAM = '''{shift}
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
def work():
    p = take({work})
    cudart.cudaFree(p)
def remember():
    take({leak})
work()
{more}
remember()
'''


# One function that allocates at three lines: a large block once, blocks one by one, and a small one.
LINES = '''{shift}
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
def main():
    take(50)
    for i in range({grown}):
        take(2)
    take(3)
main()
'''


# Ranges at whose end a batch of 1 to 49 MiB is live: a growth of a KiB cannot be told from that noise.
NOISY = '''
import ctypes, random
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
sizes, held = random.Random(3), None
for i in range(40):
    nvtx.nvtxRangePushA(b"noisy_%d" % i)
    if held:
        cudart.cudaFree(held)
    held = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(held), ctypes.c_size_t(sizes.randrange(1, 50) << 20)) == 0
    nvtx.nvtxRangePop()
'''


# Varying batches alone, beside a leak, beside a leak every tenth time, beside a cache that is filled once; writes what was live at each end.
KINDS = '''
import ctypes, json, random
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
sizes, live, truth = random.Random(3), 0, {}
for kind in ("noisy", "leaky", "stair", "cache"):
    batch = None
    for i in range(40):
        nvtx.nvtxRangePushA(b"%s_%d" % (kind.encode(), i))
        if batch:
            cudart.cudaFree(batch)
            live -= mib
        mib = sizes.randrange(1, 50)
        batch = take(mib)
        kept = 2 if kind == "leaky" else 20 * (i % 10 == 9) if kind == "stair" else 30 * (i < 8) if kind == "cache" else 0
        if kept:
            take(kept)
        live += mib + kept
        nvtx.nvtxRangePop()
        if i >= 2:
            truth.setdefault(kind, []).append(live << 20)
    cudart.cudaFree(batch)
    live -= mib
json.dump(truth, open("truth.json", "w"))
'''

# Another process, which is not recorded, takes more and more of the device while this one runs.
NEIGHBOUR = '''
import ctypes, os, subprocess, sys, time
other = len(sys.argv) > 1
looks = os.getppid()
if other:
    os.environ["STORMLOG_DISABLE"] = "1"
cudart = ctypes.CDLL("libcudart.so.13")
asked = ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
def seen():
    until = asked() + 3
    while asked() < until:
        time.sleep(0.005)
take(64)
if other:
    for i in range(10):
        take(200)
        print(flush=True)
        sys.stdin.readline()
    while os.getppid() == looks: # it ends after the one that looks, whose last sample is made as it ends
        time.sleep(0.005)
else:
    child = subprocess.Popen([sys.executable, __file__, "other"], env=dict(os.environ, STORMLOG_DISABLE="1"), text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for i in range(10):
        child.stdout.readline()
        seen()
        child.stdin.write("\\n")
        child.stdin.flush()
'''


# Two recorded processes on one device; the second comes later.
SHARING = NEIGHBOUR.replace('env=dict(os.environ, STORMLOG_DISABLE="1"), ', "").replace('    os.environ["STORMLOG_DISABLE"] = "1"\n', "    pass\n")


def fit(points):
    n, mx, my = len(points), (len(points) - 1) / 2, sum(points) / len(points)
    xx = sum((i - mx) ** 2 for i in range(n))
    xy = sum((i - mx) * (y - my) for i, y in enumerate(points))
    yy = sum((y - my) ** 2 for y in points)
    return xy / xx, ((yy - xy * xy / xx) / (n - 2) / xx) ** 0.5, xy * xy / xx / yy


def check(*arguments, code=0, cwd=None, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    clean.update({"COLUMNS": "400", **environment})
    done = subprocess.run([ANALYZE, "check", *map(str, arguments)], capture_output=True, text=True, cwd=cwd or "/", env=clean)
    if done.returncode != code:
        raise AssertionError("check %s: exit %d, not %d\n%s%s" % (arguments, done.returncode, code, done.stdout, done.stderr))
    return done


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-gate-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name, text=None):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if text is not None:
            with open(path, "w") as out:
                out.write(text)
        return path

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def demo(self):
        os.makedirs(self.path("demo"), exist_ok=True)
        if not os.listdir(self.path("demo")):
            subprocess.run([DEMO, self.path("demo")], check=True)
        return self.path("demo")


class Limits(Folder):
    def test_each_limit_passes_above_and_fails_below_what_was_used(self):
        for option, fine, low, rule in (("--max-peak", "464MiB", "463MiB", "max-peak"), ("--max-leak", "200M", "199M", "max-leak"),
                                        ("--max-growth", "2MiB/step", "1.9MiB/step", "max-growth")):
            with self.subTest(option):
                check(option, fine, self.demo())
                self.assertRegex(check(option, low, self.demo(), code=1).stdout, r"(?m)^FAIL +%s " % rule)

    def test_hidden_fails_by_the_own_figure_and_is_unknown_above_a_bound(self):
        recorded = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "real-gpu", "cases", "large_validation", "alone")
        for path, size, level in ((recorded, "640MiB", "ok"), (recorded, "630MiB", "FAIL"), (self.demo(), "600MiB", "ok"), (self.demo(), "599MiB", "unknown")):
            self.assertRegex(check("--max-hidden", size, "--config", os.devnull, path, code=level == "FAIL").stdout, r"(?m)^%s +max-hidden " % level)

    def test_what_tensors_held_is_known_where_a_framework_reported_its_blocks(self):
        cases = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "real-gpu", "cases")
        for run, size, code in (("graphed_ranker/alone", "445MiB", 0), ("graphed_ranker/alone", "442MiB", 1)):  # 442.6 by PyTorch's own statistics
            self.assertRegex(check("--max-allocated", size, "--config", os.devnull, os.path.join(cases, run), code=code).stdout,
                             r"(?m)^%s +max-allocated +in tensors 44" % ("FAIL" if code else "ok"))
        for case in "real-gpu/cases/graphed_ranker/alone", "real-gpu/cases/trainer_eval/shared-device", "golden/gpu/torch-cnn":
            path = os.path.join(cases, "..", "..", case)
            figure, place, part = re.search(r"(?m)^FAIL +max-allocated +in tensors ([\d.]+ \w+), limit 1 KiB(?:; (most|the largest part).* ([\d.]+ \w+) at .*)?$",
                                            check("--max-allocated", "1K", "--config", os.devnull, path, code=1).stdout).groups()
            self.assertEqual((place, part), {"golden/gpu/torch-cnn": ("most", "38.5 MiB")}.get(case, (None, None)))  # where the peak is another moment's
        self.assertRegex(check("--max-allocated", "1G", "--config", os.devnull, os.path.join(cases, "cxx_ray_depth/alone")).stdout,
                         r"(?m)^unknown +max-allocated +in tensors is not known in this run: no framework reported its blocks$")

    def test_pools_of_graphs_that_leak_are_left_memory(self):
        run = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "real-gpu", "cases", "graphed_ranker", "alone")
        self.assertRegex(check("--max-leak", "3G", "--config", os.devnull, run, code=1).stdout,  # 301 MiB of tensors, and 2.81 GiB of PyTorch's segments
                         r"(?m)^FAIL +max-leak +left at the end 3\.11 GiB, .*; most of it 2\.81 GiB at replay\.py:34 ")

    def test_the_number_of_tensors_has_a_limit_and_is_in_the_baseline(self):
        def record(name, count):
            """One block comes before `count` others, and goes as two of those have gone."""
            steps = [(traces.MALLOC, 0), (traces.TORCH_ALLOC, 0)] + [(traces.TORCH_ALLOC, i + 1) for i in range(count)] + [(traces.TORCH_FREE, i) for i in (2, 1, 0)]
            steps += [(traces.TORCH_ALLOC, 1), (traces.TORCH_ALLOC, 2)]
            thread = traces.Thread().events(len(steps), api=[api for api, _ in steps], address=[(1 << 40) + (at << 20) for _, at in steps], duration_ns=1,
                                            bytes=[64 << 20] + [512] * (len(steps) - 1), kind=[traces.KIND["device"]] + [traces.KIND["block"]] * (len(steps) - 1))
            traces.write(self.path(name + "/rank-00000-100.msgpack.zst", ""), traces.header(), thread, traces.footer())
            return self.path(name)

        ten, twenty, baseline = record("ten", 9), record("twenty", 19), self.path("counts.json")
        self.assertRegex(check("--max-tensors", "10", ten).stdout, r"(?m)^ok +max-tensors +tensors 10, limit 10$")
        self.assertRegex(check("--max-tensors", "9", ten, code=1).stdout, r"(?m)^FAIL +max-tensors +tensors 10, limit 9$")
        check("--baseline", baseline, "--update-baseline", ten)
        with open(baseline) as file:
            self.assertEqual(json.load(file)["total"]["tensors"], {"count": 10})
        check("--baseline", baseline, ten)
        self.assertRegex(check("--baseline", baseline, twenty, code=1).stdout, r"(?m)^FAIL +baseline-total +tensors: 20, baseline 10 \(\+100.0%\)$")
        self.assertRegex(check("--max-tensors", "10", self.demo()).stdout, r"(?m)^unknown +max-tensors +tensors is not known in this run")
        self.assertIn("max-allocated limits their bytes", check("--max-tensors", "1G", ten, code=2).stderr)

    def test_what_is_no_limit_is_refused(self):
        for option, value in (("--max-peak", "0.5"), ("--max-leak", "-1"), ("--max-hidden", ""), ("--max-growth", "4MiB/"), ("--max-growth", "/step"),
                              ("--max-growth", "4MiB" + " " * 70 + "or so/step"), ("--max-growth", "1/" + "x" * 200), ("--tolerance", "5"), ("--repository", "/nowhere")):
            with self.subTest(value):
                self.assertIn('%s: "%s" is not ' % (option, value), check("--no-oom", option, value, self.demo(), code=2).stderr)

    def test_a_figure_that_is_a_byte_above_its_limit_is_told_in_bytes(self):
        base = self.path("base.json")
        check("--baseline", base, "--update-baseline", self.demo())
        with open(base) as file:
            peak = json.load(file)["total"]["peak"]["bytes"]
        self.assertRegex(check("--max-peak", str(peak), self.demo()).stdout, r"(?m)^ok +max-peak +peak ([\d.]+ MiB), limit \1$")
        self.assertIn(" peak %d B, limit %d B; " % (peak, peak - 1), check("--max-peak", str(peak - 1), self.demo(), code=1).stdout)

    def test_out_of_memory_fails_where_it_must_not_happen(self):
        check("--max-peak", "1T", self.demo())
        self.assertIn("FAIL     no-oom", check("--no-oom", self.demo(), code=1).stdout)

    def test_fail_on_takes_what_the_report_found(self):
        out = check("--fail-on", "critical", self.demo(), code=1).stdout
        self.assertRegex(out, r"(?s)^FAILED   3 of 3 failed, 1 finding beyond your limits \(--fail-on shows and fails on them\)\n.*\nasked: fail-on critical\n$")
        out = check("--fail-on=warning", self.demo(), code=1).stdout
        self.assertRegex(out, r"(?s)^FAILED   4 of 4 failed\n.*\nasked: fail-on warning\n$")
        self.assertRegex(out, r"(?m)^FAIL +finding +ranks.outlier: ")

    def test_fail_on_takes_every_finding_that_the_report_shows(self):
        # without the driver's figures of processes a neighbour cannot be told from hidden memory
        with Recording(sys.executable, self.path("neighbour.py", NEIGHBOUR), SIM_VRAM="4G", SIM_PIDS="none", STORMLOG_DEVICE_INTERVAL=20) as run:
            report = run.report()
            self.assertTrue(report["gap_findings"])
            # the gate leaves out a drift that ends at the value where it began
            gaps = [gap["classification"] for gap in report["gap_findings"]
                    if gap["evidence"].get("gap_start_bytes", 0) != gap["evidence"].get("gap_end_bytes", 1)]
            shown = check("--fail-on", "warning", run.traces).stdout
            for name in gaps:
                self.assertRegex(shown, r"(?m)^also +finding +%s: " % name)
            out = check("--fail-on", "warning", "--fail-on-gaps", run.traces, code=1).stdout
            for name in gaps + [f["id"] for f in report["findings"] if f["severity"] != "info"]:
                self.assertRegex(out, r"(?m)^FAIL +\S+ +%s: " % name)
            self.assertRegex(check("--max-peak", "1T", run.traces).stdout,
                             r"(?s)^OK   0 of 1 failed, [1-9]\d* findings? beyond your limits \(--fail-on shows and fails on them\)\n.*\nasked: max-peak\n$")

    def test_a_rank_that_comes_later_to_the_same_device_is_no_gap(self):
        with Recording(sys.executable, self.path("sharing.py", SHARING), SIM_VRAM="4G", STORMLOG_DEVICE_INTERVAL=20) as run:
            self.assertEqual(run.report()["gap_findings"], [])
            out = check("--fail-on", "warning", run.traces, code=1).stdout
            for name in ("transient_spike", "persistent_drift"):
                self.assertNotIn(name, out)

    def test_what_is_meant_is_not_counted(self):
        with Recording(sys.executable, self.path("job.py", PROGRAM.format(shift="", work=10, leak=4, more="")), SIM_VRAM="8G") as run:
            check("--max-leak", "1M", run.traces, code=1)
            self.assertNotIn("matches nothing", check("--max-leak", "1M", "--suppressions",
                                                    self.path("s.txt", "# ours\nleak:^remember$\n"), run.traces).stderr)
            self.assertIn("leak:^forget$ matches no leak", check("--max-leak", "1M", "--suppressions",
                                                               self.path("t.txt", "leak:^forget$\n"), run.traces, code=1).stderr)
            self.assertIn("u.txt:1", check("--max-leak", "1M", "--suppressions", self.path("u.txt", "keep\n"), run.traces, code=2).stderr)
            check("--max-leak", "1M", "--suppressions", self.path("nowhere/v.txt"), run.traces, code=2)

    def test_a_leak_that_is_meant_is_no_growth_either(self):
        more = "import time\nfor i in range(300):\n    work()\n    remember()\n    time.sleep(.002)"
        with Recording(sys.executable, self.path("grows.py", PROGRAM.format(shift="", work=1, leak=2, more=more)), SIM_VRAM="8G") as run:
            meant = "--suppressions", self.path("meant.txt", "leak:^remember$\n")
            self.assertRegex(check("--fail-on", "warning", run.traces, code=1).stdout, r"(?m)^FAIL +leak +LEAK: grows.py:\d+ keeps 2 MiB of every ")
            check("--fail-on", "warning", *meant, run.traces)

    def test_what_a_limit_refused_did_not_fit_and_what_was_injected_did(self):
        script = self.path("job.py", PROGRAM.format(shift="", work=10, leak=4, more="for i in range(9): take(40)").replace("assert ", ""))
        for settings, code, cause in (({"STORMLOG_LIMIT": "350M"}, 1, "full"), ({"STORMLOG_INJECT_OOM": "1"}, 0, "injected"), ({}, 0, None)):
            with self.subTest(settings), Recording(sys.executable, script, SIM_VRAM="8G", **settings) as run:
                check("--no-oom", run.traces, code=code)
                found = [f["id"] for f in run.report()["findings"] if f["id"].startswith("oom.")]
                self.assertEqual(found, ["oom." + cause] if cause else [])

    def test_what_a_run_cannot_tell_is_said_and_does_not_fail(self):
        out = check("--max-growth", "1/epoch", self.demo()).stdout
        self.assertRegex(out, r"(?m)^unknown +max-growth +the run has no label epoch$")

    def test_growth_that_entries_hide_is_unknown_and_never_passed(self):
        with Recording(sys.executable, self.path("noisy.py", NOISY), SIM_VRAM="8G") as run:
            [label] = [label for label in run.report()["processes"][0]["labels"] if label["label"] == "noisy_#"]
            self.assertEqual(label["verdict"], "noisy")
            for limit in ("1KiB/noisy", "1KiB"):
                out = check("--max-growth", limit, run.traces).stdout
                self.assertRegex(out, r"(?m)^unknown +max-growth +noisy_# varies too much")
                self.assertRegex(out, r"^OK   0 of 1 failed, 1 unknown")
            said = json.loads(check("--json", "--max-growth", "1KiB", run.traces).stdout)
            self.assertEqual((said["unknown"], said["failures"], said["outcomes"][0]["level"]), (1, 0, "unknown"))
            self.assertIn("FAIL     max-growth", check("--strict", "--max-growth", "1KiB/noisy", run.traces, code=1).stdout)
            config = self.path("strict.ini", "[check]\nstrict = yes\nmax-growth = 1KiB\n")
            check("--config", config, run.traces, code=1)
            check("--metrics", self.path("m.txt"), "--max-growth", "1KiB", run.traces)
            self.assertNotIn("growth", self.read("m.txt"))
            base = self.path("base.json")
            check("--baseline", base, "--update-baseline", run.traces)
            self.assertIsNone(json.loads(self.read("base.json"))["growth"]["noisy_#"]["bytes"])
            self.assertRegex(check("--baseline", base, run.traces).stdout, r"(?m)^unknown +baseline-growth ")
            check("--baseline", base, "--strict", run.traces, code=1)

    def test_growth_is_judged_by_its_error_and_by_what_survives(self):
        with Recording(sys.executable, self.path("kinds.py", KINDS), SIM_VRAM="8G") as run:
            labels = {label["label"]: label for label in run.report()["processes"][0]["labels"]}
            with open(os.path.join(run.folder, "truth.json")) as file:
                truth = json.load(file)
            for kind, points in truth.items():
                slope, error, r2 = fit(points)
                label = labels[kind + "_#"]
                if kind == "cache":  # a line with a step fits better, with a slope nearer to the true one, 0
                    self.assertLess(abs(label["growth_bytes_per_entry"]), slope / 2)
                    continue
                self.assertAlmostEqual(label["growth_bytes_per_entry"], slope, delta=1)
                self.assertAlmostEqual(label["growth_error_bytes"], error, delta=1)
                self.assertAlmostEqual(label["r_squared"], r2, delta=1e-9)
            self.assertLess(labels["leaky_#"]["r_squared"], 0.8)
            self.assertEqual({kind: labels[kind + "_#"]["verdict"] for kind in truth},
                             {"leaky": "growing", "stair": "growing", "cache": "noisy", "noisy": "noisy"})
            for kind in ("leaky", "stair"):
                check("--max-growth", "1MiB/" + kind, run.traces, code=1)
                self.assertLessEqual(max(part["bytes_per_entry"] for part in labels[kind + "_#"]["held_by"]),
                                     labels[kind + "_#"]["growth_bytes_per_entry"])
            self.assertRegex(check("--max-growth", "4MiB/noisy", run.traces).stdout, r"(?m)^ok +max-growth +noisy_# grows by .* an entry at most")
            # without a limit the gate shows growth only where the report has a finding
            found = [finding["id"] for finding in run.report()["findings"]]
            self.assertEqual("label.growing" in found, bool(re.search(r"(?m)^\w+ +growth ", check("--no-oom", run.traces).stdout)), found)

    def test_what_a_killed_rank_would_have_freed_is_unknown(self):
        out = check("--max-leak", "1G", self.demo()).stdout
        self.assertRegex(out, r"(?m)^unknown +max-leak +left at the end 200 MiB and more, .* 1 of the processes did not end")
        self.assertIn("FAIL     max-leak         left at the end 200 MiB", check("--max-leak", "199M", self.demo(), code=1).stdout)
        check("--max-leak", "1G", "--strict", self.demo(), code=1)

    def rank(self, rank, folder, calls=4, label=None, entries=0, end=True, **header):
        """A trace of a rank of four, with as many MiB and entries of a label."""
        thread = traces.Thread()
        blocks = thread.events(calls, api=traces.MALLOC, kind=traces.KIND["device"], address=[(i + 1) << 20 for i in range(calls)], bytes=1 << 20) if calls else b""
        if entries:
            blocks = (traces.defs([{"def": "text", "id": 1, "text": label + "_#"}]) + blocks +
                      thread.events(2 * entries, api=[traces.PUSH, traces.POP] * entries, label=1, extra=[i // 2 for i in range(2 * entries)]))
        fields = dict(rank=rank, local_rank=rank, world_size=4, pid=100 + rank, pids=[100 + rank])
        return traces.write(self.path("%s/rank-%05d-%d.msgpack.zst" % (folder, rank, 100 + rank)), traces.header(**dict(fields, **header)), blocks,
                            traces.footer() if end else b"")

    def test_nothing_passes_where_a_part_of_the_run_is_not_here(self):
        limits = ("--max-peak", "1G", "--max-leak", "1G", "--no-oom")
        names = ("whole", "absent", "torn", "empty", "foreign", "ringless")
        for folder in names:
            for rank in range(3 if folder != "whole" else 4):
                self.rank(rank, folder)
        self.rank(3, "ringless", end=False)
        with open(self.rank(3, "torn"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 200)
        self.path("empty/rank-00003-103.msgpack.zst", "")
        self.path("foreign/rank-00003-103.msgpack.zst", "hello, this is no trace")
        self.assertEqual(len(re.findall("(?m)^ok ", check(*limits, "--strict", self.path("whole")).stdout)), 3)
        for folder, why in (("absent", "unknown +incomplete +no trace of rank 3, of 4"), ("torn", "also +incomplete +rank-00003-103.* parts of the trace"),
                            ("empty", "also +incomplete +rank-00003-103.* cannot be read"), ("foreign", "also +incomplete +rank-00003-103.* cannot be read"),
                            ("ringless", "also +incomplete +rank-00003-103.* ring is not here")):
            with self.subTest(folder):
                out = check(*limits, self.path(folder)).stdout
                self.assertNotRegex(out, "(?m)^ok ")
                self.assertRegex(out, "(?m)^%s" % why)
                self.assertRegex(check(*limits, "--strict", self.path(folder), code=1).stdout, "(?m)^FAIL +max-peak ")
        subprocess.run([ANALYZE, "pack", "-o", self.path("pack/a.stormlog", ""), self.path("absent")], check=True)
        subprocess.run([ANALYZE, "summarize", "-o", self.path("summary/a.summary", ""), self.path("absent")], check=True)
        for folder in ("pack", "summary"):
            out = check(*limits, "--fits", "8G", self.path(folder)).stdout
            self.assertNotRegex(out, "(?m)^ok ")
            self.assertRegex(out, "(?m)^unknown +incomplete +no trace of rank 3, of 4")
        self.assertRegex(out, "(?m)^unknown +fits .* a summary has no events")
        for folder in ("absent", "foreign"):
            done = subprocess.run([ANALYZE, "--all", "-o", self.path("analysis"), self.path(folder)], capture_output=True, text=True, check=True)
            self.assertRegex(done.stdout, "(?m)^incomplete: without 1 of 4 ranks\n(.*\n)*note   no trace of rank 3, of 4: ")

    def test_a_program_attached_to_is_incomplete_on_the_screen_too_and_its_peak_is_known(self):
        traces.write(self.path("attached/rank-00000-100.msgpack.zst", ""), traces.header(),
                     traces.defs([{"def": "capability", "name": "recorded", "value": "attached by BPF while it ran"}]),
                     traces.Thread().events(1, api=traces.MALLOC, kind=traces.KIND["device"], device=-1, address=[1 << 40], bytes=3 << 20), traces.footer())
        for options, code in (("--strict",), 1), ((), 0):
            self.assertRegex(check(*options, "--max-peak", "1G", self.path("attached"), code=code).stdout,
                             r"(?m)max-peak +peak 3 MiB, limit 1 GiB, in what is here of the run\n(?:also .*\n)?.* incomplete .*: it was not recorded all the time$")
        done = subprocess.run([ANALYZE, "-o", self.path("analysis"), self.path("attached")], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, "(?m)^incomplete: rank-00000-100.msgpack.zst: it was not recorded all the time$")

    def test_nothing_passes_where_a_kind_or_a_family_is_not_known(self):
        kinds = [[kind, "host" if kind in traces.HOST else "device"] for kind in traces.KINDS]
        own, fails = len(traces.HOOKS) + 1, 2
        cases = {"device": (len(kinds), dict(kinds=kinds + [["cluster", "device"]])), "space": (len(kinds), dict(kinds=kinds + [["cluster", "fabric"]])),
                 "among": (1, dict(kinds=[kinds[0], ["cluster", "device"]] + kinds[2:])), "hook": (99, dict(hooks=traces.HOOKS + [["cudaMallocNew", 1, 99, 0]])),
                 "event": (99, {}), "family": (1, dict(hooks=traces.HOOKS + [["cudaMallocNew", 1, 1, 77]]))}
        for name, (kind, header) in cases.items():
            fields = dict(address=[1 << 40], bytes=32 << 30, kind=kind, duration_ns=1, result=fails if name == "family" else 0)
            traces.write(self.path(name + "/rank-00000-100.msgpack.zst", ""), traces.header(**header), traces.Thread().events(1, api=own if "hooks" in header else traces.MALLOC, **fields), traces.footer())
            subprocess.run([ANALYZE, "summarize", "-q", "-o", self.path("of-%s/a.summary" % name, ""), self.path(name)], check=True)
            for folder in name, "of-" + name:
                with self.subTest(folder):
                    out = check("--strict", "--max-peak", "1G", "--no-oom", self.path(folder), code=1).stdout
                    self.assertRegex(out, "(?m)^FAIL +incomplete +rank-00000-100.*: written by a newer agent")
                    self.assertNotRegex(out, "(?m)^ok ")

    def test_a_header_without_a_list_is_not_one_of_a_newer_agent(self):
        for key in "families", "kinds":
            traces.write(self.path(key + "/rank-00000-100.msgpack.zst", ""), traces.header(**{key: None}), traces.Thread().events(1, api=traces.MALLOC, kind=1, duration_ns=1, address=[4096], bytes=4096), traces.footer())
            with self.subTest(key):
                self.assertNotIn("newer agent", check("--strict", "--max-peak", "1G", self.path(key)).stdout)

    def test_nothing_passes_beside_a_summary_that_is_torn_before_its_list_ends(self):
        self.rank(0, "torn", world_size=1)
        subprocess.run([ANALYZE, "summarize", "-q", "-o", self.path("whole/a.summary", ""), self.path("torn")], check=True)
        with open(self.path("whole/a.summary"), "rb") as file:
            whole = file.read()
        self.assertRegex(check("--strict", "--max-peak", "1G", self.path("torn")).stdout, "(?m)^ok +max-peak ")
        for content in [whole[:size] for size in (0, 3, 4, 20, 100)]:
            with open(self.path("torn/a.summary"), "wb") as file:
                file.write(content)
            out = check("--max-peak", "1G", self.path("torn")).stdout
            self.assertNotRegex(out, "(?m)^ok ", content)
            self.assertRegex(out, "(?m)^also +incomplete +a.summary: it cannot be read, and a part of the run may be in it")
            check("--strict", "--max-peak", "1G", self.path("torn"), code=1)

    def test_nothing_passes_beside_a_pack_that_is_none_or_a_named_path_without_a_trace(self):
        self.rank(0, "run", world_size=1)
        subprocess.run([ANALYZE, "pack", "-o", self.path("whole.stormlog"), self.path("run")], check=True)
        with open(self.path("whole.stormlog"), "rb") as file:
            whole = file.read()
        run, pack, junk, empty = self.path("run"), self.path("run/r1.stormlog"), self.path("junk.txt", "junk"), self.path("empty/notes.txt", "hello")
        for content in b"", whole[:10], b"not ours at all, and longer than a mark", None:
            for paths in ((run, pack), (run,)) if content is not None else ((run, junk), (run, os.path.dirname(empty) + "/")):
                with self.subTest(content=content, paths=paths):
                    if content is not None:
                        with open(pack, "wb") as file:
                            file.write(content)
                    out = check("--strict", "--max-peak", "1G", *paths, code=1).stdout
                    self.assertRegex(out, "(?m)^FAIL +max-peak .* in what is here of the run")
                    name = {pack: "r1.stormlog", run: "r1.stormlog"}.get(paths[-1], os.path.basename(paths[-1].rstrip("/")))
                    self.assertRegex(out, "(?m)incomplete +%s: " % name)
                    done = subprocess.run([ANALYZE, "-o", self.path("analysis"), *paths], capture_output=True, text=True, check=True)
                    self.assertIn(name, done.stderr + done.stdout)
                    self.assertRegex(done.stdout, "(?m)^incomplete: " if name != "empty" else "no trace is in it")
            if os.path.exists(pack):
                os.unlink(pack)
        for paths in (run, run), (run, run + "/rank-00000-100.msgpack.zst"), (self.path("whole.stormlog"), run), (run, self.path("whole.stormlog")):
            self.assertRegex(check("--strict", "--max-peak", "1G", *paths).stdout, "(?m)^ok +max-peak ", paths)

    def test_ranks_that_the_user_left_out_are_not_absent(self):
        for rank in 1, 4:
            self.rank(rank, "two", world_size=8, settings={"ranks": "4-5,1"})
            self.rank(rank, "all", world_size=8, settings={"ranks": ""})
            self.rank(rank, "differ", world_size=8, settings={"ranks": str(rank)})
        self.rank(0, "chosen", settings={"ranks": "0"})
        subprocess.run([ANALYZE, "summarize", "-q", "-o", self.path("summary/a.summary", ""), self.path("chosen")], check=True)
        for folder in "chosen", "summary":
            self.assertNotIn("incomplete", check("--strict", "--max-peak", "1G", self.path(folder)).stdout)
        for folder, absent in ("two", "rank 5"), ("all", "ranks 0, 2-3, 5-7"), ("differ", "ranks 0, 2-3, 5-7"):
            self.assertIn("no trace of %s, of 8" % absent, check("--strict", "--max-peak", "1G", self.path(folder), code=1).stdout)

    def test_an_unreadable_file_counts_for_the_runs_that_it_may_be_of(self):
        now = time.time()
        for folder in "old", "new":
            for rank in range(4):
                self.rank(rank, "both/" + folder, run_id=folder, started_ns=int((now - 86400 * (folder == "old")) * 1e9))
        stale = self.path("both/rank-00000-98.msgpack.zst", "")
        for before, run, whole in (2 * 86400, [], True), (2 * 86400, ["--run", "old"], True), (3 * 3600, [], True), (3 * 3600, ["--run", "old"], False), (0, [], False):
            os.utime(stale, (now - before,) * 2)
            done = check("--strict", "--max-peak", "1G", *run, self.path("both"), code=not whole)
            self.assertEqual("incomplete" in done.stdout, not whole, (before, run))
            self.assertIn("rank-00000-98.msgpack.zst", done.stderr)
            done = subprocess.run([ANALYZE, "--all", "-o", self.path("analysis"), *run, self.path("both")], capture_output=True, text=True, check=True)
            self.assertRegex(done.stdout, r"(?m)^note   .*rank-00000-98.msgpack.zst: no readable\s+header")
            self.assertEqual(re.findall("(?m)^incomplete: .*", done.stdout), [] if whole else ["incomplete: rank-00000-98.msgpack.zst: it cannot be read"])

    def test_a_label_that_a_rank_or_the_run_hardly_entered_does_not_pass(self):
        for rank in range(4):
            self.rank(rank, "few", label="step", entries=40 if rank < 3 else 1)
        out = check("--max-growth", "1MiB/step", self.path("few")).stdout
        self.assertRegex(out, "(?m)^unknown +max-growth +step was not entered often enough to tell in 1 of the processes")
        check("--max-growth", "1MiB/step", "--strict", self.path("few"), code=1)
        base = self.path("base.json")
        check("--baseline", base, "--update-baseline", self.path("few"))
        known = json.loads(self.read("base.json"))
        known["growth"]["epoch_#"] = {"bytes": 0}
        self.path("base.json", json.dumps(known))
        self.assertRegex(check("--baseline", base, self.path("few")).stdout, "(?m)^unknown +baseline-growth +epoch_# is not known in this run")
        self.path("base.json", json.dumps(dict(known, total={})))
        self.assertEqual(len(re.findall("(?m)^unknown +baseline-total ", check("--baseline", base, self.path("few")).stdout)), 3)
        self.path("base.json", json.dumps(dict(known, schema_version=2)))
        self.assertIn("of another version", check("--baseline", base, self.path("few"), code=2).stderr)

    def test_runs_beside_the_newest_are_told(self):
        for rank in range(4):
            self.rank(rank, "two/old", run_id="old", started_ns=traces.UNIX0 - 10 ** 12)
            self.rank(rank, "two/new", run_id="new")
        self.assertIn("\n1 other run here: --run\n", check("--max-peak", "1G", self.path("two")).stdout)

    def test_usage_is_2_and_unreadable_is_3(self):
        check(code=2)
        check(self.demo(), code=2)
        check("--max-peak", "lots", self.demo(), code=2)
        check("--max-growth", "2M/step", "--tolerance", "-1", self.demo(), code=2)
        check("--fail-on", "doom", self.demo(), code=2)
        check("--max-peek", "1G", self.demo(), code=2)
        check("--max-peak", "1G", self.path("nowhere"), code=2)
        self.path("empty/notes.txt", "hello")
        check("--max-peak", "1G", self.path("empty"), code=3)
        self.path("broken/rank-00000-1.msgpack.zst", "not a trace")
        check("--max-peak", "1G", self.path("broken"), code=3)

    def test_a_file_in_the_repository_holds_the_limits_and_options_win(self):
        self.path("repo/.git/HEAD", "")
        self.path("repo/.stormlog.ini", "# limits\n[watch]\nrule = what watch knows\n[check]\nmax-peak = 1MiB\nno-oom = no\n")
        os.makedirs(self.path("repo/deep/er"))
        where = self.path("repo/deep/er")
        check(self.demo(), cwd=where, code=1)
        check("--max-peak", "1G", self.demo(), cwd=where)
        check(self.demo(), cwd=self.folder, code=2)  # outside the repository no settings file is found
        bad = self.path("bad.ini", "[check]\nmax-peak = 1M\nmax-peek = 2M\n")
        self.assertIn("bad.ini:3: ", check("--config", bad, self.demo(), code=2).stderr)

    def test_what_is_not_understood_of_a_settings_file_is_no_limit_that_is_passed_over(self):
        for text, line in (("[chekc]\nmax-peak = 1M\n[check]\nno-oom = yes\n", 1), ("[ check ]\nmax-peak = 1M\n[check]\nno-oom = yes\n", 1),
                           ("[check\nmax-peak = 1M\n[check]\nno-oom = yes\n", 1), ("[check] # limits\nmax-peak = 1M\n[check]\nno-oom = yes\n", 1),
                           ("max-peak = 1M\nmax-peak = 1G\n", 2), ("no-oom = yes\nno-oom = no\n", 2), ("no-oom = yes\nmax-peak = 10GiBx\n", 2),
                           ("no-oom = yes\nmax-peak = 1e999\n", 2), ("no-oom = yes\nmax-peak = nan\n", 2), ("no-oom = yes\nmax-peak = -1\n", 2),
                           ("no-oom = yes\nmax-peak 1M\n", 2), ("[watch]\nmax-peak 1M\n[check]\nno-oom = yes\n", 2), ("no-oom = yes\n\0max-peak = 1M\n", 2),
                           ("no-oom = yes\0 or not\n", 1), ("no-oom = yes\n# x\rmax-peak = 1M\n", 2), ("no-oom = yes\n# x\vmax-peak = 1M\n", 2),
                           ("no-oom = yes\n#" + " " * 8190 + "max-peak = 1G\n", 2), ("no-oom = yes\ntolerance = 0x1p-3\n", 2),
                           ("no-oom = yes\ntolerance = 5%x\n", 2), ("no-oom = yes\nbaseline = " + "x/" * 2500 + "\n", 2)):
            with self.subTest(text[:60]):
                self.assertIn("bad.ini:%d: " % line, check("--config", self.path("bad.ini", text), self.demo(), code=2).stderr)
        for text in ("\ufeff[check]\nmax-peak = 1M\n", "[check]\r\nmax-peak = 1M\r\n", "[check]\n\tmax-peak\t=\t1M"):
            check("--config", self.path("good.ini", text), self.demo(), code=1)
        self.assertIn("fail-on-gaps needs fail-on", check("--config", self.path("bad.ini", "no-oom = yes\nfail-on-gaps = yes\n"), self.demo(), code=2).stderr)
        os.makedirs(self.path("linked/.git"))
        os.symlink("nowhere", self.path("linked/.stormlog.ini"))
        check("--max-peak", "1G", self.demo(), cwd=self.path("linked"), code=2)


class Baselines(Folder):
    def record(self, folder, **changes):
        program = dict(shift="", work=10, leak=4, more="")
        program.update(changes)
        script = self.path(folder + "/job.py", PROGRAM.format(**program))
        run = Recording(sys.executable, script, SIM_VRAM="8G")
        self.addCleanup(shutil.rmtree, run.folder, True)
        return run.traces

    def test_the_same_program_is_the_same_after_moves_and_elsewhere(self):
        base = self.path("base.json")
        check("--baseline", base, "--update-baseline", self.record("a"))
        with open(base) as file:
            first = json.load(file)
        self.assertEqual(first["total"]["leak"]["bytes"], 4 << 20)
        moved = self.record("another/place", shift="import os\n\n\ndef unrelated():\n    pass\n\n")
        check("--baseline", base, moved)
        again = self.path("again.json")
        check("--baseline", again, "--update-baseline", moved)
        with open(again) as file:
            second = json.load(file)
        self.assertEqual(set(first["stack"]), set(second["stack"]))
        self.assertEqual(set(first["leak"]), set(second["leak"]))
        self.assertNotIn(self.folder, json.dumps(first))

    def test_a_baseline_whose_numbers_are_not_understood_is_none(self):
        text = json.dumps({"schema": "stormlog.baseline", "schema_version": 1, "total": {"peak": {"bytes": 1}, "leak": {"bytes": None}, "hidden": {"bytes": 3}},
                           "library": {}, "stack": {"f": {"what": "w", "bytes": 4, "lines": [{"place": "p", "bytes": 4}]}}, "leak": {}, "label": {}, "growth": {}})
        check("--baseline", self.path("base.json", text), self.demo(), code=1)
        for before, after in [('{"bytes": 1}', '{"bytes": %s}' % number) for number in ("1.0", "6.29e7", '"5"', "-5", "true", "[]", "1, \"bytes\": 9", str(2 ** 64 - 1))] + [
                ('"bytes": 4, "lines"', '"bytes": null, "lines"'), ('"bytes": 4}', '"bytes": null}'), ('"bytes"', '"byte"'), ('"total"', '"totals"'), ('"place"', '"line"'),
                ('"total": {', '"total": 5, "totals": {'), ('"peak": ', '"peak": {"bytes": 2}, "peak": '), ('"library"', '"total": {}, "library"')]:
            with self.subTest(after):
                self.assertIn(before, text)
                self.assertIn("base.json:1: not a baseline", check("--baseline", self.path("base.json", text.replace(before, after)), self.demo(), code=2).stderr)

    def test_a_part_of_a_run_replaces_no_baseline(self):
        base = self.path("base.json")
        for folder in "whole", "torn", "beside":
            Limits.rank(self, 0, folder, world_size=1)
        check("--baseline", base, "--update-baseline", self.path("whole"))
        good = self.read("base.json")
        self.path("beside/p.stormlog", "no pack")
        with open(Limits.rank(self, 0, "torn", world_size=1), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 200)
        for folder in "torn", "beside":
            self.assertIn("base.json stays as it is", check("--baseline", base, "--update-baseline", self.path(folder), code=3).stderr)
            self.assertEqual(self.read("base.json"), good)
        with open(Limits.rank(self, 0, "lossy", world_size=1), "ab") as file:
            file.write(traces.defs([{"def": "gap", "count": 3, "begin_ns": traces.T0, "end_ns": traces.T0 + 5}]))
        self.assertIn("parts of the trace are missing", check("--baseline", base, "--update-baseline", self.path("lossy")).stderr)
        good = self.read("base.json")
        for folder, gap in ("removed", {"count": 3, "removed": 1}), ("unknown", {"count": 0}):
            with open(Limits.rank(self, 0, folder, world_size=1), "ab") as file:
                file.write(traces.defs([{"def": "gap", "begin_ns": traces.T0, "end_ns": traces.T0 + 5, **gap}]))
            self.assertIn("base.json stays as it is", check("--baseline", base, "--update-baseline", self.path(folder), code=3).stderr)
            self.assertEqual(self.read("base.json"), good)
        Limits.rank(self, 0, "absent", world_size=2)
        self.assertIn("no trace of rank 1, of 2", check("--baseline", base, "--update-baseline", self.path("absent")).stderr)

    def test_nothing_is_a_share_of_nothing(self):
        base = self.path("base.json")
        traces = self.record("a")
        check("--baseline", base, "--update-baseline", traces)
        with open(base) as file:
            told = json.load(file)
        told["total"]["leak"]["bytes"] = 0
        with open(base, "w") as file:
            json.dump(told, file)
        self.assertRegex(check("--baseline", base, traces, code=1).stdout, "(?m)^FAIL +baseline-total +leak: 4 MiB, baseline 0 B$")

    def test_more_of_a_place_and_new_places_fail(self):
        base = self.path("base.json")
        check("--baseline", base, "--update-baseline", self.record("a"))
        out = check("--baseline", base, self.record("b", leak=8), code=1).stdout
        self.assertRegex(out, r"FAIL +baseline-leak +job.py:\d+ remember < job.py:\d+ <module> via job.py:\d+ take: 8 MiB, baseline 4 MiB \(\+100.0%\)")
        check("--baseline", base, "--tolerance", "100%", self.record("b", leak=8))
        out = check("--baseline", base, self.record("c", more="def fresh():\n    take(3)\nfresh()"), code=1).stdout
        self.assertRegex(out, r"FAIL +baseline-leak +job.py:\d+ fresh < job.py:\d+ <module> via job.py:\d+ take: 3 MiB, new")
        check("--baseline", base, self.record("d", work=9))  # less is fine

    def lines(self, folder, grown, shift=""):
        """Traces of LINES, and the line numbers of its three allocations."""
        text = LINES.format(grown=grown, shift=shift)
        run = Recording(sys.executable, self.path(folder + "/job.py", text), SIM_VRAM="8G")
        self.addCleanup(shutil.rmtree, run.folder, True)
        rows = text.splitlines()
        return run.traces, [rows.index(row) + 1 for row in ("    take(50)", "        take(2)", "    take(3)")]

    def test_the_line_that_holds_or_grew_most_is_told_with_its_own_bytes(self):
        before, (meant, _, _) = self.lines("a", 10)
        out = check("--max-peak", "1M", "--max-leak", "1M", before, code=1).stdout
        for rule in ("max-peak", "max-leak"):
            self.assertRegex(out, r"FAIL +%s +.* 73 MiB, .* most of it 50 MiB at job.py:%d main" % (rule, meant))
        base = self.path("base.json")
        check("--baseline", base, "--update-baseline", before)
        for name, shift in (("b", ""), ("c", "import os\n\n\n")):
            with self.subTest(name):
                after, (meant, grown, small) = self.lines(name, 20, shift)
                out = check("--baseline", base, "--sarif", self.path("s.sarif"), "--junit", self.path("j.xml"), "--summary", self.path("s.md"), after, code=1).stdout
                for rule in ("baseline-stack", "baseline-leak"):
                    self.assertRegex(out, r"FAIL +%s +job.py:%d main .*: 40 MiB, baseline 20 MiB \(\+100.0%%\)" % (rule, grown))
                    self.assertNotRegex(out, r"%s +job.py:(%d|%d) " % (rule, meant, small))
                for form in ("j.xml", "s.md"):
                    self.assertRegex(self.read(form), r"job.py:%d main" % grown)
                    self.assertNotRegex(self.read(form), r"93 MiB at|job.py:%d main[^|\n]*93 MiB" % meant)

    def test_a_baseline_that_knows_no_lines_has_no_line_blamed_for_a_sum(self):
        before, (meant, _, _) = self.lines("a", 10)
        base = self.path("base.json")
        check("--baseline", base, "--update-baseline", before)
        old = json.loads(self.read("base.json"))
        for of in ("stack", "leak"):
            for place in old[of].values():
                self.assertEqual(sum(line["bytes"] for line in place.pop("lines")), place["bytes"])
        out = check("--baseline", self.path("old.json", json.dumps(old)), self.lines("b", 20)[0], code=1).stdout
        self.assertRegex(out, r"FAIL +baseline-stack +job.py:%d main .* and 2 more lines: 93 MiB, baseline 73 MiB" % meant)

    def test_a_file_that_is_no_baseline_is_usage(self):
        check("--baseline", self.path("none.json"), self.demo(), code=2)
        check("--baseline", self.path("torn.json", '{"schema": "stormlog.base'), self.demo(), code=2)
        check("--baseline", self.path("other.json", '{"schema": "other"}'), self.demo(), code=2)
        check("--update-baseline", "--max-peak", "1G", self.demo(), code=2)


class Forms(Folder):
    def forms(self):
        """A run whose program is in a repository, with a report in every format."""
        self.path("repo/.git/HEAD", "")
        script = self.path("repo/src dir/job.py", PROGRAM.format(shift="", work=10, leak=4, more=""))
        run = Recording(sys.executable, script, SIM_VRAM="8G")
        self.addCleanup(shutil.rmtree, run.folder, True)
        check("--max-leak", "1M", "--max-peak", "1G", "--max-growth", "1M", "--fail-on", "warning", "--junit", self.path("j.xml"),
              "--sarif", self.path("s.sarif"), "--metrics", self.path("m.txt"), run.traces, code=1, cwd=self.path("repo"))
        return run

    def test_junit_has_a_case_for_each_thing_looked_at(self):
        self.forms()
        root = ET.parse(self.path("j.xml")).getroot()
        cases = {case.get("classname"): case for case in root.iter("testcase")}
        self.assertIsNotNone(cases["stormlog.max-leak"].find("failure"))
        self.assertIsNone(cases["stormlog.max-peak"].find("failure"))
        self.assertIsNotNone(cases["stormlog.max-growth"].find("skipped"))
        self.assertEqual(int(root.get("failures")), sum(case.find("failure") is not None for case in root.iter("testcase")))

    def test_no_two_cases_of_junit_have_one_name(self):
        script = self.path("twice.py", "import ctypes\ncudart = ctypes.CDLL('libcudart.so.13')\np = ctypes.c_void_p()\n"
                           + "cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 50))\ncudart.cudaMemGetInfo(ctypes.byref(ctypes.c_size_t()), ctypes.byref(ctypes.c_size_t()))\n"
                           + "cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 51))\n")
        with Recording(sys.executable, script, SIM_VRAM="8G") as run:
            self.assertEqual(len(run.report()["ooms"]), 2)
            check("--no-oom", "--junit", self.path("j.xml"), run.traces, code=1)
        names = [(case.get("classname"), case.get("name")) for case in ET.parse(self.path("j.xml")).getroot().iter("testcase")]
        self.assertEqual(len(set(names)), len(names), names)
        self.assertEqual(len(names), 2)

    def test_junit_fits_the_schema_of_jenkins(self):
        self.forms()
        schema = outside.junit_schema(self)
        done = subprocess.run(["xmllint", "--noout", "--schema", schema, self.path("j.xml")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_sarif_points_into_the_repository_alone(self):
        self.forms()
        run = json.loads(self.read("s.sarif"))["runs"][0]
        places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
        self.assertTrue(places)
        for place in places:
            self.assertEqual(place["artifactLocation"]["uri"], "src%20dir/job.py")
            self.assertGreater(place["region"]["startLine"], 0)
        for result in run["results"]:
            self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], result["ruleId"])
        self.assertTrue(any("partialFingerprints" in result for result in run["results"]))

    def test_sarif_that_lacks_results_is_told(self):
        run = self.forms()
        self.assertIn("check ran outside one", check("--max-peak", "1M", "--sarif", self.path("s.sarif"), run.traces, code=1).stderr)

    def test_sarif_points_at_c_that_was_compiled_by_relative_names(self):
        self.path("repo/.git/HEAD", "")
        source = self.path("repo/src/leak.c", "int cudaMalloc(void **, unsigned long);\n"
                           "__attribute__((noinline)) static int keeps(void **p) { return cudaMalloc(p, 3 << 20); }\n"
                           "int main(void) { void *p; return keeps(&p) + 0; }\n")
        program = self.path("repo/leak")
        cc = shutil.which("cc") or self.skipTest("needs a C compiler")
        subprocess.run([cc, "-g", "-O0", "-o", program, "leak.c", "-L" + SIM, "-l:libcudart.so.13"], cwd=os.path.dirname(source), check=True)
        with Recording(program) as run:
            check("--max-leak", "1M", "--sarif", self.path("s.sarif"), run.traces, code=1, cwd=self.path("repo"))
        result = json.loads(self.read("s.sarif"))["runs"][0]["results"][0]
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("src/leak.c", 2))

    def test_sarif_is_valid(self):
        self.forms()
        outside.validate(self, json.loads(self.read("s.sarif")), outside.sarif_schema(self))

    def test_sarif_passes_its_authors_validator(self):
        self.forms()
        tool = os.path.join(outside.sarif_multitool(self), "Sarif.Multitool")
        os.chmod(tool, 0o700)
        broken = json.loads(self.read("s.sarif"))
        broken["runs"][0]["results"][0]["ruleIndex"] = 77
        self.path("broken.sarif", json.dumps(broken))
        for name, errors in (("s.sarif", []), ("broken.sarif", ["SARIF1009"])):
            done = subprocess.run([tool, "validate", self.path(name)], capture_output=True, text=True,
                                  env=dict(os.environ, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1", HOME=self.folder))
            self.assertIn("Analysis completed successfully", done.stdout)
            self.assertEqual(re.findall(r": error (\w+):", done.stdout), errors, done.stdout)

    def test_metrics_are_openmetrics(self):
        self.forms()
        text = self.read("m.txt")
        self.assertTrue(text.endswith("\n# EOF\n"))
        for line in text.splitlines()[:-1]:
            self.assertRegex(line, r'^(# (TYPE|UNIT|HELP) \w+ .+|\w+\{\w+="([^"\\]|\\.)*"\} \d+)$')
        self.assertIn('stormlog_memory_bytes{what="leak"} %d\n' % (4 << 20), text)

    def test_on_github_the_summary_is_appended_and_lines_are_annotated(self):
        run = self.forms()
        summary = self.path("summary.md", "before\n")
        out = check("--max-leak", "1M", run.traces, code=1, cwd=self.path("repo"), GITHUB_STEP_SUMMARY=summary,
                    GITHUB_ACTIONS="true").stdout
        self.assertTrue(self.read("summary.md").startswith("before\n### GPU memory: failed\n"))
        self.assertRegex(out, r"(?m)^::error file=src dir/job.py,line=\d+,title=max-leak::left at the end 4 MiB, limit 1 MiB")
        self.assertNotIn("::error", check("--max-leak", "1M", run.traces, code=1, cwd=self.path("repo")).stdout)

    def test_the_summary_stays_below_what_github_takes(self):
        many = self.path("many")
        os.makedirs(many)
        outside.many_leaks(self, many, 6000)
        check("--fail-on", "warning", "--summary", self.path("s.md"), "--sarif", self.path("s.sarif"), many)
        size = os.path.getsize(self.path("s.md"))
        self.assertGreater(size, 200 << 10)
        self.assertLess(size, 1024 << 10)

    def test_json_says_the_same(self):
        run = self.forms()
        out = json.loads(check("--max-leak", "1M", "--json", run.traces, code=1).stdout)
        self.assertEqual(out["schema"], "stormlog.check")
        self.assertEqual(out["failures"], 1)
        self.assertEqual([o["level"] for o in out["outcomes"] if o["fails"]], ["critical"])



class Launched(Folder):
    """stormlog-run --gate -- CMD: records a command and checks the recording by .stormlog.ini; its exit status is the command's, else the check's."""

    def run_(self, limit, *command):
        self.path(".stormlog.ini", "[check]\nmax-peak = %s\n" % limit)
        env = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"), SIM_DIR=self.path("sim"),
                   PATH=os.path.dirname(ANALYZE) + os.pathsep + os.environ["PATH"])
        return subprocess.run([os.path.join(BUILD, "agent", "stormlog-run"), "--gate", "--", *command], env=env, cwd=self.folder,
                              capture_output=True).returncode

    def test_it_exits_as_check_does(self):
        hold = ("python3", "-c", PROGRAM.format(shift="", work=10, leak=4, more=""))
        self.assertEqual(self.run_("1GiB", *hold), 0)
        self.assertEqual(self.run_("1MiB", *hold), 1)

    def test_a_command_that_failed_keeps_its_status_and_one_that_recorded_nothing_fails(self):
        self.assertEqual(self.run_("1GiB", "sh", "-c", "exit 7"), 7)
        self.assertEqual(self.run_("1GiB", "true"), 3)


if __name__ == "__main__":
    unittest.main()
