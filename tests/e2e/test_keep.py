#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""STORMLOG_KEEP: a job that writes far more than the limit ends, runs out of memory, or is killed.  Its files are then compared
with its own journal of blocks and the simulator's journal of calls."""
import json
import os
import random
import struct
import subprocess
import sys
import time
import unittest

import e2e
import kills
import stormlog_trace

PROGRAM = os.path.join(e2e.APPS, "keep_me")
SLOTS, RECENT, BASE, WEIGHTS = 16384, 65536, 0x500000000000, 2048
KEEP = 512 << 10


# 600 MiB of tensors at first, which are freed; then many small ones.  The folded part includes the peak; with an allocation of
# 700 MiB among the small ones that is the peak, and the blocks that lived then are not kept.
EARLY = """
import ctypes, os, sys
cudart = ctypes.CDLL("libcudart.so.13")
c10 = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
new = lambda bytes: c10.caching_new(ctypes.c_size_t(bytes))
c10.caching_delete(ctypes.c_void_p(new(600 << 20)))
assert not new(4000 << 20)
slots = [None] * 64
for i in range(200000):
    at = i * 2654435761 >> 7 & 63
    if slots[at]:
        c10.caching_delete(ctypes.c_void_p(slots[at]))
    slots[at] = None if slots[at] else new(512 + (i * 40503 & 0xfffff))
    if i == 5000 and sys.argv[1:] == ["other"]:
        other = ctypes.c_void_p()
        assert cudart.cudaMalloc(ctypes.byref(other), ctypes.c_size_t(700 << 20)) == 0
        assert cudart.cudaFree(other) == 0
"""

# Two places hold much for a while, beside one that makes and frees; truth.json says what each held when all together held most.
PLACES = """
import ctypes, json, os, random
c10 = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
held, all, most, then, pick = {}, 0, 0, {}, random.Random(int(os.environ["SEED"]))
def note(block, bytes, place):
    global all, most, then
    held[block], all = (bytes, place), all + bytes
    if all > most:
        most, then = all, [sum(b for b, p in held.values() if p == one) for one in ("layers", "cache", "churn")]
def give(block):
    global all
    c10.caching_delete(ctypes.c_void_p(block))
    all -= held.pop(block)[0]
def layers():
    bytes = 512 * pick.randrange(1, 2000)
    note(c10.caching_new(ctypes.c_size_t(bytes)), bytes, "layers")
def cache():
    bytes = 512 * pick.randrange(1, 3000)
    note(c10.caching_new(ctypes.c_size_t(bytes)), bytes, "cache")
def churn(times):
    for _ in range(times):
        few = [block for block, (_, place) in held.items() if place == "churn"]
        if len(few) > 40:
            give(pick.choice(few))
        else:
            bytes = 512 * pick.randrange(1, 2000)
            note(c10.caching_new(ctypes.c_size_t(bytes)), bytes, "churn")
for _ in range(60): layers()
churn(20000)
for _ in range(300): cache()
for block in pick.sample(sorted(held), 250): give(block)
churn(80000)
json.dump({"most": most, "then": then}, open("truth.json", "w"))
"""


class Journal:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.events, self.allocations, self.bytes, self.allocated, self.peak, self.under_way = struct.unpack_from("<6Q", data)
        live = struct.unpack_from("<%dQ" % SLOTS, data, 48)
        self.live = {BASE + (slot << 9): size for slot, size in enumerate(live) if size}
        recent = list(struct.iter_unpack("<Qq", data[48 + 8 * SLOTS:]))
        count = min(self.events, RECENT)
        self.recent = [recent[number % RECENT] for number in range(self.events - count, self.events)]

    def finish(self, address, size):
        """Complete the journal by the event that was under way at the kill and is in the trace."""
        assert BASE + (self.under_way - 1 << 9) == address, (self.under_way, hex(address))
        self.events += 1
        self.recent.append((address, size))
        self.allocated += size
        if size > 0:
            self.allocations, self.bytes, self.live[address] = self.allocations + 1, self.bytes + size, size
        else:
            del self.live[address]
        self.peak = max(self.peak, self.allocated)


def blocks_of(trace):
    """[(address, bytes; negative: freed), ...] in the order of time, and how many of them are after the folded part."""
    events, verbs = trace.events(), trace.verbs()
    checkpoint, = trace.defs["checkpoint"]
    rows, later = [], 0
    for api, ns, address, size in zip(*(events[name].tolist() for name in ("api", "time_ns", "address", "bytes"))):
        if verbs[api] in ("BLOCK_ALLOC", "BLOCK_FREE"):
            rows.append((address, size if verbs[api] == "BLOCK_ALLOC" else -size))
            later += ns > checkpoint["until_ns"]
    return rows, later


