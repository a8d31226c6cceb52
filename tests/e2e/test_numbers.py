#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Outputs agree with what the program noted itself; test_agreement.py compares outputs with each other."""
import contextlib
import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import e2e

import stormlog_trace

MIB = 1 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

# Steps with a forward and a backward range inside, tensors that live for microseconds, a label inside itself, a range that never closes.
TRAIN = """
import ctypes, json, os, random, sys
c10, nvtx = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so")), ctypes.CDLL("libnvToolsExt.so.1")
cudart = ctypes.CDLL("libcudart.so.13")
c10.caching_new.restype = ctypes.c_void_p
steps, live, most, entries, open_ranges = int(sys.argv[1]), 8 << 20, 8 << 20, [], []
outside = ctypes.c_void_p()
assert cudart.cudaMalloc(ctypes.byref(outside), ctypes.c_size_t(8 << 20)) == 0
def new(bytes):
    global live, most
    block = c10.caching_new(ctypes.c_size_t(bytes))
    assert block
    live += bytes
    most = max(most, live)
    for entry in open_ranges:
        entry["peak"] = max(entry["peak"], live)
    return block, bytes
def delete(block):
    global live
    c10.caching_delete(ctypes.c_void_p(block[0]))
    live -= block[1]
def push(name):
    nvtx.nvtxRangePushA(name.encode())
    open_ranges.append({"name": name, "before": live, "peak": live})
def pop():
    nvtx.nvtxRangePop()
    entries.append({**open_ranges.pop(), "after": live, "outer": [e["name"] for e in open_ranges]})
sizes, kept = random.Random(int(os.environ["SEED"])), []
for i in range(steps):
    push("step_%d" % i)
    push("forward")
    kept += [new(512 * sizes.randrange(1, 40000)) for _ in range(4)]
    delete(new(512 * sizes.randrange(1, 90000)))
    pop()
    push("backward")
    while len(kept) > 6:
        delete(kept.pop(sizes.randrange(len(kept))))
    pop()
    pop()
push("again")
push("again")
kept.append(new(3 << 20))
pop()
pop()
push("never closed")
json.dump({"entries": entries, "most": most, "live": live}, open("truth.json", "w"))
"""


class Written(unittest.TestCase):
    def test_traces_and_analysis_are_for_nobody_but_the_user(self):
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)
        with e2e.script("push=step_1", "alloc=7", "try=900000", "pop", SIM_VRAM="4G") as run:
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            again = os.path.join(run.folder, "again")  # an analysis of Stormlog's telemetry
            subprocess.run([e2e.ANALYZE, "-q", "-o", again, os.path.join(run.traces, "analysis", "telemetry")], check=True)
            for top in (run.traces, again):
                for folder, _, names in os.walk(top):
                    self.assertEqual(oct(os.stat(folder).st_mode & 0o777), "0o700", folder)
                    for name in names:
                        self.assertEqual(oct(os.stat(os.path.join(folder, name)).st_mode & 0o777), "0o600", name)
            self.assertTrue(os.path.exists(os.path.join(again, "report.html")))
            # the umask decides who may read a file that the user names, since it is made to be passed on
            for mask in (0o022, 0o077):
                os.umask(mask)
                for words in (["pack"], ["export", "csv"], ["export", "sqlite", "-q"]):
                    named = os.path.join(run.folder, "%s.%o" % (words[-1], mask))
                    subprocess.run([e2e.ANALYZE, *words, "-o", named, run.traces], capture_output=True, check=True)
                    self.assertEqual(os.stat(named).st_mode & 0o777, 0o666 & ~mask, words)


def drawn(svg):
    """(fill or stroke, colour, d) of each path.  cairo before 1.18 writes a style, later ones attributes, in which a number may end in zeros."""
    for attributes in re.findall(r"<path ([^>]*)>", svg):
        d, = re.findall(r' d="([^"]*)"', " " + attributes)
        for how, colour in re.findall(r'\b(fill|stroke)(?::|=")rgb\(([^)]*)\)', attributes):
            yield how, colour.replace(" ", ""), d


