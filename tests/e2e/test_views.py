#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each figure of twelve runs is the same in every view: screen, report.json, tree, table, page, assistant, check, runs, exports, telemetry.

The runs are programs on the simulated GPU, ranks, a killed one, one with lost events, recordings of a real card, a dry run, its
redacted pack, a snapshot, and exports that are read again.  test_agreement.py compares the outputs of one kind of run in more detail."""
import contextlib
import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import e2e

from test_numbers import TRAIN, UNITS

HELD = ("device", "pool", "vmm", "array", "graph")
ROLES = ("parameters", "gradients", "optimizer", "activations")


class Sized(str):
    """A size as a view prints it: it agrees with each size that it may stand for."""
    def near(self, exact):
        number, unit = self.split()
        return abs(float(number) * UNITS[unit] - (exact or 0)) <= (0.51 * 10 ** -len(number.partition(".")[2])) * UNITS[unit]


class Views(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.figures = {}

    def ask(self, *words):
        done = subprocess.run([e2e.ANALYZE, *words, self.path], capture_output=True, text=True, env={**os.environ, "COLUMNS": "400"})
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.stdout

    def tell(self, view, value, *figure):
        self.figures.setdefault(figure, {})[view] = value

    def compare(self, path, *kinds):
        """Collects the figures of all views; `kinds` are those that this run has, each in two views at least."""
        self.path, self.figures = path, {}
        out = os.path.join(self.folder, "x", "analysis")
        shutil.rmtree(os.path.dirname(out), ignore_errors=True)
        os.mkdir(os.path.dirname(out))
        screen = self.ask("--all", "-o", out)
        with open(os.path.join(out, "report.json")) as file:
            report = e2e.stacks.named(json.load(file))
        run = e2e.Recording.__new__(e2e.Recording)
        run.traces = os.path.dirname(out)
        page = run.page(path)
        self.assertEqual(page["answer"], report["answer"])
        self.processes(report, page)
        self.devices(report, page)
        self.limits(report)
        self.database(report)
        self.telemetry(page, run.sinks())
        self.screen(report, screen)
        for figure, views in self.figures.items():
            exact = {value for value in views.values() if not isinstance(value, Sized)}
            self.assertEqual(len(exact), 1, (path, figure, views))
            self.assertFalse([value for value in views.values() if isinstance(value, Sized) and not value.near(*exact)], (path, figure, views))
        self.assertEqual(set(kinds) - {figure[0] for figure, views in self.figures.items() if len(views) > 1 and set(views.values()) - {None, 0}}, set())
        return {figure: next(value for value in views.values() if not isinstance(value, Sized)) for figure, views in self.figures.items()}

    def processes(self, report, page):
        """Roles, lines and what was held, of each process; what it left."""
        for number, process in enumerate(report["processes"]):
            pid, roles = process["pid"], {}
            shown, = [one for one in page["processes"] if one["session_id"] == process["session_id"]]
            for row in process["roles"]:
                roles[row["role"]] = roles.get(row["role"], 0) + row["bytes_at_peak"]
            for verb in ("tree", "table"):
                def owners(at, by):
                    told = json.loads(self.ask(verb, "--json", "--at", at, "--by", by, "--pid", str(pid)))
                    self.tell(verb, told["bytes"], at, pid)
                    return [(one["name"].split(" > ")[0], one["bytes"]) for one in told["owners"] if one["bytes"]]
                for role, bytes in owners("peak", "role") if roles else ():
                    self.tell("report.json", roles.get(role), "role", pid, role)
                    self.tell(verb, bytes, "role", pid, role)
                for at in ("peak", "end"):
                    for line, bytes in owners(at, "place"):
                        self.tell(verb, bytes, "line", at, pid, line)
            for line in self.ask("tree", "--by", "role", "--depth", "1", "--pid", str(pid)).splitlines() if roles else ():  # what the assistant asks for
                found = re.match(r" *([\d.]+ \w*B) +[\d.]+%[\d ]+  (\w+)( > |$)", line)
                if found:
                    self.tell("assistant", Sized(found[1]), "role", pid, found[2])
            self.tell("report.json", sum(row["live_bytes"] for row in process["memory"] if row["kind"] in HELD and row["device"] is not None), "end", pid)
            self.tell("page", shown["end"], "end", pid)
            left = [leak["bytes"] for leak in report["leaks"] if leak["session_id"] == process["session_id"] and leak["verdict"] in ("live_at_exit", "growing", "kept")]
            if shown["leaks"] is not None:
                if process["status"] != "interrupted":
                    self.tell("report.json", sum(left), "left", pid)
                self.tell("page", shown["leaks"], "left", pid)
                if len(report["processes"]) == 1:
                    self.tell("page", shown["leaks"], "total", "leak")

    def devices(self, report, page):
        for device, shown in zip(report["run"]["devices"], page["devices"]):
            for name in "known_peak", "hidden_peak", "used_peak":
                self.tell("report.json", device[name + "_bytes"], name, device["device"])
                self.tell("page", shown[name + "_bytes"], name, device["device"])

    def limits(self, report):
        """The run's totals, as check, the catalogue and Prometheus have them."""
        metrics = os.path.join(self.folder, "metrics.txt")
        self.ask("check", "--max-peak", "1T", "--metrics", metrics)
        with open(metrics) as file:
            told = {name: int(value) for name, value in re.findall(r'^stormlog_memory_bytes\{what="(\w+)"\} (\d+)$', file.read(), re.M)}
        card, = json.loads(self.ask("runs", "--json", "-q", "--catalogue", os.path.join(self.folder, "x", "runs.sqlite")))["runs"]
        for name in ("peak", "leak"):
            if name in told:
                self.tell("check", told[name], "total", name)
                if card[name] is not None:
                    self.tell("runs", card[name], "total", name)
        devices = report["run"]["devices"]
        self.tell("report.json", max([device["known_peak_bytes"] for device in devices], default=0), "total", "peak")
        hidden = [device["hidden_peak_bytes"] for device in devices]
        if hidden and None not in hidden and not any(device["hidden_figure"] == "device" for device in devices):
            self.tell("report.json", max(hidden), "total", "hidden")
            self.tell("check", told["hidden"], "total", "hidden")
            self.tell("runs", card["hidden"], "total", "hidden")
        for labels, value in re.findall(r"^stormlog_memory_peak_bytes\{(.*)\} (\d+)$", self.ask("export", "prometheus", "-q"), re.M):
            of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            self.tell("prometheus", int(value), "kind", int(of["pid"]), of["kind"], int(of.get("device", -1)))
        for process in report["processes"]:
            for row in process["memory"]:
                self.tell("report.json", row["peak_bytes"], "kind", process["pid"], row["kind"], -1 if row["device"] is None else row["device"])
        for outcome in json.loads(self.ask("check", "--json", "--max-peak", "1"))["outcomes"]:
            found = re.search(r"(?:most of it|the largest part) ([\d.]+ \w*B) at (.*?)(?: via | < |$)", outcome["message"])
            if outcome["rule"] == "max-peak" and found and len(report["processes"]) == 1:
                self.tell("check", Sized(found[1]), "line", "peak", report["processes"][0]["pid"], found[2])

    def database(self, report):
        base = os.path.join(self.folder, "x", "run.db")
        self.ask("export", "sqlite", "-q", "-o", base)
        events = list(csv.DictReader(self.ask("export", "csv", "-q").splitlines()))
        with contextlib.closing(sqlite3.connect(base)) as file:
            for pid, line, bytes in file.execute("SELECT pid, line, sum(bytes) FROM held_at_peak GROUP BY pid, line"):
                if line and ("line", "peak", pid, line) in self.figures:
                    self.tell("sqlite", bytes, "line", "peak", pid, line)
            for device, used in file.execute("SELECT device, max(used_bytes) FROM samples WHERE device NOT NULL GROUP BY device"):
                self.tell("sqlite", used, "used_peak", device)
            for pid, count in file.execute("SELECT pid, count(*) FROM events JOIN processes USING(process) GROUP BY pid"):
                self.tell("sqlite", count, "events", pid)
        for pid in {event["pid"] for event in events}:
            self.tell("csv", sum(event["pid"] == pid for event in events), "events", int(pid))

    def telemetry(self, page, events):
        """An error's figure of the device is one of the same kind as a sample's: without what other processes hold."""
        hidden = {(process["pid"], device["device"]): device["hidden"] for process in page["processes"] for device in process["devices"]}
        for event in events:
            most = hidden.get((event["pid"], event["device_id"]))
            if most is not None and event["device_total_bytes"] is not None:
                self.assertLessEqual(event["device_used_bytes"] - event["allocator_reserved_bytes"], most, event)

    def screen(self, report, screen):
        """A row of the table has the same number on every screen, and the roles of a dry run are those of tree."""
        for verdict in report["answer"]["verdicts"][:1]:
            rows = (verdict["table"] or {"rows": ()})["rows"]
            for row in rows:
                found = re.findall(r"(?m)^ +([\d.]+)  %s(?:  |$)" % re.escape(row["name"]), screen)
                if len(found) == 1 and sum(other["name"] == row["name"] for other in rows) == 1:
                    self.tell("screen", found[0], "row", row["name"])
                    self.tell("report.json", row["amount"], "row", row["name"])
                if row["name"] in ROLES and verdict["id"] in ("dry.fits", "server.start") and len(report["processes"]) == 1:
                    self.tell("answer", row["bytes"], "role", report["processes"][0]["pid"], row["name"])

    def recorded(self, *argv, **environment):
        return self.enterContext(e2e.Recording(*argv, STORMLOG_DEVICE_INTERVAL=5, **environment)).traces

    def committed(self, *parts):
        path = os.path.join(self.folder, parts[-1])
        shutil.copytree(os.path.join(e2e.HERE, "..", *parts), path)
        return path

    def test_programs_on_the_simulator(self):
        libraries = dict(APPS=e2e.APPS, SIM_VRAM="8G", SEED="1", LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS)
        with self.subTest("memory of every kind"):
            self.compare(self.recorded("python3", os.path.join(e2e.HERE, "..", "apps", "trainer.py")), "line", "kind", "hidden_peak", "used_peak", "total")
        with self.subTest("a leak"):
            self.compare(self.recorded("python3", e2e.SCRIPT, "alloc=100", *["calls=50", "losses=1"] * 60, **libraries), "line", "left", "total", "row")
        with self.subTest("a leak, and it is killed"):
            def ready(run):
                while not os.path.exists(os.path.join(run.folder, "there")):
                    time.sleep(0.01)
            self.compare(self.recorded("python3", e2e.SCRIPT, "alloc=100", *["calls=50", "losses=1"] * 60, "ready=there", "sleep=60", code=-9, kill_when=ready,
                                       **libraries), "line", "total")
        with self.subTest("tensors"):
            self.compare(self.recorded(sys.executable, "-c", TRAIN, "30", **libraries), "line", "left", "hidden_peak")
        with self.subTest("a part is folded"):
            self.compare(self.recorded(sys.executable, "-c", TRAIN, "3000", STORMLOG_KEEP="200K", STORMLOG_SEGMENT="64K", **libraries), "line", "kind", "end")

    def test_ranks_that_share_devices_and_one_that_fails(self):
        def steps(rank):
            return ["device=%d" % (rank % 2), "alloc=%d" % (50 + 30 * rank), "samples=2", "meet=there", "grow=20", "samples=2", "try=900000", "meet=done"]
        with e2e.Ranks(4, steps, devices=2, SIM_VRAM="8G", STORMLOG_DEVICE_INTERVAL="10") as ranks:
            self.compare(ranks.traces, "line", "left", "hidden_peak", "used_peak", "total")

    def test_where_events_were_lost(self):
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        full, path = os.path.join(self.folder, "full"), os.path.join(self.folder, "lost")
        os.mkdir(full)
        shell = "mount -t tmpfs -o size=6m none $0 && { \"$@\"; } && cp -r $0/t %s" % path
        subprocess.run(["unshare", "-m", "sh", "-c", shell, full, e2e.RUN, "-o", full + "/t", "--", sys.executable, e2e.SCRIPT, "alloc=256", "calls=400000",
                        "alloc=512", "sleep=1"], env=dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=os.path.join(self.folder, "sim")), check=True, capture_output=True)
        self.assertIsNone(self.compare(path, "line", "kind", "used_peak")["hidden_peak", 0])
        for verb in "tree", "table":
            self.assertRegex(self.ask(verb).splitlines()[1], "^at least: [0-9 ]+ of [0-9 ]+ events were lost$")

    def test_recordings_of_a_real_card(self):
        for case, kinds in (("trainer_eval/shared-device", ["role", "line", "hidden_peak"]), ("jax_dense_fit/alone", ["role", "line", "total"]),
                            ("mp_score_workers/alone", ["line", "kind"])):
            with self.subTest(case):
                self.compare(self.committed("real-gpu", "cases", *case.split("/")), *kinds)
                shutil.rmtree(os.path.join(self.folder, case.split("/")[-1]))

    def test_a_dry_run_and_its_redacted_pack(self):
        dry = self.committed("phases", "traces", "train_then_evaluate")
        figures = self.compare(dry, "role", "line", "row", "kind")
        pack = os.path.join(self.folder, "redacted.pack")
        self.ask("pack", "--redact", "-o", pack)
        masked = self.compare(pack, "role", "line", "row", "kind")
        named = lambda all: {figure: value for figure, value in all.items() if figure[0] != "line"}
        self.assertEqual(named(masked), named(figures))
        lines = lambda all: sorted(value for figure, value in all.items() if figure[:2] == ("line", "end"))
        self.assertEqual(lines(masked), lines(figures))

    def test_a_snapshot_and_our_exports_as_snapshots(self):
        snapshot = os.path.join(self.folder, "graphs.pickle")
        with open(snapshot, "wb") as file:
            subprocess.run(["zstd", "-dc", os.path.join(e2e.HERE, "..", "snapshot", "golden", "graphs-2.11.pickle.zst")], stdout=file, check=True)
        self.compare(snapshot, "role", "line", "total")
        for traces in self.committed("phases", "traces", "train_then_evaluate"), self.committed("real-gpu", "cases", "jax_dense_fit", "alone"):
            self.path = traces
            export = os.path.join(self.folder, "export.pickle")
            self.ask("export", "pytorch-snapshot", "-q", "-o", export)
            tensors = [one for process in self.report_of(traces)["processes"] for one in process["pytorch"]]
            read, = self.report_of(export)["processes"][0]["pytorch"]
            self.assertLessEqual(read["peak_allocated_bytes"], read["peak_reserved_bytes"])
            self.assertGreaterEqual(read["peak_allocated_bytes"], tensors[0]["peak_allocated_bytes"])
            self.compare(export, "line", "total")

    def report_of(self, path):
        return json.loads(subprocess.run([e2e.ANALYZE, "--json", path], capture_output=True, check=True).stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
