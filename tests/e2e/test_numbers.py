#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One quantity has one value: all outputs agree with the program's own notes and with each other."""
import contextlib
import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import e2e
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)

import stormlog_trace

MIB = 1 << 20

# Steps with a forward and a backward inside, tensors that come and go within microseconds, a label inside itself, one that never closes.
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
            again = os.path.join(run.folder, "again")  # of Stormlog's own files
            subprocess.run([e2e.ANALYZE, "-q", "-o", again, os.path.join(run.traces, "analysis", "telemetry")], check=True)
            for top in (run.traces, again):
                for folder, _, names in os.walk(top):
                    self.assertEqual(oct(os.stat(folder).st_mode & 0o777), "0o700", folder)
                    for name in names:
                        self.assertEqual(oct(os.stat(os.path.join(folder, name)).st_mode & 0o777), "0o600", name)
            self.assertTrue(os.path.exists(os.path.join(again, "report.html")))


class Trained(unittest.TestCase):
    def train(self, steps, seed=1):
        run = e2e.Recording(sys.executable, "-c", TRAIN, str(steps), APPS=e2e.APPS, SIM_VRAM="8G", SEED=str(seed),
                            LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS)
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
        self.assertEqual(len(enters), len(truth["entries"]) + 1)  # and the one that never closes
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

    def test_what_nobody_looked_at_is_unknown_and_no_gap_of_0(self):
        program = TRAIN + "\nimport time\ntime.sleep(0.3)\n"
        with e2e.Recording(sys.executable, "-c", program, "30", APPS=e2e.APPS, SIM_VRAM="8G", SEED="1", STORMLOG_DEVICE_INTERVAL="20",
                           LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
            samples = [e for e in self.events(run) if e["event_type"] in ("sample", "peak", "phase_enter", "phase_exit")]
            known = [e["device_used_bytes"] - e["allocator_reserved_bytes"] for e in samples if e["device_total_bytes"] is not None]
            self.assertTrue(known)
            self.assertGreaterEqual(min(known), 299 * MIB)  # the context

    def test_each_sample_of_the_device_counts_once_and_a_gap_says_what_to_do(self):
        with e2e.Recording(sys.executable, e2e.SCRIPT, "alloc=8", "samples=3", "calls=3000", "samples=2", *["module", "samples=1"] * 6, "calls=3000",
                           SIM_VRAM="8G", SIM_MODULE_BYTES="256M", CUDA_MODULE_LOADING="EAGER", STORMLOG_DEVICE_INTERVAL="20") as run:
            trace, = stormlog_trace.open_folder(run.traces)
            taken = [row for row in trace.defs["sample"] if "device" in row]
            gaps = run.report()["gap_findings"]
            known = [e for e in self.events(run) if e["event_type"] == "sample" and e["device_total_bytes"] is not None]
        self.assertGreater(len(taken), 10)
        # two that fall into one bin are one
        self.assertLessEqual(len(known), len(taken))
        self.assertGreaterEqual(len(known), len(taken) - 3)
        self.assertIn("persistent_drift", [gap["classification"] for gap in gaps])
        for gap in gaps:
            self.assertTrue(gap["remediation"][0])
            self.assertLessEqual(gap["evidence"].get("spike_count", 0), len(taken))

    def test_the_picture_is_as_high_as_what_it_draws_was(self):
        """timeline.svg, of which timeline.png is the same drawing."""
        for seed in range(3):
            run, truth = self.train(40, seed)
            device, = run.report()["run"]["devices"]
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            picture = os.path.join(run.traces, "analysis", "timeline.svg")
            if not os.path.exists(picture):
                self.skipTest("a build without pictures")
            with open(picture) as file:
                paths = re.findall(r'(fill|stroke):rgb\(([^)]*)\)[^"]*"\s+d="([^"]*)"', file.read())
            def height(how, colour):
                points = next(d for kind, rgb, d in paths if (kind, rgb) == (how, colour))
                ys = [float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", points)]
                return max(ys) - min(ys)
            known = height("stroke", "4%,24%,36%")
            unit = device["known_peak_bytes"] / known
            tensors, used = height("fill", "0%,44.7%,69.8%"), height("stroke", "23%,19%,33%")
            self.assertAlmostEqual(tensors * unit, truth["most"] - 8 * MIB, delta=unit)
            self.assertAlmostEqual(used * unit, device["used_peak_bytes"], delta=2 * unit)

    def test_a_layer_that_was_never_high_with_the_others_is_drawn_as_high_as_it_was(self):
        """Two libraries take turns, so that the maximum of both is that of one."""
        program = """if True:
            import ctypes, os
            tensor, plugin = ctypes.CDLL(os.environ["TENSOR"]), ctypes.CDLL(os.environ["PLUGIN"])
            tensor.tensor_new.restype = plugin.plugin_allocate.restype = ctypes.c_void_p
            for i in range(3000):
                tensor.tensor_free(ctypes.c_void_p(tensor.tensor_new(ctypes.c_size_t(100 << 20))))
                plugin.plugin_release(ctypes.c_void_p(plugin.plugin_allocate(ctypes.c_size_t(60 << 20))))
        """
        with e2e.Recording(sys.executable, "-c", program, SIM_VRAM="8G", TENSOR=os.path.join(e2e.BUILD, "examples", "libtensor.so"),
                           PLUGIN=os.path.join(e2e.APPS, "plugin.so")) as run:
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            picture = os.path.join(run.traces, "analysis", "timeline.svg")
            if not os.path.exists(picture):
                self.skipTest("a build without pictures")
            with open(picture) as file:
                paths = re.findall(r'(fill|stroke):rgb\(([^)]*)\)[^"]*"\s+d="([^"]*)"', file.read())
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
            done = subprocess.run([e2e.ANALYZE, "entries", "--label", label, run.traces], capture_output=True, check=True)
            said = [json.loads(line) for line in done.stdout.splitlines()]
            mine = [entry for entry in truth["entries"] if entry["name"].split("_")[0] == label.split("_")[0]]
            mine = [[e["before"], e["after"], e["peak"]] for e in mine]
            self.assertEqual([[e["before_bytes"], e["after_bytes"], e["peak_bytes"]] for e in said], mine)
            table = subprocess.run([e2e.ANALYZE, "entries", "--csv", "--label", label, run.traces], capture_output=True, check=True, text=True).stdout
            rows = list(csv.DictReader(table.splitlines()))
            self.assertEqual([[int(row[name]) for name in ("before_bytes", "after_bytes", "peak_bytes")] for row in rows], mine)
            self.assertEqual([int(row["end_ns"]) - int(row["begin_ns"]) for row in rows], [e["end_ns"] - e["begin_ns"] for e in said])
            database = os.path.join(run.folder, "run.db")
            subprocess.run([e2e.ANALYZE, "export", "sqlite", "-q", "-o", database, run.traces], check=True)
            with contextlib.closing(sqlite3.connect(database)) as file:
                self.assertEqual([list(row) for row in file.execute("SELECT before_bytes, after_bytes, peak_bytes FROM entries WHERE label = ? "
                                                                    "ORDER BY t1_ns", (label,))], mine)
                self.assertEqual([row for row in file.execute("SELECT t1_ns, after_bytes FROM entries WHERE label = 'never closed'")], [(None, None)])
        last, = [json.loads(line) for line in subprocess.run([e2e.ANALYZE, "entries", "--label", "never closed", run.traces],
                                                             capture_output=True, check=True).stdout.splitlines()]
        self.assertEqual([last["end_ns"], last["after_bytes"], last["held_after_bytes"]], [None] * 3)
        self.assertEqual(last["before_bytes"], truth["live"])

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


# Several kinds, devices, threads' worth of errors and ranges, by the seed.
VARIED = """
import ctypes, os, random
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
pick, held = random.Random(int(os.environ["SEED"])), []
calls = [(cudart.cudaMalloc, cudart.cudaFree, ()), (cudart.cudaMallocHost, cudart.cudaFreeHost, ()), (cudart.cudaMallocManaged, cudart.cudaFree, (1,))]
for i in range(pick.randrange(20, 60)):
    nvtx.nvtxRangePushA(b"step_%d" % i)
    assert cudart.cudaSetDevice(pick.randrange(2)) == 0
    for _ in range(pick.randrange(1, 8)):
        get, give, more = pick.choice(calls)
        p = ctypes.c_void_p()
        if get(ctypes.byref(p), ctypes.c_size_t(pick.randrange(1, 64 << 20)), *more) == 0:
            held.append((p, give))
    if pick.random() < 0.1:
        cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 40))
    while held and pick.random() < 0.75:
        p, give = held.pop(pick.randrange(len(held)))
        assert give(p) == 0
    nvtx.nvtxRangePop()
"""

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
GAUGE = re.compile(r"^stormlog_(\w+)\{(.*)\} (\d+)$", re.M)


class Agreement(unittest.TestCase):
    """What two outputs of one run say of one quantity."""

    def gauges(self, run):
        text = subprocess.run([e2e.ANALYZE, "export", "prometheus", "-q", run.traces], check=True, capture_output=True, text=True).stdout
        found = {}
        for name, labels, value in GAUGE.findall(text):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            key = [int(labels["pid"])] + [int(labels[k]) if k == "device" else labels[k] for k in ("device", "kind", "library") if k in labels]
            found.setdefault(name, {})[tuple(key)] = int(value)
        return found

    def rows(self, run):
        database = os.path.join(run.folder, "run.db")
        subprocess.run([e2e.ANALYZE, "export", "sqlite", "-q", "-o", database, run.traces], check=True)
        with contextlib.closing(sqlite3.connect(database)) as file:
            return {row[:3]: row[3:] for row in file.execute("SELECT pid, kind, device, allocations, frees, failed_allocations, implicit_frees, "
                                                             "allocated_bytes, live_blocks, live_bytes, peak_bytes FROM memory JOIN processes USING(process)")}

    def totals(self, run):
        baseline = os.path.join(run.folder, "baseline.json")
        subprocess.run([e2e.ANALYZE, "check", "--baseline", baseline, "--update-baseline", run.traces], check=True, capture_output=True)
        with open(baseline) as file:
            return json.load(file)

    def agrees(self, run):
        report = run.report()
        printed = subprocess.run([e2e.ANALYZE, run.traces], check=True, capture_output=True, text=True).stdout
        page, events, gauges, rows, gate = run.page(), run.sinks(), self.gauges(run), self.rows(run), self.totals(run)
        devices, processes = report["run"]["devices"], report["processes"]
        for process in processes:
            pid = process["pid"]
            self.assertEqual(gauges["events_total"][pid,], process["events"])
            self.assertEqual(gauges["out_of_memory_total"][pid,], sum(oom["session_id"] == process["session_id"] for oom in report["ooms"]))
            for row in process["memory"]:
                key = (pid, -1 if row["device"] is None else row["device"], row["kind"])
                of = {k[0:1] + (k[1] if len(k) == 3 else -1, k[-1]): k for k in gauges["memory_peak_bytes"]}
                for gauge, name in (("memory_live_bytes", "live_bytes"), ("memory_peak_bytes", "peak_bytes"),
                                    ("memory_allocations_total", "allocations"), ("memory_failed_allocations_total", "failed_allocations")):
                    self.assertEqual(gauges[gauge][of[key]], row[name], (key, name))
                self.assertEqual(rows[pid, row["kind"], row["device"]],
                                 tuple(row[name] for name in ("allocations", "frees", "failed_allocations", "implicit_frees", "allocated_bytes",
                                                              "live_blocks", "live_bytes", "peak_bytes")))
            self.assertEqual({key[1:]: value for key, value in gauges["library_peak_bytes"].items() if key[0] == pid},
                             {(one["device"], one["library"]): one["peak_bytes"] for one in process["libraries"]})
        known = [device["known_peak_bytes"] for device in devices]
        hidden = [device["hidden_peak_bytes"] for device in devices if device["hidden_peak_bytes"] is not None]
        self.assertEqual(gate["total"]["peak"]["bytes"], max(known))
        most_hidden = max(hidden, default=None)  # None: the program ended before the device was looked at
        self.assertEqual(gate["total"]["hidden"]["bytes"], most_hidden)
        self.assertEqual(max(gauges.get("device_hidden_peak_bytes", {}).values(), default=None), most_hidden)
        found = re.search(r"PEAK .*?([\d.]+) (\w+B)\b", printed)
        if found:
            said = float(found[1]) * UNITS[found[2]]
            self.assertTrue(any(abs(said - most) <= said * 0.01 for most in self.peaks(page, known)), found[0])
        words = re.search(r"^HIDDEN +(.*?)(  |$)", printed, re.M)  # of several devices the least and the most
        self.assertEqual(bool(words), bool(most_hidden))
        if words:
            said = max(float(size) * UNITS[unit] for size, unit in re.findall(r"([\d.]+) (\w*B)", words[1]))
            self.assertAlmostEqual(said, most_hidden, delta=said * 0.01)
        for device in {(event["pid"], event["device_id"]) for event in events if event["device_id"] >= 0}:
            most = max(event["allocator_reserved_bytes"] for event in events if (event["pid"], event["device_id"]) == device)
            shown = [line["max"].max() for line in (page or {"lines": []})["lines"]
                     if line["what"] == "known" and (page["processes"][line["process"]]["pid"], line["device"]) == device]
            self.assertEqual([most] * len(shown), shown)
            gaps = [event["device_used_bytes"] - event["allocator_reserved_bytes"] for event in events if event["event_type"] == "sample" and
                    (event["pid"], event["device_id"]) == device and event["device_total_bytes"] is not None]
            self.assertEqual(max(gaps, default=None), gauges.get("device_hidden_peak_bytes", {}).get(device), device)
        for event in events:
            if event["event_type"] == "peak":
                shown = [one["max"].max() for one in (page or {"lines": []})["lines"] if one["what"] == "known" and
                         (page["processes"][one["process"]]["pid"], one["device"]) == (event["pid"], event["device_id"])]
                self.assertEqual([event["allocator_reserved_bytes"]] * len(shown), shown)
        if page:
            self.page_agrees(page, report)
        self.leaks_agree(printed, report, page)
        self.verbs_agree(run, report)
        self.exports_agree(run, report, events)

    def verbs_agree(self, run, report):
        """What single verbs print, one process at a time, and the file summary.md."""
        def ask(*words):
            return subprocess.run([e2e.ANALYZE, *words, run.traces], check=True, capture_output=True, text=True).stdout
        held_kinds = ("device", "pool", "vmm", "array", "graph")
        for process in report["processes"]:
            one = ("--pid", str(process["pid"]))
            rows = [row for row in process["memory"] if row["kind"] in held_kinds and row["device"] is not None]
            tree, table = (json.loads(ask(verb, "--at", "end", "--json", *one)) for verb in ("tree", "table"))
            self.assertEqual([tree["bytes"], table["bytes"]], [sum(row["live_bytes"] for row in rows)] * 2, process["pid"])
            used = {row["device"] for row in rows}
            if len(used) == 1 and len(rows) == 1:
                self.assertEqual(json.loads(ask("tree", "--json", *one))["bytes"], rows[0]["peak_bytes"])
        dumped = [json.loads(line) for line in ask("dump").splitlines()]
        for process in report["processes"]:
            mine = [event for event in dumped if event["pid"] == process["pid"] and event["verb"] == "ALLOC" and not event["result"]]
            for row in process["memory"]:
                if row["kind"] in ("device", "host_pinned", "managed"):
                    of = [event for event in mine if (event["kind"], event["device"] if row["device"] is not None else None) == (row["kind"], row["device"])]
                    self.assertEqual((len(of), sum(event["bytes"] for event in of)), (row["allocations"], row["allocated_bytes"]), row)
        subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
        with open(os.path.join(run.traces, "analysis", "report.json")) as file:
            written = json.load(file)
        self.assertEqual(written["processes"], report["processes"])
        self.assertEqual(written["run"], report["run"])
        with open(os.path.join(run.traces, "analysis", "summary.md")) as file:
            text = file.read()
        printed = subprocess.run([e2e.ANALYZE, run.traces], check=True, capture_output=True, text=True).stdout
        for word in ("OUT OF MEMORY", "GROWTH", "HIDDEN"):
            self.assertEqual(len(re.findall("^%s" % word, printed, re.M)), len(re.findall("^%s" % word, text, re.M)), word)
        bytes_of = lambda words: re.findall(r"^HIDDEN +([\d.]+ \w*B)", words, re.M)
        self.assertEqual(bytes_of(printed), bytes_of(text))

    def leaks_agree(self, printed, report, page):
        """A leak of the terminal is one of the page and of report.json, with the same bytes."""
        said = [float(size) * UNITS[unit] for size, unit in re.findall(r"^LEAK .*?\bkept, ([\d.]+) (\w*B)", re.sub(r"\n {6}(?=\S)", " ", printed), re.M)]
        leaks, places = [finding for finding in report["findings"] if finding["id"] in ("leak.kept", "leak.growing")], {}
        for leak in leaks:
            kind = re.search(r" of [\d ]+ (.*) kept", leak["description"])
            places.setdefault((kind and kind[1], *sorted((leak["place"] or {}).items())), []).append(leak["bytes"])
        most = sorted(map(max, places.values()), reverse=True)[:3]
        self.assertEqual([round(one, -4) for one in said], [self.near(one, said) for one in most], (printed, places))
        if page:
            self.assertEqual((page["leaking"]["places"], page["leaking"]["bytes"]), (len(places), sum(leak["bytes"] for leak in leaks)))

    def near(self, exact, said):
        """The figure of those said that is so much, rounded as they are."""
        return next((round(one, -4) for one in said if abs(one - exact) <= 0.005 * exact + 1), exact)

    def exports_agree(self, run, report, events):
        """Tables of ranks, weights of stacks, the time line, rollups and bundles."""
        def ask(*words):
            return subprocess.run([e2e.ANALYZE, *words, run.traces], check=True, capture_output=True, text=True).stdout
        held_kinds = ("device", "pool", "vmm", "array", "graph")
        rows = [row for process in report["processes"] for row in process["memory"] if row["kind"] in held_kinds and row["device"] is not None]
        ranks = {row["session_id"]: row for row in json.loads(ask("ranks", "--json"))["ranks"]}
        self.assertEqual(set(ranks), {process["session_id"] for process in report["processes"]})
        for process in report["processes"]:
            row = ranks[process["session_id"]]
            peaks = [event["allocator_reserved_bytes"] for event in events if event["event_type"] == "peak" and event["pid"] == process["pid"]]
            self.assertEqual(row["peak_bytes"], max(peaks, default=0))
            self.assertEqual(row["end_bytes"], sum(one["live_bytes"] for one in process["memory"] if one["device"] == row["device"] and one["kind"] in held_kinds))
            self.assertEqual((row["ooms"], row["exit_status"]),
                             (sum(oom["session_id"] == process["session_id"] for oom in report["ooms"]), process["exit_status"]))
        weights = {weigh: sum(int(line.rsplit(" ", 1)[1]) for line in ask("export", "collapsed", "-q", "--weigh", weigh).splitlines())
                   for weigh in ("live", "total", "peak")}
        torch = [row for process in report["processes"] for row in process["pytorch"] if row["device"] is not None]
        unused = sum(row["reserved_bytes"] - row["allocated_bytes"] for row in torch)  # stacks hold tensors, not segments
        self.assertEqual(weights["live"], sum(row["live_bytes"] for row in rows) - unused)
        peaks = [event["allocator_reserved_bytes"] for event in events if event["event_type"] == "peak"]
        if not torch:
            self.assertEqual((weights["total"], weights["peak"]), (sum(row["allocated_bytes"] for row in rows), sum(peaks)))
        for line in json.loads(ask("timeline", "--json"))["processes"]:  # all of its devices together
            mine = [event["allocator_reserved_bytes"] for event in events if event["event_type"] == "peak" and event["pid"] == line["pid"]]
            self.assertEqual(line["peak_bytes"], max(line["most_bytes"]))
            self.assertTrue(max(mine) <= line["peak_bytes"] <= sum(mine), (line["peak_bytes"], mine))
        folder = os.path.join(run.traces, "analysis")
        for sink in os.listdir(os.path.join(folder, "telemetry")):
            with open(os.path.join(folder, "telemetry", sink, "rollups.json")) as file:
                session, = json.load(file)["sessions"]
            most = max(event["allocator_reserved_bytes"] for event in events if event["session_id"] == session["session"]["session_id"])
            self.assertEqual(session["counters"]["allocator_reserved_bytes"]["value"], most)
        bundles = set()  # attempts share one, which is of the first
        for oom in report["ooms"]:
            if oom["bundle"] and oom["bundle"] not in bundles:
                bundles.add(oom["bundle"])
                with open(os.path.join(folder, oom["bundle"], "metadata.json")) as file:
                    told = json.load(file)["custom_metadata"]
                for name in ("api", "code", "requested_bytes", "live_bytes", "device_free_bytes", "device_total_bytes", "injected", "cause"):
                    self.assertEqual(told[name], oom[name], name)

    def peaks(self, page, known):
        return known + [process["peak"] for process in page["processes"]] if page else known

    def page_agrees(self, page, report):
        by_pid = {process["pid"]: process for process in report["processes"]}
        names = {"used_peak": "used_peak_bytes", "known_peak": "known_peak_bytes", "hidden_peak": "hidden_peak_bytes", "total": "total_bytes"}
        self.assertEqual([{name: device[name] for name in names} for device in page["devices"]],
                         [{name: device[key] for name, key in names.items()} for device in report["run"]["devices"]])
        pids = [process["pid"] for process in page["processes"]]
        for process in page["processes"]:
            theirs = by_pid[process["pid"]]
            lines = {(line["what"], line["device"]): line for line in page["lines"] if pids[line["process"]] == process["pid"]}
            for device in process["devices"]:
                known = lines.get(("known", device["device"]))
                self.assertEqual(device["peak"], known["peak"] if known else 0)
                held = [row["live_bytes"] for row in theirs["memory"] if row["device"] == device["device"] and row["kind"] in ("device", "pool", "vmm", "array", "graph")]
                self.assertEqual(device["end"], sum(held))
            for name in ("peak", "end"):
                self.assertEqual(process[name], max(device[name] for device in process["devices"]))
            ended = "exit status %d" % theirs["exit_status"] if theirs["exit_status"] else theirs["status"]
            self.assertEqual((process["events"], process["lost_events"], process["status"]),
                             (theirs["events"], theirs["lost_events"], ended))
        for row in page["memory"]:
            theirs, = [one for one in by_pid[pids[row["process"]]]["memory"] if (one["kind"], one["device"]) == (row["kind"], row["device"])]
            self.assertEqual([row["peak"], row["live"], row["blocks"], row["allocations"], row["failed"], row["allocated"], row["frees"]],
                             [theirs["peak_bytes"], theirs["live_bytes"], theirs["live_blocks"], theirs["allocations"], theirs["failed_allocations"],
                              theirs["allocated_bytes"], theirs["frees"] + theirs["implicit_frees"]])
        self.assertEqual(sorted((pids[one["process"]], one["library"], one["device"], one["peak"], one["live"]) for one in page["libraries"]),
                         sorted((pid, one["library"], one["device"], one["peak_bytes"], one["live_bytes"])
                                for pid, process in by_pid.items() for one in process["libraries"]))
        for label in page["labels"]:
            theirs, = [one for one in by_pid[pids[label["process"]]]["labels"] if one["label"] == label["label"]]
            self.assertEqual((label["entries"], label["peak"], label["slope"], label["r_squared"], label["verdict"]),
                             (theirs["entries"], theirs["peak_bytes"], theirs["growth_bytes_per_entry"], theirs["r_squared"], theirs["verdict"]))
        for line in page["lines"]:
            self.assertEqual(line["peak"], line["max"].max())
            of = by_pid[pids[line["process"]]]
            for what, name in (("allocated", "peak_allocated_bytes"), ("reserved", "peak_reserved_bytes")):
                if line["what"] == what:
                    self.assertEqual([line["peak"]], [one[name] for one in of["pytorch"] if one["device"] == line["device"]])
            if line["what"] == "kind":
                self.assertEqual([line["peak"]], [one["peak_bytes"] for one in of["memory"] if (one["kind"], one["device"]) == (line["name"], line["device"])])
            if line["what"] == "library":
                self.assertEqual([line["peak"]], [one["peak_bytes"] for one in of["libraries"] if (one["library"], one["device"]) == (line["name"], line["device"])] or [0])
        self.assertEqual(sorted((oom["requested"], oom["live"]) for oom in page["ooms"]),
                         sorted((oom["requested_bytes"], oom["live_bytes"]) for oom in report["ooms"]))

    def test_eight_seeded_runs(self):
        for seed in range(8):
            with e2e.Recording(sys.executable, "-c", VARIED, SEED=seed, SIM_VRAM="1G", STORMLOG_DEVICE_INTERVAL=5) as run:
                self.agrees(run)

    def test_what_nobody_looked_at_is_unknown_in_every_output(self):
        with e2e.Recording(sys.executable, "-c", VARIED, SEED=3, SIM_VRAM="1G", STORMLOG_DEVICE_INTERVAL=0) as run:
            self.agrees(run)
            self.assertEqual([device["hidden_peak_bytes"] for device in run.report()["run"]["devices"]], [None, None])

    def test_runs_of_pytorchs_allocator(self):
        for seed in range(2):
            with e2e.Recording(sys.executable, "-c", TRAIN, 30, APPS=e2e.APPS, SIM_VRAM="8G", SEED=seed, STORMLOG_DEVICE_INTERVAL=5,
                               LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
                self.agrees(run)

    def test_tensors_of_the_host_are_no_memory_of_the_device(self):
        """PyTorch's allocator reports 90 MiB of the CPU beside what it has on the device."""
        program = TRAIN + """
everything = ctypes.CDLL(None)
report = everything._ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
report.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint16]
report(0x500000, 90 << 20, 90 << 20, 0, 0xff00)
"""
        def told(tensors):
            with e2e.Recording(sys.executable, "-c", program, 5, APPS=e2e.APPS, SIM_VRAM="8G", SEED=1, STORMLOG_TENSORS=tensors,
                               LD_PRELOAD=e2e.PRELOAD + ":" + os.path.join(e2e.APPS, "libc10.so"), LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS) as run:
                def ask(*words):
                    return json.loads(subprocess.run([e2e.ANALYZE, *words, "--json", run.traces], check=True, capture_output=True, text=True).stdout)["bytes"]
                process, = run.report()["processes"]
                return [row["peak_allocated_bytes"] for row in process["pytorch"] if row["device"] is None], [
                    ask("tree"), ask("tree", "--at", "end"), ask("table"), ask("table", "--by", "place"), sum(row["peak_bytes"] for row in process["memory"])]
        (none, without), (cpu, beside) = told("auto"), told("cpu")
        self.assertEqual((none, cpu), ([], [90 * MIB]))
        self.assertEqual(without, beside)
        self.assertEqual(beside[0], beside[-1])

    def test_ranks_that_share_devices(self):
        def steps(rank):
            return ["device=%d" % (rank % 2), "alloc=%d" % (50 + 30 * rank), "samples=2", "meet=there", "grow=20", "samples=2", "meet=done", "free"]
        with e2e.Ranks(4, steps, devices=2, STORMLOG_DEVICE_INTERVAL="10") as ranks:
            ranks.run.traces = ranks.traces
            self.agrees(ranks.run)

    def test_the_demo(self):
        examples = os.path.join(e2e.HERE, "..", "..", "examples")
        with e2e.Recording("sh", "-c", "%s; exec python3 %s" % (os.path.join(e2e.BUILD, "examples", "solver"), os.path.join(examples, "train.py")),
                           launcher=("--tag", "demo"), code=1, SIM_VRAM="8G", SIM_DEVICES="1", EXAMPLES=os.path.join(e2e.BUILD, "examples")) as run:
            self.agrees(run)


if __name__ == "__main__":
    unittest.main(verbosity=2)
