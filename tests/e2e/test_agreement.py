#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Every figure that two outputs of a run share is the same in both: for eight seeded runs, PyTorch's allocator, ranks that share devices, the demo.

Longer than other files: each output is compared with each other one."""
import collections
import contextlib
import csv
import gzip
import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import e2e

from test_numbers import MIB, TRAIN, UNITS

# Allocations of several kinds on several devices, errors and ranges, chosen by the seed.
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
EXPORTER = os.path.join(e2e.BUILD, "tools", "exporter", "stormlog-exporter")
GAUGE = re.compile(r"^stormlog_(\w+)\{(.*)\} (\d+)$", re.M)




def number(data, at):
    """A varint of a protobuf message, and where the next field begins."""
    value = shift = 0
    while data[at] >= 128:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def fields(data):
    """(field, value) of a protobuf message: a number, or bytes."""
    at = 0
    while at < len(data):
        tag, at = number(data, at)
        if tag & 7 == 0:
            value, at = number(data, at)
        else:
            size, at = number(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


class Agreement(unittest.TestCase):
    """Two outputs of one run must say the same of one quantity."""

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
            self.calls = {}  # the report sums the variants of a driver's function
            for pid, api, *numbers in file.execute("SELECT pid, api, calls, failures, bytes, time_ns FROM calls JOIN processes USING(process)"):
                api = e2e.journal.plain(api)
                self.calls[pid, api] = [sum(pair) for pair in zip(numbers, self.calls.get((pid, api), [0] * 4))]
            return {row[:3]: row[3:] for row in file.execute("SELECT pid, kind, device, allocations, frees, failed_allocations, implicit_frees, "
                                                             "allocated_bytes, live_blocks, live_bytes, peak_bytes FROM memory JOIN processes USING(process)")}

    def totals(self, run):
        baseline = os.path.join(run.folder, "baseline.json")
        metrics = os.path.join(run.folder, "metrics.txt")
        subprocess.run([e2e.ANALYZE, "check", "--baseline", baseline, "--update-baseline", run.traces], check=True, capture_output=True)
        subprocess.run([e2e.ANALYZE, "check", "--max-peak", "1TiB", "--metrics", metrics, run.traces], capture_output=True)  # a run with an error makes it fail
        with open(baseline) as file, open(metrics) as text:
            gate, text = json.load(file), text.read()
        for of, name in ("total", "memory"), ("library", "library_peak"), ("label", "label_peak"):
            told = {key: int(value) for key, value in re.findall(r'^stormlog_%s_bytes\{\w+="(.*)"\} (\d+)$' % name, text, re.M)}
            self.assertEqual(told, {key: one["bytes"] for key, one in gate[of].items() if one.get("bytes") is not None}, of)
        return gate

    def whole(self, run):
        return subprocess.run([e2e.ANALYZE, "--all", run.traces], check=True, capture_output=True, text=True).stdout

    def agrees(self, run):
        report = run.report()
        printed = subprocess.run([e2e.ANALYZE, run.traces], check=True, capture_output=True, text=True).stdout
        page, events, gauges, rows, gate = run.page(), run.sinks(), self.gauges(run), self.rows(run), self.totals(run)
        devices, processes = report["run"]["devices"], report["processes"]
        for verdict in report["answer"]["verdicts"]:
            why = verdict.get("why", [])
            self.assertEqual(len(why), len(set(why)), verdict["headline"])  # no sentence is told twice
        self.assertEqual(self.calls, {(process["pid"], one["api"]): [one[name] for name in ("calls", "failures", "bytes", "time_ns")]
                                      for process in processes for one in process["apis"]})
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
        libraries = {}
        for one in (one for process in processes for one in process["libraries"]):
            name = re.sub(r"(\.so)[.\d]*$|(?<=^python)[.\d]+$", r"\1", one["library"])
            libraries[name] = max(libraries.get(name, 0), one["peak_bytes"])
        self.assertEqual({name: one["bytes"] for name, one in gate["library"].items()}, libraries)
        self.assertEqual({name: one["bytes"] for name, one in gate["label"].items() if one["bytes"] is not None}, self.most_of_labels(processes))
        known = [device["known_peak_bytes"] for device in devices]
        hidden = [device["hidden_peak_bytes"] for device in devices if device["hidden_peak_bytes"] is not None]
        self.assertEqual(gate["total"]["peak"]["bytes"], max(known))
        most_hidden = max(hidden, default=None)  # None: the program ended before the device was looked at
        bound = any(device["hidden_figure"] == "device" for device in devices)  # what other programs hold is part of it
        self.assertEqual(gate["total"]["hidden"]["bytes"], None if bound else most_hidden)
        each = gauges.get("device_hidden_peak_bytes", {})  # a device's figure adds up what its processes hid at one time
        self.assertLessEqual(max(each.values(), default=0), most_hidden or 0)
        self.assertGreaterEqual(sum(each.values()), most_hidden or 0)
        found = re.search(r"^ +([\d.]+)  (\w*B) (?:held|reserved)(?: at least)?, at the peak", printed, re.M)
        if found:
            said = float(found[1]) * UNITS[found[2]]
            self.assertTrue(any(abs(said - most) <= said * 0.01 for most in self.peaks(page, known, processes)), found[0])
        notes = " ".join(self.whole(run).split())
        told = [float(size) * UNITS[unit] for size, unit in re.findall(r"note device -?\d+: (?:at most )?([\d.]+) (\w*B) hidden, ", notes)]
        self.assertEqual(len(told), sum(bool(bytes) for bytes in hidden), notes)
        if told:
            self.assertAlmostEqual(max(told), most_hidden, delta=max(told) * 0.01)
        for device in {(event["pid"], event["device_id"]) for event in events if event["device_id"] >= 0}:
            most = max(event["allocator_reserved_bytes"] for event in events if (event["pid"], event["device_id"]) == device)
            shown = [line["max"].max() for line in (page or {"lines": []})["lines"]
                     if line["what"] == "known" and (page["processes"][line["process"]]["pid"], line["device"]) == device]
            self.assertEqual([most] * len(shown), shown)
            gaps = [event["device_used_bytes"] - event["allocator_reserved_bytes"] for event in events if event["event_type"] == "sample" and
                    (event["pid"], event["device_id"]) == device and event["device_total_bytes"] is not None]
            self.assertEqual(max(gaps, default=None), gauges.get("device_hidden_peak_bytes", {}).get(device), device)
        for event in events:
            measured = event["event_type"] == "sample" and event["device_total_bytes"] is not None
            if event["device_id"] >= 0 and event["event_type"] in ("start", "stop", "sample", "peak", "phase_enter", "phase_exit", "collective"):
                self.assertEqual("device_used_source" in event["metadata"], not measured, event)
            if event["event_type"] == "peak":
                shown = [one["max"].max() for one in (page or {"lines": []})["lines"] if one["what"] == "known" and
                         (page["processes"][one["process"]]["pid"], one["device"]) == (event["pid"], event["device_id"])]
                self.assertEqual([event["allocator_reserved_bytes"]] * len(shown), shown)
        if page:
            self.page_agrees(page, report)
        self.leaks_agree(self.whole(run), report)
        self.answers_agree(run, report, page)
        self.screens_agree(run, report, gate)
        self.verbs_agree(run, report, printed)
        self.readers_agree(run, report, gate)
        self.exports_agree(run, report, events)

    def most_of_labels(self, processes):
        most = {}
        for label in (label for process in processes for label in process["labels"] if label["entries"]):
            most[label["label"]] = max(most.get(label["label"], 0), label["peak_bytes"])
        return most

    def verbs_agree(self, run, report, printed):
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
            mine = [event for event in dumped if event["pid"] == process["pid"] and event["verb"] == "ALLOC" and not event["result"] and event["bytes"]]
            for row in process["memory"]:
                if row["kind"] == "host_pinned" or (row["kind"] in ("device", "managed") and row["device"] is not None):
                    of = [event for event in mine if (event["kind"], event["device"] if row["device"] is not None else None) == (row["kind"], row["device"])]
                    self.assertEqual((len(of), sum(event["bytes"] for event in of)), (row["allocations"], row["allocated_bytes"]), row)
        with open(os.path.join(run.traces, "analysis", "report.json")) as file:
            written = e2e.stacks.named(json.load(file))
        self.assertEqual(written["processes"], report["processes"])
        self.assertEqual(written["run"], report["run"])
        whole = self.whole(run)
        with open(os.path.join(run.traces, "analysis", "summary.md")) as file:
            text = file.read()
        for word in ("OUT OF MEMORY", "LEAK", "GROWS", "HIDDEN", "OK"):
            self.assertEqual(len(re.findall("^%s" % word, whole, re.M)), len(re.findall("^%s" % word, text, re.M)), word)
        said = []  # the table of memory: kind, device, counts, sizes
        for cells in ([cell.strip().replace("\\", "") for cell in line.split("|")[1:-1]] for line in text.split("## Memory")[1].split("\n\n")[1].splitlines()[2:]):
            sizes = [float(size.split()[0]) * UNITS[size.split()[1]] for size in cells[7:]]
            said.append((cells[1], cells[2], *map(int, cells[3:7]), *sizes))
        wanted = [(row["kind"], "" if row["device"] is None else str(row["device"]), *(row[name] for name in ("allocations", "frees", "implicit_frees", "failed_allocations")),
                   row["live_bytes"], row["peak_bytes"]) for process in report["processes"] for row in process["memory"]]
        self.assertEqual(sorted(row[:6] for row in said), sorted(row[:6] for row in wanted))
        for row, real in zip(sorted(said), sorted(wanted)):
            for size, exact in zip(row[6:], real[6:]):
                self.assertAlmostEqual(size, exact, delta=0.006 * exact + 1)
        bytes_of = lambda words: re.findall(r"^ +([\d.]+  \w*B) (?:held|reserved|the card|device)", words, re.M)
        self.assertEqual(bytes_of(whole), bytes_of(text))

    def leaks_agree(self, printed, report):
        """Each leak on the terminal is in report.json, with the same bytes."""
        whole = re.sub(r"\n +(?=\S)", " ", printed).split("\nnote ")[0]  # notes are no leaks
        said = [float(size) * UNITS[unit] for size, unit in re.findall(r" made were (?:never freed|still held[^,]*|freed only[^,]*), ([\d.]+) (\w*B)\.", whole)]
        leaks, places = [finding for finding in report["findings"] if finding["id"] == "leak.growing"], {}
        met = collections.Counter()  # ranks share a verdict, each with a device of its own; a process has one for each of its devices
        for leak in leaks:
            kind = re.search(r"(?:all|of the) [\d ]+ (.*) that \S+ made were", leak["description"])
            place = (kind and kind[1], *sorted((leak["place"] or {}).items()))
            met[place, leak["session_id"]] += 1
            places.setdefault((met[place, leak["session_id"]], *place), []).append(leak["bytes"])
        most = sorted(map(max, places.values()), reverse=True)
        self.assertEqual([round(one, -4) for one in said], [self.near(one, said) for one in most], (printed, places))

    def answers_agree(self, run, report, page):
        """Word, headline, lines, figures, fix and table of each verdict are the same in report.json, on the page, the screen, and in what CI reads."""
        answer = report["answer"]
        if page:
            self.assertEqual(page["answer"], answer)
        with tempfile.TemporaryDirectory() as folder:
            forms = {form: os.path.join(folder, form) for form in ("junit", "sarif", "summary")}
            subprocess.run([e2e.ANALYZE, "check", "-q", "--fail-on", "warning", *(word for form, path in forms.items() for word in ("--" + form, path)), run.traces],
                           capture_output=True)
            junit = [case.get("message") for case in xml.etree.ElementTree.parse(forms["junit"]).iter("failure")]
            with open(forms["summary"]) as file:
                summary = " ".join(file.read().split())
        whole = " ".join(self.whole(run).split())
        for number, verdict in enumerate(answer["verdicts"]):
            head = "%s %s" % (verdict["word"], verdict["headline"])
            marked = ["%s:%d" % (line["file"], line["line"]) for line in verdict["lines"] if line["line"]]
            said = [text.strip() for label in ("why", "fix", "tried", "need") for text in verdict.get(label, ())]
            amounts = ["%s %s" % (row["amount"], row["name"]) for row in (verdict["table"] or {"rows": ()})["rows"] if float(row["amount"]) > 0]
            for part in [head, *marked, *said, *amounts]:
                self.assertIn(" ".join(part.split()), whole)
            if not number:
                for part in [head, *marked, *(verdict.get("fix") or ())]:
                    self.assertIn(" ".join(part.replace("`", "'").split()), summary)
            if verdict["id"].startswith("oom.") and verdict["id"] != "oom.injected":
                self.assertTrue([one for one in junit if one.startswith("%s: %s" % (verdict["word"], verdict["headline"]))
                                 and all(text.strip().rstrip(".") in one for label in ("why", "fix") for text in verdict.get(label, ()))], (head, junit))

    def screens_agree(self, run, report, gate):
        """The screen agrees with report.json, `runs`, `diff` and the gate on how the run ended, peaks and rates."""
        def ask(*words, **more):
            return subprocess.run([e2e.ANALYZE, *words], check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "600"}, **more).stdout
        screen, processes = ask(run.traces), report["processes"]
        sized = lambda words: [float(size) * UNITS[unit] for size, unit in re.findall(r"([\d.]+) (\w*B)\b", words)]
        title = re.sub(r"   +\S.*| +Simulated GPU.*", "", screen.splitlines()[0])  # without the card
        named = re.search(r"  pid (\d+) of (\d+)  ", title)  # the process that the answer is about
        self.assertEqual(int(named[2]) if named else len(processes), len(processes), title)
        told_of = [process for process in processes if not named or process["pid"] == int(named[1])]
        for word in ("completed", "failed", "killed", "running"):
            count = sum(process["ended"] == word for process in told_of)
            told = re.search(r"(?:(\d+)|(pid|rank) \d+) %s" % word, title)
            if len(told_of) == 1:
                self.assertEqual(title.endswith("exit status %s" % told_of[0]["exit_status"] if word == "failed" else word), count == 1, title)
            else:
                self.assertEqual(int(told[1] or 1) if told else 0, count, title)
        totals = {name: one.get("bytes") for name, one in gate["total"].items()}
        known = {device["device"]: device["known_peak_bytes"] for device in report["run"]["devices"]}
        together = {int(device): sized(held)[0] for device, held in
                    re.findall(r"note +device (-?\d+): \d+ processes held (\S+ \w+) together", ask("--all", run.traces))}
        for device, said in together.items():
            self.assertAlmostEqual(said, known[device], delta=0.01 * said, msg=device)
        peak = re.search(r"^ +([\d.]+)  (\w*B) (?:held|reserved)(?: at least)?, at the peak", screen, re.M)
        if peak:  # of the device that the first verdict is about; without a verdict, of the device with the most
            device = next((one.get("device") for one in report["answer"]["verdicts"]), None)
            said = together.get(device, float(peak[1]) * UNITS[peak[2]])
            self.assertAlmostEqual(said, known.get(device, totals["peak"]), delta=0.01 * said, msg=peak[0])
        row = ask("runs", "-q", "--catalogue", os.path.join(run.folder, "runs.sqlite"), run.traces).splitlines()
        cells = dict(zip(re.split("  +", row[0]), re.split("  +", row[1].strip())))
        for name, column in (("peak", "PEAK"), ("leak", "LEFT")):
            if totals[name] is not None and cells[column] != "-":
                said, = sized(cells[column]) or [0]
                self.assertAlmostEqual(said, totals[name], delta=0.01 * said, msg=row)
        for one in json.loads(ask("diff", "--json", run.traces, run.traces))["differences"]:
            if one["of"] == "total":
                self.assertEqual(one["after"] and one["after"]["max_bytes"], totals[one["key"]], one)
        for found in (one for one in report["findings"] if one["kind"] == "leak.growing" and "per_second" in (one["evidence"] or {})):
            for leak in report["leaks"]:
                if all(leak[name] == found[name] for name in ("session_id", "device", "bytes")) and leak["verdict"] == "growing":
                    self.assertEqual(leak["growth_bytes_per_second"], found["evidence"]["per_second"], found["description"])
        if report["ooms"]:
            self.assertEqual("but got over" in ask("tree", "--at", "oom", run.traces), not re.search("^OUT OF MEMORY", screen, re.M))

    def readers_agree(self, run, report, gate):
        """The exporter and `monitor` on an ended run, the catalogue, and the table's shares by each owner agree with the report."""
        def ask(*words):
            return subprocess.run([*words, run.traces], check=True, capture_output=True, text=True).stdout
        held_kinds, series = ("device", "pool", "vmm", "array", "graph"), {}
        for name, labels, value in re.findall(r"^stormlog_(\w+)\{(.*)\} (\d+)$", ask(EXPORTER, "--once") if os.path.exists(EXPORTER) else "", re.M):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            key = int(labels.get("pid", -1)), int(labels.get("ordinal", -1)), labels.get("library")
            series.setdefault(name, {})[key] = series.get(name, {}).get(key, 0) + int(value)
        scraped = lambda name, key, wanted: series.get(name, {}).get(key) if series else wanted  # nothing to compare in a build without the exporter
        rows = [json.loads(line) for line in ask(e2e.ANALYZE, "monitor", "--format", "ndjson").splitlines()]
        for process in report["processes"]:
            pid, errors = process["pid"], sum(oom["session_id"] == process["session_id"] for oom in report["ooms"])
            self.assertEqual(scraped("events_total", (pid, -1, None), process["events"]), process["events"])
            self.assertEqual(scraped("out_of_memory_total", (pid, -1, None), errors), errors)
            for row in (row for row in rows if row["session_id"] == process["session_id"]):
                of, device = (pid, row["device_id"], None), row["device_id"]
                held = sum(one["live_bytes"] for one in process["memory"] if one["device"] == device and one["kind"] in held_kinds)
                self.assertEqual((row["live_bytes"], scraped("live_bytes", of, held), row["events"], row["ooms"]), (held, held, process["events"], errors))
                self.assertEqual(scraped("peak_bytes", of, row["peak_bytes"]), row["peak_bytes"])
                torch = [one for one in process["pytorch"] if one["device"] == device]
                for name in "allocated", "reserved":
                    wanted = next((one[name + "_bytes"] for one in torch), None)
                    self.assertEqual((row["allocator_%s_bytes" % name], scraped("pytorch_%s_bytes" % name, of, wanted)), (wanted, wanted))
                shares = sum(one["live_bytes"] for one in process["libraries"] if one["device"] == device)
                self.assertEqual(sum(value for key, value in series.get("library_live_bytes", {}).items() if key[:2] == of[:2]), shares if series else 0)
            for at in "peak", "end":
                tables = {by: json.loads(ask(e2e.ANALYZE, "table", "--json", "--at", at, "--by", by, "--pid", str(pid))) for by in ("library", "place", "thread", "role", "device")}
                for by, table in tables.items():
                    self.assertEqual((table["bytes"], sum(owner["bytes"] for owner in table["owners"])), (tables["place"]["bytes"],) * 2, (at, by))
                roles = {one["role"]: one["bytes_at_peak"] for one in process["roles"]}
                if at == "peak" and roles and len({one["device"] for one in process["roles"]}) == 1:
                    self.assertEqual({owner["name"]: owner["bytes"] for owner in tables["role"]["owners"] if owner["bytes"]}, roles)
        card, = json.loads(ask(e2e.ANALYZE, "runs", "--json", "-q", "--catalogue", os.path.join(run.folder, "cards.sqlite")))["runs"]
        hidden = [device["hidden_peak_bytes"] for device in report["run"]["devices"]]
        most_hidden = None if None in hidden else gate["total"]["hidden"]["bytes"]  # if one device's is unknown, so is the run's
        self.assertEqual((card["processes"], card["devices"], card["hidden"]), (len(report["processes"]), len(report["run"]["devices"]), most_hidden))
        self.assertEqual((card["peak"] or 0, card["leak"]), (gate["total"]["peak"]["bytes"], gate["total"]["leak"]["bytes"]))

    def near(self, exact, said):
        """The figure among `said` that is `exact` rounded as they are; `exact` if there is none."""
        return next((round(one, -4) for one in said if abs(one - exact) <= 0.005 * exact + 1), exact)

    def exports_agree(self, run, report, events):
        """The tables of ranks, weights of stacks, the timeline, rollups and bundles agree with the report."""
        def ask(*words):
            return subprocess.run([e2e.ANALYZE, *words, run.traces], check=True, capture_output=True, text=True).stdout
        held_kinds = ("device", "pool", "vmm", "array", "graph")
        rows = [row for process in report["processes"] for row in process["memory"] if row["kind"] in held_kinds and row["device"] is not None]
        lines = [row for row in map(json.loads, ask("monitor", "--format", "ndjson").splitlines()) if row["device_id"] is not None]
        peaks = [event["allocator_reserved_bytes"] for event in events if event["event_type"] == "peak" and event["device_id"] >= 0]
        self.assertEqual(sorted(row["peak_bytes"] for row in lines if row["peak_bytes"]), sorted(peak for peak in peaks if peak))
        weights = {weigh: sum(int(line.rsplit(" ", 1)[1]) for line in ask("export", "collapsed", "-q", "--weigh", weigh).splitlines())
                   for weigh in ("live", "total", "peak")}
        self.assertEqual(sum(sum(one["weights"]) for one in json.loads(ask("export", "speedscope", "-q"))["profiles"]), weights["peak"])
        recorded = sum(process["events"] for process in report["processes"])
        self.assertEqual(len(list(csv.reader(ask("export", "csv", "-q").splitlines()))) - 1, recorded)
        self.assertEqual(sum("api" in json.loads(line) for line in ask("export", "ndjson", "-q").splitlines()), recorded)
        torch = [row for process in report["processes"] for row in process["pytorch"] if row["device"] is not None]
        unused = sum(row["reserved_bytes"] - row["allocated_bytes"] for row in torch)  # exported stacks have tensors, not segments
        self.assertEqual(weights["live"], sum(row["live_bytes"] for row in rows) - unused)
        peaks = [event["allocator_reserved_bytes"] for event in events if event["event_type"] == "peak" and event["device_id"] >= 0]
        if not torch:
            self.assertEqual((weights["total"], weights["peak"]), (sum(row["allocated_bytes"] for row in rows), sum(peaks)))
        if len(report["processes"]) == 1 and not torch and {row["kind"] for row in rows} <= {"device"}:
            data = subprocess.run([e2e.ANALYZE, "export", "pytorch-snapshot", "-q", run.traces], check=True, capture_output=True).stdout
            lives, shown = {}, {}
            for row in report["processes"][0]["memory"]:
                if row["kind"] in ("device", "managed") and row["live_bytes"]:
                    lives[row["device"]] = lives.get(row["device"], 0) + row["live_bytes"]
            for segment in pickle.loads(data)["segments"]:
                shown[segment["device"]] = shown.get(segment["device"], 0) + sum(block["size"] for block in segment["blocks"] if block["state"] == "active_allocated")
            self.assertEqual(shown, lives)
        self.protobuf_agrees(run, report, weights, peaks)
        folder = os.path.join(run.traces, "analysis")
        for sink in os.listdir(os.path.join(folder, "telemetry")):
            with open(os.path.join(folder, "telemetry", sink, "rollups.json")) as file:
                session, = json.load(file)["sessions"]
            most = max(event["allocator_reserved_bytes"] for event in events if event["session_id"] == session["session"]["session_id"])
            self.assertEqual(session["counters"]["allocator_reserved_bytes"]["value"], most)
        bundles = set()  # repeated attempts share the bundle of the first
        for oom in report["ooms"]:
            if oom["bundle"] and oom["bundle"] not in bundles:
                bundles.add(oom["bundle"])
                with open(os.path.join(folder, oom["bundle"], "metadata.json")) as file:
                    told = json.load(file)["custom_metadata"]
                for name in ("api", "code", "requested_bytes", "live_bytes", "device_free_bytes", "device_total_bytes", "injected", "cause"):
                    self.assertEqual(told[name], oom[name], name)

    def protobuf_agrees(self, run, report, weights, peaks):
        """Sums of pprof are those of collapsed stacks; counters of perfetto rise as high as the sinks, with an instant for each error."""
        def ask(form):
            data = subprocess.run([e2e.ANALYZE, "export", form, "-q", run.traces], check=True, capture_output=True).stdout
            return fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        profile = list(ask("pprof"))
        texts = [value.decode() for field, value in profile if field == 6]
        kinds = [texts[dict(fields(value))[1]] for field, value in profile if field == 1]
        samples = [[value for name, value in fields(sample) if name == 2] for field, sample in profile if field == 2]
        sums = {kind: sum(sample[k] for sample in samples) for k, kind in enumerate(kinds)}
        self.assertEqual([sums[kind] for kind in ("inuse_space", "alloc_space", "peak_space")], [weights[weigh] for weigh in ("live", "total", "peak")])
        tracks, most, instants = {}, {}, 0
        for packet in (dict(fields(value)) for field, value in ask("perfetto") if field == 1):
            event = dict(fields(packet.get(11, b"")))
            if 60 in packet:
                track = dict(fields(packet[60]))
                tracks[track[1]] = track.get(2, b"").decode()
            if event.get(9) == 4:
                most[event[11]] = max(most.get(event[11], 0), event[30])
            instants += event.get(9) == 3 and event[23].startswith(b"out of memory: ")
        self.assertEqual(instants, len(report["ooms"]))
        held = sorted(bytes for track, bytes in most.items() if re.fullmatch(r"device \d+ held", tracks[track]) and bytes)
        self.assertEqual(held, sorted(peak for peak in peaks if peak))

    def peaks(self, page, known, processes):
        return known + ([process["peak"] for process in page["processes"]] if page else
                        [row["peak_bytes"] for process in processes for row in process["memory"]])

    def page_agrees(self, page, report):
        by_pid = {process["pid"]: process for process in report["processes"]}
        pids = [process["pid"] for process in page["processes"]]
        self.assertEqual([{name: device.get(name) for name in theirs} for device, theirs in zip(page["devices"], report["run"]["devices"])],
                         [{**device, "processes": [pids.index(pid) for pid in device["processes"]]} for device in report["run"]["devices"]])
        self.assertEqual([device["room_bytes"] for device in page["devices"]], [device["total_bytes"] for device in report["run"]["devices"]])
        for process in page["processes"]:
            theirs = by_pid[process["pid"]]
            lines = {(line["what"], line["device"]): line for line in page["lines"] if pids[line["process"]] == process["pid"]}
            for device in process["devices"]:
                known = lines.get(("known", device["device"]))
                self.assertEqual(device["peak"], known["peak"] if known else 0)
                held = [row["live_bytes"] for row in theirs["memory"] if row["device"] == device["device"] and row["kind"] in ("device", "pool", "vmm", "array", "graph")]
                self.assertEqual(device["end"], sum(held))
            for name in ("peak", "end"):
                self.assertEqual(process[name], max((device[name] for device in process["devices"]), default=0))
            labels = [{name: label[name] for name in label if name != "held_by"} for label in theirs["labels"]]
            self.assertEqual({name: process[name] for name in theirs if name in process}, {**{name: theirs[name] for name in theirs if name in process}, "labels": labels})
            self.assertEqual(set(theirs) - set(process), {"snapshot", "roles", "holders", "communicators", "leak_heuristics", "host_memory", "capabilities"} & set(theirs))
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

    def test_eight_seeded_runs(self):
        for seed in range(8):
            with e2e.Recording(sys.executable, "-c", VARIED, SEED=seed, SIM_VRAM="1G", STORMLOG_DEVICE_INTERVAL=5) as run:
                self.agrees(run)

    def test_a_process_that_execs_itself_has_a_series_for_each_image(self):
        program = """
import ctypes, os, sys
cudart, left = ctypes.CDLL("libcudart.so.13"), int(sys.argv[1])
for _ in range(3 + left):
    assert cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(left + 1 << 20)) == 0
if left:
    os.execv(sys.executable, [sys.executable, "-c", os.environ["AGAIN"], str(left - 1)])
"""
        with e2e.Recording(sys.executable, "-c", program, 2, AGAIN=program) as run:
            text = subprocess.run([e2e.ANALYZE, "export", "prometheus", "-q", run.traces], check=True, capture_output=True, text=True).stdout
            series = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
            self.assertEqual(len(series), len({name for name, _ in series}), text)
            for name, truth in ("allocations_total", 3 + 4 + 5), ("live_bytes", 3 + 4 * 2 + 5 * 3 << 20), ("peak_bytes", 3 + 4 * 2 + 5 * 3 << 20):
                self.assertEqual(sum(int(value) for key, value in series if key.startswith("stormlog_memory_%s{" % name)), truth, name)
            self.assertEqual({process["session_id"] for process in run.report()["processes"]}, set(re.findall('session="([^"]*)"', text)))
            if shutil.which("promtool"):
                done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_program_without_a_device_has_no_bytes_of_one(self):
        with e2e.Recording(sys.executable, "-c", "x = bytearray(30 << 20)", launcher=("--host",)) as run:
            def ask(*words):
                return subprocess.run([e2e.ANALYZE, *words, run.traces], check=True, capture_output=True, text=True).stdout
            self.assertIn("ok       max-peak         peak: no device was used, limit 1 GiB\n", ask("check", "--max-peak", "1G"))

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

    def test_threads_have_the_blocks_of_their_own_ranges(self):
        """Four threads with ranges of their own, one without any, and a range of the process over all of them."""
        program = """
import ctypes, threading
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
nvtx.nvtxRangeStartA.restype = ctypes.c_uint64
turns = threading.Barrier(4)
def blocks(size, count, keep):
    for n in range(count):
        p = ctypes.c_void_p()
        assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) == 0
        assert n < keep or cudart.cudaFree(p) == 0
def work(k):
    for n in range(5):
        turns.wait()
        nvtx.nvtxRangePushA(b"worker%d" % k)
        turns.wait()  # all of them are open
        blocks(1000 + k, 3 + k, 1)
        turns.wait()
        nvtx.nvtxRangePop()
all_ = nvtx.nvtxRangeStartA(b"all")
threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
nvtx.nvtxRangePushA(b"main")
helper = threading.Thread(target=blocks, args=(5000, 7, 2))
helper.start()
helper.join()
nvtx.nvtxRangePop()
nvtx.nvtxRangeEnd(ctypes.c_uint64(all_))
"""
        with e2e.Recording(sys.executable, "-c", program) as run:
            truth, = run.truth()
            made = lambda *sizes: [effect for effect in truth.effects if effect.kind == "device" and effect.bytes in sizes]
            report = run.report()
            labels = {label["label"]: label for label in report["processes"][0]["labels"]}
            sizes = {"main": (5000,), "all": (1000, 1001, 1002, 1003, 5000), "worker#": (1000, 1001, 1002, 1003)}
            for name, entries in ("main", 1), ("all", 1), ("worker#", 20):
                self.assertEqual([labels[name][what] for what in ("entries", "blocks_created", "allocated_bytes", "blocks_freed", "freed_bytes")],
                                 [entries, *self.turnover(made(*sizes[name]))], name)
            self.agrees(run)

    def turnover(self, effects):
        born, gone = [effect for effect in effects if effect.what == "alloc"], [effect for effect in effects if effect.what != "alloc"]
        return len(born), sum(effect.bytes for effect in born), len(gone), sum(effect.bytes for effect in gone)

    def test_memory_of_several_kinds_that_one_line_leaks_adds_up_to_what_the_gate_counts(self):
        """Each of two lines leaks memory of two kinds."""
        program = """
import ctypes
cudart, nvtx, size, ref, address = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1"), ctypes.c_size_t, ctypes.byref, ctypes.c_void_p
def both():
    assert (cudart.cudaMalloc(ref(address()), size(4 << 20)), cudart.cudaMallocManaged(ref(address()), size(1 << 18), 1)) == (0, 0)
def more():
    assert (cudart.cudaMalloc(ref(address()), size(3 << 20)), cudart.cudaMallocManaged(ref(address()), size(2 << 20), 1)) == (0, 0)
for n in range(60):
    nvtx.nvtxRangePushA(b"step_%d" % n)
    both()
    more()
    nvtx.nvtxRangePop()
"""
        with e2e.Recording(sys.executable, "-c", program, SIM_VRAM="8G") as run:
            report = run.report()
            leaks = [one for one in report["answer"]["verdicts"] if one["word"] == "LEAK"]
            self.assertEqual(len(leaks), 4)
            self.assertEqual(sum(leak["bytes"] for leak in leaks), sum(leak["bytes"] for leak in report["leaks"]))
            self.assertEqual(sorted(leak["bytes"] for leak in leaks), [60 << 18, 120 << 20, 180 << 20, 240 << 20])

    def test_sizes_of_0_and_of_minus_1(self):
        program = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
