#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The terminal's summary: a place is beside its figure, nothing is said twice, colours and width fit the terminal.  Findings of
report.json are in the same order, with ids that are the same in every run."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import unittest

import e2e

# two places that leak, the larger one made last; then out of memory at the peak
PROGRAM = """
import ctypes, time
cuda = ctypes.CDLL("libcudart.so.13")
def new(size):
    p = ctypes.c_void_p()
    return p if not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) else None
def scratch(): cuda.cudaFree(new(1 << 19))
def small(): return new(64 << 10)
def large(): return new(1 << 20)
kept = []
for step in range(400):
    scratch()
    kept.append(small())
    scratch()
    kept.append(large())
    time.sleep(0.001)
def too_much(): return new(8 << 30)
too_much()
for p in kept: cuda.cudaFree(p)
"""


def on_terminal(columns, *argv, **environment):
    """What a command writes, stderr included, to a terminal of so many columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR", "TERM")}
    process = subprocess.Popen(argv, stdout=slave, stderr=slave, stdin=slave, env={**env, "LC_ALL": "C.UTF-8", **environment})
    os.close(slave)
    data = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    process.wait()
    os.close(master)
    return data.decode()


class Screen(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.folder.name, "train.py")
        with open(cls.program, "w") as file:
            file.write(PROGRAM)
        cls.run_ = e2e.Recording("python3", cls.program, SIM_VRAM="4G")
        cls.again = e2e.Recording("python3", cls.program, SIM_VRAM="4G")

    @classmethod
    def tearDownClass(cls):
        cls.run_.__exit__()
        cls.again.__exit__()
        cls.folder.cleanup()

    def screen(self, columns="100", *options):
        done = subprocess.run([e2e.ANALYZE, *options, self.run_.traces], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": columns})
        return done.stdout

    def findings(self, run):
        done = subprocess.run([e2e.ANALYZE, "report", "--json", run.traces], capture_output=True, check=True)
        return json.loads(done.stdout)["findings"]

    def test_the_line_stands_beside_the_leak(self):
        text = self.screen("100", "--all")
        leaks = re.findall(r"(?m)^LEAK   (.*)\n\n((?:  .*\n)*)", text)
        self.assertEqual([re.sub(r" of every .*| every .*", "", leak[0]) for leak in leaks], ["train.py:9 keeps 1 MiB", "train.py:8 keeps 64 KiB"])
        for (_, lines), made in zip(leaks, ("train.py:9 ", "train.py:8 ")):
            self.assertEqual([line.split("<- ")[1] for line in lines.splitlines() if line.startswith("  " + made)], ["made here"], lines)

    def test_owners_at_the_peak_are_told_once(self):
        text = self.screen()
        self.assertEqual(len(re.findall(r"the card at the error|held, at the peak", text)), 1, text)
        self.assertEqual(len(re.findall(r"^ +0\.42 +\S+ .*0\.39 train\.py:9", text, re.M)), 1, text)

    def test_ids_are_those_of_the_defect(self):
        first, second = self.findings(self.run_), self.findings(self.again)
        self.assertEqual([f["stable_id"] for f in first], [f["stable_id"] for f in self.findings(self.run_)])
        by_place = lambda findings: {(f["class"], f["place"] and f["place"]["function"]): f["stable_id"] for f in findings if f["stack"]}
        self.assertGreaterEqual(len(by_place(first)), 3)
        self.assertEqual(by_place(first), by_place(second))
        self.assertEqual(len(set(by_place(first).values())), len(by_place(first)), "each its own")
        with tempfile.TemporaryDirectory() as folder:  # the lines are elsewhere, but it is the same defect
            program = os.path.join(folder, "train.py")
            with open(program, "w") as file:
                file.write("# a comment\n" * 3 + PROGRAM)
            with e2e.Recording("python3", program, SIM_VRAM="4G") as moved:
                self.assertEqual(set(by_place(self.findings(moved)).values()), set(by_place(first).values()))

    def test_the_page_has_every_leak_and_its_bytes(self):
        self.screen()
        page = self.run_.page()
        leaks = [verdict for verdict in page["answer"]["verdicts"] if verdict["word"] == "LEAK"]
        self.assertEqual([leak["bytes"] for leak in leaks], [400 << 20, 400 * (64 << 10)])
        self.assertTrue(all(leak["lines"] for leak in leaks))

    def test_findings_come_by_severity_and_bytes_with_their_figures(self):
        findings = self.findings(self.run_)
        order = ["critical", "warning", "info"]
        keys = [(order.index(f["severity"]), -(f["bytes"] or 0)) for f in findings]
        self.assertEqual(keys, sorted(keys))
        leak = next(f for f in findings if f["kind"] == "leak.kept" and f["place"]["line"] == 9)
        self.assertEqual((leak["evidence"]["births"], leak["evidence"]["kept"], leak["evidence"]["unit"]), (400, 400, "bytes"))
        oom = next(f for f in findings if f["id"].startswith("oom."))
        self.assertEqual((oom["evidence"]["requested_bytes"], oom["evidence"]["held_bytes"]), (8 << 30, 400 * (1 << 20) + 400 * (64 << 10)))

    def test_a_terminal_is_used_as_wide_as_it_is_and_a_dumb_one_stays_clean(self):
        wide = on_terminal(200, e2e.ANALYZE, self.run_.traces, TERM="xterm")
        self.assertIn("\x1b[1;31mOUT OF MEMORY", wide)
        wide = wide.replace("\r", "")
        lines = re.sub(r"\x1b\[[0-9;]*[mK]|\x1b\]8;;.*?\x1b\\", "", wide).splitlines()
        self.assertLessEqual(max(len(line) for line in lines if self.run_.traces not in line), 80, wide)  # no wider, however wide the terminal is
        for environment in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
            text = on_terminal(80, e2e.ANALYZE, self.run_.traces, **environment)
            self.assertNotIn("\x1b[1m", text)
            self.assertNotIn("\x1b[3", text)
            self.assertLessEqual(max(len(line) for line in re.sub("\r|\x1b\\[K", "", text).splitlines() if self.run_.traces not in line), 80)
        dumb = on_terminal(80, e2e.ANALYZE, self.run_.traces, TERM="dumb")
        self.assertNotIn("\x1b", dumb)
        self.assertIn("OUT OF MEMORY", dumb)

    def test_contexts_alike_are_counted(self):
        program = """
