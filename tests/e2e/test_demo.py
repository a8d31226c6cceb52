#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The programs of doc/examples/, recorded on the simulator as scripts/demo does: the report names the defects that they have."""
import os
import subprocess
import sys
import unittest

import e2e
import stormlog_trace
from test_answers import MIB, said, summary, verdicts

EXAMPLES = os.path.join(e2e.HERE, "..", "..", "doc", "examples")
BUILT = os.path.join(e2e.BUILD, "doc", "examples")


def line_of(text):
    """Number of the only line of train.py that contains the text."""
    with open(os.path.join(EXAMPLES, "train.py")) as file:
        (number,) = [number for number, line in enumerate(file, 1) if text in line]
    return number


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recording = e2e.Recording("python3", os.path.join(EXAMPLES, "train.py"), code=1, SIM_DEVICES=1, SIM_VRAM="8G", EXAMPLES=BUILT)
        cls.report = cls.recording.report()
        (cls.process,) = cls.report["processes"]
        cls.text = summary(cls.recording, columns=120)

    @classmethod
    def tearDownClass(cls):
        cls.recording.__exit__()

    def test_the_books_are_the_simulators(self):
        (truth,) = self.recording.truth()
        self.assertEqual(e2e.differences(self.process, truth, e2e.rows_of(self.recording.traces)), [])

    def test_the_growing_step_is_named_with_what_each_keeps(self):
        labels = {label["label"]: label for label in self.process["labels"]}
        self.assertEqual({name: label["entries"] for name, label in labels.items()},
                         {"step_#": 118, "forward": 118, "backward": 117, "optimizer": 117})
        # Each step keeps a loss of 4 MiB, every second one a plan of 2 MiB too.
        self.assertEqual((labels["step_#"]["verdict"], round(labels["step_#"]["growth_bytes_per_entry"])), ("growing", 5 * MIB))
        line = line_of("return tensor(mib(4))")
        self.assertIn(line, {frame["line"] for one in labels["step_#"]["held_by"] for frame in one["stack"]})
        self.assertRegex(summary(self.recording, "--all"), r"(?m)^LEAK   train.py:%d keeps 4 MiB of every step$" % line)

    def test_the_error_has_its_step_its_range_and_its_line(self):
        self.assertIn("it was in forward", verdicts(self.report)[0]["note"])
        self.assertIn("OUT OF MEMORY   blocks of step 117 are ", self.text)
        name = "attention" if sys.version_info < (3, 11) else "Layer.attention"  # code objects have the qualified name since 3.11
        self.assertRegex(self.text, r"\n  train.py:%d +%s +<- asks 160 MiB\n" % (line_of("kept for the backward pass"), name))

    def test_the_library_behind_the_back_is_named_with_the_line_that_calls_it(self):
        (plans,) = [leak for leak in self.report["leaks"] if leak["blocks"] == 59]
        self.assertEqual((plans["library"], plans["bytes"], plans["verdict"]), ("libcache.so", 118 * MIB, "growing"))
        python = [frame for frame in plans["stack"] if frame["language"] == "python"][0]
        self.assertEqual((os.path.basename(python["file"]), python["line"]), ("train.py", line_of("cache_lookup(step")))


def tree(run, *options):
    done = subprocess.run([e2e.ANALYZE, "tree", *options, run.traces], capture_output=True, timeout=300)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Both(unittest.TestCase):
    def test_what_a_process_held_goes_with_it(self):
        commands = "%s; exec python3 %s" % (os.path.join(BUILT, "solver"), os.path.join(EXAMPLES, "train.py"))
        with e2e.Recording("sh", "-c", commands, code=1, SIM_DEVICES=1, SIM_VRAM="8G", EXAMPLES=BUILT) as run:
            report = run.report()
            self.assertEqual(len(report["processes"]), 2)
            code, at_oom, _ = tree(run, "--at", "oom")
            self.assertEqual((code, "solver" in at_oom, "libtensor" in at_oom), (0, False, True))
            self.assertNotIn("together", at_oom)
            solver, = [one for one in stormlog_trace.open_folder(run.traces) if "solver" in one.header["exe"]]
            last = int(solver.events()["time_ns"][-1]) + solver.header["started_ns"] - solver.header["monotonic_ns"]
            code, at_end, _ = tree(run, "--at", str(last))
            self.assertEqual((code, "solver" in at_end), (0, True))
            self.assertIn("2 processes together, each at its own peak", tree(run)[1])
            self.assertIn("there is no rank 7", tree(run, "--rank", "7")[2])


class Solver(unittest.TestCase):
    def test_the_line_that_remembers_is_the_largest_leak(self):
        with e2e.Recording(os.path.join(BUILT, "solver"), SIM_DEVICES=1, SIM_VRAM="8G") as run:
            # Whether the report says that it grows depends on the machine's pace; test_answers.py tests that.
            leak = verdicts(run.report(), "LEAK")[0]
        self.assertRegex(said(leak), r"^solver\.c:\d+ keeps 3 MiB of every pass all 80 blocks that \S+ made were .*, 240 MiB")
        self.assertEqual(leak["lines"][-1]["mark"], "made here")
        self.assertGreater(len(leak["lines"]), 1)


if __name__ == "__main__":
    unittest.main()