def new(size): cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size))
for size in (0, 1, 0, 1 << 63, (1 << 64) - 1): new(size)
"""
        with e2e.Recording(sys.executable, "-c", program, STORMLOG_DEVICE_INTERVAL=5) as run:
            self.agrees(run)
            self.assertEqual([oom["requested_bytes"] for oom in run.report()["ooms"]], [1 << 63, (1 << 64) - 1])

    def test_labels_of_a_folded_trace_count_what_came_later_and_that_is_said(self):
        program = """
import ctypes
cudart, nvtx = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1")
for _ in range(4000):
    nvtx.nvtxRangePushA(b"round")
    for _ in range(5):
        p = ctypes.c_void_p()
        assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1000)) == 0 and cudart.cudaFree(p) == 0
    nvtx.nvtxRangePop()
"""
        with e2e.Recording(sys.executable, "-c", program, STORMLOG_KEEP="200K", STORMLOG_SEGMENT="64K") as run:
            report = run.report()
            label, = report["processes"][0]["labels"]
            self.assertLess(label["entries"], 4000)
            self.assertEqual((label["blocks_created"], label["allocated_bytes"]), (5 * label["entries"], 5000 * label["entries"]))
            self.assertIn("labels and growth begin after it", json.dumps(report["warnings"]))
            self.agrees(run)

    def test_memory_of_every_kind(self):
        with e2e.Recording("python3", os.path.join(e2e.HERE, "..", "apps", "trainer.py"), STORMLOG_DEVICE_INTERVAL=5) as run:
            self.agrees(run)
        for name in ("arrays", "capture", "contexts", "driver", "graphs", "hip6", "hip_deep6", "hsa", "hsa_ipc", "imports", "pools", "reset", "two_devices", "vmm"):
            with self.subTest(name), e2e.Recording(os.path.join(e2e.APPS, name), STORMLOG_DEVICE_INTERVAL=5) as run:
                self.agrees(run)

    def test_pools_of_frameworks_and_errors_that_pytorch_reports_once_more(self):
        pools = os.path.join(e2e.BUILD, "tests", "pools")
        for argv in ["llama"], ["jax", os.path.join(pools, "pjrt_plugin.so")], ["tensorflow"]:
            with self.subTest(argv), e2e.Recording("env", "POOLS_JOURNAL=journal.txt", os.path.join(pools, argv[0]), *argv[1:], STORMLOG_DEVICE_INTERVAL=5) as run:
                self.agrees(run)
        with e2e.script(*["tensor=128"] * 14, "drop", "tensor=512", "drop", "tensor=6000", SIM_VRAM="2304M", STORMLOG_DEVICE_INTERVAL=5) as run:
            self.agrees(run)

    def test_the_picture_draws_no_use_of_a_device_below_what_is_held(self):
        """The last sample is older than 500 MiB of it."""
        with e2e.script("alloc=1", "sampled", "alloc=500") as run:
            run.report()
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            svg = os.path.join(run.traces, "analysis", "timeline.svg")
            if not os.path.exists(svg):
                self.skipTest("built without cairo")
            with open(svg) as file:
                text = file.read()
        lines = [re.findall(r"[ML] ([\d.]+) ([\d.]+)", path) for path in re.findall(r'stroke-width:1\.2;[^>]* d="([^"]*)"', text)]
        held, used = (dict((float(x), float(y)) for x, y in line) for line in lines)  # y grows downwards
        self.assertLess(min(held.values()), max(held.values()))
        at = lambda line, x: line[max(known for known in line if known <= x)]
        self.assertFalse([x for x in held | used if at(used, x) > at(held, x) + 0.01])

    def test_the_demo(self):
        examples = os.path.join(e2e.HERE, "..", "..", "doc", "examples")
        with e2e.Recording("sh", "-c", "%s; exec python3 %s" % (os.path.join(e2e.BUILD, "doc", "examples", "solver"), os.path.join(examples, "train.py")),
                           launcher=("--tag", "demo"), code=1, SIM_VRAM="8G", SIM_DEVICES="1", EXAMPLES=os.path.join(e2e.BUILD, "doc", "examples")) as run:
            self.agrees(run)


if __name__ == "__main__":
    unittest.main(verbosity=2)
