#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_answers_json.py MAKE_TRACE STORMLOG_ANALYZE: the --json answers of verbs obey schemas/ and hold the trace's known content."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    print("no jsonschema: skipped")
    sys.exit(77)

MAKE_TRACE, ANALYZE = map(os.path.abspath, sys.argv[1:3])
SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "schemas"
GIB = 1 << 30


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        for name, kind in (("four", ("training", "4", "20")), ("more", ("training", "4", "30")), ("names", ("hostile",))):
            (cls.root / name).mkdir()
            subprocess.run([MAKE_TRACE, kind[0], cls.root / name, *kind[1:]], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def ask(self, schema, verb, *words, code=0):
        done = subprocess.run([ANALYZE, verb, "--json", *words], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, json.loads((SCHEMAS / (schema + ".schema.json")).read_text()))
        self.assertLessEqual(len(done.stdout), 16384)
        return answer

    def test_check_and_diff(self):
        answer = self.ask("check", "check", "--max-peak", "1GiB", "four", code=1)
        failed = [o for o in answer["outcomes"] if o["fails"]]
        self.assertEqual((answer["failures"], "max-peak" in [o["rule"] for o in failed]), (len(failed), True))
        changed = self.ask_long("diff", "diff", "four", "more")
        self.assertEqual((changed["runs_before"], changed["runs_after"]), (1, 1))
        self.assertIn("more", [d["change"] for d in changed["differences"]])
        self.ask_long("check", "check", "--max-peak", "1MiB", "names", code=1)

    def ask_long(self, schema, verb, *words, code=0):
        """Ask a gate or a diff, whose rows have no bound: all of them are there."""
        done = subprocess.run([ANALYZE, verb, "--json", *words], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        answer = json.loads(done.stdout)
        jsonschema.validate(answer, json.loads((SCHEMAS / (schema + ".schema.json")).read_text()))
        return answer

    def test_verbs_that_write_say_what_they_did(self):
        subprocess.run([ANALYZE, "-q", "four"], cwd=self.root, check=True)
        files = []
        for rank, sink in enumerate(sorted((self.root / "four" / "analysis" / "telemetry").iterdir())):
            events = [dict(json.loads(line), rank=rank, local_rank=rank, world_size=4) for line in next(sink.glob("*.jsonl")).read_text().splitlines()]
            files.append("rank%d.jsonl" % rank)
            (self.root / files[-1]).write_text("".join(json.dumps(event) + "\n" for event in events))
        merged = self.ask("done", "merge", "-o", "merged", *files)
        self.assertEqual(merged["output"], "merged")
        lines = sum(len(f.read_text().splitlines()) for f in (self.root / "merged").rglob("*.jsonl"))
        self.assertEqual(merged["events"], lines)
        self.assertEqual(self.ask("validate", "validate", "merged"), {"schema": "stormlog.validate", "schema_version": 1, "problems": [], "left_out": 0, "valid": True})
        (self.root / "broken.jsonl").write_text('{"schema_version": 3}\n' * 900)
        wrong = self.ask("validate", "validate", "broken.jsonl", code=3)
        self.assertEqual((wrong["valid"], wrong["problems"][0]["line"], len(wrong["problems"]) + wrong["left_out"]), (False, 1, 900))
        packed = self.ask("done", "pack", "-o", "run.stormlog", "four")
        self.assertEqual((packed["bytes"], packed["redacted"]), ((self.root / "run.stormlog").stat().st_size, False))
        self.assertEqual(subprocess.run([ANALYZE, "pack", "--json", "-o", "-", "four"], cwd=self.root, capture_output=True).returncode, 2)
        self.assertEqual(self.ask("done", "collect", "four")["brought"], 0)
        whole = self.ask("done", "summarize", "-q", "-o", "whole.summary", "four")
        self.assertEqual((whole["output"], whole["bytes"], whole["processes"], whole["parts"]),
                         ("whole.summary", (self.root / "whole.summary").stat().st_size, 4, None))
        part = self.ask("done", "summarize", "-q", "--shard", "2/4", "-o", "parts/%s.summary", "four")
        self.assertEqual((part["processes"], part["part"], part["parts"]), (1, 2, 4))
        tracked = self.ask("done", "track", "--duration", "0.1", "-o", "sink", "four")
        self.assertEqual(tracked["events"], sum(len(f.read_text().splitlines()) for f in (self.root / "sink").glob("segment-*")))
        self.assertGreater(tracked["events"], 4)

    def test_lines_of_dump_and_convert_are_objects_with_json_or_without(self):
        telemetry = next((self.root / "four" / "analysis").rglob("*.jsonl"), None)
        if not telemetry:
            subprocess.run([ANALYZE, "-q", "four"], cwd=self.root, check=True)
            telemetry = next((self.root / "four" / "analysis").rglob("*.jsonl"))
        for words in (["dump", "four"], ["convert", str(telemetry)]):
            said = [subprocess.run([ANALYZE, words[0], *more, *words[1:]], cwd=self.root, stdout=subprocess.PIPE, check=True, text=True).stdout for more in ([], ["--json"])]
            self.assertEqual(said[0], said[1])
            self.assertTrue(all(isinstance(json.loads(line), dict) for line in said[1].splitlines()) and said[1])


unittest.main(argv=sys.argv[:1], verbosity=2)
