#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Time and the number of files have budgets too. A message names the part that exceeds one, and the rest is analysed."""
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import traces as t

ANALYZE = os.path.abspath(sys.argv[1])
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "stormlog", "cases", "gap_boundary_equal.jsonl")


class TimeAndFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-budgets-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace = os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst")

    def events(self):
        return t.Thread().events(3, api=t.MALLOC, kind=1, duration_ns=1, address=[4096, 8192, 12288], bytes=4096)

    def write(self, name, text):
        return t.write(os.path.join(self.folder, name), text)

    def run_it(self, *arguments, codes=(0,), **changes):
        done = subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, cwd=self.folder, env=dict(os.environ, **changes), timeout=100)
        self.assertIn(done.returncode, codes, done.stderr)
        return done.stdout, done.stderr

    def test_a_trace_that_takes_too_long_is_left_and_the_others_are_read(self):
        """The budget is twenty milliseconds: the small trace needs less, the other has two million events."""
        t.write(self.trace, t.header(), self.events(), t.footer())
        long = os.path.join(self.folder, "t", "rank-00001-101.msgpack.zst")
        thread = t.Thread()
        t.write(long, t.header(rank=1, pid=101), *[thread.events(4096, api=[t.MALLOC, t.FREE] * 2048, kind=[1, 11] * 2048, duration_ns=1,
                                                                address=4096, bytes=16) for _ in range(500)], t.footer())
        whole = json.loads(self.run_it("--json", "t")[0])
        self.assertEqual([p["memory"][0]["allocations"] for p in whole["processes"]], [3, 500 * 2048])
        self.assertFalse([w for w in whole["warnings"] if "processor" in w])
        for verb in ["--json", "-j", "1"], ["export", "csv", "-o", "-"], ["dump"]:
            out, said = self.run_it(*verb, "t", STORMLOG_READ_SECONDS="0.02")
            self.assertRegex(out + said, r"rank-00001-101.msgpack.zst: offset [0-9]+: its [0-9]+ kB take more of the processor's time", verb)
            self.assertNotRegex(out + said, r"rank-00000-100.msgpack.zst: offset", verb)
        part = json.loads(self.run_it("--json", "-j", "1", "t", STORMLOG_READ_SECONDS="0.02")[0])
        self.assertEqual(part["processes"][0]["memory"][0]["allocations"], 3, "the rest is analysed")
        self.assertLess(part["processes"][1]["memory"][0]["allocations"], 500 * 2048)

    def test_definitions_and_redaction_that_take_too_long(self):
        notes = t.frame(t.DEFS, t.packed({"def": "note", "text": "y", "ns": t.T0}) * 100000, count=100000)
        t.write(self.trace, t.header(), self.events(), notes * 40, t.footer())
        self.assertRegex(self.run_it("--json", "t", STORMLOG_READ_SECONDS="0.05")[0], "offset [0-9]+: its [0-9]+ kB take more")
        said = self.run_it("summarize", "-q", "-o", "x.summary", "t", codes=(3,), STORMLOG_READ_SECONDS="0.05")[1]
        self.assertRegex(said, "offset [0-9]+: its [0-9]+ kB take more(?s:.*)x.summary may not be the whole run")
        out, said = self.run_it("pack", "--redact", "-o", "x.stormlog", "t", codes=(3,), STORMLOG_READ_SECONDS="0.05")
        self.assertRegex(said, "offset [0-9]+: its [0-9]+ kB take more of the processor's time")
        self.assertEqual(json.loads(self.run_it("--json", "x.stormlog")[0])["processes"][0]["memory"][0]["allocations"], 3)

    def test_a_free_that_names_no_device_costs_little_however_many_devices_there_are(self):
        """An export as counters took thirty-five times as long with 64 devices as with one.  Times of one machine are compared with each other."""
        seconds = []
        for devices in 1, 64:
            rows = [(device, kind) for device in range(devices) for kind in range(1, 8)]
            thread = t.Thread()
            begin = thread.events(len(rows), api=t.MALLOC, kind=[kind for _, kind in rows], device=[device for device, _ in rows], duration_ns=1,
                                  address=[4096 * i for i in range(1, len(rows) + 1)], bytes=4096)
            t.write(self.trace, t.header(), begin, thread.events(100000, api=t.FREE, kind=11, device=-1, duration_ns=1, address=1), t.footer())
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.run_it("export", "perfetto", "-q", "-o", "x", "t")
            seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        self.assertLess(seconds[1], 10 * seconds[0], seconds)

    def test_telemetry_that_takes_too_long(self):
        with open(GOLDEN, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        names = json.loads(lines[0])
        table = ",".join(names).encode() + b"\n" + b"".join(
            ",".join("" if isinstance(v, (dict, list)) or v is None else str(v) for v in json.loads(line).values()).encode() + b"\n" for line in lines)
        for name, text in ("x.jsonl", b"".join(lines * (20000 // len(lines)))), ("x.csv", table * 1000):
            out, said = self.run_it("--json", self.write(name, text), STORMLOG_READ_SECONDS="0.01", codes=(0, 3))
            self.assertRegex(out + said, name + r":[0-9]+: it takes more of the processor's time than it may", name)

    def test_a_replay_of_pytorch_s_allocator_that_takes_too_long_has_no_verdict(self):
        """Each out of memory looks at thirty thousand gaps; reading takes a fifth of the budget."""
        hooks = t.HOOKS + [["oom", t.VERB["BLOCK_OOM"], t.KIND["block"], 5]]
        count, reserved = 60000, 15 << 21
        rows = [(t.TORCH_ALLOC, dict(address=i + 1 << 21, bytes=512, extra2=i // 4096 + 1 << 21, object=1)) for i in range(count)]
        rows += [(t.TORCH_FREE, dict(address=i + 1 << 21, bytes=512, extra2=reserved)) for i in range(0, count, 2)]
        refused = [(t.MALLOC, dict(bytes=1 << 50, result=2))] * 2 + [(len(hooks), dict(bytes=1 << 50, object=1, extra2=reserved))]
        rows += refused * 1000
        columns = {name: [row.get(name, 0) for _, row in rows] for name in ("address", "bytes", "extra2", "object", "result")}
        t.write(self.trace, t.header(hooks=hooks), t.defs([{"def": "capability", "name": "pytorch", "value": "c10 2.6.0"}]),
                t.Thread().events(len(rows), api=[api for api, _ in rows], kind=[1 if api == t.MALLOC else t.KIND["block"] for api, _ in rows],
                                  duration_ns=1, **columns), t.footer())
        why = "the replay takes more of the processor's time than it may"
        out, said = self.run_it("fit", "t", STORMLOG_READ_SECONDS="1", codes=(1,))
        self.assertIn("NO VERDICT " + why, " ".join(out.split()))
        self.assertIn("rank-00000-100.msgpack.zst: " + why, said)

    def test_more_files_than_a_search_looks_at(self):
        os.makedirs(os.path.join(self.folder, "t", "deep"))
        for i in range(30):
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (i, 100 + i)), t.header(rank=i, pid=100 + i), self.events(), t.footer())
        whole = json.loads(self.run_it("--json", "t", STORMLOG_READ_FILES="31")[0])
        self.assertEqual((len(whole["processes"]), whole["warnings"]), (30, []))
        part = json.loads(self.run_it("--json", "t", STORMLOG_READ_FILES="20")[0])
        self.assertEqual([w for w in part["warnings"] if "files" in w], ["t: more than 20 files and folders; from here on they are not read"])
        self.assertTrue(18 < len(part["processes"]) < 21, "the rest is analysed")
        with open(GOLDEN, "rb") as file:
            golden = file.read()
        for i in range(30):
            self.write("t/deep/events%d.jsonl" % i, golden)
        self.assertIn("too many files and folders", self.run_it("t", STORMLOG_READ_FILES="20")[1] +
                      self.run_it("--json", "t/deep", STORMLOG_READ_FILES="20")[0])

    def test_as_many_suppressions_as_there_may_be(self):
        t.write(self.trace, t.header(), self.events(), t.footer())
        self.run_it("--suppressions", self.write("s", b"leak:x\n" * 1000), "t")
        self.assertIn("s:1001: more than 1000 patterns", self.run_it("--suppressions", self.write("s", b"leak:x\n" * 1001), "t", codes=(2,))[1])

    def test_a_ring_whose_threads_have_the_greatest_numbers(self):
        """A thread's number near the maximum must not make a loop of four thousand million turns, or an endless one."""
        t.write(self.trace, t.header(ring="rank-00000-100.ring"), self.events(), t.footer())
        for thread in 2 ** 32 - 2, 2 ** 32 - 1:
            ring = bytearray(t.ring(self.trace))
            struct.pack_into("<II", ring, 16 + 16 + 16 + 40 + 16 + 24 + 256 + 512, 2, thread)  # says that the first segment has events
            t.write(self.trace.replace(".msgpack.zst", ".ring"), ring)
            report = json.loads(self.run_it("--json", "t", STORMLOG_READ_SECONDS="5")[0])
            self.assertEqual(report["processes"][0]["memory"][0]["allocations"], 3)
            self.assertNotIn("processor", " ".join(report["warnings"]))

    def test_links_in_circles_end(self):
        t.write(self.trace, t.header(), self.events(), t.footer())
        for i in range(200):
            os.symlink(".", os.path.join(self.folder, "t", "l%d" % i))
        self.assertEqual(json.loads(self.run_it("--json", "t")[0])["processes"][0]["memory"][0]["allocations"], 3)

    def test_holes_and_files_that_are_too_large(self):
        t.write(self.trace, t.header(), self.events(), t.footer())
        with open(self.trace, "r+b") as file:
            file.truncate(1 << 40)
        said = json.loads(self.run_it("--json", "t")[0])
        self.assertEqual(said["processes"][0]["memory"][0]["allocations"], 3)
        self.assertIn("bytes are no frame", " ".join(said["warnings"]))
        for name, size, why in ("x.jsonl", 1 << 40, "16 GiB or more"), ("events.json", 2 << 30, "1 GiB or more"), ("x.csv", 1 << 40, "16 GiB or more"):
            os.truncate(self.write(name, b""), size)
            self.assertIn(why, self.run_it(name, codes=(3,))[1])
        os.truncate(self.write("supp", b"leak:x\n"), 1 << 40)
        self.assertIn("File too large", self.run_it("--suppressions", "supp", "t", codes=(2,))[1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
