#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Verbs speak with one voice: they keep to the width, have no colour in a pipe, explain their verdicts, and say of an error what to do."""
import glob
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ["STORMLOG_BUILD"]
ANALYZE = os.path.join(BUILD, "analyzer", "stormlog-analyze")
CASES = os.path.join(ROOT, "tests", "real-gpu", "cases")
RUNS = [os.path.join(CASES, name, "shared-device") for name in ("depth_validation", "calibrated_training", "full_finetune", "cxx_ray_depth")]
PROGRAMS = sorted(path for path in glob.glob(os.path.join(BUILD, "tools", "*", "stormlog-*")) if os.path.isfile(path) and not path.endswith(("index", "push")))


def run(*words, program=ANALYZE, cwd=None, **environment):
    return subprocess.run([program, *words], capture_output=True, text=True, cwd=cwd, env={**os.environ, "LC_ALL": "C.UTF-8", **environment})


class Width(unittest.TestCase):
    VERBS = (["report", "-o", "out"], ["report", "-o", "out", "--all"], ["tree"], ["tree", "--all-frames"], ["tree", "--by", "place"], ["table"], ["table", "--by", "stack"],
             ["check", "--config", os.devnull, "--max-peak", "1G", "--fail-on", "warning"], ["ranks"], ["explain"], ["explain", "oom.full"], ["runs", "-q"], ["diff", RUNS[3]], ["info"])
    REPLAYS = ["fit", "--capacity", "4G,8G,16G,24G,80G"], ["fit", "--layout"], ["fit", "--changes"]  # of a short run

    def test_no_verb_is_wider_than_its_terminal_and_none_has_colour_in_a_pipe(self):
        """A path, and code of `explain`, are pasted: they are not broken, and no wider than 80 columns here."""
        most = 0
        for path in (RUNS[0], *RUNS[2:]):
            for verb in [*self.VERBS, *(self.REPLAYS if path == RUNS[2] else [])]:
                widest = {}
                with tempfile.TemporaryDirectory() as state:
                    os.symlink(path, os.path.join(state, "x"))
                    for columns in (60, 80, 200):
                        said = run(*verb, *["x"] * (verb != ["info"]), cwd=state, COLUMNS=str(columns), XDG_STATE_HOME=state).stdout
                        self.assertNotIn("\033", said)
                        self.assertTrue(said.strip(), verb)
                        widest[columns] = max(len(line) for line in said.splitlines() if verb[0] != "explain" or columns > 60 or line[:7].strip())
                        self.assertLessEqual(widest[columns], columns, (verb, path))
                most = max(most, widest[200])
        self.assertGreater(most, 120, "a wide terminal is used")

    def test_a_wide_terminal_has_places_and_commands_whole(self):
        with tempfile.TemporaryDirectory() as state:
            narrow, wide = (run("-o", state, RUNS[0], COLUMNS=columns).stdout for columns in ("80", "200"))
        for cut, whole in ((r"  [\d.]+ nets.py:\d+, … *\n|nets.py:\d+ …\n", r" nets.py:\d+, [\d.]+ nets.py:\d+, \d+ more\n"), (r"--at oom \\\n", r"--at oom /.*traces|--at oom /.*shared-device")):
            self.assertRegex(narrow, cut)
            self.assertNotRegex(wide, cut)
            self.assertRegex(wide, whole)

    def test_a_terminal_has_colour_unless_it_wants_none(self):
        for more, coloured in ({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False):
            main, other = pty.openpty()
            subprocess.run([ANALYZE, "diff", RUNS[0], RUNS[1]], stdout=other, env={**os.environ, "TERM": "xterm", **more}, check=True)
            os.close(other)
            said = b""
            try:
                while part := os.read(main, 65536):
                    said += part
            except OSError:
                pass
            os.close(main)
            self.assertEqual(b"\033[1;3" in said, coloured, more)

    def test_every_help_is_80_columns_and_its_own(self):
        listed = re.findall(r"(?m)^  (\w+) ", run("help", "all").stdout) + ["flame", "dump", "oom", "timeline", "ranks", "track", "history"]
        for verb in listed:
            said = run(verb, "--help").stdout
            self.assertLessEqual(max(map(len, said.splitlines())), 80, verb)
            self.assertRegex(said, r"^usage: stormlog-analyze \[?([\w|]*\|)?%s[\] |]" % verb)
        for program in os.path.join(BUILD, "agent", "stormlog-run"), *PROGRAMS:
            self.assertLessEqual(max(map(len, run("--help", program=program).stdout.splitlines())), 80, program)


class Answers(unittest.TestCase):
    def test_diff_begins_with_what_changed_most(self):
        said = run("diff", RUNS[2], RUNS[0]).stdout
        self.assertRegex(said, r"^(MORE|LESS)   peak [\d.]+ GiB -> [\d.]+ GiB, [+-][\d.]+ MiB: ")
        self.assertRegex(run("diff", RUNS[0], RUNS[0]).stdout, r"^SAME   nothing changed\nsame: ")

    def test_fit_without_a_verdict_says_what_it_knows_and_exits_1(self):
        done = run("fit", "--capacity", "8G,12G", RUNS[2])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"^MAY FIT   it needs at least 7\.\d+ GiB for this step, and later ones may need more\n")
        self.assertNotIn("unknown", done.stdout)

    def test_a_tree_has_no_wrapper_and_a_chain_is_one_line(self):
        folded, whole = run("tree", RUNS[2]).stdout, run("tree", "--all-frames", RUNS[2]).stdout
        self.assertNotIn("_wrapped_call_impl", folded)
        self.assertIn("_wrapped_call_impl", whole)
        self.assertIn(" > ", folded)
        self.assertLess(len(folded.splitlines()), len(whole.splitlines()) / 2)

    def test_check_has_one_scale_and_a_larger_leak_is_not_milder(self):
        said = run("check", "--config", os.devnull, "--max-peak", "1G", RUNS[1]).stdout
        words = {line.split()[0] for line in said.splitlines()[1:-1] if not line.startswith(" ")}
        self.assertLessEqual(words, {"FAIL", "ok", "unknown", "also"})
        for path in RUNS:
            report = json.loads(run("report", "--json", path).stdout)
            self.assertLessEqual({finding["severity"] for finding in report["findings"] if finding["id"] == "leak.growing"}, {"critical"})

    def test_ranks_of_an_ended_run_is_about_that_run(self):
        row = json.loads(run("ranks", "--json", RUNS[0]).stdout.splitlines()[0])
        report = json.loads(run("report", "--json", RUNS[0]).stdout)
        self.assertLessEqual(abs(row["timestamp_ns"] - report["run"]["ended_at_ns"]), 10 ** 9)

    def test_info_tells_what_this_machine_has(self):
        said = json.loads(run("info", "--json").stdout)
        self.assertEqual((said["schema"], said["schema_version"]), ("stormlog.info", 1))
        self.assertRegex(run("info").stdout, "no device|device +driver")


