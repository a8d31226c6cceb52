# SPDX-License-Identifier: MIT
"""convert and validate answer as upstream does on every record of golden/normalize."""
import json
import sys
import tempfile
import unittest
from pathlib import Path

from golden import GOLDEN, differences, lines, run

ANALYZE = sys.argv.pop(1)
CASES = lines(GOLDEN / "normalize/cases.jsonl")


class Normalize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "records.jsonl"

    def tearDown(self):
        self.folder.cleanup()

    def answers(self, *command):
        """For each case the converted record, or None if its line was refused."""
        self.file.write_text("".join(json.dumps(c["input"]) + "\n" for c in CASES))
        done = run(ANALYZE, *command, self.file)
        refused = {int(line.split(":")[1]) for line in done.stderr.splitlines()}
        self.assertEqual(done.returncode, 3 if refused else 0, done.stderr)
        output = iter(json.loads(line) for line in done.stdout.splitlines())
        answers = [None if n in refused else next(output, True) for n in range(1, len(CASES) + 1)]
        self.assertIsNone(next(output, None), "more records than lines that were not refused")
        return answers

    def compare(self, key, *command):
        for case, got in zip(CASES, self.answers(*command)):
            with self.subTest(case["name"]):
                want = case[key]
                self.assertEqual(got is not None, want["ok"], want.get("error"))
                if want["ok"] and "output" in want:
                    self.assertEqual(differences(got, want["output"]), [])

    def test_convert_gives_upstreams_record_or_refuses_it(self):
        self.compare("convert", "convert")

    def test_convert_uses_the_session_id_it_is_given(self):
        self.compare("convert_default_sid", "convert", "--session-id", "default-sid")

    def test_strict_convert_refuses_exactly_the_records_without_a_version(self):
        self.compare("convert_strict", "convert", "--strict")

    def test_validate_refuses_what_upstreams_validator_refuses(self):
        for case, got in zip(CASES, self.answers("validate", "--strict")):
            if "schema_version" in case["input"]:
                with self.subTest(case["name"]):
                    self.assertEqual(got is not None, case["validate"]["ok"])

    def test_lines_are_as_python_writes_them(self):
        for case, got in zip(CASES, self.answers("convert")):
            if got:
                one = Path(self.folder.name) / "one.jsonl"
                one.write_text(json.dumps(case["input"]) + "\n")
                line = run(ANALYZE, "convert", one).stdout
                self.assertEqual(line, json.dumps(got, sort_keys=True) + "\n")


if __name__ == "__main__":
    unittest.main()
