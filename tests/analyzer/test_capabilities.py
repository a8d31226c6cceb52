#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_capabilities.py SHOW ANALYZE: what each kind of recording can tell.  The table is written by hand, and the recordings without our code."""
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "hostile"), os.path.join(HERE, "..", "snapshot")]
import made
import traces

SHOW, ANALYZE = (os.path.abspath(path) for path in sys.argv[1:3])
ASLEEP = 392  # where a ring says that the recording sleeps (common/ringfile.h)
NAMES = "follows_process has_times has_device_figures lists_tensors numbers_are_computed is_whole shows_events".split()
TABLE = {
    "whole":                       (1, 1, 1, 0, 1, 1, 1),
    "killed, with its ring":       (1, 1, 1, 0, 1, 1, 1),
    "summary":                     (1, 1, 1, 0, 1, 1, 1),
    "dry run":                     (1, 0, 0, 0, 0, 1, 1),
    "summary of a dry run":        (1, 0, 0, 0, 0, 1, 1),
    "folded by --keep":            (1, 1, 1, 0, 1, 0, 1),
    "attached to":                 (1, 1, 0, 0, 1, 0, 1),
    "woken":                       (1, 1, 1, 0, 1, 0, 1),
    "asleep when it was killed":   (1, 1, 1, 0, 1, 0, 1),
    "with a gap":                  (1, 1, 1, 0, 1, 0, 1),
    "snapshot with its events":    (0, 1, 0, 1, 1, 0, 1),
    "snapshot of an old PyTorch":  (0, 0, 0, 1, 1, 0, 1),
    "snapshot of the state alone": (0, 0, 0, 1, 1, 0, 0),
    "snapshot of a dry run":       (0, 0, 0, 1, 0, 0, 1),
}


def snapshot(change=None, dry=None):
    allocator = made.Allocator()
    made.training(allocator, 4)
    whole = made.snapshot(allocator)[0]
    for trace in whole["device_traces"]:
        if change == "untimed":
            for event in trace:
                del event["time_us"]
        elif change == "state":
            trace.clear()
    return pickle.dumps({"stormlog_dry": dry, **whole} if dry else whole)


def recorded(*definitions, ring=None, **changes):
    """Files of a recording of one block that lives a microsecond; ring: of a process that was killed, asleep or not."""
    events = traces.Thread().events(2, api=[traces.MALLOC, traces.FREE], kind=[traces.KIND["device"], traces.KIND["unknown"]], address=4096, bytes=[1 << 20, 0])
    parts = [traces.header(**changes), *([traces.defs(definitions)] if definitions else []), events]
    if ring is None:
        return {"rank-00000-100.msgpack.zst": b"".join([*parts, traces.footer(events=2)])}
    head = bytearray(traces.ring("rank-00000-100.msgpack.zst"))
    struct.pack_into("<I", head, ASLEEP, ring == "asleep")
    return {"rank-00000-100.msgpack.zst": b"".join(parts), "rank-00000-100.ring": bytes(head)}


DRY = {"dry": {"name": "NVIDIA H200", "memory": str(140 << 30)}}
SLEPT = {"def": "slept", "begin_ns": traces.T0 + 10, "end_ns": traces.T0 + 10 ** 9, "wakes": True, "why": "asked", "follow": 0, "blocks": [], "calls": []}
RECORDINGS = {
    "whole": recorded(),
    "killed, with its ring": recorded(ring="awake"),
    "dry run": recorded(**DRY),
    "folded by --keep": recorded({"def": "checkpoint", "through": 2, "until_ns": traces.T0 + 500, "blocks": [], "peaks": [], "threads": []}),
    "attached to": recorded(watcher=7, watcher_start=9),
    "woken": recorded(SLEPT),
    "asleep when it was killed": recorded(ring="asleep"),
    "with a gap": recorded({"def": "gap", "count": 3, "begin_ns": traces.T0, "end_ns": traces.T0 + 5, "why": "the disk was full"}),
    "snapshot with its events": {"snapshot.pickle": snapshot()},
    "snapshot of an old PyTorch": {"snapshot.pickle": snapshot("untimed")},
    "snapshot of the state alone": {"snapshot.pickle": snapshot("state")},
    "snapshot of a dry run": {"snapshot.pickle": snapshot(dry="H200")},
}


class Capabilities(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        at = tempfile.TemporaryDirectory()
        cls.addClassCleanup(at.cleanup)
        cls.at = {name: os.path.join(at.name, name) for name in TABLE}
        for name, files in RECORDINGS.items():
            for file, content in files.items():
                traces.write(os.path.join(cls.at[name], file), content)
        for of, to in (("whole", "summary"), ("dry run", "summary of a dry run")):
            os.makedirs(cls.at[to])
            subprocess.run([ANALYZE, "summarize", "-q", "-o", cls.at[to] + "/run.summary", cls.at[of]], check=True)

    def said(self, name, program, *words):
        return subprocess.run([program, *words, self.at[name]], capture_output=True, text=True).stdout

    def test_each_kind_of_recording_tells_what_the_table_says(self):
        found = {name: [dict(zip(NAMES, map(int, line.split()))) for line in self.said(name, SHOW).splitlines()] for name in TABLE}
        self.assertEqual(found, {name: [dict(zip(NAMES, row))] for name, row in TABLE.items()})

    def test_a_summary_tells_what_its_trace_tells(self):
        for name in RECORDINGS:
            summary = self.at[name] + ".summary"
            subprocess.run([ANALYZE, "summarize", "-q", "-o", summary, self.at[name]], stderr=subprocess.DEVNULL, check=True)
            told = subprocess.run([SHOW, summary], capture_output=True, text=True).stdout
            self.assertEqual(told, self.said(name, SHOW), name)

    def test_how_long_blocks_live_is_told_only_in_the_job_s_own_time(self):
        for name, lifetime in (("whole", 1000), ("attached to", 1000), ("dry run", None)):
            owners = json.loads(self.said(name, ANALYZE, "table", "--at", "end", "--json"))["owners"]
            self.assertEqual([owner["lifetime_ns"] for owner in owners], [lifetime], name)

    def test_what_is_not_whole_fits_no_device_for_sure(self):
        for name, row in TABLE.items():
            if name in RECORDINGS and row[NAMES.index("follows_process")]:
                self.assertEqual("events are missing in the trace" in self.said(name, ANALYZE, "fit", "--capacity", "1TiB"), not row[NAMES.index("is_whole")], name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