import ctypes, os, sys, time
cuda = ctypes.CDLL('libcudart.so.13')
cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 1 << 20)
os.mkdir(os.path.join(sys.argv[1], os.environ['RANK']))
while len(os.listdir(sys.argv[1])) < 4: time.sleep(0.02)
""" + e2e.SAMPLED + """
os.mkdir(os.path.join(sys.argv[1], 'sampled' + os.environ['RANK']))
while sum(name.startswith('sampled') for name in os.listdir(sys.argv[1])) < 4: time.sleep(0.02)
"""
        with tempfile.TemporaryDirectory() as folder, e2e.Recording(
                "sh", "-c", "for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 python3 -c \"$0\" %s & done; wait" % folder, program, STORMLOG_DEVICE_INTERVAL="20") as run:
            text = subprocess.run([e2e.ANALYZE, "--all", run.traces], capture_output=True, text=True, check=True).stdout
        self.assertRegex(" ".join(text.split()), r"4 contexts, together at most [\d.]+ [GM]iB")

    def test_a_line_that_leaks_on_every_rank_is_one_leak(self):
        program = """
import ctypes, os
cuda = ctypes.CDLL("libcudart.so.13")
def new(size):
    p = ctypes.c_void_p()
    return p if not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) else None
kept = []
for step in range(60 + int(os.environ["RANK"])):
    kept.append(new(1 << 20))
    for scratch in range(3): cuda.cudaFree(new(4096))
