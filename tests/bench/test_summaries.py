#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_summaries.py ANALYZE MAKE_LARGE MAKE_DEMO MAKE_HOSTS: the report of summaries is that of the traces, however they were made."""
import base64
import gzip
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema
import msgpack
import zstandard

ANALYZE, MAKE, DEMO, HOSTS = map(os.path.abspath, sys.argv[1:5])


def hexadecimal(part):
    """The value as JSON can hold it: bytes as text."""
    if isinstance(part, dict):
        return {key: hexadecimal(value) for key, value in part.items()}
    if isinstance(part, list):
        return [hexadecimal(value) for value in part]
    return part.hex() if isinstance(part, bytes) else part


TRACES_ALONE = ("whole", "stays", "temporary", "ended_ns")  # fields of a place that no summary has: what became of its blocks in each stretch of the run


def page(text):
    """The page's data without TRACES_ALONE, and the rest of the page."""
    block = re.search(rb'type="text/plain">([^<]*)<', text)
    if not block:  # a page built without node names the folder
        return re.sub(rb"<p>(t|told)</p>", b"", text)
    data = msgpack.unpackb(gzip.decompress(base64.b64decode(block[1])), strict_map_key=False)
    for places in data["places"]:
        for name in TRACES_ALONE:
            del places[name]
    del data["fit"]  # only traces have it, since it replays each request
    data["answer"] = re.sub(r" /[^\s\"]*/(t|told)(?=\")", "", json.dumps(data["answer"]).replace("tree --at oom", "tree --at peak"))
    return data, text[:block.start(1)] + text[block.end(1):]


def next_of(text, path):
    """The text with one command for both: a summary has no moment but its peak."""
    text = re.sub(rb"tree(?: --(?:at (?:oom|peak)|pid \d+))+\b", b"tree", text)
    text = re.sub(rb"(stormlog-analyze [a-z]+(?: --[a-z]+ \w+)*) " + re.escape(path.encode()) + rb"(?=\s|\")", rb"\1 PATH", text)
    return re.sub(rb"(stormlog-[a-z]+[^\n\"]*?) {4,}[^\n\"]*", rb"\1", text)  # what it shows stands where the longest of several allows