class Trained(unittest.TestCase):
    def train(self, steps, seed=1, program=TRAIN, **environment):
        run = e2e.Recording(sys.executable, "-c", program, str(steps), APPS=e2e.APPS, SIM_VRAM="8G", SEED=str(seed),
                            LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS, **environment)
        self.addCleanup(run.__exit__)
        with open(os.path.join(run.folder, "truth.json")) as file:
            return run, json.load(file)

    def events(self, run):
        subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
        sinks = os.path.join(run.traces, "analysis", "telemetry")
        lines = []
        for folder, _, names in os.walk(sinks):
            for name in sorted(names):
                if name.endswith(".jsonl"):
                    with open(os.path.join(folder, name)) as file:
                        lines += map(json.loads, file)
        return lines

    def test_a_range_of_any_depth_has_events_that_carry_what_was_in_use_then(self):
        run, truth = self.train(60)
        events = self.events(run)
        enters, exits = ([e for e in events if e["event_type"] == kind] for kind in ("phase_enter", "phase_exit"))
        by_id = {e["metadata"]["phase_scope"]["scope_id"]: e for e in exits}
        self.assertEqual(len(enters), len(truth["entries"]) + 1)  # one more: the range that never closes
        self.assertEqual(len(exits), len(truth["entries"]))
        self.assertEqual([e["context"] for e in enters if e["metadata"]["phase_scope"]["scope_id"] not in by_id], ["never closed"])
        for entry in truth["entries"]:
            scopes = [e for e in enters if e["context"] == entry["name"] and e["metadata"]["phase_scope"]["path"][:-1] == entry["outer"]
                      and e["allocator_allocated_bytes"] == entry["before"]
                      and by_id[e["metadata"]["phase_scope"]["scope_id"]]["allocator_allocated_bytes"] == entry["after"]]
            self.assertTrue(scopes, entry)

    def test_the_greatest_value_of_a_sink_is_the_greatest_there_was(self):
        for seed in range(3):
            run, truth = self.train(40, seed)
            events = self.events(run)
            mine, = run.report()["processes"]
            self.assertEqual(max(e["allocator_allocated_bytes"] for e in events), truth["most"])
            self.assertEqual(mine["pytorch"][0]["peak_allocated_bytes"], truth["most"] - 8 * MIB)
            peak = max(e["allocator_reserved_bytes"] for e in events)
            self.assertEqual(peak, mine["pytorch"][0]["peak_reserved_bytes"] + 8 * MIB)

    def test_what_came_and_went_within_one_bin_is_no_more_than_there_was(self):
        """The program waits after its steps, so that the bins of the timeline get longer until all steps are in a few of them."""
        for seed in range(4):
            with e2e.Recording(sys.executable, "-c", TRAIN + "\nimport time\ntime.sleep(1)\n", "5", APPS=e2e.APPS, SIM_VRAM="8G", SEED=seed,
                               LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
                with open(os.path.join(run.folder, "truth.json")) as file:
                    self.assertEqual(max(e["allocator_allocated_bytes"] for e in self.events(run)), json.load(file)["most"])

    def test_a_segment_that_was_not_reported_yet_is_no_tensor(self):
        """Neither the first segment nor one that is allocated for a block which does not fit elsewhere."""
        for last in ("", "new(200 << 20)\njson.dump({'most': most}, open('truth.json', 'w'))\n"):
            with e2e.Recording(sys.executable, "-c", TRAIN + last, "5", APPS=e2e.APPS, SIM_VRAM="8G", SEED="1", SEGMENT_US="20000",
                               LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
                with open(os.path.join(run.folder, "truth.json")) as file:
                    self.assertEqual(max(e["allocator_allocated_bytes"] for e in self.events(run)), json.load(file)["most"])

    def test_what_nobody_looked_at_is_unknown_and_no_gap_of_0(self):
        program = TRAIN + e2e.SAMPLED
        with e2e.Recording(sys.executable, "-c", program, "30", APPS=e2e.APPS, SIM_VRAM="8G", SEED="1", STORMLOG_DEVICE_INTERVAL="20",
                           LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
            samples = [e for e in self.events(run) if e["event_type"] in ("sample", "peak", "phase_enter", "phase_exit")]
            known = [e["device_used_bytes"] - e["allocator_reserved_bytes"] for e in samples if e["device_total_bytes"] is not None]
            self.assertTrue(known)
            self.assertGreaterEqual(min(known), 299 * MIB)  # the context

    def test_below_a_limit_the_device_of_a_sink_is_as_large_as_the_limit(self):
        """Neighbours take nothing of it."""
        with e2e.Recording(sys.executable, e2e.SCRIPT, "alloc=8", "samples=3", "alloc=64", "samples=3", launcher=["--limit", "1G"], SIM_VRAM="8G",
                           SIM_NEIGHBOURS="3", STORMLOG_DEVICE_INTERVAL="20") as run:
            known = [e for e in self.events(run) if e["device_total_bytes"] is not None]
        self.assertEqual({(e["device_total_bytes"], e["device_used_bytes"] + e["device_free_bytes"]) for e in known}, {(1 << 30, 1 << 30)})
        self.assertEqual(max(e["device_used_bytes"] for e in known), (8 + 64 + 300) * MIB)

    def test_each_sample_of_the_device_counts_once_and_a_gap_says_what_to_do(self):
        with e2e.Recording(sys.executable, e2e.SCRIPT, "alloc=8", "samples=3", *["calls=500", "module", "samples=1"] * 12,
                           SIM_VRAM="8G", SIM_MODULE_BYTES="256M", CUDA_MODULE_LOADING="EAGER", STORMLOG_DEVICE_INTERVAL="20") as run:
            trace, = stormlog_trace.open_folder(run.traces)
            taken = [row for row in trace.defs["sample"] if "device" in row]
            gaps = run.report()["gap_findings"]
            known = [e for e in self.events(run) if e["event_type"] == "sample" and e["device_total_bytes"] is not None]
        self.assertGreater(len(taken), 10)
        # two samples in one bin are one
        self.assertLessEqual(len(known), len(taken))
        self.assertGreaterEqual(len(known), len(taken) - 3)
        self.assertIn("persistent_drift", [gap["classification"] for gap in gaps])
        for gap in gaps:
            self.assertTrue(gap["remediation"][0])
            self.assertLessEqual(gap["evidence"].get("spike_count", 0), len(taken))

    def test_the_picture_is_as_high_as_what_it_draws_was(self):
        """Measured in timeline.svg; timeline.png is the same drawing."""
        for seed in range(3):
            run, truth = self.train(40, seed, TRAIN + e2e.SAMPLED, STORMLOG_DEVICE_INTERVAL="20")
            device, = run.report()["run"]["devices"]
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            picture = os.path.join(run.traces, "analysis", "timeline.svg")
            if not os.path.exists(picture):
                self.skipTest("a build without pictures")
            with open(picture) as file:
                paths = list(drawn(file.read()))
            def heights(how, colour):
                points = next(d for kind, rgb, d in paths if (kind, rgb) == (how, colour))
                return [float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", points)]
            zero = max(heights("fill", "0%,44.7%,69.8%"))  # the bottom of an area is at 0; a line need not begin there
            def height(how, colour):
                return zero - min(heights(how, colour))
            known = height("stroke", "4%,24%,36%")
            unit = device["known_peak_bytes"] / known
            tensors, used = height("fill", "0%,44.7%,69.8%"), height("stroke", "23%,19%,33%")
            self.assertAlmostEqual(tensors * unit, truth["most"] - 8 * MIB, delta=unit)
            self.assertAlmostEqual(used * unit, device["used_peak_bytes"], delta=2 * unit)

    def test_a_layer_that_was_never_high_with_the_others_is_drawn_as_high_as_it_was(self):
        """Two libraries hold memory by turns, so that both together never hold more than one of them."""
        program = """if True:
            import ctypes, os
            tensor, plugin = ctypes.CDLL(os.environ["TENSOR"]), ctypes.CDLL(os.environ["PLUGIN"])
            tensor.tensor_new.restype = plugin.plugin_allocate.restype = ctypes.c_void_p
            for i in range(3000):
                tensor.tensor_free(ctypes.c_void_p(tensor.tensor_new(ctypes.c_size_t(100 << 20))))
                plugin.plugin_release(ctypes.c_void_p(plugin.plugin_allocate(ctypes.c_size_t(60 << 20))))
        """
        with e2e.Recording(sys.executable, "-c", program, SIM_VRAM="8G", TENSOR=os.path.join(e2e.BUILD, "doc", "examples", "libtensor.so"),
                           PLUGIN=os.path.join(e2e.APPS, "plugin.so")) as run:
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            picture = os.path.join(run.traces, "analysis", "timeline.svg")
            if not os.path.exists(picture):
                self.skipTest("a build without pictures")
            with open(picture) as file:
                paths = list(drawn(file.read()))
            def top(how, colour):
                return min(float(y) for kind, rgb, d in paths if (kind, rgb) == (how, colour) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", d))
            known = [d for kind, rgb, d in paths if (kind, rgb) == ("stroke", "4%,24%,36%")]
            zero = max(float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", known[0]))
            first, second = zero - top("fill", "0%,44.7%,69.8%"), zero - top("stroke", "90.2%,62.4%,0%")
            self.assertAlmostEqual(min(first, second) / max(first, second), 0.6, delta=0.01)
            self.assertAlmostEqual(max(first, second), max(zero - y for y in map(float, re.findall(r"[ML] [\d.]+ ([\d.]+)", known[0]))), delta=0.5)

    def test_many_steps_are_thinned_evenly_by_label_and_that_is_said(self):
        run, truth = self.train(1500)
        events = self.events(run)
        names = [e["context"].rstrip("0123456789") for e in events if e["event_type"] == "phase_enter"]
        counts = {name: names.count(name) for name in set(names)}
        self.assertEqual(set(counts), {"step_", "forward", "backward", "again", "never closed"})
        self.assertGreater(counts["step_"], 180)
        self.assertTrue(counts["step_"] == counts["forward"] == counts["backward"], counts)
        start, = [e for e in events if e["event_type"] == "start"]
        self.assertEqual((start["metadata"]["label_entries"], start["metadata"]["label_entries_with_events"]),
                         (len(truth["entries"]) + 1, len(names)))

    def test_every_entry_of_a_label_can_be_listed(self):
        run, truth = self.train(1200)
        for label in ("step_#", "forward", "again"):
            done = subprocess.run([e2e.ANALYZE, "table", "--entries", label, "--json", run.traces], capture_output=True, check=True)
            said = [json.loads(line) for line in done.stdout.splitlines()]
            mine = [entry for entry in truth["entries"] if entry["name"].split("_")[0] == label.split("_")[0]]
            mine = [[e["before"], e["after"], e["peak"]] for e in mine]
            self.assertEqual([[e["before_bytes"], e["after_bytes"], e["peak_bytes"]] for e in said], mine)
            table = subprocess.run([e2e.ANALYZE, "table", "--csv", "--entries", label, run.traces], capture_output=True, check=True, text=True).stdout
            rows = list(csv.DictReader(table.splitlines()))
            self.assertEqual([[int(row[name]) for name in ("before_bytes", "after_bytes", "peak_bytes")] for row in rows], mine)
            self.assertEqual([int(row["end_ns"]) - int(row["begin_ns"]) for row in rows], [e["end_ns"] - e["begin_ns"] for e in said])
            database = os.path.join(run.folder, "run.db")
            subprocess.run([e2e.ANALYZE, "export", "sqlite", "-q", "-o", database, run.traces], check=True)
            with contextlib.closing(sqlite3.connect(database)) as file:
                self.assertEqual([list(row) for row in file.execute("SELECT before_bytes, after_bytes, peak_bytes FROM entries WHERE label = ? "
                                                                    "ORDER BY t1_ns", (label,))], mine)
                self.assertEqual([row for row in file.execute("SELECT t1_ns, after_bytes FROM entries WHERE label = 'never closed'")], [(None, None)])
        last, = [json.loads(line) for line in subprocess.run([e2e.ANALYZE, "table", "--entries", "never closed", "--json", run.traces],
                                                             capture_output=True, check=True).stdout.splitlines()]
        self.assertEqual([last["end_ns"], last["after_bytes"], last["held_after_bytes"]], [None] * 3)
        self.assertEqual(last["before_bytes"], truth["live"])
        said = self.table("--entries", "*", run.traces).stdout.splitlines()
        self.assertRegex(said[-1], r"^ +\S+ \S+ +open +\S+ \wiB +unknown +\S+ \wiB  never closed$")
        self.assertEqual(len(said), 2 + len(truth["entries"]) + 1)
        step = [entry for entry in truth["entries"] if entry["name"] == "step_7"]
        (line,) = [line for line in said if line.split()[0] == "7" and line.endswith("step_#")]
        self.assertEqual([float(size.split()[0]) for size in re.findall(r"[\d.]+ MiB", line)],
                         [float("%.3g" % (step[0][what] / 2 ** 20)) for what in ("before", "after", "peak")])

    def test_entries_of_no_range_and_of_no_verb_are_said(self):
        run, _ = self.train(40)
        for words, code, said in ((["table", "--entries", "step"], 2, "no range is called step; --entries '\\*'"), (["tree", "--entries", "step_#"], 2, "is of table"),
                                  (["table", "--entries", "step_#", "--by", "rank"], 2, "go with it"), (["table", "--csv"], 2, "--csv is of table --entries"),
                                  (["table", "--entries", "step_#", "--run", "none"], 2, "no run none")):
            done = subprocess.run([e2e.ANALYZE, *words, run.traces], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (code, ""), words)
            self.assertRegex(done.stderr, said)
        self.assertIn("step_#", self.table("--entries", "step_#", "--pid", str(run.report()["processes"][0]["pid"]), run.traces).stdout)

    def table(self, *words):
        return subprocess.run([e2e.ANALYZE, "table", *words], capture_output=True, check=True, text=True)

    def test_sizes_of_telemetry_are_called_what_they_are(self):
        run, truth = self.train(5)
        events = self.events(run)
        said = subprocess.run([e2e.ANALYZE, "-o", os.path.join(run.folder, "again"), os.path.join(run.traces, "analysis", "telemetry")],
                              check=True, capture_output=True, text=True).stdout
        size, unit = re.search(r"peak allocated ([\d.]+) (\w+),", said).groups()
        self.assertAlmostEqual(float(size) * UNITS[unit], truth["most"], delta=truth["most"] * 0.01)

    def test_a_label_inside_itself_counts_once_and_an_open_one_is_unknown(self):
        run, truth = self.train(3)
        labels = {label["label"]: label for label in run.report()["processes"][0]["labels"]}
        self.assertEqual((labels["again"]["entries"], labels["again"]["allocated_bytes"], labels["again"]["blocks_created"]),
                         (2, 3 * MIB, 1))
        never = labels["never closed"]
        self.assertEqual((never["entries"], never["open"]), (0, 1))
        self.assertEqual([never[name] for name in ("before_bytes", "after_bytes", "peak_bytes", "allocated_bytes", "duration_ns")], [None] * 5)

    def test_a_label_inside_itself_grows_by_what_its_outermost_entries_leave(self):
        with e2e.script(*["push=tree", "alloc=1", "push=tree", "alloc=1", "push=tree", "pop", "pop", "pop"] * 10) as run:
            report = run.report()
        [label] = report["processes"][0]["labels"]
        self.assertEqual((label["entries"], label["growth_bytes_per_entry"], label["verdict"]), (30, 2 * MIB, "growing"))
        [finding] = [finding for finding in report["findings"] if finding["id"] == "label.growing"]
        self.assertRegex(finding["description"], r"^each outermost tree adds 2 MiB that stays; memory in use rose in step with 8 entries of tree\. .* adds 2 MiB$")

    def test_ranges_that_overlap_are_entries_each(self):
        """Two requests are always under way and end in any order; each leaves 1 MiB."""
        with e2e.Recording(sys.executable, "-c", REQUESTS) as run:
            report = run.report()
        [label] = report["processes"][0]["labels"]
        self.assertEqual((label["entries"], label["verdict"]), (80, "growing"))
        self.assertAlmostEqual(label["growth_bytes_per_entry"], MIB, delta=MIB / 50)

    def test_what_others_that_are_open_hold_by_then_is_no_growth(self):
        """Four entries are open at any time except at the end; each takes 1 MiB when it begins."""
        for name, script in (("started", WINDOW), ("threads", TURNS)):
            with self.subTest(name), e2e.Recording(sys.executable, "-c", script) as run:
                [label] = run.report()["processes"][0]["labels"]
                self.assertEqual((label["entries"], label["verdict"], label["growth_bytes_per_entry"]), (60, "growing", MIB))


HEAD = """
import ctypes
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
nvtx.nvtxRangeStartA.restype = ctypes.c_uint64
def take(mib, call="cudaMalloc"):
    p = ctypes.c_void_p()
    return getattr(cudart, call)(ctypes.byref(p), ctypes.c_size_t(mib << 20))
"""
OVERLAPPING = HEAD + """
first, second = (nvtx.nvtxRangeStartA(b"x") for _ in range(2))
take(1)
nvtx.nvtxRangeEnd(ctypes.c_uint64(first))
take(2)
nvtx.nvtxRangeEnd(ctypes.c_uint64(second))
"""
REQUESTS = HEAD + """
under_way = [nvtx.nvtxRangeStartA(b"request_0")]
for n in range(1, 81):
    under_way.append(nvtx.nvtxRangeStartA(b"request_%d" % n))
    take(1)
    nvtx.nvtxRangeEnd(ctypes.c_uint64(under_way.pop(n % 2)))
"""
WINDOW = HEAD + """
open_ones = []
for n in range(60):
    open_ones.append(nvtx.nvtxRangeStartA(b"request_%d" % n))
    take(1)
    if len(open_ones) == 4:
        nvtx.nvtxRangeEnd(ctypes.c_uint64(open_ones.pop(0)))
for one in open_ones:
    nvtx.nvtxRangeEnd(ctypes.c_uint64(one))
"""
TURNS = HEAD + """
import threading
turns = [threading.Semaphore(t == 0) for t in range(4)]
def work(t):
    for i in range(16):
        turns[t].acquire()
        if i:
            nvtx.nvtxRangePop()
        if i < 15:
            nvtx.nvtxRangePushA(b"job_%d" % i)
            take(1)
        turns[(t + 1) % 4].release()
threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
STARTED = HEAD + """
before = nvtx.nvtxRangeStartA(b"step_2")
for n in range(3, 63):
    take(1)
    nvtx.nvtxRangeEnd(ctypes.c_uint64(before))
    before = nvtx.nvtxRangeStartA(b"step_%d" % n)
nvtx.nvtxRangeEnd(ctypes.c_uint64(before))
"""
TOO_LARGE = HEAD + """
while take(64) == 0:
    pass
for i in range(3):
    assert take(2048 + i) == 2
cudart.cudaFree(ctypes.c_void_p(0x1234))
"""


class Counted(unittest.TestCase):
    def recorded(self, program, **settings):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(program)
        return self.enterContext(e2e.Recording(sys.executable, path, **settings))

    def test_ranges_of_one_label_that_overlap_count_a_block_once(self):
        run = self.recorded(OVERLAPPING)
        label, = run.report()["processes"][0]["labels"]
        self.assertEqual((label["entries"], label["allocated_bytes"], label["blocks_created"]), (2, 3 * MIB, 2))
        lines = subprocess.run([e2e.ANALYZE, "table", "--entries", "x", "--json", run.traces], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        entries = [json.loads(line) for line in lines]
        self.assertEqual([entry["allocated_bytes"] for entry in entries], [MIB, 3 * MIB], "each entry has all of its own")

    def test_numbers_of_ranges_that_were_started_are_kept(self):
        run = self.recorded(STARTED)
        numbers = list(range(2, 63))
        lines = subprocess.run([e2e.ANALYZE, "table", "--entries", "step_#", "--json", run.traces], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines], numbers)
        lines = subprocess.run([e2e.ANALYZE, "dump", "--json", run.traces], check=True, capture_output=True, text=True).stdout.splitlines()
        events = [json.loads(line) for line in lines]
        self.assertEqual([event["step"] for event in events if event.get("api") == "nvtxRangeStartA"], numbers)
        said = subprocess.run([e2e.ANALYZE, "tree", "--from", "step_#10", "--to", "step_#20", run.traces], check=True,
                              capture_output=True, text=True).stdout
        self.assertRegex(said, r"(?m)^ *10.0 MiB ")

    def test_a_request_is_compared_with_what_was_granted(self):
        run = self.recorded(TOO_LARGE, SIM_VRAM="1G")
        causes = {oom["requested_bytes"] >> 20: json.dumps(oom) for oom in run.report()["ooms"]}
        told = {mib: re.findall(r"times the largest that was granted before, (\d+) MiB", text) for mib, text in causes.items()}
        self.assertEqual(told[2050], ["64"], told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
