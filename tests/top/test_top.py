#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_top.py FOLLOWED TOP PROBER: screens of stormlog-top in tmux.  The jobs' arguments give the expected figures."""
import fcntl
import glob
import json
import os
import pickle
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

TOP, PROBER = map(os.path.abspath, (sys.argv.pop(2), sys.argv.pop(2)))
for folder in "hostile", "follow", "snapshot", "":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import landlock
import made
import test_names
from test_follow import Job, e2e  # takes FOLLOWED, exits 77 where it cannot run

VIEWS = ("Overview", "Places", "Time", "PyTorch", "Ranks", "Findings", "Calls")

# A pool registered by the C interface: 64 MiB from the driver, with five blocks.
POOLS = """
import ctypes, time
class Api(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_size_t)] + [(name, ctypes.c_void_p) for name in
        ("push", "push_step", "pair", "pop", "mark", "metadata", "name", "flush", "record", "trace", "block", "block_gone")]
block = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)(Api.in_dll(ctypes.CDLL(None), "stormlog_api_v1").block)
cuda, at = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
assert not cuda.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(64 << 20))
for i in range(4):
    block(at.value + (i * 12 << 20), 12 << 20, b"weights")
block(at.value + (48 << 20), 2 << 20, b"cache")
time.sleep(100)
"""

# Forty places, each of a different size.
PLACES = """
import ctypes, time
cuda, at = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
%s
time.sleep(100)
""" % "\n".join("def place_%d(): cuda.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(%d << 20))\nplace_%d()" % (n, 42 - n, n) for n in range(40))

# One line allocates in first() and in second().  Then the blocks of first() and gone() are freed, and second() allocates once more.
MOVES = """
import ctypes, os, sys, time
cuda, held = ctypes.CDLL("libcudart.so.12"), []
def place(mib):
    held.append(ctypes.c_void_p())
    assert not cuda.cudaMalloc(ctypes.byref(held[-1]), ctypes.c_size_t(mib << 20))
def step(): place(100)
def first(): step()
def second(): step()
def gone():
    held.append(ctypes.c_void_p())
    assert not cuda.cudaMalloc(ctypes.byref(held[-1]), ctypes.c_size_t(100 << 20))
first(), first(), second(), gone()
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
for number in 0, 1, 3:
    assert not cuda.cudaFree(held[number])
second()
time.sleep(100)
"""


def row_of(pid):
    """Pattern of its row: the pid, after its rank in the view of ranks.  A small pid may be a size elsewhere ("500 MiB")."""
    return r"\n *(?:\S+ +)?%d " % pid


class Terminal:
    """stormlog-top in a terminal of its own."""

    def __init__(self, *arguments, columns=80, rows=24, locale="C.UTF-8", cwd="/tmp", program=(TOP,)):
        self.socket = "stormlog-%d-%d" % (os.getpid(), time.monotonic_ns())
        self.tmux("new-session", "-d", "-c", cwd, "-x", str(columns), "-y", str(rows), "env", "LC_ALL=" + locale, *program, "-d", "0.2", *arguments)

    def tmux(self, *arguments, check=True):
        return subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", *arguments], capture_output=True, text=True, check=check)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.tmux("kill-server", check=False)

    def screen(self):
        return self.tmux("capture-pane", "-p").stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def click(self, pattern, buttons=("20", "23")):
        """Presses and releases the first button at the end of a match on the screen, encoded as xterm and tmux do."""
        screen = self.screen()
        before = screen[:re.search(pattern, screen).end() - 1]
        at = ["%x" % (33 + number) for number in (len(before) - before.rfind("\n") - 1, before.count("\n"))]
        for button in buttons:
            self.keys("-H", "1b", "5b", "4d", button, *at)

    def wait_for(self, pattern, seconds=120):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            screen = self.screen()
            if re.search(pattern, screen):
                return screen
            time.sleep(0.1)
        raise AssertionError("%r is never there:\n%s" % (pattern, screen))

    def runs(self):
        return self.tmux("ls", check=False).returncode == 0


