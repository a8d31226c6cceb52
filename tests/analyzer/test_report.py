#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""report.json and the files beside it for a made-up run whose numbers are known."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError as error:
    print("skipped: python3-jsonschema is needed:", error)
    sys.exit(77)

MAKE, ANALYZE, SCHEMA = sys.argv[1:4]
MIB = 1 << 20


def run(*arguments, code=0):
    done = subprocess.run([ANALYZE, *arguments], capture_output=True, timeout=600)
    if done.returncode != code:
        raise AssertionError("exit %d, not %d\n%s" % (done.returncode, code, done.stderr.decode()))
    return done.stdout.decode()


class Report(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-report-")
        subprocess.run([MAKE, self.folder], check=True)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def test_report_json_obeys_its_schema(self):
        if not hasattr(jsonschema, "Draft202012Validator"):
            self.skipTest("jsonschema is older than 4.0")
        with open(SCHEMA) as file:
            schema = json.load(file)
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(json.loads(run("--json", self.folder)))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "analysis")), "--json writes nothing")

    def test_the_numbers_are_those_of_the_program(self):
        report = json.loads(run("--json", self.folder))
        finished, killed = report["processes"]
        self.assertEqual((finished["status"], killed["status"]), ("completed", "interrupted"))
        (row,) = finished["memory"]
        self.assertEqual((row["allocations"], row["frees"], row["live_blocks"]), (201, 100, 101))
        self.assertEqual(row["live_bytes"], 400 * MIB)
        self.assertEqual(row["peak_bytes"], 464 * MIB)
        self.assertEqual(killed["in_flight"][0]["bytes"], 1 << 30)
        self.assertEqual(killed["memory"][0]["failed_allocations"], 1)
        (oom,) = report["ooms"]
        self.assertEqual((oom["requested_bytes"], oom["live_bytes"]), (20 << 30, 400 * MIB))
        self.assertEqual(report["frames"][oom["stack"][0]]["function"], "forward")
        (label,) = finished["labels"]
        self.assertEqual((label["entries"], label["verdict"]), (100, "growing"))
        self.assertAlmostEqual(label["growth_bytes_per_entry"], 2 * MIB, delta=1)

    def test_leaks_are_of_finished_processes_and_add_up_to_live_bytes(self):
        report = json.loads(run("--json", self.folder))
        self.assertEqual({leak["session_id"] for leak in report["leaks"]}, {report["processes"][0]["session_id"]})
        self.assertEqual(sum(leak["bytes"] for leak in report["leaks"]), 400 * MIB)
        verdicts = {leak["library"]: leak["verdict"] for leak in report["leaks"]}
        self.assertEqual(verdicts, {"train.py": "growing", "libcublas.so.13": "workspace"})

    def test_the_analysis_is_whole_and_bundles_are_where_the_report_says(self):
        run(self.folder)
        analysis = os.path.join(self.folder, "analysis")
        self.assertLessEqual({"oom", "report.html", "report.json", "stormlog_run.json", "summary.md", "telemetry"},
                             set(os.listdir(analysis)))
        with open(os.path.join(analysis, "report.json")) as file:
            report = json.load(file)
        self.assertTrue(os.path.isfile(os.path.join(analysis, report["ooms"][0]["bundle"], "manifest.json")))
        for process in report["processes"]:
            sink = os.path.join(analysis, "telemetry", process["trace"].split(".")[0])
            self.assertTrue(os.path.isfile(os.path.join(sink, "manifest.json")))
        run("validate", analysis)
        run(self.folder)  # again, over itself
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("analysis")], ["analysis"])

    def test_where_nothing_can_be_written_the_summary_is_printed_all_the_same(self):
        text = run("-o", "/proc/nowhere/analysis", self.folder, code=4)
        self.assertIn("OUT OF MEMORY", text)

    def test_what_the_terminal_shows_names_the_line_and_fits_80_columns(self):
        text = run(self.folder)
        self.assertIn("train.py:97 remember", text)
        self.assertNotIn("\033", text)
        for line in text.splitlines():
            if not line.startswith(("complete", "next", "note")):
                self.assertLessEqual(len(line), 80, line)

    def test_the_summary_fits_an_issue_however_many_processes_there_are(self):
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        subprocess.run([MAKE, self.folder, "100"], check=True)
        run("-q", self.folder)
        with open(os.path.join(self.folder, "analysis", "summary.md")) as file:
            text = file.read()
        self.assertLess(len(text), 64 << 10)
        answer, memory, held = re.split(r"## (?:Memory|Leaks, and memory live at exit)", text)
        for table in (memory, held):
            self.assertEqual(len(re.findall(r"(?m)^\| rank \d", table)), 40)
            self.assertRegex(table, r"\n[1-9]\d* more are in report\.json")
        self.assertRegex(" ".join(answer.split()), r" LEAK train\.py:\d+ .* 102 ranks keep it, ")

    def test_exit_codes(self):
        run("/nowhere/at/all", code=2)
        run("--run", "no such run", self.folder, code=2)
        os.mkdir(os.path.join(self.folder, "broken"))
        path = os.path.join(self.folder, "broken", "rank-00000-1.msgpack.zst")
        with open(path, "wb") as file:
            file.write(b"not a trace" * 100)
        run(path, code=3)

    def test_what_is_wrong_with_the_input_is_said_with_what_to_do(self):
        def said(*arguments):
            return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=600).stderr
        empty, picture = os.path.join(self.folder, "empty"), os.path.join(self.folder, "picture.jpg")
        os.mkdir(empty)
        with open(picture, "wb") as file:
            file.write(b"\xff\xd8\xff\xe0\n" * 50)
        for verb in ("report", "tree", "dump", "pack", ("export", "csv")):
            verb = (verb,) if isinstance(verb, str) else verb
            self.assertRegex(said(*verb, empty), r"no trace.* in %s; record one: stormlog-run" % empty)
        for verb in ("report", "tree", "dump", "convert", "validate", ("merge", "-o", self.folder)):
            verb = (verb,) if isinstance(verb, str) else verb
            self.assertIn("nowhere: No such file or directory", said(*verb, "nowhere"))
        self.assertLessEqual(len(said(picture).splitlines()), 3)
        with open(os.path.join(self.folder, "rank-00099-1.msgpack.zst"), "wb") as file:
            file.write(bytes(4096))
        for verb in ("report", "tree", "table", "dump"):
            self.assertIn("rank-00099-1.msgpack.zst: no readable header", said(verb, self.folder))
        self.assertIn("did you mean report?", said("reprot", self.folder))
        self.assertIn("did you mean --json?", said("--jsno", self.folder))
        self.assertIn("did you mean oom.full?", said("explain", "oom.ful"))
        self.assertIn("such as alert-warning=90", said("--set", "alert-warnig=90", self.folder))

    def test_dump_is_one_json_line_an_event_in_time_order(self):
        lines = [json.loads(line) for line in run("dump", self.folder).splitlines()]
        self.assertEqual(len(lines), 1003 + 1)
        times = [line["t0_ns"] if line["verb"] == "FREE" or line["t1_ns"] is None else line["t1_ns"] for line in lines]
        self.assertEqual(times, sorted(times))

    def test_tree_at_the_peak_adds_up(self):
        flame = run("flame", "--at", "peak", "--rank", "0", self.folder)
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in flame.splitlines()), 464 * MIB)

    def test_a_tree_says_whose_it_is_and_when(self):
        self.assertIn("464 MiB  rank 0, at its peak\n", run("tree", "--rank", "0", self.folder))
        self.assertIn("2 processes together, each at its own end\n", run("tree", "--at", "end", self.folder))
        self.assertRegex(run("tree", "--at", "oom", "--rank", "1", self.folder), r"rank 1, at \S+ \w+, out of memory\n")
        run("tree", "--rank", "7", self.folder, code=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