class Keep(unittest.TestCase):
    def check(self, run, journal, status, threads, errors=0):
        trace, = stormlog_trace.open_folder(run.traces)
        self.assertGreater(trace.folded_through, 3)
        self.assertEqual([d for d in trace.damage if "footer" not in str(d)][status == "interrupted":], [])
        # blocks: the newest events one by one, live blocks, totals since the start
        (device, allocations, made, frees, gone, _, _), = trace.defs["checkpoint"][0]["blocks"]
        rows, later = blocks_of(trace)
        self.assertEqual(device, 0)
        total = allocations + frees + len(rows)
        if journal.under_way and total == journal.events + 1:
            journal.finish(*rows[-1])
        self.assertEqual(total, journal.events)
        self.assertGreater(later, 2000)
        self.assertEqual(rows[-min(later, RECENT):], journal.recent[-min(later, RECENT):])
        live = {}
        for address, size in rows:
            if size > 0:
                live[address] = size
            else:
                live.pop(address, None)
        self.assertEqual(live, journal.live)
        # the blocks that lived at the peak are all kept, and at no other instant do the kept blocks hold more
        sums, most = 0, 0
        for _, size in rows:
            sums += size
            most = max(most, sums)
        self.assertEqual(most, journal.peak)
        self.assertEqual(allocations + sum(size > 0 for _, size in rows), journal.allocations)
        self.assertEqual(made + sum(size for _, size in rows if size > 0), journal.bytes)
        self.assertEqual(made - gone + sum(size for _, size in rows), journal.allocated)
        # the report
        report = run.report()
        mine, = report["processes"]
        torch, = mine["pytorch"]
        self.assertEqual((mine["status"], mine["lost_events"], mine["unknown_frees"]), (status, 0, 0))
        self.assertEqual((mine["damaged"], [w for w in report["warnings"] if "missing" in json.dumps(w)]), (False, []))
        self.assertEqual([torch[name] for name in ("events", "allocated_bytes", "live_blocks", "peak_allocated_bytes", "reserved_bytes")],
                         [journal.events + errors, journal.allocated, len(journal.live), journal.peak, 1 << 30])
        self.assertTrue(all(label["entries"] > 0 for label in mine["labels"] if status == "completed"))
        # calls are not folded, and the definitions of their stacks are kept
        truth, = run.truth()
        self.assertGreater(len(truth.calls), 100)
        if status == "interrupted":
            self.assertEqual(kills.differences(trace, truth), [])
        else:
            self.assertEqual(e2e.differences(mine, truth, e2e.rows_of(run.traces), threads + 1), [])
        events = trace.events()
        defined = {stack["id"] for stack in trace.defs["native_stack"]}
        used = set(events["native"].tolist()) - {0}
        self.assertGreater(len(used), 40)
        self.assertEqual(used - defined, set())
        named = {thread["id"] for thread in trace.defs["thread"]}
        self.assertEqual(set(events["thread"].tolist()) - named, set())
        return report

    def run_to_its_end(self, how, code, threads, events=240000, errors=0):
        with e2e.Recording(PROGRAM, "journal.bin", threads, events, how, code=code, STORMLOG_KEEP=KEEP,
                           STORMLOG_STACKS="native") as run:
            size = sum(os.path.getsize(os.path.join(run.traces, name)) for name in run.files())
            self.assertLess(size, 2 * KEEP)
            journal = Journal(os.path.join(run.folder, "journal.bin"))
            self.assertGreaterEqual(journal.events, events)
            return self.check(run, journal, "failed" if code else "completed", threads, errors)

    def test_a_peak_that_was_folded_has_its_owners(self):
        for seed in range(3):
            with e2e.Recording(sys.executable, "-c", PLACES, STORMLOG_KEEP=KEEP, APPS=e2e.APPS, SIM_VRAM="2G", SEED=seed,
                               LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
                trace, = stormlog_trace.open_folder(run.traces)
                with open(os.path.join(run.folder, "truth.json")) as file:
                    truth = json.load(file)
                self.assertGreater(trace.folded_through, 1)
                (device, at_ns), = trace.defs["checkpoint"][0]["peaks"][:1]
                self.assertEqual(device, 0)
                self.assertLess(at_ns, trace.defs["checkpoint"][0]["until_ns"])
                torch, = run.report()["processes"][0]["pytorch"]
                self.assertEqual(torch["peak_allocated_bytes"], truth["most"])
                tree = json.loads(subprocess.run([e2e.ANALYZE, "tree", "--json", run.traces], capture_output=True, text=True).stdout)
                found = {}
                def walk(owners):
                    for owner in owners:
                        place = owner["name"].split()[-1]
                        found[place] = found.get(place, 0) + owner["bytes"]
                        walk(owner["owners"])
                walk(tree["owners"])
                self.assertEqual([found.get(place, 0) for place in ("layers", "cache", "churn")], truth["then"])
                said = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True).stdout
                self.assertNotIn("folded by --keep, and unused", said)
                self.assertRegex(said, r"(?m)^ +\d+  tensors .*\d <string>:\d+, ")

    def test_what_grows_is_a_leak_and_what_was_loaded_is_left_folded_or_not(self):
        steps = ["alloc=100", *["calls=1000", "losses=1"] * 60]
        for keep in {}, {"STORMLOG_KEEP": KEEP}:
            with self.subTest(**keep), e2e.script(*steps, SIM_VRAM="8G", **keep) as run:
                trace, = stormlog_trace.open_folder(run.traces)
                self.assertEqual(trace.folded_through > 1, bool(keep))
                report = run.report()
                (leak,) = [one for one in report["answer"]["verdicts"] if one["word"] == "LEAK"]
                self.assertRegex(leak["headline"], r"^script\.py:\d+ keeps 1 MiB ")
                self.assertRegex(leak["why"][0], r"^all 60 blocks that \S+ made were never freed, 60 MiB\.$")
                self.assertIn((100 << 20, "live_at_exit"), {(one["bytes"], one["verdict"]) for one in report["leaks"]})

    def test_a_peak_that_was_folded_is_not_said_to_be_of_what_outlived_it(self):
        with e2e.Recording(sys.executable, "-c", EARLY, "other", STORMLOG_KEEP=KEEP, APPS=e2e.APPS, SIM_VRAM="2G",
                           LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertGreater(trace.folded_through, 1)
            mine, = run.report()["processes"]
            peak = max(device["known_peak_bytes"] for device in run.report()["run"]["devices"])
            self.assertEqual(mine["pytorch"][0]["peak_allocated_bytes"], 600 << 20)
            self.assertGreater(peak, 700 << 20)
            said = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True).stdout
            tree = subprocess.run([e2e.ANALYZE, "tree", run.traces], capture_output=True, text=True).stdout
            for text in (said, tree):
                self.assertRegex(text, r"[\d.]+( MiB)? +([\d.]+% +)?tensors folded by --keep, and unused")
            self.assertRegex(tree, r"(?m)^ *%d MiB .*at its peak" % (peak >> 20))
            between = lambda moment: subprocess.run([e2e.ANALYZE, "table", "--to", moment, run.traces], capture_output=True, text=True).stderr
            self.assertRegex(between("peak"), r"blocks that were freed by \d+\.\d+ s after its start are missing")
            self.assertNotIn("missing", between("end"))

    def test_an_allocator_that_reports_no_totals_has_none_folded_or_not(self):
        """PyTorch before 1.10: totals that it does not report are unknown, not 0; the device's figures come from calls."""
        program = """if True:
            import ctypes, os, sys
            cudart = ctypes.CDLL("libcudart.so.13")
            p = ctypes.c_void_p()
            assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(700 << 20)) == 0
            report = ctypes.CDLL(None)._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
            report.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint16]
            for bytes in [600 << 20] + [512] * int(sys.argv[1]):
                report(p.value, bytes, 0, 0, 1)
                report(p.value, -bytes, 0, 0, 1)
        """
        for pairs, folds in ((10, False), (100000, True)):
            with e2e.Recording(sys.executable, "-c", program, pairs, STORMLOG_KEEP=256 << 10, SIM_VRAM="2G",
                               LD_PRELOAD=e2e.PRELOAD + ":" + os.path.join(e2e.APPS, "libc10.so")) as run:
                trace, = stormlog_trace.open_folder(run.traces)
                self.assertEqual(bool(trace.folded_through), folds)
                report = run.report()
                mine, = report["processes"][0]["pytorch"]
                self.assertEqual({mine[key] for key in ("allocated_bytes", "reserved_bytes", "peak_allocated_bytes", "peak_reserved_bytes")}, {None})
                self.assertEqual(mine["events"], 2 * pairs + 2)
                self.assertEqual(report["run"]["devices"][0]["known_peak_bytes"], 700 << 20)

    def test_more_than_the_limit_is_said(self):
        """Calls are never left out: a program that makes many has more than the limit, and that is told."""
        for keep, beyond in ("64K", True), ("64M", False):
            with e2e.script("alloc=1", "calls=60000", STORMLOG_KEEP=keep) as run:
                size = sum(os.path.getsize(os.path.join(run.traces, name)) for name in run.files())
                self.assertEqual(size > 64 << 10, True)
                self.assertEqual("more than --keep 64.0 KiB" in json.dumps(run.report()["warnings"]), beyond)

    def test_a_job_that_ends(self):
        for threads in (1, 4):
            with self.subTest(threads):
                self.run_to_its_end("exit", 0, threads)

    def test_a_job_that_runs_out_of_memory(self):
        report = self.run_to_its_end("oom", 1, 2, errors=1)
        oom, = report["ooms"]
        self.assertEqual((oom["requested_bytes"], oom["recovered"]), (1 << 50, False))

    def test_a_job_that_is_killed(self):
        def when(run):
            while not any(name.count(".") == 3 and int(name.split(".")[1]) >= 12 for name in run.files()):  # a later one too: the 12th may be folded by now
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.3))
        for threads in (1, 4):
            with self.subTest(threads), e2e.Recording(PROGRAM, "journal.bin", threads, 0, "stay", code=-9, kill_when=when,
                                                      STORMLOG_KEEP=KEEP, STORMLOG_STACKS="native") as run:
                self.check(run, Journal(os.path.join(run.folder, "journal.bin")), "interrupted", threads)


if __name__ == "__main__":
    unittest.main(verbosity=2)
