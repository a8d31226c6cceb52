#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Impossible numbers at every place of a trace that holds a number: every verb ends, and a build that checks undefined behaviour
(scripts/test-sanitizers) finds none."""
import contextlib
import json
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import formats  # noqa: E402
import traces as t  # noqa: E402

ANALYZE = os.path.abspath(sys.argv[1])
MOST = 2 ** 64 - 1
EXTREME = [0, 1, 2, 4096, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 + 1, 2 ** 63 - 1, 2 ** 63, MOST - 1, MOST]
SIGNED = [0, -1, 1, 63, 64, 65, 2 ** 31 - 1, -2 ** 31, 2 ** 63 - 1, -2 ** 63]


class Numbers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-numbers-")
        self.addCleanup(shutil.rmtree, self.folder)

    def verbs(self, *paths):
        out = os.path.join(self.folder, "out")
        os.makedirs(out, exist_ok=True)
        for verb in ["report", "-o", out + "/a"], ["report", "--json"], ["tree"], ["tree", "--at", "1e18"], ["table", "--by", "label"], \
                ["table", "--entries", "*"], ["table", "--entries", "*", "--csv"], ["dump"], ["fit"], ["check", "--max-peak", "1", "--max-growth", "1", "--max-hidden", "1"], \
                ["summarize", "-o", out + "/s.summary"], ["pack", "--redact", "-o", out + "/p.stormlog"], \
                *(["export", form, "-o", out + "/x." + form] for form in formats.of(ANALYZE)):
            done = subprocess.run([ANALYZE, *verb, *paths], capture_output=True, text=True, errors="replace", timeout=120)
            self.assertIn(done.returncode, (0, 1, 2, 3), (verb, paths, done.stderr[-2000:]))
            self.assertNotIn("runtime error", done.stderr, verb)
            self.assertNotIn("Sanitizer", done.stderr, verb)

    def record(self, seed):
        choose = random.Random(seed)
        any_of, signed = lambda: choose.choice(EXTREME), lambda: choose.choice(SIGNED)
        count = 60
        columns = {name: [any_of() for _ in range(count)] for name in
                   ("address", "bytes", "stream", "context", "object", "extra", "extra2", "caller", "duration_ns", "python", "native", "label")}
        columns["api"] = [choose.choice(range(1, 9)) for _ in range(count)]
        columns["kind"] = [choose.choice(range(12)) for _ in range(count)]
        columns["device"] = [choose.choice([-1, 0, 1, 63, 64, 127, 2 ** 31 - 1, -2 ** 31]) for _ in range(count)]
        columns["result"] = [choose.choice([0, 0, 0, 2, -1]) for _ in range(count)]
        columns["flags"] = [choose.choice([0, 0, 0, 1, 2, 4, 255]) for _ in range(count)]
        if seed % 2:
            columns["time_ns"] = sorted(any_of() for _ in range(count))
        maps = [{"def": "sample", "ns": any_of(), "begin_ns": any_of(), "device": signed(), "free_bytes": any_of(), "total_bytes": any_of(),
                 "used_bytes": any_of(), "process_bytes": any_of(), "processes": [[any_of(), any_of()]]} for _ in range(20)]
        maps += [{"def": "host", "ns": any_of(), "rss_bytes": any_of(), "cgroup_bytes": any_of(), "cgroup_limit_bytes": any_of()}]
        maps += [{"def": "frame", "id": any_of(), "function": "f", "file": "g.py", "line": any_of()} for _ in range(8)]
        maps += [{"def": "python_stack", "id": any_of(), "frames": [any_of() for _ in range(3)]} for _ in range(8)]
        maps += [{"def": "native_stack", "id": any_of(), "pcs": struct.pack("<3Q", any_of(), any_of(), any_of())} for _ in range(8)]
        maps += [{"def": "module", "base": any_of(), "end": any_of(), "path": "/lib/x", "build_id": "aa", "ns": any_of()} for _ in range(8)]
        maps += [{"def": "text", "id": any_of(), "text": "step_# y"} for _ in range(8)]
        maps += [{"def": "communicator", "handle": any_of(), "rank": signed(), "world_size": signed(), "device": signed(), "name": "c", "ns": any_of()}]
        header = {name: any_of() for name in ("started_ns", "monotonic_ns", "process_start")} if seed % 3 == 0 else {}
        return (t.header(rank=choose.choice([0, 1, -1, 2 ** 31 - 1]), world_size=choose.choice([1, 2, 2 ** 31 - 1, -5]), **header), t.defs(maps),
                t.Thread().events(count, **columns), t.footer(ns=any_of(), events=any_of()))

    def test_of_a_trace(self):
        for seed in range(6):
            with self.subTest(seed=seed):
                traces = os.path.join(self.folder, "t%d" % seed)
                t.write(os.path.join(traces, "rank-00000-100.msgpack.zst"), *self.record(seed))
                self.verbs(traces)

    def test_of_settings_that_are_no_text(self):
        none = {"inject_oom": None, "batch_size": 3, "b": [1]}
        t.write(os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst"), t.header(settings=none, metadata=none, environment=none, system=none), t.defs([]),
                t.Thread().events(2, api=1, kind=1, bytes=4096, address=1 << 30), t.footer())
        self.verbs(os.path.join(self.folder, "t"))
        done = subprocess.run([ANALYZE, "runs", "-q", "--catalogue", self.folder + "/runs.sqlite", self.folder + "/t"], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])

    def test_of_telemetry(self):
        choose = random.Random(1)
        path = os.path.join(self.folder, "events.jsonl")
        numbers = SIGNED + EXTREME + [1e308, -1e308, 0.5, None]
        with open(path, "w") as file:
            for i in range(300):
                record = {name: choose.choice(numbers) for name in
                          ("allocator_active_bytes", "allocator_allocated_bytes", "allocator_change_bytes", "allocator_inactive_bytes",
                           "allocator_reserved_bytes", "device_free_bytes", "device_total_bytes", "device_used_bytes", "device_id",
                           "sampling_interval_ms", "pid") if choose.random() < 0.3}
                base = {"allocator_active_bytes": None, "allocator_allocated_bytes": 1, "allocator_change_bytes": 0, "allocator_inactive_bytes": None,
                        "allocator_reserved_bytes": 1, "collector": "stormlog.cuda_tracker", "context": None, "device_free_bytes": None,
                        "device_id": 0, "device_total_bytes": None, "device_used_bytes": 1, "event_type": "sample", "host": "h", "job_id": "j",
                        "local_rank": 0, "metadata": {}, "pid": 1, "rank": i % 3, "sampling_interval_ms": 100, "schema_version": 3,
                        "session_id": "s", "timestamp_ns": choose.choice([t.UNIX0 + i, 2 ** 63 - 1, 0, 1]), "world_size": 3}
                file.write(json.dumps({**base, **record}) + "\n")
        for verb in ["report", "--json"], ["report", "-o", self.folder + "/o"], ["convert"], ["validate"], ["merge", "-o", self.folder + "/m"]:
            done = subprocess.run([ANALYZE, *verb, path], capture_output=True, text=True, errors="replace", timeout=120)
            self.assertIn(done.returncode, (0, 2, 3), (verb, done.stderr[-2000:]))
            self.assertNotIn("runtime error", done.stderr, verb)

    def test_a_segment_of_a_size_that_no_device_has(self):
        """It must neither write past the list of freed slots, into the table of segments, nor make the search of the next free endless."""
        begin, segments = 1 << 30, 20
        rows = [(t.TORCH_ALLOC, t.KIND["block"], 1 << 21, 512, 5)]
        rows += [(t.MALLOC, t.KIND["device"], begin + 4096 * i, 4096 if i < segments else MOST, 0) for i in range(segments + 1)]
        rows += [(t.FREE, t.KIND["device"], 4096 * i, 0, 0) for i in range(1, 200)]
        columns = dict(zip(("api", "kind", "address", "bytes", "object"), zip(*rows)))
        t.write(os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst"), t.header(), t.defs([]),
                t.Thread().events(len(rows), duration_ns=1, **columns), t.footer())
        done = subprocess.run([ANALYZE, "fit", self.folder + "/t"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 1, done.stderr[-2000:])

    def test_a_catalogue_whose_columns_are_empty_or_of_another_kind(self):
        t.write(os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst"), *self.record(1))
        whole, changed = os.path.join(self.folder, "whole.sqlite"), os.path.join(self.folder, "changed.sqlite")
        subprocess.run([ANALYZE, "runs", "-q", "--catalogue", whole, self.folder + "/t"], stdout=subprocess.DEVNULL, check=True, timeout=120)
        os.utime(os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst"))
        with contextlib.closing(sqlite3.connect(whole)) as catalogue:
            columns = [(table, column[1]) for table in "runs sessions named metrics held files parts names".split()
                       for column in catalogue.execute("PRAGMA table_info(%s)" % table) if not column[5]]
        cases = [([one], None) for one in columns] + [(columns, value) for value in (None, 2 ** 63 - 1, -2 ** 63, b"\xff\xc1\0", "x" * 5000)]
        for changes, value in cases:
            shutil.copy(whole, changed)
            with contextlib.closing(sqlite3.connect(changed)) as catalogue:
                for change in changes:
                    catalogue.execute("UPDATE OR IGNORE %s SET %s=?" % change, (value,))
                catalogue.commit()
            for verb in [["runs", "-q", self.folder + "/t"]] + ([["runs"], ["runs", "--json"], ["history", "peak"]] if len(changes) > 1 else []):
                done = subprocess.run([ANALYZE, verb[0], "--catalogue", changed, *verb[1:]], capture_output=True, text=True, errors="replace", timeout=120)
                self.assertIn(done.returncode, (0, 2, 3), (verb, changes, value, done.stderr[-2000:]))
                self.assertNotIn("runtime error", done.stderr, (verb, changes, value))

    def test_a_name_that_has_no_text(self):
        hooks = t.HOOKS + [["nvtxMemRegionsRegister", t.VERB["NAME"], 0, 6]]
        events = t.Thread().events(2, api=[t.MALLOC, len(hooks)], kind=[1, 0], duration_ns=1, address=4096, bytes=4096, label=[0, 7])
        t.write(os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst"), t.header(hooks=hooks), t.defs([]), events, t.footer())
        for verb in ["tree", "--by", "name"], ["table", "--by", "name"], ["flame", "--by", "name", "-o", self.folder + "/f"], ["report"]:
            done = subprocess.run([ANALYZE, *verb, self.folder + "/t"], capture_output=True, text=True, errors="replace", timeout=120)
            self.assertIn(done.returncode, (0, 2), (verb, done.stderr[-2000:]))

    def test_places_of_small_ids_are_told_apart(self):
        maps = [{"def": "frame", "id": i, "function": "f%d" % i, "file": "/a/train.py", "line": i} for i in range(1, 4)]
        maps += [{"def": "python_stack", "id": i, "frames": frames} for i, frames in enumerate([[3], [1, 2], [1], [1, 1]], 1)]
        numbers = range(1, 1601)
        t.write(os.path.join(self.folder, "t", "rank-00000-100.msgpack.zst"), t.header(), t.defs(maps),
                t.Thread().events(1600, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * i for i in numbers], bytes=4096, python=[i % 4 + 1 for i in numbers],
                                  caller=[0x4000 + i // 800 * 64 for i in numbers]), t.footer())
        report = json.loads(subprocess.run([ANALYZE, "--json", self.folder + "/t"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(sorted(finding["bytes"] for finding in report["findings"] if finding["kind"] == "memory.only_taken"), [400 * 4096, 1200 * 4096], "one for each line")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