class Explained(unittest.TestCase):
    def test_the_page_is_what_the_program_says(self):
        with open(os.path.join(ROOT, "doc", "findings.md")) as file:
            page = file.read()
        self.assertEqual(page.split("\n\n", 2)[2], run("explain", "all", COLUMNS="120").stdout)

    def test_every_id_of_a_verdict_or_finding_is_explained(self):
        kinds = re.findall(r"(?m)^KIND\((\w+), (\w+), (\w+)\)", pathlib.Path(ROOT, "analyzer", "report", "found.def").read_text())
        ids = {"%s.%s" % kind[:2] for kind in kinds} | {kind[2].replace("_", ".", 1) for kind in kinds}
        self.assertGreater(len(ids), 40)
        for one in ids:
            done = run("explain", one)
            self.assertEqual(done.returncode, 0, one)
            self.assertEqual(len(re.findall(r"(?m)^[123]\. ", done.stdout)), 3, one)
        self.assertEqual(run("explain", "no.such").returncode, 2)

    def test_a_run_gives_its_own_figures(self):
        said = " ".join(run("explain", "leak.kept", RUNS[1]).stdout.split())
        self.assertRegex(said, r"^LEAK monitor.py:13 keeps [\d.]+ MiB of every training step why .* 2.9\d* GiB")
        self.assertRegex(said, r" made 3 960 blocks; the rule: at least 8 in [\d ]+ calls; the rule: at least 6 chance \S+ over all lines; the rule: below 0\.05 ")
        self.assertRegex(run("explain", RUNS[2]).stdout, r"(?s)^OUT OF MEMORY   Adam's first step.*\nIds: oom.full ")
        self.assertIn("This run has no verdict oom.full.", run("explain", "oom.full", RUNS[1]).stdout)


class Errors(unittest.TestCase):
    def setUp(self):
        self.at = tempfile.mkdtemp(prefix="stormlog-voice-")
        self.addCleanup(shutil.rmtree, self.at)

    def said(self, *words, code=2, program=ANALYZE):
        done = run(*words, cwd=self.at, program=program)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_each_error_says_what_to_do(self):
        trace, = glob.glob(os.path.join(RUNS[2], "*.zst"))
        shutil.copy(sys.executable, os.path.join(self.at, "elf"))
        with open(trace, "rb") as file, open(os.path.join(self.at, "cut.msgpack.zst"), "wb") as out:
            out.write(file.read(3000))
        self.assertEqual(self.said("nosuch"), "stormlog-analyze: nosuch: no such file or folder (nor a verb: stormlog-analyze help all)\n")
        self.assertEqual(len(self.said().splitlines()), 2)
        os.mkdir(os.path.join(self.at, "traces"))
        shutil.copy(trace, os.path.join(self.at, "traces"))
        self.assertRegex(self.said(), r"did you mean traces/ \(1 process, \d\d:\d\d\)\?")
        self.assertNotIn("did you mean", self.said("--foo"))
        self.assertIn("did you mean --quiet?", self.said("--quite", "traces"))
        self.assertIn("--rank is an option of tree: stormlog-analyze tree --rank 7 traces\n", self.said("--rank", "7", "tree", "traces"))
        self.assertIn("--rank is an option of tree: stormlog-analyze tree --rank N PATH\n", self.said("--rank"))
        self.assertIn("elf: a program, not a recording", self.said("elf", code=3))
        self.assertIn("cut off at 3 000 bytes, before its first event; was it copied while the program ran?", self.said("cut.msgpack.zst", code=3))
        for words in ("tree", "--at", "nonsense"), ("tree", "--by", "foo"), ("fit", "--capacity", "banana"), ("monitor", "--interval", "never"):
            self.assertEqual(len(self.said(*words, "traces").splitlines()), 1)
        self.assertIn("export wants a format first: stormlog-analyze export perfetto traces", self.said("export", "traces"))
        for verb in "push", "summarize", "track":
            self.assertEqual(len(self.said(verb, "--json", "traces").splitlines()), 1)

    def test_other_programs_speak_alike(self):
        for program in PROGRAMS:
            self.assertEqual(self.said("--foo", program=program), "%s: --foo is no option; --help lists the options\n" % os.path.basename(program))
        attach = os.path.join(BUILD, "tools", "attach", "stormlog-attach")
        if os.path.exists(attach):
            self.assertEqual(self.said(program=attach), "stormlog-attach: which process? stormlog-attach PID (stormlog-top shows them)\n")


if __name__ == "__main__":
    unittest.main()
