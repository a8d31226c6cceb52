#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze diff: it names what changed and nothing else, and does not take noise for a change."""
import base64
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

import msgpack

import test_check
from test_check import ANALYZE, BUILD, Folder, Recording


# One line that allocates by another function on every second rank.
RANKS = """
import ctypes, os, sys
runtime, kept = ctypes.CDLL("libcudart.so.13"), []
def take(how):
    block = ctypes.c_void_p()
    assert how(ctypes.byref(block), ctypes.c_size_t(int(sys.argv[1]) << 20), None) == 0
    kept.append(block)
def main():
    for _ in range(8):
        take(runtime.cudaMallocAsync if int(os.environ["RANK"]) else runtime.cudaMalloc)
main()
"""


class Diff(Folder):
    record = test_check.Baselines.record
    lines = test_check.Baselines.lines

    def diff(self, *arguments, code=0):
        done = subprocess.run([ANALYZE, "diff", *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "400"})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def changes(self, *arguments):
        found = json.loads(self.diff("--json", *arguments))
        return {(d["of"], d["what"] if d["of"] in ("stack", "leak") else d["key"]): d
                for d in found["differences"]}

    def test_the_same_run_did_not_change(self):
        path = self.demo()
        self.assertRegex(self.diff(path, path), r"^SAME   nothing changed\nsame: .*peak 464 MiB.*\n$")
        changes = {(d["of"], d["key"]): d["change"] for d in self.changes(path, path).values()}
        self.assertEqual(changes.pop(("total", "hidden")), "unknown", "the demo's figure is the device's, a bound")
        self.assertEqual(set(changes.values()), {"same"})

    def test_what_is_not_here_of_a_side_is_told_beside_what_changed(self):
        rank = test_check.Limits.rank
        for folder in "whole", "absent", "torn":
            for number in range(4 if folder != "absent" else 3):
                path = rank(self, number, folder)
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 200)
        whole, absent, torn = map(self.path, ("whole", "absent", "torn"))
        self.assertNotIn("incomplete", self.diff(whole, whole))
        for sides, side, subject, damaged in ((absent, whole), "before", "ranks", False), ((whole, absent), "after", "ranks", False), ((whole, torn), "after", os.path.basename(path), True):
            [row] = json.loads(self.diff("--json", *sides))["incomplete"]
            self.assertEqual((row["side"], row["path"], row["subject"], row["damaged"]), (side, sides[side == "after"], subject, damaged))
            self.assertIn("\n\nincomplete: %s, %s: %s: %s\n" % (side, row["path"], subject, row["what"]), self.diff(*sides))

    def test_a_backward_pass_is_a_training_step(self):
        gpu = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "gpu")
        done = subprocess.run([ANALYZE, "diff", *(os.path.join(gpu, name) for name in ("torch-fit", "torch-compile"))], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"(?m)^LABELS, at their peak\n  more .*  training step \(backward\)  329 MiB -> 336 MiB$")

    def test_more_less_new_and_gone(self):
        a, b = self.record("a", work=10, leak=4), self.record("b", work=7, leak=6, more="def fresh():\n    take(1)\nfresh()")
        changes = self.changes(a, b)
        leak = changes[("total", "leak")]
        self.assertEqual((leak["change"], leak["change_bytes"]), ("more", 3 << 20))
        self.assertEqual(changes[("total", "peak")]["change"], "less")
        of_leaks = sorted(d["change"] for d in changes.values() if d["of"] == "leak")
        self.assertEqual(of_leaks, ["more", "new"])
        back = sorted(d["change"] for d in self.changes(b, a).values() if d["of"] == "leak")
        self.assertEqual(back, ["gone", "less"])
        text = self.diff(a, b)
        self.assertRegex(text, r"(?m)^  more +\+3.00 MiB  left at the end +4.00 MiB -> 7.00 MiB$")

    def test_the_line_that_changed_is_told_with_its_own_bytes(self):
        before, _ = self.lines("a", 10)
        for name, shift in (("b", ""), ("c", "import os\n\n\n")):
            after, (meant, grown, small) = self.lines(name, 20, shift)
            text = self.diff(before, after)
            for title in ("PLACES, at the peak", "LEFT at the end"):
                with self.subTest(name, title=title):
                    rows = re.search(r"(?m)^%s\n((?:  .*\n)*)" % title, text)[1]
                    self.assertRegex(rows, r"^  more +\+20.0 MiB  job.py:%d main .*  20.0 MiB -> 40.0 MiB\n$" % grown)
            same = [d["after"]["max_bytes"] >> 20 for key, d in self.changes(before, after).items() if key[0] == "stack" and d["change"] == "same"]
            self.assertEqual(sorted(same), [3, 50])
            self.assertNotIn("?", text)

    def ranks(self, name, mib):
        """Traces of two ranks, in one folder."""
        script, traces = self.path(name + "/job.py", RANKS), self.path(name + "/traces")
        for rank in (0, 1):
            run = Recording(sys.executable, script, str(mib), SIM_VRAM="8G", RANK=rank, WORLD_SIZE=2, STORMLOG_DIR=traces, STORMLOG_RUN_ID="one")
            self.addCleanup(shutil.rmtree, run.folder, True)
        return traces

    def test_places_of_the_same_words_are_told_apart(self):
        before, after = self.ranks("a", 1), self.ranks("b", 2)
        rows = json.loads(self.diff("--json", before, after))["differences"]
        for of in ("stack", "leak"):
            said = [d["what"] for d in rows if d["of"] == of]
            self.assertEqual(sorted(re.sub(r".* \(|, .*", "", what) for what in said), ["device", "pool"])
            self.assertEqual([d["change_bytes"] for d in rows if d["of"] == of], [8 << 20] * 2)
        self.assertEqual(len({(d["of"], d["what"]) for d in rows}), len(rows))
        self.assertRegex(self.diff(before, after), r"job.py:\d+ take.* \(pool, job.py\) ")

    def test_what_lies_inside_the_spread_is_noise(self):
        a = [self.record("a%d" % i, leak=leak) for i, leak in enumerate((4, 6))]
        b = [self.record("b%d" % i, leak=leak) for i, leak in enumerate((5, 7))]
        far = [self.record("c%d" % i, leak=leak) for i, leak in enumerate((8, 9))]
        self.assertEqual(self.changes(*a, "--", *b)[("total", "leak")]["change"], "noise")
        self.assertEqual(self.changes(*a, "--", *far)[("total", "leak")]["change"], "more")

    def test_differential_stacks_name_no_lines(self):
        a, b = self.record("a"), self.record("b", shift="\n\n\n", leak=6, work=3)
        out = self.path("d.txt")
        self.diff("--collapsed", out, a, b)
        rows = [line.rsplit(" ", 2) for line in self.read("d.txt").splitlines()]
        for row in rows:  # CPython before 3.11 has frames of its own between those of the script
            row[0] = ";".join(frame for frame in row[0].split(";") if frame.startswith("job.py "))
        remember = [row for row in rows if "job.py remember;job.py take" in row[0]]
        self.assertEqual([(int(row[1]), int(row[2])) for row in remember], [(0, 6 << 20)])
        work = [row for row in rows if "job.py work;job.py take" in row[0]]
        self.assertEqual([(int(row[1]), int(row[2])) for row in work], [(10 << 20, 0)])

    def test_a_page_has_a_bound_and_says_what_it_left_out(self):
        many, page = self.path("many"), self.path("d.html")
        os.mkdir(many)
        subprocess.run([os.path.join(BUILD, "tests", "gate", "make_many_leaks"), many, "5000"], check=True)
        before = self.demo()
        self.diff("--html", page, before, many)
        whole = os.path.getsize(page)
        self.diff("--html", page, "--html-max-bytes", "300K", before, many)
        small = os.path.getsize(page)
        self.assertLess(300 << 10, whole)
        self.assertLessEqual(small, 300 << 10)
        block = re.search(r'type="text/plain">([^<]*)<', self.read("d.html"))
        if not block:  # built without node
            self.assertRegex(self.read("d.html"), r"[1-9]\d* more rows: --html-max-bytes")
            return
        data = msgpack.unpackb(gzip.decompress(base64.b64decode(block[1])))
        rows = json.loads(self.diff("--json", before, many))["differences"]
        self.assertEqual(data["places"]["new"], sum(d["change"] == "new" and d["of"] in ("stack", "leak") for d in rows))
        because = json.loads(self.diff("--json", before, many))["because"]
        told = [sum(row["bytes"] for row in data["because"] if row["line"] == line) for line in (False, True)]
        self.assertEqual(told[0], because["after"]["peak_bytes"] - because["before"]["peak_bytes"])
        self.assertEqual(told[1], next(term["change_bytes"] for term in because["terms"] if term["term"] == "requests"))
        said = " ".join(data["given_up"])
        self.assertIn(" %d rows, those that changed least, are left out" % (len(rows) - len(data["differences"])), said)
        self.assertRegex(said, r"[1-9]\d* stacks, those that changed least, are drawn as one")
        kept = min(abs(d["change_bytes"]) for d in data["differences"] if d["of"] != "total" and d["change"] not in ("same", "noise", "unknown"))
        left = {d["key"] for d in rows} - {d["key"] for d in data["differences"]}
        self.assertLessEqual(max(abs(d["change_bytes"]) for d in rows if d["key"] in left), kept)
        held = [sum(struct.unpack("<%dd" % (len(data["stacks"][side].data) // 8), data["stacks"][side].data)) for side in ("before", "after")]
        self.assertEqual(held[1], 5000 * 512)

    def test_the_terminal_shows_what_changed_most(self):
        many = self.path("many")
        os.mkdir(many)
        subprocess.run([os.path.join(BUILD, "tests", "gate", "make_many_leaks"), many, "500"], check=True)
        short, whole = self.diff(self.demo(), many), self.diff("--all", self.demo(), many)
        self.assertLess(len(short.splitlines()), 200)
        self.assertRegex(short, r"and \d+ more that changed less")
        self.assertGreater(len(whole.splitlines()), 1000)

    def test_usage(self):
        self.diff(code=2)
        self.diff(self.demo(), code=2)
        self.diff(self.demo(), self.demo(), self.demo(), code=2)
        self.diff(self.demo(), self.path("nowhere"), code=2)
        self.diff(self.demo(), "--", code=2)


if __name__ == "__main__":
    unittest.main()