for p in kept: cuda.cudaFree(p)
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ranks.py")
            with open(path, "w") as file:
                file.write(program)
            with e2e.Recording("sh", "-c", "for r in 0 1 2; do RANK=$r WORLD_SIZE=3 python3 %s & done; wait" % path) as run:
                text = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}).stdout
                report = run.report()
                self.assertEqual(sorted(f["bytes"] >> 20 for f in report["findings"] if f["kind"] == "leak.kept"), [60, 61, 62])
                self.assertEqual(len(re.findall("^LEAK ", text, re.M)), 1, text)
                self.assertRegex(text, r"LEAK   ranks\.py:9 keeps ")
                self.assertRegex(" ".join(text.split()), r"all 62 blocks that \S+ made were .*, 62 MiB\. 3 ranks keep it, most of it rank 2, 183 MiB in all\.")
                page = run.page()
                if page:
                    self.assertEqual([verdict["figures"]["all_bytes"] for verdict in page["answer"]["verdicts"] if verdict["word"] == "LEAK"], [183 << 20])

    def test_a_worker_that_calls_a_shared_helper_once_has_its_own_line(self):
        """Only the calls of the process that forked the workers show that `pinned` is a helper."""
        program = os.path.join(e2e.HERE, "..", "diagnosis", "seen", "loader_workers.py")
        with e2e.Recording("python3", program, PYTHONDONTWRITEBYTECODE="1") as run:
            text = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100"}).stdout
            leaks = [f for f in run.report()["findings"] if f["class"] == "leak"]
        self.assertEqual([(os.path.basename(f["place"]["file"]), f["place"]["function"].split(".")[-1], f["bytes"]) for f in leaks],
                         [("dataset.py", "__getitem__", 200 * 147456)] * 2)
        self.assertEqual(re.findall(r"(?m)^LEAK   (\S+) keeps", text), ["dataset.py:11"])
        self.assertIn("2 processes keep it, the same in each", " ".join(text.split()))

    def test_others_that_hold_more_together_are_not_said_to_be_with_a_process_on_another_device(self):
        with e2e.Ranks(3, lambda rank: ["device=%d" % (rank > 0), "alloc=%d" % (12 if rank else 16), "meet=held"], devices=2, numbered=False) as ranks:
            report = ranks.report()
            text = subprocess.run([e2e.ANALYZE, "--all", ranks.traces], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"^script\.py  pid \d+ of 3 ")
        self.assertRegex(text, r"(?m)^  16\.0  MiB held, at the peak")
        self.assertRegex(text, r"note   device 1: 2 processes held 24 MiB together at most\n")
        self.assertNotRegex(text, "device 0: .* together")
        self.assertEqual(sorted(leak["bytes"] >> 20 for leak in report["leaks"]), [12, 12, 16])


class Damaged(unittest.TestCase):
    """Missing events may have held or freed memory.  The screen leaves out each verdict that they could change."""
    def screen(self, name, part):
        """Of a recording in which one byte, so much of it further, is another."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(e2e.HERE, "..", "phases", "traces", name, "rank-00000.msgpack.zst"), "rb") as file:
                trace = bytearray(file.read())
            trace[int(len(trace) * part)] ^= 0xff
            with open(os.path.join(folder, "rank-00000.msgpack.zst"), "wb") as file:
                file.write(trace)
            return subprocess.run([e2e.ANALYZE, folder], capture_output=True, text=True).stdout

    def test_a_dry_run_needs_at_least_what_was_read(self):
        said = self.screen("features_then_head", 0.97)
        self.assertRegex(said, r"(?m)^incomplete: [0-9 ]+ of [0-9 ]+ events lost")
        self.assertRegex(said, r"(?m)^MAY FIT   features_then_head.py needs at least ")
        self.assertNotIn("HELD", said)

    def test_no_memory_was_used_in_what_was_read(self):
        self.assertIn("no memory of a card was used, in what was read", self.screen("frames_then_render", 0.5))


if __name__ == "__main__":
    unittest.main()
