#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_summaries.py ANALYZE MAKE_LARGE MAKE_DEMO MAKE_HOSTS: the report of summaries is that of the traces, however they were made."""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import zstandard

ANALYZE, MAKE, DEMO, HOSTS = map(os.path.abspath, sys.argv[1:5])


class Summaries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-summaries-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.traces = os.path.join(self.folder, "t")
        os.mkdir(self.traces)

    def run_it(self, *arguments, codes=(0,)):
        done = subprocess.run([ANALYZE, *arguments], cwd=self.folder, capture_output=True)
        self.assertIn(done.returncode, codes, (arguments, done.stderr))
        return done

    def analysis(self, path, name):
        """Every file of an analysis, without the time in it."""
        self.run_it("-q", "-o", name, path)
        found = {}
        for root, _, files in os.walk(os.path.join(self.folder, name)):
            for file in files:
                with open(os.path.join(root, file), "rb") as opened:
                    data = opened.read()
                # the first has the time when it was made, the other names the files that were read
                if file not in ("rollups.json", "stormlog_run.json"):
                    found[os.path.relpath(os.path.join(root, file), os.path.join(self.folder, name))] = data.replace(b" oom %s\n" % path.encode(), b" oom PATH\n").replace(b" peak %s\n" % path.encode(), b" peak PATH\n")  # of "next: ..."
        return found

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def check(self):
        random.seed(22)
        self.run_it("summarize", "-q", "-j", "1", "t", "-o", "all.summary")
        traces = ["t/" + name for name in sorted(os.listdir(self.traces)) if name.endswith(".zst")]
        for turn in range(2):
            random.shuffle(traces)
            parts = min(len(traces), 2 + turn * 3)
            for i in range(parts):
                self.run_it("summarize", "-q", *traces[i::parts], "-o", "p%d.summary" % i)
            names = ["p%d.summary" % i for i in range(parts)]
            random.shuffle(names)
            self.run_it("summarize", "-q", *names[:1], "-o", "deep.summary")
            self.run_it("summarize", "-q", *names[1:], "deep.summary", "-o", "merged.summary")
            self.assertEqual(self.read("merged.summary"), self.read("all.summary"))
        self.assertEqual(self.run_it("--json", "t").stdout, self.run_it("--json", "merged.summary").stdout)
        os.mkdir(os.path.join(self.folder, "told"))
        shutil.move(os.path.join(self.folder, "merged.summary"), os.path.join(self.folder, "told"))
        of_traces, of_summaries = self.analysis("t", "a"), self.analysis("told", "b")
        self.assertEqual(of_traces.keys(), of_summaries.keys())
        for name, data in of_traces.items():
            self.assertEqual(data, of_summaries[name], name)

    def test_ranks_of_a_large_run(self):
        subprocess.run([MAKE, "leak", self.traces, "40000", "8"], check=True)
        self.check()

    def test_clocks_and_errors_of_hosts(self):
        subprocess.run([HOSTS, self.traces, "3000", "3", "100", "5000", "5001"], check=True)
        self.check()

    def test_one_trace_with_everything(self):
        subprocess.run([DEMO, self.traces], check=True)
        self.check()

    def test_a_summary_of_a_stranger_harms_nobody(self):
        subprocess.run([DEMO, self.traces], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        data, at = self.read("x.summary"), 0
        frames = []
        while at < len(data):
            d = zstandard.ZstdDecompressor().decompressobj()
            frames.append(d.decompress(data[at:]))
            at = len(data) - len(d.unused_data)
        random.seed(5)
        refused = 0
        for _ in range(60):
            part = bytearray(frames[1])
            for _ in range(random.choice((1, 1, 4, 40))):
                part[random.randrange(len(part))] = random.randrange(256)
            packed = zstandard.ZstdCompressor().compress(bytes(part))
            index = self.index(frames[0], len(packed))
            with open(os.path.join(self.folder, "y.summary"), "wb") as file:
                file.write(index + packed)
            refused += self.run_it("--json", "y.summary", codes=(0, 3)).returncode == 3
        self.assertGreater(refused, 0, "what does not fit together was read")

    def index(self, map_of, size):
        import msgpack
        index = msgpack.unpackb(map_of)
        index["processes"][0]["bytes"] = size
        return zstandard.ZstdCompressor().compress(msgpack.packb(index))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
