#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The analyzer replaces an analysis of its own and no other folder: the folders are compared file by file."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MAKE, ANALYZE = map(os.path.abspath, sys.argv[1:3])
FINE, REFUSED, UNSAVED = 0, 2, 4


def contents(folder):
    """Every name below, with what a file says and where a link points."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(root, name)
            if os.path.islink(path):
                found[os.path.relpath(path, folder)] = "-> " + os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read()
            else:
                found[os.path.relpath(path, folder)] = None
    return found


class Place(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="stormlog-place-")
        self.traces = self.path("proj")
        os.mkdir(self.traces)
        subprocess.run([MAKE, self.traces], check=True)

    def tearDown(self):
        subprocess.run(["chmod", "-R", "u+w", self.top], check=True)
        shutil.rmtree(self.top)

    def path(self, name):
        return os.path.join(self.top, name)

    def put(self, name, text="thesis\n"):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)

    def telemetry(self):
        self.put("events/track.jsonl", '{"timestamp": 1700000000.0, "event_type": "sample", "memory_allocated": 1, "memory_reserved": 2,'
                 ' "memory_change": 0, "device_id": 0}\n')
        return self.path("events")

    def run_it(self, *arguments, **how):
        return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=120, **how)

    def refused(self, *arguments, says, **how):
        before = contents(self.top)
        done = self.run_it(*arguments, **how)
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        self.assertEqual(done.stdout, "", "no analysis work is done")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertIn("-o DIR", done.stderr)
        self.assertEqual(contents(self.top), before)

    def test_the_users_own_analysis_folder_stays(self):
        self.put("proj/analysis/paper.ipynb")
        self.refused("-q", self.traces, says="no report.json of stormlog's")
        for name in os.listdir(self.traces):
            if name.endswith(".zst"):
                self.refused("-q", self.path("proj/" + name), says="no report.json of stormlog's")

    def test_a_folder_named_by_the_user_stays(self):
        self.put("precious/thesis.tex")
        self.refused("-o", self.path("precious"), self.traces, says="no report.json of stormlog's")
        self.refused("-o", self.path("precious") + "///", self.telemetry(), says="no report.json of stormlog's")

    def test_the_traces_are_never_the_place(self):
        self.refused("-o", self.traces, self.traces, says="what is read")
        self.refused("-o", self.top, self.traces, says="what is read, or holds it")
        self.refused("-o", ".", ".", says="no name of a new folder", cwd=self.traces)
        self.refused("-o", "../proj", ".", says="what is read", cwd=self.traces)
        self.refused("-o", "..", ".", says="no name of a new folder", cwd=self.traces)

    def test_a_telemetry_folder_is_never_the_place(self):
        self.refused("-o", self.telemetry(), self.path("events"), says="what is read")

    def test_an_input_within_an_earlier_analysis_keeps_that(self):
        self.assertEqual(self.run_it("-q", self.traces).returncode, FINE)
        inside = self.path("proj/analysis/telemetry")
        self.refused("-q", "-o", self.path("proj/analysis"), inside, says="what is read, or holds it")

    def test_links_and_files_stay(self):
        os.mkdir(self.path("empty"))
        os.symlink("empty", self.path("link"))
        self.refused("-o", self.path("link"), self.traces, says="symbolic link")
        self.refused("-o", self.path("link/"), self.traces, says="symbolic link")
        os.symlink("nowhere", self.path("proj/analysis"))
        self.refused(self.traces, says="symbolic link")
        self.put("file")
        self.refused("-o", self.path("file"), self.traces, says="no folder")

    def test_a_report_json_of_somebody_else_is_no_mark(self):
        self.put("theirs/report.json", '{"schema": "acme.report"}\n')
        self.refused("-o", self.path("theirs"), self.traces, says="no report.json of stormlog's")
        self.put("linked/real.json", '{\n  "schema": "stormlog.report"\n}\n')
        os.symlink("real.json", self.path("linked/report.json"))
        self.refused("-o", self.path("linked"), self.traces, says="stays as it is")

    def test_an_earlier_analysis_is_replaced_and_nothing_left_beside_it(self):
        for traces in self.traces, self.telemetry():
            for _ in range(2):
                done = self.run_it("-q", traces)
                self.assertEqual((done.returncode, done.stderr), (FINE, ""))
            with open(os.path.join(traces, "analysis/report.json")) as file:
                self.assertEqual(json.load(file)["schema"], "stormlog.report")
            self.assertEqual([name for name in os.listdir(traces) if "analysis" in name], ["analysis"])

    def test_files_of_others_in_an_earlier_analysis_are_kept(self):
        self.assertEqual(self.run_it("-q", self.traces).returncode, FINE)
        kept = "notes.txt", "telemetry/own.jsonl", "telemetry/deep/er/x", ".DS_Store", "oom/report.json"
        for name in kept:
            self.put("proj/analysis/" + name)
        os.symlink(self.traces, self.path("proj/analysis/summary.html"))
        self.put("proj/analysis/telemetry/gone/manifest.json")
        self.put("proj/analysis/report.html", "old")
        done = self.run_it("-q", self.traces)
        self.assertEqual((done.returncode, done.stderr), (FINE, ""))
        found = contents(self.path("proj/analysis"))
        for name in kept:
            self.assertEqual(found[name], b"thesis\n")
        self.assertEqual(found["summary.html"], "-> " + self.traces)
        self.assertGreater(len(found["report.html"]), 1000)
        self.assertNotIn("telemetry/gone", found)
        self.assertEqual([name for name in os.listdir(self.traces) if "analysis" in name], ["analysis"])
        fresh = self.path("fresh")
        self.assertEqual(self.run_it("-q", "-o", fresh, self.traces).returncode, FINE)
        self.assertEqual(set(found) - {"summary.html", "telemetry/deep", "telemetry/deep/er", "oom"} - set(kept), set(contents(fresh)) - {"oom"})

    def test_an_empty_folder_is_taken_and_json_asks_for_none(self):
        os.mkdir(self.path("empty"))
        self.assertEqual(self.run_it("-q", "-o", self.path("empty"), self.traces).returncode, FINE)
        self.assertIn("report.html", os.listdir(self.path("empty")))
        self.put("proj/analysis/paper.ipynb")
        self.assertEqual(self.run_it("--json", self.traces).returncode, FINE)

    def test_what_could_not_be_saved_is_an_error(self):
        if os.geteuid() == 0:
            place = "/proc/stormlog-nowhere/analysis"
        else:
            os.mkdir(self.path("closed"), 0o500)
            place = self.path("closed/analysis")
        for traces in self.traces, self.telemetry():
            done = self.run_it("-o", place, traces)
            self.assertEqual(done.returncode, UNSAVED, done.stderr)
            self.assertIn("is not saved", done.stderr)
            self.assertTrue(done.stdout, "the summary is printed all the same")


unittest.main(argv=sys.argv[:1] + sys.argv[3:])
