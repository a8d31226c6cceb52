#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A small file cannot cost much: memory, disk and output have budgets; a file that exceeds one is named, and the others are analysed."""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import most  # noqa: E402
import traces as t  # noqa: E402
import zstandard  # noqa: E402

ANALYZE = os.path.abspath(sys.argv[1])
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "stormlog", "cases", "gap_boundary_equal.jsonl")


class Budgets(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-budgets-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace = os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst")
        os.mkdir(os.path.join(self.folder, "tmp"))

    def events(self, count=3, **columns):
        return t.Thread().events(count, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * (i + 1) for i in range(count)], bytes=4096, **columns)

    def run_it(self, *arguments, megabytes, codes=(0,), **changes):
        """Run the analyzer within so many megabytes.  Returns what it printed on stdout and on stderr."""
        with tempfile.TemporaryFile("w+") as out:  # stdout is a file, since output to a pipe has no budget
            done, kib = most.run([ANALYZE, *arguments], stdout=out, stderr=subprocess.PIPE, text=True, cwd=self.folder,
                                 env=dict(os.environ, TMPDIR=os.path.join(self.folder, "tmp"), MALLOC_PERTURB_="0", **changes))
            self.assertIn(done.returncode, codes, done.stderr)
            self.assertLess(kib >> 10, megabytes, arguments)
            out.seek(0)
            return out.read(), done.stderr

    def frame_of(self, byte, size):
        """A zstd frame of `size` equal bytes, whose header does not say its content's size."""
        compressor = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
        part = byte * (1 << 20)
        return b"".join([compressor.compress(part) for _ in range(size >> 20)] + [compressor.flush()])

    def test_a_frame_that_is_a_bomb(self):
        t.write(self.trace, t.header(), t.framed(t.DEFS, self.frame_of(b"\0", 1 << 30)), self.events(), t.footer())
        self.assertLess(os.path.getsize(self.trace), 100 << 10)
        for verb in ["pack", "--redact", "-o", "x.stormlog"], ["--json"], ["pack", "-o", "y.stormlog"], ["dump"]:
            self.run_it(*verb, "t", megabytes=400, codes=(3,) if "--redact" in verb else (0,))
        self.assertEqual(json.loads(self.run_it("--json", "x.stormlog", megabytes=400)[0])["processes"][0]["memory"][0]["allocations"], 3)

    def test_a_pack_that_is_a_bomb(self):
        compressor = zstandard.ZstdCompressor(level=1).compressobj()
        name, size = b"rank-00000-100.msgpack.zst", 8 << 30
        inside = t.header() + self.events() + t.footer()
        data = compressor.compress(struct.pack("<I", len(name)) + name + struct.pack("<Q", len(inside)) + inside)
        data += compressor.compress(struct.pack("<I", 26) + b"rank-00001-101.msgpack.zst" + struct.pack("<Q", size)) + compressor.flush()
        with open(os.path.join(self.folder, "x.stormlog"), "wb") as file:
            file.write(b"stormlog.pack\n\x01\x00" + data)
        out, said = self.run_it("--json", "x.stormlog", megabytes=300)
        self.assertRegex(said, "x.stormlog: offset [0-9]+: the pack is larger than")
        self.assertEqual(len(json.loads(out)["processes"]), 1, "the rest is analysed")
        self.assertEqual(os.listdir(os.path.join(self.folder, "tmp")), [])

    def test_frames_of_notes_nils_and_stacks(self):
        note = t.frame(t.DEFS, t.packed({"def": "note", "text": "x" * (60 << 20), "ns": t.T0}))
        notes = t.frame(t.DEFS, t.packed({"def": "note", "text": "y", "ns": t.T0}) * 1000000, count=1000000)
        nils = t.frame(t.DEFS, b"\xdd" + struct.pack(">I", 60 << 20) + b"\xc0" * (60 << 20))
        stack = t.frame(t.DEFS, t.packed({"def": "python_stack", "id": 1, "frames": [1] * 1000000}))
        for name, frame, count, megabytes in ("note", note, 12, 900), ("notes", notes, 10, 1400), ("nils", nils, 10, 700), ("stack", stack, 20, 700):
            t.write(self.trace, t.header(), frame * count, self.events(), t.footer())
            self.assertLess(os.path.getsize(self.trace), 300 << 10, name)
            out, said = self.run_it("--json", "t", megabytes=megabytes)
            self.assertEqual(json.loads(out)["processes"][0]["memory"][0]["allocations"], 3, name)
            if name in ("note", "nils"):
                self.assertRegex(said, r"offset [0-9]+: (more than 512 MB of definitions|frame holds no whole map)", name)

    def test_more_of_a_list_than_a_process_has_is_left_out_and_said(self):
        maps = [{"def": "note", "text": "n%d" % i} for i in range(5000)] + [{"def": "capability", "name": "c", "value": "%d" % i} for i in range(5000)]
        t.write(self.trace, t.header(), t.defs(maps), self.events(), t.footer())
        out, said = self.run_it("report", "--json", "t", megabytes=400)
        process, = json.loads(out)["processes"]
        self.assertEqual(process["capabilities"]["notes"], ["n%d" % i for i in range(1024)])
        self.assertEqual(process["capabilities"]["c"], "4999")
        self.assertIn("3976 devices, capabilities, notes or keys are beyond the 1024 of each that are kept", said)

    def test_lists_of_the_header_are_as_long_as_an_honest_one_has_them(self):
        many = {"k%d" % i: "v" for i in range(3000)}
        t.write(self.trace, t.header(argv=["a%d" % i for i in range(3000)], environment=many, metadata=many,
                                     hooks=t.HOOKS + [["h%d" % i, 0, 0, 0] for i in range(20000)]), self.events(), t.footer())
        out, said = self.run_it("report", "--json", "t", megabytes=400)
        self.assertEqual(json.loads(out)["processes"][0]["command"], ["a%d" % i for i in range(1024)])
        self.assertIn("%d arguments, settings, variables or calls" % (3 * (3000 - 1024) + 20000 + len(t.HOOKS) - 16384), said)

    def test_names_of_a_run_have_one_budget_and_the_rest_is_analysed(self):
        """Twelve processes have 8 MB of names each, and the run may keep 20 MB."""
        for pid in range(12):
            maps = [{"def": "text", "id": i, "text": "%d %d " % (pid, i) + "A" * 4000} for i in range(1, 2001)]
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (pid, 100 + pid)), t.header(pid=100 + pid, rank=pid, world_size=12),
                    t.defs(maps), self.events(label=2000), t.footer())
        out, said = self.run_it("report", "--json", "-j", "2", "t", megabytes=400, STORMLOG_READ_MEGABYTES="20")
        self.assertIn(sum(p["damaged"] for p in json.loads(out)["processes"]), (9, 10, 11), "two have room, and what a third begins")
        self.assertRegex(said, "rank-000[0-9]+-1[0-9]+.msgpack.zst: offset [0-9]+: names and stacks of the run take more than the 20 MB")
        self.assertEqual([p["memory"][0]["allocations"] for p in json.loads(out)["processes"]], [3] * 12)
        self.assertNotIn("names and stacks", self.run_it("report", "--json", "t", megabytes=400)[1])
        self.run_it("summarize", "-o", "x.summary", "t", megabytes=400)
        self.assertIn("x.summary: offset", self.run_it("report", "--json", "x.summary", megabytes=400, codes=(0, 3), STORMLOG_READ_MEGABYTES="20")[1])

    def test_what_is_written_has_a_budget_and_stays_whole_in_form(self):
        """Sixty stacks of sixty frames with names of 16 kB are 3 kB of trace, and without a budget 116 MB of report.json."""
        maps = [{"def": "frame", "id": i, "function": "%d " % i + "F" * 16000, "file": "%d " % i + "G" * 16000, "line": i} for i in range(60)]
        maps += [{"def": "python_stack", "id": i + 1, "frames": [(i + 7 * k) % 60 for k in range(60)]} for i in range(60)]
        maps += [{"def": "text", "id": i + 1, "text": "%s %s" % ("x" * (i + 1), "L" * 16000)} for i in range(60)]
        calls = t.Thread().events(180, api=[t.PUSH, t.MALLOC, t.POP] * 60, kind=[0, 1, 0] * 60, duration_ns=1, bytes=[0, 4096, 0] * 60,
                                  address=[4096 * (i // 3 + 1) if i % 3 == 1 else 0 for i in range(180)], label=[i // 3 + 1 for i in range(180)],
                                  python=[i // 3 + 1 if i % 3 == 1 else 0 for i in range(180)])
        for pid in range(2):
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (pid, 100 + pid)), t.header(pid=100 + pid, rank=pid, world_size=2),
                    t.defs(maps), calls, t.footer())
        said = self.run_it("-q", "-o", "o", "t", megabytes=400, STORMLOG_WRITE_MEGABYTES="2")[1]
        self.assertRegex(said, r"would take more than 2 MB .*: [1-9][0-9]* texts are cut to 256 bytes, and [1-9][0-9]* entries of lists left out")
        files = [os.stat(os.path.join(self.folder, "t", name)) for name in os.listdir(os.path.join(self.folder, "t"))]
        size = sum(file.st_size for file in files)
        self.assertIn("would take more than %d MB" % (16 + size * 128 // 1000000), self.run_it("--json", "t", megabytes=400)[1])
        for name in os.listdir(os.path.join(self.folder, "o", "telemetry")):
            with open(os.path.join(self.folder, "o", "telemetry", name, "segment-000001.jsonl")) as file:
                self.assertGreater(len([json.loads(line) for line in file]), 120)
        with open(os.path.join(self.folder, "o", "report.json")) as file:
            report = json.load(file)
        self.assertIn("entries of lists left out", report["warnings"][-1])
        self.assertEqual([p["memory"][0]["allocations"] for p in report["processes"]], [60, 60])
        self.assertGreater(len(report["leaks"]), 3)
        self.assertGreater(len(report["leaks"][0]["stack"]), 20)
        sizes = {"report.json": 0, "telemetry": 0}
        for root, _, names in os.walk(os.path.join(self.folder, "o")):
            for name in names:
                key = "telemetry" if "telemetry" in root else name
                sizes[key] = sizes.get(key, 0) + os.path.getsize(os.path.join(root, name))
        self.assertLess(sizes["report.json"], 3 << 20)
        self.assertLess(sizes["telemetry"], 4 << 20)

    def test_what_is_said_of_the_run_takes_no_rank_its_part(self):
        for rank in range(400):
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (rank, 100 + rank)), t.header(pid=100 + rank, rank=rank, world_size=400),
                    t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=4096, bytes=4096), t.footer())
        out, said = self.run_it("--json", "t", megabytes=700, STORMLOG_WRITE_MEGABYTES="20")
        self.assertEqual({(len(process["memory"]), len(process["apis"])) for process in json.loads(out)["processes"]}, {(1, 1)})
        self.assertNotIn("STORMLOG_WRITE_MEGABYTES", said)

    def test_a_file_system_that_knows_of_no_blocks_takes_no_budget(self):
        """Of incompressible bytes, so that what an export may write is more than the least."""
        t.write(self.trace, t.header(), t.frame(t.DEFS, os.urandom(1 << 20)), self.events(120000), t.footer())
        whole = self.run_it("export", "ndjson", "-o", "-", "t", megabytes=1000)[0]
        self.assertGreater(len(whole), 20 << 20)
        said = self.run_it("export", "ndjson", "-o", "-", "t", megabytes=1000, LD_PRELOAD=os.environ["MOMENTS"], MOMENT="no blocks", SIGNAL="0",
                           ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
        self.assertEqual(said[0], whole)

    def test_errors_of_one_time_are_no_more_bundles(self):
        for later in 0, 3:
            count, maps = 40 + later, []
            for i in range(1, count + 1):
                maps += [{"def": "frame", "id": i, "function": "f%d" % i, "file": "/a.py", "line": i}, {"def": "python_stack", "id": i, "frames": [i]}]
            errors = t.Thread().events(count, api=t.MALLOC, kind=1, duration_ns=1, bytes=1 << 45, result=2, python=list(range(1, count + 1)),
                                       time_ns=[t.T0] * 40 + [t.T0 + i for i in range(1, later + 1)])
            t.write(self.trace, t.header(), t.defs(maps), errors, t.footer())
            self.run_it("-q", "-o", "o%d" % later, "t", megabytes=400)
            oom = os.path.join(self.folder, "o%d" % later, "oom")
            self.assertEqual(len(os.listdir(oom)) if os.path.exists(oom) else 0, later)

    def test_names_that_differ_at_their_end_alone_are_two(self):
        """What diff compares goes by whole names."""
        for folder, other in ("a", 10), ("b", 50):
            maps = [{"def": "text", "id": i, "text": "x" * 700 + tail} for i, tail in enumerate(("taila", "tailb"), 1)]
            rows = t.Thread().events(6, api=[t.PUSH, t.MALLOC, t.POP] * 2, kind=[0, 1, 0] * 2, duration_ns=1, label=[1, 0, 0, 2, 0, 0], address=[0, 1 << 30, 0, 0, 2 << 30, 0],
                                     bytes=[0, 100 << 20, 0, 0, other << 20, 0])
            t.write(os.path.join(self.folder, folder, "rank-00000-100.msgpack.zst"), t.header(), t.defs(maps), rows, t.footer())
        found = json.loads(self.run_it("diff", "--all", "--json", "a", "b", megabytes=400)[0])["differences"]
        labels = {row["key"][-5:]: row["change"] for row in found if "xtail" in row["key"]}
        self.assertEqual(labels, {"taila": "same", "tailb": "more"})

    def test_warnings_have_a_part_of_what_is_written(self):
        """Four notes of each of forty processes are 160 warnings."""
        for pid in range(40):
            notes = [{"def": "note", "text": "%s %s" % ("x" * (4 * pid + i + 1), "N" * 240)} for i in range(4)]
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (pid, pid + 1)), t.header(rank=pid, pid=pid + 1, world_size=40),
                    t.defs(notes), self.events(), t.footer())
        self.run_it("-q", "-o", "o", "t", megabytes=400, STORMLOG_WRITE_MEGABYTES="0.2")
        with open(os.path.join(self.folder, "o", "report.json")) as file:
            warnings = json.load(file)["warnings"]
        self.assertIn("entries of lists left out", warnings[-1])
        self.assertTrue(20 < len(warnings) < 80, len(warnings))

    def test_an_export_has_a_budget_and_a_former_one_stays(self):
        """Sixty stacks of sixty frames with names of 5 kB, and forty thousand events: every format grows with one of these."""
        maps = [{"def": "frame", "id": i, "function": "%d " % i + "F" * 16000, "file": "%d " % i + "G" * 16000, "line": i} for i in range(60)]
        maps += [{"def": "python_stack", "id": i + 1, "frames": [(i + 7 * k) % 60 for k in range(60)]} for i in range(60)]
        maps += [{"def": "text", "id": 1, "text": "L" * 16000}]
        t.write(self.trace, t.header(), t.defs(maps), self.events(40000, python=[i % 60 + 1 for i in range(40000)], label=1), t.footer())
        forms = "collapsed speedscope csv ndjson sqlite pytorch-snapshot perfetto".split()
        for form, budget in [(form, "0.2") for form in forms] + [("sqlite", "0")]:  # that one fails in the first statement
            self.write("o." + form)
            said = self.run_it("export", form, "-o", "o." + form, "t", megabytes=700, codes=(4,), STORMLOG_WRITE_MEGABYTES=budget)[1]
            self.assertRegex(said, r"^stormlog-analyze: o\.%s: would take more than %s MB, which is much .*STORMLOG_WRITE_MEGABYTES" % (form, budget))
            self.assertEqual(os.path.getsize(os.path.join(self.folder, "o." + form)), 0, "the former one")
        self.assertEqual([name for name in os.listdir(self.folder) if name.endswith(".part")], [])
        out, said = self.run_it("export", "csv", "t", megabytes=700, codes=(4,), STORMLOG_WRITE_MEGABYTES="5")
        self.assertIn("standard output: would take more than 5", said)
        self.assertLessEqual(len(out), 5e6)
        self.assertLess(len(self.run_it("export", "csv", "t", megabytes=700)[0]), 16e6 + 1024 * os.path.getsize(self.trace))

    def test_no_more_lines_of_damage_than_anybody_reads(self):
        for i in range(300):
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (i, i + 1)), b"no frame" * (i + 1))
        said = self.run_it("report", "t", codes=(3,), megabytes=400)[1].splitlines()
        self.assertLess(len(said), 210)
        self.assertRegex(said[200], r"^stormlog-analyze: \d+ lines like these more$")

    def test_no_more_pairs_of_hosts_than_anybody_reads(self):
        """Twelve hosts, whose clocks all differ, make a communicator together."""
        for rank in range(12):
            call = t.Thread().events(1, api=len(t.HOOKS) + 1, duration_ns=20 * 10 ** 6, extra2=12, time_ns=t.T0 + 30 * 10 ** 6)
            t.write(os.path.join(self.folder, "t", "rank-%05d-%d.msgpack.zst" % (rank, rank + 1)),
                    t.header(rank=rank, world_size=12, pid=rank + 1, host="host%d" % rank, started_ns=t.UNIX0 + rank * 10 ** 10,
                             hooks=t.HOOKS + [["ncclCommInitRank", t.VERB["CALL"], 0, 4]]), call, t.footer())
        warnings = json.loads(self.run_it("--json", "t", megabytes=400)[0])["warnings"]
        self.assertEqual(len([line for line in warnings if "ahead of that of" in line]), 8)
        self.assertEqual(warnings[-1], "the clocks of 58 more pairs of hosts differ, by 1 min 50 s at most")

    def test_telemetry_repeats_no_more_than_its_budget(self):
        """Losses of a file are in each of its sessions, and a spike names each phase that is open: 2 MB gave 2.4 GB."""
        sample = {"allocator_active_bytes": None, "allocator_allocated_bytes": 8192, "allocator_change_bytes": 0, "allocator_inactive_bytes": None,
                  "allocator_reserved_bytes": 8192, "collector": "c", "context": "nccl", "device_free_bytes": None, "device_id": 0, "device_total_bytes": 80 << 30,
                  "device_used_bytes": 8192, "event_type": "sample", "host": "h", "job_id": "j", "local_rank": 0, "metadata": {}, "pid": 1, "rank": 0,
                  "sampling_interval_ms": 0, "schema_version": 3, "session_id": "s", "timestamp_ns": t.T0, "world_size": 1}
        sessions = ["{}"] * 500 + [json.dumps(dict(sample, session_id="s%d" % i)) for i in range(500)]
        phases = [json.dumps(dict(sample, event_type="phase_enter", timestamp_ns=t.T0 + i, metadata={"phase_scope": {
            "action": "enter", "name": "p", "scope_id": "s%d" % i, "thread_name": "t", "path": ["p%d" % i], "sequence": i, "thread_id": i}})) for i in range(1000)]
        phases += [json.dumps(dict(sample, timestamp_ns=t.T0 + 10 ** 9 * (k + 1), device_used_bytes=8192 + (k % 3 == 0) * (20 << 30))) for k in range(600)]
        for name, lines in (("sessions", sessions), ("phases", phases)):
            os.mkdir(os.path.join(self.folder, name))
            self.write(name + "/" + "e" * 200 + ".jsonl", "\n".join(lines).encode())
            said = self.run_it("-q", "-o", "o." + name, name, megabytes=400, STORMLOG_WRITE_MEGABYTES="2")[1]
            if name == "sessions":
                self.assertIn("would take more than 2 MB", said)
            self.assertLess(os.path.getsize(os.path.join(self.folder, "o." + name, "report.json")), 4 << 20)
            with open(os.path.join(self.folder, "o." + name, "report.json")) as file:
                report = json.load(file)
            self.assertEqual(any("entries of lists left out" in text for text in report["warnings"]), name == "sessions")
            self.assertEqual(len(report["telemetry"]["per_session"]), 500 if name == "sessions" else 1)
            for one in report["telemetry"]["per_session"]["s" if name == "phases" else "s0"]["collective_attribution"].values():
                for interval in one:
                    self.assertLessEqual(len((interval.get("phase_attribution") or {}).get("phase_paths", ())), 256)

    def test_long_names_are_cut_and_said(self):
        big = "A" * (1 << 20)
        maps = [{"def": "text", "id": 1, "text": big}, {"def": "frame", "id": 1, "function": big, "file": big, "line": 1},
                {"def": "python_stack", "id": 1, "frames": [1] * 4}]
        t.write(self.trace, t.header(argv=[big, big], exe=big), t.defs(maps), self.events(31, python=1, label=1), t.footer())
        said = self.run_it("-o", "o", "t", megabytes=700)[1]
        self.assertIn("names are longer than any that is recorded and were cut", said)
        size = sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(os.path.join(self.folder, "o")) for name in names)
        self.assertLess(size, 20 << 20, "it was 510 MB")

    def write(self, name, *parts):
        return t.write(os.path.join(self.folder, name), *parts)

    def test_a_large_ring_is_packed_a_part_at_a_time(self):
        t.write(self.trace, t.header(ring="rank-00000-100.ring"), self.events(), t.footer())
        ring = self.trace.replace(".msgpack.zst", ".ring")
        t.write(ring, t.ring(self.trace))
        os.truncate(ring, 1 << 30)
        self.run_it("pack", "-o", "x.stormlog", "t", megabytes=200)
        self.assertEqual(json.loads(self.run_it("--json", "x.stormlog", megabytes=1400)[0])["processes"][0]["memory"][0]["allocations"], 3)

    def test_a_byte_order_mark_loses_nothing(self):
        with open(GOLDEN) as file:
            rows = [json.loads(line) for line in file][:5]
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        names = [name for name in rows[0] if not isinstance(rows[0][name], (dict, list))]
        table = "\n".join([",".join(names) + ",metadata"] +
                          [",".join("" if row[n] is None else str(row[n]) for n in names) + ",{}" for row in rows]).encode() + b"\n"
        for suffix, text in ("jsonl", lines), ("csv", table):
            counts = []
            for mark in b"", b"\xef\xbb\xbf":
                name = self.write("x." + suffix, mark, text)
                out, said = self.run_it("--json", name, megabytes=100)
                counts.append([row["event_count"] for row in json.loads(out)["telemetry"]["sessions"]])
                self.assertEqual(said.count("line 1") + said.count(":1:"), 0, said)
            self.assertEqual(counts[0], [5], suffix)
            self.assertEqual(counts[1], counts[0], suffix)
        t.write(self.trace, t.header(), self.events(), t.footer())
        self.run_it("check", "--max-leak", "1T", "--suppressions", self.write("s.txt", b"\xef\xbb\xbfleak:f\n"), "t", megabytes=100)

    def test_a_line_or_field_too_long_is_passed_over_and_said(self):
        many = [b"x" * (1 << 20)] * 100  # not in one piece: a child's measured peak includes that of this process
        lines = self.write("x.jsonl", *many, b"\n")
        with open(GOLDEN, "rb") as file, open(lines, "ab") as to:
            to.write(file.read())
        table = self.write("x.csv", b'a,timestamp_ns\n"', *many, b'",1\n')
        out, said = self.run_it("--json", lines, megabytes=120)
        self.assertIn("x.jsonl:1: a line of more than 16 MiB", said + out)
        self.assertGreater(json.loads(out)["telemetry"]["sessions"][0]["event_count"], 5, "the rest is analysed")
        self.run_it(table, megabytes=120, codes=(3,))

    def test_the_page_of_telemetry_takes_memory_for_what_it_shows(self):
        with open(GOLDEN, encoding="utf-8") as file:
            record = json.loads(file.readline())
        for many, megabytes in ("rank", 160), ("device_id", 180):
            with self.subTest(many=many):
                lines = [json.dumps({**record, "world_size": 2000, "timestamp_ns": record["timestamp_ns"] + i // 2000 * 10 ** 9, many: i % 2000})
                         for i in range(8000)]
                self.run_it("-q", "-o", many, self.write(many + ".jsonl", "\n".join(lines).encode()), megabytes=megabytes)
                self.assertGreater(os.path.getsize(os.path.join(self.folder, many, "report.html")), 100000 if os.environ["PAGE"] else 500)

    def of_pytorch(self, name, number=1, devices=1, changes=0, text="max_split_size_mb:128", bytes=512):
        hooks = t.HOOKS + [["c10::setAllocatorSettings", t.VERB["MARK"], 0, 5]]
        block = dict(kind=t.KIND["block"], duration_ns=1, bytes=bytes, object=1, extra=bytes, extra2=2 << 20)
        thread = t.Thread(number)
        parts = [thread.events(devices, api=t.TORCH_ALLOC, address=[i + 1 << 21 for i in range(devices)], device=list(range(devices)), **block)]
        parts += [thread.events(changes, api=len(hooks), label=1), thread.events(1, api=t.TORCH_ALLOC, address=1 << 40, **block)] if changes else []
        t.write(os.path.join(self.folder, name, "rank-00000-100.msgpack.zst"), t.header(hooks=hooks), t.defs([
            {"def": "capability", "name": "pytorch", "value": "c10 2.6.0"}, {"def": "text", "id": 1, "text": text}]), *parts, t.footer())

    def test_the_number_of_a_thread_takes_no_memory(self):
        for number in 100000000, 4000000000:
            self.of_pytorch("t", number)
            for verb in ["--json"], ["fit"], ["check", "--fits", "1G"]:
                self.run_it(*verb, "t", megabytes=100)

    def test_settings_that_pytorch_refuses_have_no_verdict(self):
        for more in "large_segment_size_mb:0", "large_segment_size_mb:1", "garbage":
            self.of_pytorch("t", changes=1, text="expandable_segments:True," + more, bytes=30 << 20)
            self.assertIn("NO VERDICT settings that the program made are not understood", " ".join(self.run_it("fit", "t", megabytes=100, codes=(1,))[0].split()))
            self.run_it("-q", "-o", "out", "t", megabytes=100)

    def test_settings_that_change_on_many_devices(self):
        self.of_pytorch("t", devices=256, changes=200000)
        for verb in ["--json"], ["fit"]:
            self.run_it(*verb, "t", megabytes=400, codes=(0, 1))

    def test_launches_of_a_graph_have_a_budget_and_what_it_holds_stays(self):
        hooks = t.HOOKS + [["node", t.VERB["GRAPH_ALLOC"], t.KIND["graph"], 1], ["instance", t.VERB["GRAPH_INSTANTIATE"], 0, 1],
                           ["launch", t.VERB["GRAPH_LAUNCH"], 0, 1]]
        node, instance, launch = range(len(hooks) - 2, len(hooks) + 1)
        nodes = launches = 4000
        events = t.Thread().events(nodes + launches + 1, api=[node] * nodes + [instance] + [launch] * launches, duration_ns=1,
                                   kind=[t.KIND["graph"]] * nodes + [0] * (launches + 1), object=[1] * (nodes + 1) + [0] * launches,
                                   address=[4096 * (i + 1) for i in range(nodes)] + [2] * (launches + 1), bytes=[4096] * nodes + [0] * (launches + 1))
        t.write(self.trace, t.header(hooks=hooks), events, t.footer())
        report = json.loads(self.run_it("--json", "t", megabytes=200)[0])
        memory, = report["processes"][0]["memory"]
        self.assertEqual((memory["peak_bytes"], memory["live_bytes"]), (4096 * nodes, 4096 * nodes))
        self.assertIn("what a graph's launch allocates", json.dumps(report["warnings"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