def numbers(column):
    width = column[0]
    return [int.from_bytes(column[i:i + width], "little") for i in range(1, len(column), width)]


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

    def analysis(self, path, name, threads):
        """Every file of an analysis."""
        self.run_it("-q", "-j", str(threads), "-o", name, path)
        found = {}
        for root, _, files in os.walk(os.path.join(self.folder, name)):
            for file in files:
                with open(os.path.join(root, file), "rb") as opened:
                    data = opened.read()
                if file != "stormlog_run.json":  # which names the files that were read
                    found[os.path.relpath(os.path.join(root, file), os.path.join(self.folder, name))] = next_of(data, path)
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
        self.assertEqual(next_of(self.run_it("--json", "t").stdout, "t"), next_of(self.run_it("--json", "merged.summary").stdout, "merged.summary"))
        os.mkdir(os.path.join(self.folder, "told"))
        shutil.move(os.path.join(self.folder, "merged.summary"), os.path.join(self.folder, "told"))
        of_traces, of_summaries = self.analysis("t", "a", 1), self.analysis("told", "b", 5)
        self.assertEqual(self.analysis("t", "c", 5), of_traces, "threads change the report")
        self.assertEqual(of_traces.keys(), of_summaries.keys())
        for name, data in of_traces.items():
            told = of_summaries[name]
            self.assertEqual(*((page(data), page(told)) if name == "report.html" else (data, told)), name)

    def test_ranks_of_a_large_run(self):
        subprocess.run([MAKE, "leak", self.traces, "96000", "8"], check=True)
        self.check()

    def test_clocks_and_errors_of_hosts(self):
        subprocess.run([HOSTS, self.traces, "3000", "3", "100", "5000", "5001"], check=True)
        self.check()

    def test_one_trace_with_everything(self):
        subprocess.run([DEMO, self.traces], check=True)
        self.check()

    def test_what_is_torn_or_empty_is_merged_as_what_it_is(self):
        subprocess.run([MAKE, "leak", self.traces, "4000", "2"], check=True)
        for i in range(4):  # four parts of two processes: two parts are empty
            self.run_it("summarize", "-q", "--shard", "%d/4" % (i + 1), "t", "-o", "%d.summary" % i)
        sizes = [len(self.read("%d.summary" % i)) for i in range(4)]
        empty = sorted(range(4), key=lambda i: sizes[i])[:2]
        self.run_it("summarize", "-q", *["%d.summary" % i for i in empty], "-o", "none.summary")
        self.assertEqual(self.parts("none.summary")[0]["processes"], [])
        self.run_it("--json", "none.summary", codes=(3,))
        self.run_it("summarize", "-q", "none.summary", *["%d.summary" % i for i in range(4) if i not in empty], "-o", "both.summary")
        whole = self.read("both.summary")
        for size in (10, len(whole) // 2, len(whole) - 1):
            with open(os.path.join(self.folder, "torn.summary"), "wb") as file:
                file.write(whole[:size])
            self.assertIn(b"torn.summary", self.run_it("summarize", "-q", "torn.summary", "none.summary", "-o", "merged.summary", codes=(3,)).stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "merged.summary")))

    def test_parts_that_are_missing_are_said(self):
        subprocess.run([MAKE, "places", self.traces, "4000", "5"], check=True)
        for i in range(3):
            self.run_it("summarize", "-q", "--shard", "%d/3" % (i + 1), "t", "-o", "parts/%d.summary" % i)
        missing = len(self.parts("parts/1.summary")[0]["processes"])
        self.run_it("summarize", "-q", "parts", "-o", "whole.summary")
        self.run_it("summarize", "-q", "t", "-o", "t.summary")
        self.assertEqual(self.read("whole.summary"), self.read("t.summary"))
        self.assertNotIn(b"not here", self.run_it("parts").stderr)
        os.unlink(os.path.join(self.folder, "parts/1.summary"))
        self.run_it("summarize", "-q", "parts", "-o", "merged.summary")
        said = b"%d of 5 processes are in parts of the summary that are not here" % missing
        for name in "parts", "merged.summary":
            done = self.run_it(name)
            self.assertEqual(done.stderr.count(said), 1, done.stderr)
            self.assertRegex(done.stdout, rb"\nincomplete: ")
        self.assertIn(b'"0/3" is not a part from 1/N to N/N', self.run_it("summarize", "--shard", "0/3", "t", "-o", "x.summary", codes=(2,)).stderr)

    def test_what_needs_each_event_refuses_a_summary(self):
        subprocess.run([MAKE, "places", self.traces, "4000", "2"], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        about = self.run_it("summarize", "--help").stdout
        for verb in ("pack -o p.stormlog", "dump", "fit", "export csv", "table --entries step_#"):
            self.assertIn(b"a summary has no events: this needs the trace", self.run_it(*verb.split(), "x.summary", codes=(3,)).stderr, verb)
            self.assertIn(verb.split()[0].replace("table", "entries").encode(), about)
        for verb in "report tree table timeline".split():
            self.run_it(verb, "x.summary")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "p.stormlog")))

    def test_what_ranks_have_in_common_is_there_once(self):
        for shape, commons in (("places", 1), ("apart", 6)):
            os.mkdir(os.path.join(self.traces, shape))
            subprocess.run([MAKE, shape, os.path.join(self.traces, shape), "6000", "6"], check=True)
            for threads in "1", "3":
                self.run_it("summarize", "-q", "-j", threads, "t/" + shape, "-o", shape + ".summary")
                index = self.parts(shape + ".summary")[0]
                self.assertEqual((len(index["commons"]), {process["common"] for process in index["processes"]}), (commons, set(range(1, commons + 1))))
            self.assertEqual(self.run_it("--json", "t/" + shape).stdout, self.run_it("--json", shape + ".summary").stdout)
        self.run_it("summarize", "-q", "places.summary", "apart.summary", "-o", "merged.summary")
        self.run_it("summarize", "-q", "t", "-o", "all.summary")
        self.assertEqual(self.read("merged.summary"), self.read("all.summary"))
        self.assertEqual(len(self.parts("all.summary")[0]["commons"]), 7)

    def test_without_what_is_common_a_process_is_refused(self):
        subprocess.run([MAKE, "places", self.traces, "4000", "2"], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        whole, index = self.read("x.summary"), self.parts("x.summary")[0]
        at = len(whole) - sum(process["bytes"] for process in index["processes"]) - index["commons"][0]
        with open(os.path.join(self.folder, "y.summary"), "wb") as file:
            file.write(whole[:at] + b"\0" * index["commons"][0] + whole[at + index["commons"][0]:])
        said = self.run_it("--json", "y.summary", codes=(3,)).stderr
        self.assertEqual(said.count(b"the part that the process shares with others does not open"), 2, said)

    def test_more_places_than_are_told_apart(self):
        """262144 places of one process are told apart; the others are one, and a warning says so.  All 300000 blocks of 1 MiB are freed at the end."""
        calls, most = 600000, 262144
        subprocess.run([MAKE, "crowd", self.traces, str(calls)], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        of_traces, of_summary = json.loads(self.run_it("--json", "t").stdout), json.loads(self.run_it("--json", "x.summary").stdout)
        self.assertEqual(of_traces, of_summary)
        said = [w for w in of_traces["warnings"] if "places" in w]
        self.assertEqual(len(said), 1, of_traces["warnings"])
        self.assertIn("more than %d places asked for memory; %d requests" % (most, calls // 2 - most), said[0])
        rows = [row for process in of_traces["processes"] for row in process["memory"] if row["allocations"]]
        self.assertEqual([(row["allocations"], row["peak_bytes"], row["live_bytes"]) for row in rows], [(calls // 2, calls // 2 << 20, 0)])
        common, part = self.parts("x.summary")[1:]
        sites = part["model"]["sites"]
        self.assertEqual(common["common"]["pythons"]["length"], most + 1, "stacks of nobody are still there")
        self.assertEqual(sites["length"], most + 1)
        self.assertEqual(sum(numbers(sites["total_bytes"])), calls // 2 << 20)
        self.assertEqual(numbers(sites["total_blocks"])[-1], calls // 2 - most)

    def parts(self, name):
        """The maps of a summary: its index, what processes have in common, then each process."""
        return list(msgpack.Unpacker(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(self.read(name)), read_across_frames=True),
                                     max_buffer_size=1 << 30, strict_map_key=False))

    def test_the_schema_describes_it(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../schemas/summary.schema.json")) as file:
            schema = json.load(file)
        checker = jsonschema.Draft202012Validator(schema)
        checker.check_schema(schema)
        subprocess.run([DEMO, self.traces], check=True)
        subprocess.run([HOSTS, self.traces, "3000", "3", "100", "5000", "5001"], check=True)
        with open(os.path.join(self.traces, "rank-00077-77.msgpack.zst"), "wb") as file:
            file.write(b"nothing")
        self.run_it("summarize", "-q", "t", "-o", "x.summary", codes=(3,))
        parts = self.parts("x.summary")
        self.assertEqual([sorted(part) == ["damage", "def"] for part in parts].count(True), 1)
        for part in map(hexadecimal, parts):
            errors = list(checker.iter_errors(part))
            self.assertEqual([(e.json_path, e.message[:200]) for e in errors[:3]], [])
        for part, into in (("common", "common"), ("process", "model")):
            one = next(p for p in parts if p["def"] == part)
            one[into]["unheard"] = 1
            self.assertFalse(checker.is_valid(hexadecimal(one)), "a member that it does not name passes")

    def test_what_is_zero_is_not_stored(self):
        subprocess.run([DEMO, self.traces], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        stored = []

        def look(value, path, table=False):
            if isinstance(value, dict):
                members = [name for name in value if name != "length"]
                for name in members[1:] if "length" in value else members:  # the first column says how many there are
                    look(value[name], path + [name], "length" in value)
            elif not value or (table and isinstance(value, bytes) and not any(numbers(value))):
                stored.append(path)
        for part in self.parts("x.summary")[1:]:
            look(part, [part["def"]])
        self.assertEqual(stored, [])

    def test_a_summary_of_a_stranger_harms_nobody(self):
        subprocess.run([DEMO, self.traces], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        data, at = self.read("x.summary"), 24  # behind the stamp
        frames = []
        while at < len(data):
            d = zstandard.ZstdDecompressor().decompressobj()
            frames.append(d.decompress(data[at:]))
            at = len(data) - len(d.unused_data)
        random.seed(5)
        refused = 0
        for _ in range(60):
            parts = [bytearray(frame) for frame in frames[1:]]
            part = random.choice(parts)
            for _ in range(random.choice((1, 1, 4, 40))):
                part[random.randrange(len(part))] = random.randrange(256)
            packed = [zstandard.ZstdCompressor().compress(bytes(part)) for part in parts]
            with open(os.path.join(self.folder, "y.summary"), "wb") as file:
                file.write(data[:24] + self.index(frames[0], list(map(len, packed))) + b"".join(packed))
            refused += self.run_it("--json", "y.summary", codes=(0, 3)).returncode == 3
        self.assertGreater(refused, 0, "what does not fit together was read")

    def test_steps_of_a_label_that_is_not_there_are_refused(self):
        subprocess.run([DEMO, self.traces], check=True)
        self.run_it("summarize", "-q", "t", "-o", "x.summary")
        index, *parts = self.parts("x.summary")
        for part in parts[1:]:
            self.assertTrue(part["process"]["kept"] and part["process"]["iterations"]["by_label"])
            del part["model"]["labels"]["steps"]
        packed = [zstandard.ZstdCompressor().compress(msgpack.packb(part)) for part in parts]
        with open(os.path.join(self.folder, "y.summary"), "wb") as file:
            file.write(self.read("x.summary")[:24] + self.index(msgpack.packb(index), list(map(len, packed))) + b"".join(packed))
        self.assertEqual(self.run_it("--json", "y.summary", codes=(3,)).stderr.count(b"do not fit together"), 2)

    def index(self, map_of, sizes):
        index = msgpack.unpackb(map_of)
        index["commons"] = sizes[:len(index["commons"])]
        for process, size in zip(index["processes"], sizes[len(index["commons"]):]):
            process["bytes"] = size
        return zstandard.ZstdCompressor().compress(msgpack.packb(index))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
