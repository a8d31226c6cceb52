#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Code that a hostile file made run stays inside, in every verb that reads: a library preloaded into the analyzer takes over where the first
byte is unpacked, and tries to read, write, execute and connect elsewhere."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import traces as t  # noqa: E402

ANALYZE, PROBER = map(os.path.abspath, sys.argv[1:3])
FORMATS = "perfetto pprof csv sqlite".split()


def record(folder, rank=0):
    t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (rank, 100 + rank)), t.header(rank=rank, pid=100 + rank), t.defs([]),
            t.Thread().events(2, api=t.MALLOC, kind=1, duration_ns=1, address=[4096, 8192], bytes=4096), t.footer())


class Inside(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="stormlog-inside-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.root)
        for name in "a", "b", "tmp", "home", "out":
            os.mkdir(self.at(name))
        record(self.at("a"))
        record(self.at("b"))
        with open(self.at("home/secret"), "w") as out:
            out.write("kept")

    def at(self, name):
        return os.path.join(self.root, name)

    def run_inside(self, *arguments, probe=True, **changes):
        env = dict(os.environ, TMPDIR=self.at("tmp"), ASAN_OPTIONS="verify_asan_link_order=0", **changes)
        if probe:
            env.update(LD_PRELOAD=PROBER, PROBE_FOLDER=self.at("home"))
        return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, env=env, cwd=self.at("out"), timeout=60)

    def stays(self, *arguments, codes=(0,)):
        done = self.run_inside(*arguments)
        if "no Landlock" in done.stderr:
            self.skipTest("this kernel has no Landlock")
        said = [line for line in done.stderr.splitlines() if line.startswith("probe: ")]
        self.assertEqual(said, ["probe: done"], arguments)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertEqual(os.listdir(self.at("home")), ["secret"])
        with open(self.at("home/secret")) as kept:
            self.assertEqual(kept.read(), "kept")

    def test_the_prober_gets_everywhere_where_nobody_confines(self):
        os.environ["PROBE_FOLDER"] = self.at("home")
        self.addCleanup(os.environ.pop, "PROBE_FOLDER")
        told = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]).probe()", PROBER], capture_output=True, text=True)
        for way in "reading a file", "making a file", "renaming", "execution", "UDP", "a local socket":
            self.assertIn("broke out by " + way, told.stderr)

    def test_every_verb_that_reads_traces(self):
        for verb in ["report", "--json"], ["report", "-o", self.at("out/x")], ["tree"], ["table"], ["flame"], ["timeline"], ["dump"], \
                ["entries"], ["fit"], ["check", "--max-peak", "1G", "--junit", "j.xml", "--metrics", "m"], ["pack", "-o", "x.stormlog"], \
                ["pack", "--redact", "-o", "y.stormlog"], ["summarize", "-o", "x.summary"], ["merge", "-o", "sink"], \
                ["monitor", "--duration", "0.1", "-o", "rows"]:
            with self.subTest(verb=verb):
                self.stays(*verb, self.at("a"), codes=(0, 3) if verb[0] == "merge" else (0,))  # there is nothing to merge

    def test_two_runs_and_other_tools(self):
        self.stays("diff", self.at("a"), self.at("b"), "--html", "d.html")
        for name in FORMATS:
            with self.subTest(format=name):
                self.stays("export", name, "-o", "x." + name, self.at("a"))

    def test_packs_and_summaries(self):
        self.assertEqual(self.run_inside("pack", "-o", "p.stormlog", self.at("a"), probe=False).returncode, 0)
        self.assertEqual(self.run_inside("summarize", "-o", "s.summary", self.at("a"), probe=False).returncode, 0)
        self.stays("report", "--json", self.at("out/p.stormlog"))
        self.stays("report", "--json", self.at("out/s.summary"))

    def test_telemetry(self):
        self.assertEqual(self.run_inside("report", "-q", self.at("a"), probe=False).returncode, 0)
        sinks = self.at("a/analysis/telemetry")
        sink = os.path.join(sinks, os.listdir(sinks)[0])
        for verb in ["convert", os.path.join(sink, "segment-000001.jsonl")], ["validate", sink], ["report", "--json", sink]:
            if verb[0] == "convert" and not os.path.exists(verb[1]):
                verb[1] = next(os.path.join(sink, n) for n in sorted(os.listdir(sink)) if n.startswith("segment-"))
            with self.subTest(verb=verb):
                self.stays(*verb)

    def test_a_link_to_a_trace_is_read_and_a_link_to_something_else_is_not(self):
        os.mkdir(self.at("links"))
        os.symlink(self.at("b/rank-00000-100.msgpack.zst"), self.at("links/rank-00001-7.msgpack.zst"))
        os.symlink(self.at("a"), self.at("links/more"))
        os.symlink(self.at("home/secret"), self.at("links/rank-00009-9.msgpack.zst"))
        os.symlink(self.at("home"), self.at("links/house"))
        done = self.run_inside("dump", "--run", "all", self.at("links"), probe=False)
        self.assertIn("Permission denied", done.stderr)
        self.assertTrue(done.stdout)
        self.stays("dump", self.at("links"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