def holding(*steps, **environment):
    return Job("python3", e2e.SCRIPT, *steps, "sleep=100", SIM_VRAM="2G", **environment)


@unittest.skipUnless(shutil.which("tmux"), "tmux is needed")
class Top(unittest.TestCase):
    def test_each_view_small_and_large(self):
        for columns, rows in ((80, 24), (200, 50)):
            with self.subTest(columns), holding("alloc=300", "tensor=50", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1") as job, \
                    Terminal(job.traces, columns=columns, rows=rows) as top:
                screen = top.wait_for(r"%d +0 +0 +556 MiB +556 MiB" % job.process.pid)  # a tensor's segment has 256
                self.assertRegex(screen, "device 0 +.*of 2.00 GiB")
                for number, wanted in enumerate((r"556 MiB", r"0 +300 MiB +1 .*script\.py:\d+ <module>", r"556 MiB +.*[█▄]",
                                                 r"50\.0 MiB +256 MiB +206 MiB +80\.5% +206 MiB", r"from median", r"nothing to report|warning|info",
                                                 r"running +\d+ +script\.py"), 1):
                    top.keys(str(number))
                    screen = top.wait_for(wanted)
                    self.assertTrue(all(name in screen for name in VIEWS), screen)
                    self.assertLessEqual(max(map(len, screen.splitlines())), columns)
                    self.assertIn("q quit", screen.splitlines()[0])
                    self.assertIn("m mark", screen.splitlines()[rows - 1])

    def test_pools_of_frameworks_and_what_their_blocks_are_called(self):
        with Job(sys.executable, "-c", POOLS, SIM_VRAM="2G") as job, Terminal(job.traces, columns=120) as top:
            top.wait_for("64.0 MiB")
            top.keys("4")
            screen = top.wait_for(r"%d device 0: pools of frameworks 64\.0 MiB, named 50\.0 MiB, unnamed 14\.0 MiB" % job.process.pid)
            self.assertRegex(screen, r"(?s)48\.0 MiB in 4 blocks  weights .*2\.00 MiB in 1 blocks  cache ")
            self.assertNotRegex(screen, r"%d +- +0 " % job.process.pid)  # PyTorch holds none of it

    def test_what_was_born_since_the_mark_and_the_place_that_grows(self):
        with holding("alloc=100", "grow=500") as job, Terminal(job.traces, columns=160) as top:
            screen = top.wait_for(r"device 0 .*\+[\d.]+ MiB/s\s+grows at script\.py:\d+ \w+")
            self.assertRegex(screen, r"\+[\d.]+ MiB/s")
            top.wait_for(r" 600 MiB +600 MiB")
            top.keys("2")
            top.wait_for(r"500 MiB +500 +\+\d")
            top.keys("m")
            top.wait_for("marked")
            top.keys("k")
            screen = top.wait_for(r"500 MiB +500 +0 B")
            self.assertNotRegex(screen, r" \+\d+ MiB ")

    def test_all_live_views_and_the_report_foretell_the_same_of_a_job_that_stands_still(self):
        """On a device of 1 GiB, and on one of 2 GiB with a limit of 1 GiB.  Nothing is foretold in the first 24 s."""
        steps = ["calls=2", "losses=2", "sleep=0.12"] * 400
        with Job("python3", e2e.SCRIPT, *steps, SIM_VRAM="1G") as full, Job("python3", e2e.SCRIPT, *steps, SIM_VRAM="2G", STORMLOG_LIMIT="1G") as limited:
            for job in full, limited:
                job.wait_for(lambda known: known and known[0]["memory"] and known[0]["memory"][0]["live_bytes"] >= 440 << 20)
                self.assertTrue(job.stop())
                said = []
                for verb in [], ["monitor", "--duration", "0.1"], ["watch", "--duration", "1", "--rule", "full-in < 1h"]:
                    done = subprocess.run([e2e.ANALYZE, *verb, job.traces], capture_output=True, text=True)
                    said.append(done.stdout + done.stderr)
                with Terminal(job.traces) as top:
                    said.append(top.wait_for("full in .* at this rate"))
                report, *live = (re.search(r"(?s)full[\s-]in.*? ([\d.]+) s(?:econds)?\b", text) for text in said)
                self.assertTrue(report and all(live), said)
                for found in live:
                    self.assertAlmostEqual(float(found[1]), float(report[1]), delta=0.05 * float(report[1]))  # their windows end apart beside a busy neighbour

    def test_what_one_stack_freed_and_another_took_is_no_growth_of_their_line(self):
        with tempfile.TemporaryDirectory() as folder, Job(sys.executable, "-c", MOVES, folder + "/go", SIM_VRAM="2G") as job, \
                Terminal(job.traces, columns=160) as top:
            top.wait_for(r" 400 MiB +400 MiB")
            top.keys("2", "m")
            top.wait_for(r" 300 MiB +3 +0 B .*place")
            open(folder + "/go", "w").close()
            self.assertRegex(top.wait_for(r" 200 MiB +2 +-100 MiB .*place"), r" 0 B +0 +-100 MiB .*gone")

    def test_a_rank_of_two_devices_peaks_at_most_at_what_each_did_alone(self):
        with holding("alloc=500", "free", "device=1", "alloc=300", RANK="0", SIM_DEVICES="2") as job, Terminal(job.traces) as top:
            top.wait_for(r" 300 MiB +300 MiB")
            top.keys("5")
            top.wait_for(r" 300 MiB +<= +800 MiB ")
            top.keys("3")
            top.wait_for("memory held, at most")

    def test_a_device_has_in_use_what_the_newest_sample_of_all_processes_says(self):
        with holding("alloc=100", "wait=go", "alloc=700") as job:
            job.wait_for(len)  # so that this run is read first
            ready = os.path.join(job.run.folder, "ready")
            with subprocess.Popen(["python3", e2e.SCRIPT, "alloc=50", "samples=2", "ready=" + ready, "sleep=100"], env=dict(job.environment, RANK="1")) as other:
                try:
                    while not os.path.exists(ready):
                        time.sleep(0.02)
                    with Terminal(job.traces) as top:
                        top.wait_for("750 MiB of 2.00 GiB")
                        other.send_signal(signal.SIGSTOP)
                        open(os.path.join(job.run.folder, "go"), "w").close()
                        top.wait_for("1.42 GiB of 2.00 GiB")
                finally:
                    other.kill()

    def test_a_device_without_memory_of_its_own_has_the_host_s_size(self):
        """NVML refuses it, as on GB10."""
        host = "%.1f GiB" % (os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / (1 << 30))
        with Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100", SIM_INTEGRATED="1", SIM_VRAM="") as job, Terminal(job.traces) as top:
            screen = top.wait_for(r"device 0 +\S* +\S+ [MG]iB of \S+ GiB")
            self.assertRegex(screen, r"[MG]iB of %s" % re.escape(host))
            self.assertRegex(screen, r"%d +.*100 MiB" % job.process.pid)

    def test_keys(self):
        with holding("alloc=100") as job, Terminal(job.traces) as top:
            top.wait_for("100 MiB")
            top.keys("?")
            top.wait_for("mark this moment")
            top.keys("?")
            top.wait_for("hidden +growth")
            top.keys("Tab")
            top.wait_for("since mark")
            top.keys("BTab")
            top.wait_for("hidden +growth")
            top.keys("/", "nowhere")
            top.wait_for("/nowhere_")
            self.assertNotRegex(top.screen(), row_of(job.process.pid))
            top.keys("Enter")
            top.wait_for("Esc every line")
            top.keys("Escape")
            top.wait_for(r"%d +" % job.process.pid)
            top.keys("Enter")
            top.wait_for("Esc all processes")
            top.keys("Escape")
            top.keys("1")
            top.wait_for("hidden +growth")
            top.keys("Space")
            top.wait_for("paused")
            top.keys("q")
            until = time.monotonic() + 60
            while top.runs() and time.monotonic() < until:
                time.sleep(0.1)
            self.assertFalse(top.runs())

    def test_the_mouse(self):
        with holding("alloc=100") as job, Terminal(job.traces) as top:
            top.wait_for("100 MiB")
            top.click("Places")
            top.wait_for("since mark")
            top.click("Overview")
            top.wait_for("hidden +growth")
            top.click(row_of(job.process.pid))
            top.wait_for("Esc all processes")

    def test_a_list_longer_than_the_screen(self):
        with Job(sys.executable, "-c", PLACES, SIM_VRAM="2G") as job, Terminal(job.traces) as top:
            top.wait_for("900 MiB")  # 3 + 4 + ... + 42
            top.keys("2")
            first, last = r"42\.0 MiB [^\n]*place_0 ", r"3\.00 MiB [^\n]*place_39 "

            def shows(wanted, gone):  # a half-drawn screen contains both
                top.wait_for(r"(?s)\A(?!.*%s).*%s" % (gone, wanted))
            shows(first, last)
            for there, back in ("End", "Home"), ("NPage", "PPage"), ("Down", "Up"), ("j", "k"):
                top.keys(*[there] * (1 if there == "End" else 3 if there == "NPage" else 40))
                shows(last, first)
                top.keys(*[back] * (1 if back == "Home" else 3 if back == "PPage" else 40))
                shows(first, last)
            for button, wanted, gone in ("61", last, first), ("60", first, last):  # the wheel, three lines each
                top.click("Places", [button] * 14)
                shows(wanted, gone)
            top.keys("F1")
            top.wait_for("mark this moment")
            top.keys("F10")
            until = time.monotonic() + 60
            while top.runs() and time.monotonic() < until:
                time.sleep(0.1)
            self.assertFalse(top.runs())

    def test_the_page_of_this_moment(self):
        with holding("alloc=100") as job, Terminal(job.traces, columns=120, cwd=job.run.folder) as top:
            top.wait_for("100 MiB")
            top.keys("w")
            folder = re.search(r"(stormlog-page-\S+)/report.html is there", top.wait_for(r"report\.html is there"))[1]
            with open(os.path.join(job.run.folder, folder, "report.json")) as file:
                process, = json.load(file)["processes"]
            self.assertEqual([row["live_bytes"] for row in process["memory"]], [100 << 20])

    def test_alerts_have_a_history(self):
        with holding("alloc=1500", "try=1500") as job, Terminal(job.traces, columns=160) as top:
            top.keys("6")
            screen = top.wait_for(r"alerts, the last first\s+\d\d:\d\d:\d\d raised \(ooms > 0\): ooms is 1, pid %d" % job.process.pid)
            self.assertEqual(screen.count("raised (ooms > 0)"), 1)

    def test_python_stormlogs_own_files_open_beside_runs(self):
        event = {"schema_version": 3, "session_id": "theirs", "event_type": "sample", "collector": "stormlog.cuda_tracker", "sampling_interval_ms": 1000,
                 "pid": 4242, "host": "node-a", "device_id": 1, "allocator_allocated_bytes": 300 << 20, "allocator_reserved_bytes": 400 << 20,
                 "allocator_active_bytes": None, "allocator_inactive_bytes": None, "allocator_change_bytes": 0, "device_used_bytes": 900 << 20,
                 "device_free_bytes": None, "device_total_bytes": 2 << 30, "context": None, "metadata": {}}
        with holding("alloc=100") as job:
            path = os.path.join(job.run.folder, "their-events.jsonl")
            with open(path, "w") as file:
                for at, held, kind in ((1, 700, "sample"), (2, 300, "sample"), (3, 300, "warning")):
                    file.write(json.dumps(dict(event, timestamp_ns=1700000000000000000 + at, event_type=kind, allocator_allocated_bytes=held << 20,
                                               context="Memory usage at 81.0%" if kind == "warning" else None)) + "\n")
            with Terminal(path, columns=120) as top:
                top.wait_for("Python Stormlog's files")
            with Terminal(job.traces, path, columns=120) as top:
                screen = top.wait_for(r"%d +- +0 +100 MiB" % job.process.pid)
                self.assertRegex(screen, r"4242 +- +1 +300 MiB +700 MiB +500 MiB +incomplete theirs")
                top.keys("6")
                top.wait_for(r"\d\d:\d\d:\d\d warning: Memory usage at 81.0% \(theirs\)")
                top.keys("S", "1")
                self.assertNotRegex(top.wait_for("session theirs  0 running"), row_of(job.process.pid))
                top.keys("3")
                top.wait_for("(?s)session theirs, pid 4242: memory of its allocator.*700 MiB +█")

    def test_a_session_of_an_unknown_process(self):
        with Terminal(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/stormlog/oom"), columns=120) as top:
            top.wait_for(r"\n +- +- +0 +3\.00 GiB +3\.00 GiB")
            top.keys("S", "3")
            top.wait_for(r"session sid-oom: memory of its allocator")

    def test_resize(self):
        with holding("alloc=100") as job, Terminal(job.traces) as top:
            top.wait_for("100 MiB")
            for columns, rows in ((200, 50), (30, 5), (80, 24)):
                top.tmux("resize-window", "-x", str(columns), "-y", str(rows))
                # Until the redraw the screen is the old one, which has the same words.
                screen = top.wait_for("too small" if columns < 40 else r"(?s)\A(?:[^\n]*\n){%d}[^\n]*m mark" % (rows - 1))
                self.assertIn("too small" if columns < 40 else "100 MiB", screen)

    def test_a_snapshot_is_no_process_that_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "s.pickle")
            allocator = made.Allocator()
            made.training(allocator, 2)
            allocator.oom(5 << 20, 77, made.frames("a.py:3 f"))
            whole = made.snapshot(allocator, drop=30)[0]
            with open(path, "wb") as file:
                pickle.dump(whole, file)
            with open(os.path.join(folder, "end.pickle"), "wb") as file:
                pickle.dump({**whole, "device_traces": [[]]}, file)
            with Terminal(path) as top:
                screen = top.wait_for(r"s\.pickle  1 snapshot")
                self.assertNotRegex(screen, r"running|ended|device 0|\?.of")
                top.keys("2")
                top.wait_for(r"made before the window, blocks of")
                top.keys("6")
                top.wait_for(r"s\.pickle: OUT OF MEMORY: a\.py:3 asks 5 MiB")
            with Terminal(os.path.join(folder, "end.pickle")) as top:
                top.wait_for("1 snapshot")
                top.keys("3")
                top.wait_for("the file has no window")

    def test_a_job_that_is_killed(self):
        with holding("alloc=100") as job, Terminal(job.traces) as top:
            top.wait_for("100 MiB")
            job.process.send_signal(signal.SIGKILL)
            job.process.wait()
            screen = top.wait_for("killed")
            self.assertIn("0 running, 1 ended", screen)

    def test_a_trace_that_cannot_be_read_whole(self):
        with Job("python3", e2e.SCRIPT, "alloc=100") as job:
            job.process.wait()
            name, = glob.glob(os.path.join(job.traces, "**", "*.msgpack.zst"), recursive=True)
            os.truncate(name, os.path.getsize(name) - 40)
            with Terminal(job.traces) as top:
                top.wait_for("100 MiB .* torn")

    def test_ranks_of_two_runs_are_not_compared_and_findings_are_of_both(self):
        with holding("alloc=1500", "try=1500") as job, holding("alloc=5", STORMLOG_RUN_ID="another") as other, \
                Terminal(job.traces, other.traces) as top:
            top.wait_for("2 running")
            top.keys("5")
            screen = top.wait_for("run follow")
            self.assertIn("run another", screen)
            self.assertEqual(len(re.findall(r"\+0\.0d", screen)), 2, screen)
            top.keys("6")
            top.wait_for("OUT OF MEMORY: ")

    def test_one_run_is_chosen_and_a_rank_a_function_a_library_filtered(self):
        with holding("alloc=100", "tensor=50", RANK="1", WORLD_SIZE="20") as job:
            job.wait_for(len)  # runs are selected in the order of their arrival
            with holding("alloc=200", RANK="11", WORLD_SIZE="20", STORMLOG_RUN_ID="another") as other, \
                    Terminal(job.traces, other.traces, columns=160) as top:
                top.wait_for("2 running")
                pids = {run.process.pid for run in (job, other)}

                def shows(pattern, pid):
                    screen = top.wait_for(r"(?s)\A(?=.*%s)(?=.*%s)" % (pattern, row_of(pid)))
                    self.assertEqual({one for one in pids if re.search(row_of(one), screen)}, {pid}, screen)
                for run, pid in ("run follow  1 running", job.process.pid), ("run another  1 running", other.process.pid):
                    top.keys("s")
                    for view in "1", "5", "7":
                        top.keys(view)
                        top.wait_for({"1": "hidden +growth", "5": "from median", "7": "calls in flight"}[view])
                        shows(run, pid)
                top.keys("2")
                self.assertNotIn("100 MiB", top.wait_for("200 MiB"))
                top.keys("3")
                top.wait_for("rank 11, pid %d: memory held" % other.process.pid)
                top.keys("w")
                folder = "/tmp/" + re.search(r"(stormlog-page-\S+)/report.html is there", top.wait_for(r"report\.html is there"))[1]
                self.addCleanup(shutil.rmtree, folder)
                with open(os.path.join(folder, "report.json")) as file:
                    self.assertEqual([process["pid"] for process in json.load(file)["processes"]], [other.process.pid])
                top.keys("s", "1")
                top.wait_for("2 running")
                top.keys("/", "rank 1", "Enter")  # must not match rank 11
                shows("/ filter rank 1", job.process.pid)
                top.keys("/", "allocate", "Enter", "2")
                self.assertNotIn("PyTorch tensors", top.wait_for(r"since mark(?s:.*)script\.py:\d+ allocate"))
                top.keys("/", "PyTorch", "Enter")
                self.assertNotIn("allocate", top.wait_for("50.0 MiB .* PyTorch").split("since mark")[1])

    def test_findings_with_the_same_words_are_one_line(self):
        with holding("alloc=1500", "try=1500", RANK="0") as job, holding("alloc=1400", "try=1700", RANK="1") as other, \
                Terminal(job.traces, other.traces, columns=160) as top:
            top.wait_for("2 running")
            top.keys("6")
            screen = top.wait_for("OUT OF MEMORY: ")
            self.assertEqual(screen.count("OUT OF MEMORY"), 1, screen)

    def test_findings_and_the_keys_are_read_whole_on_a_small_terminal(self):
        with holding("alloc=1500", "try=1500", RANK="0") as job, Terminal(job.traces, columns=80) as top:
            top.wait_for("1 running")
            top.keys("6")
            self.assertRegex(" ".join(top.wait_for("OUT OF MEMORY").split()), r"pid \d+: OUT OF MEMORY: script\.py:\d+ asks 1\.46 GiB, .*why: ")
            top.keys("?")
            for words in "that view", "Esc: all", "in deviations", "a new segment", "Stormlog's files\\.":
                top.wait_for(words)

    def test_a_name_of_several_lines_begins_no_line_of_findings(self):
        with tempfile.TemporaryDirectory() as folder:
            test_names.record(os.path.join(folder, "rank-00000-100.msgpack.zst"))
            with Terminal(folder, columns=200, rows=40) as top:
                top.wait_for("1 ended")
                top.keys("6")
                screen = top.wait_for("OUT OF MEMORY: .* asks 256 GiB")
                self.assertNotRegex(screen, r"(?m)^(b\?|: ?:set-env|# ?#)")

    def test_findings_say_how_old_they_are_and_are_made_anew(self):
        with holding("alloc=100") as job, Terminal(job.traces) as top:
            top.wait_for("1 running")
            top.keys("6")
            top.wait_for(r"findings of a report \d+\.\d s ago")
            top.wait_for("findings of a report of this moment", 240)  # a hundred times the processor time of one

    def test_a_finished_run_and_no_utf8(self):
        with Job("python3", e2e.SCRIPT, "alloc=100") as job:
            job.process.wait()
            with Terminal(job.traces, locale="C") as top:
                screen = top.wait_for("100 MiB .*  ended")
                self.assertTrue(screen.isascii(), screen)
                time.sleep(1.2)
                self.assertEqual(top.screen().split("\n")[0], screen.split("\n")[0])  # its clock is stopped

    def test_recordings_of_the_node_without_a_folder_and_one_by_its_number(self):
        with holding("alloc=77") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            with Terminal(rows=50) as top:
                top.wait_for(r"%d +- +0 +77\.0 MiB" % job.process.pid)
            with Terminal("-p", str(job.process.pid)) as top:
                top.wait_for(r"1 running, 0 ended")

    def test_code_that_a_trace_made_run_stays_inside_on_the_screen_and_in_findings(self):
        home = tempfile.mkdtemp(prefix="stormlog-top-", dir="/var/tmp")  # not in TMPDIR, which the sandbox lets the program write
        self.addCleanup(shutil.rmtree, home)
        with open(os.path.join(home, "secret"), "w") as out:
            out.write("kept")
        said = os.path.join(home, "..", os.path.basename(home) + ".said")
        self.addCleanup(os.unlink, said)
        probed = ("LD_PRELOAD=" + PROBER, "PROBE_FOLDER=" + home, "PROBE_PROCESS=%d" % os.getpid(), "sh", "-c", 'exec "$0" "$@" 2>%s' % said, TOP)
        with holding("alloc=100") as job, Terminal(job.traces, program=probed) as top:
            top.wait_for("100 MiB")
            top.keys("6")
            top.wait_for("nothing to report|warning|info")
            with open(said) as lines:
                said = lines.read().splitlines()
        if not landlock.is_here():
            self.skipTest("this kernel has no Landlock")
        self.assertEqual(set(said), {"probe: done", "probe: broke out by a process that stays"}, said)  # its findings are such a process
        self.assertGreaterEqual(len(said), 2)
        self.assertEqual(os.listdir(home), ["secret"])

    def test_a_signal_ends_it_as_its_key_does_in_a_terminal_of_any_size(self):
        def turn(terminal, columns):
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))

        def read(pid, terminal, word=None):
            """Waits for the word, without one for the end, as long as the program lives.  Returns its wait status once it has ended."""
            said, ended = b"", 0
            while (not word or word not in said) and not ended:
                ended, status = os.waitpid(pid, os.WNOHANG)
                while select.select([terminal], [], [], 0 if ended else 0.1)[0]:
                    try:
                        said += os.read(terminal, 65536)
                    except OSError:  # it has left the terminal
                        break
            return status if ended else None
        empty = tempfile.mkdtemp(prefix="stormlog-top-")
        self.addCleanup(os.rmdir, empty)
        for before, after in (80, 80), (80, 65535), (65535, 65535):
            for way in b"q", b"\x03", signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
                pid, terminal = pty.fork()
                if not pid:
                    turn(0, before)
                    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # below nohup it is ignored, and then by top too
                    os.execve(TOP, [TOP, "-d", "0.2", empty], dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8"))
                self.assertIsNone(read(pid, terminal, b"help"))
                if before != after:
                    turn(terminal, after)
                    self.assertIsNone(read(pid, terminal, b"help"))
                os.write(terminal, way) if isinstance(way, bytes) else os.kill(pid, way)
                self.assertEqual(os.waitstatus_to_exitcode(read(pid, terminal)), 0, (before, after, way))
                os.close(terminal)

    def test_a_terminal_that_cannot_place_text(self):
        for name in ("dumb", "nonsense"):
            with Terminal("/tmp", program=("sh", "-c", "TERM=%s %s; echo status $?; sleep 100" % (name, TOP))) as top:
                self.assertIn("monitor", top.wait_for("status 2"))

    def test_what_it_cannot_do_is_said(self):
        for arguments, words in ((["/no/such"], "terminal"), *((wrong, "not what this option takes") for wrong in (
                ["-d", "0"], ["-d", "nan"], ["-d", ""], ["-p", "0"], ["-p", ""], ["-p", "x"]))):
            done = subprocess.run([TOP, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
