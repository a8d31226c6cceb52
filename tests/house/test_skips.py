#!/usr/bin/python3
# SPDX-License-Identifier: MIT
""".ci/may-skip lists at most four tests, each with what it lacks.  Any other skip is a failure in CI."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / ".ci/may-skip"
MAY = dict(line.split(": ", 1) for line in LIST.read_text().splitlines() if not line.startswith("#"))


def last_lines(*results, may_skip):
    """What scripts/test prints, and its status, of a run with these (name, result, stdout)."""
    script = re.search(r"<<'PYTHON'\n(.*)\nPYTHON\n", (ROOT / "scripts/test").read_text(), re.S)[1]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        log.writelines(json.dumps({"name": name, "result": result, "stdout": stdout}) + "\n" for name, result, stdout in results)
        log.flush()
        done = subprocess.run([sys.executable, "-c", script, log.name, "0"], stdout=subprocess.PIPE, text=True, env={**os.environ, "STORMLOG_MAY_SKIP": may_skip})
    return done.stdout.splitlines(), done.returncode


class Skips(unittest.TestCase):
    def test_at_most_four_tests_of_this_tree_are_listed_each_with_what_it_lacks(self):
        tests = "\n".join(path.read_text() for path in ROOT.glob("tests/**/meson.build")).replace("\\'", "'")
        self.assertLessEqual(len(MAY), 4)
        for name, lacks in MAY.items():
            self.assertIn("test('%s'" % name, tests)
            self.assertGreaterEqual(len(lacks.split()), 2, name)

    def test_ci_hands_over_the_list(self):
        self.assertRegex((ROOT / ".ci/run").read_text(), r"(?m)^STORMLOG_MAY_SKIP=\.ci/may-skip scripts/test$")

    def test_a_skip_that_is_not_listed_fails_and_one_that_is_does_not(self):
        listed = next(iter(MAY))
        ran = [("stormlog:a / works", "OK", ""), ("stormlog:a / " + listed, "SKIP", "")]
        self.assertEqual(last_lines(*ran, may_skip=str(LIST)), (["1 passed, 0 failed, 1 skipped"], 0))
        said, status = last_lines(*ran, ("stormlog:a / other", "SKIP", ""), may_skip=str(LIST))
        self.assertEqual((said[-1], status), ("1 passed, 1 failed, 1 skipped", 1))
        self.assertEqual(said[:-1], ["skipped, and %s does not name it: other" % LIST])

    def test_elsewhere_a_skip_is_none_and_what_was_not_tested_is_said_once(self):
        without = ("SKIP", "skipped: no Python with torch here: scripts/torch-venv fetches it\n")
        said, status = last_lines(("stormlog:a / works", "OK", ""), ("stormlog:a / PyTorch", *without), ("stormlog:a / Dask", *without), may_skip="")
        self.assertEqual((said[1:], status), (["1 passed, 0 failed, 2 skipped"], 0))
        self.assertRegex(said[0], r"^not tested: PyTorch; Dask\.  scripts/torch-venv ")


if __name__ == "__main__":
    unittest.main()
