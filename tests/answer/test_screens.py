#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_screens.py ANALYZE: first screens of the recordings of this tree follow the rules, and each command that they offer runs."""
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import rules

try:
    import zstandard
except ImportError:
    print("skipped: python3-zstandard is needed to open the recordings")
    sys.exit(77)

ANALYZE = os.path.abspath(sys.argv[1])
TESTS = pathlib.Path(__file__).resolve().parent.parent
RECORDINGS = ("real-gpu/cases/*/*", "golden/traces/*", "golden/gpu/*", "snapshot/golden/*.pickle.zst", "phases/traces/*", "fit/proof/*", "fit/small_card/*")
NEEDS_ANSWER = {"check": 1}  # its exit status is what it finds

GOOD = """train.py  pid 7 of 2  1.8 s  exit status 1                  Simulated GPU, 8 GiB

OUT OF MEMORY   blocks of step 117 are 6.7 times as large as any before

  train.py:125  loss = forward(model, length)
  train.py:79     self.scores = tensor(mib(8 * length))          <- asks 160 MiB

  why    one block of train.py:79 is 160 MiB in step 117, 24 MiB at most before.
  fix    bound `length` before train.py:125, or split that batch

  8.00  GiB the card at the error
  4.36  activations  ████████████████████  2.50 train.py:79, 1.25 train.py:83
  3.21  others       ██████████████▋
  0.43  context, code                      0.29 CUDA context, 0.14 code

also   LEAK  train.py:126  keeps 4 MiB of every step, 468 MiB
next   stormlog-analyze tree --at oom traces    the lines that held it
report traces/analysis/report.html
"""
# (what is replaced, by what, the break that is found)
FAULTS = [
    ("blocks of step 117", "step 117; blocks", "a clause too many"),
    ("6.7 times as large as any before", "160 MiB, 24 MiB before and 8 MiB at first", "two sizes"),
    ("  why    one block", "  else   one block", "without why"),
    ("  fix    bound", "  need   bound", "nothing to do"),
    ("24 MiB at most", "1024 MiB at most", "does not know: 1024 MiB"),
    ("24 MiB at most", "24.0 MiB at most", "zeros"),
    ("bound `length` before train.py:125, or split that batch", "bound what is held there", "points at nothing"),
    ("  3.21  others", "  3.20  others", "do not add up"),
    ("  0.43  context", "  0.4  context ", "mixed precision"),
    ("2.50 train.py:79, 1.25 train.py:83", "2.50 train.py:79, 1.25 train.p…", "half of a place"),
    ("  0.43  context, code                      0.29 CUDA context, 0.14 code", "  0.43  not ours                           0.29 CUDA context, 0.14 free", "nobody's"),
    ("\n\nalso", "\n  0.00  others\n\nalso", "a row of nothing"),
    ("train.py:126  keeps", "train.py:126  step_# train.py:126 keeps", "told twice"),
    ("loss = forward(model, length)", "loss = forward(model, length)" + 40 * "x", "columns"),
    ("\nalso   LEAK", "\nLEAK   train.py:126 keeps it\nalso   LEAK", "2 open verdicts"),
    ("8.00  GiB the card", "8.00  GiB the holder's", "does not know: holder"),
    ("  train.py:125  loss", "  a/site-packages/x.py:1  run\n  train.py:125  loss", "a library's frame"),
    ("\nnext ", "\n" * 8 + "next ", "more than 24 lines"),
]


def unpack(recording, folder):
    """Its path in the folder."""
    if recording.is_file():
        to = folder / recording.name[:-len(".zst")]
        with recording.open("rb") as file:
            to.write_bytes(zstandard.ZstdDecompressor().stream_reader(file).read())
        return to
    to = folder / "traces"
    to.mkdir()
    for path in recording.iterdir():
        if path.is_file():
            shutil.copy(path, to)
    return to


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600,
                          env={**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "PATH": os.path.dirname(ANALYZE) + ":" + os.environ["PATH"]})


def commands_of(screen):
    text = "\n".join(text for _, text in rules.split(screen)[6])
    return [re.split("   +", line.strip())[0] for line in re.sub(r" \\\n +", " ", text).splitlines() if line.strip()]


def look_at(recording):
    """(breaks of the rules, {command: what is wrong with it}) of its first screen."""
    with tempfile.TemporaryDirectory(prefix="stormlog-answer-") as folder:
        path = unpack(recording, pathlib.Path(folder))
        shown = run([ANALYZE, path.name], folder)
        if shown.returncode:
            return [shown.stderr], {}
        wrong = {}
        for command in commands_of(shown.stdout):
            words = shlex.split(command)
            if words[0] != "stormlog-analyze":
                wrong[command] = "is not ours" if not words[0].startswith("stormlog-") else None
                continue
            done = run(["sh", "-c", command], folder)
            if done.returncode not in (0, NEEDS_ANSWER.get(words[1], 0)) or not done.stdout.strip():
                wrong[command] = "exit status %d: %s" % (done.returncode, done.stderr or done.stdout)
        return [one + "\n" + shown.stdout for one in rules.breaks(shown.stdout)], {command: why for command, why in wrong.items() if why}


class Rules(unittest.TestCase):
    def test_a_screen_that_follows_them_breaks_none(self):
        self.assertEqual(rules.breaks(GOOD), [])
        self.assertEqual(commands_of(GOOD), ["stormlog-analyze tree --at oom traces"])

    def test_each_fault_is_found(self):
        for old, new, found in FAULTS:
            with self.subTest(found):
                self.assertEqual(GOOD.count(old), 1)
                self.assertRegex("\n".join(rules.breaks(GOOD.replace(old, new))), re.escape(found))


class Screens(unittest.TestCase):
    def test_first_screens_follow_the_rules_and_what_they_offer_runs(self):
        recordings = [path for pattern in RECORDINGS for path in sorted(TESTS.glob(pattern)) if path.suffix == ".zst" or list(path.glob("*.zst"))]
        self.assertGreater(len(recordings), 100)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for recording, (broken, wrong) in zip(recordings, pool.map(look_at, recordings)):
                with self.subTest(str(recording.relative_to(TESTS))):
                    self.assertEqual(broken, [])
                    self.assertEqual(wrong, {})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
