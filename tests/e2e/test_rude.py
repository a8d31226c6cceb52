#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that do what few do run as without us, and what is recorded is what they counted themselves."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import e2e

RUDE = os.path.join(e2e.APPS, "rude")


class Rude(unittest.TestCase):
    def dump(self, run):
        done = subprocess.run([e2e.ANALYZE, "dump", run.traces], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def compare(self, run):
        """What the program says of its own calls is in the trace, all of it, and nothing was lost."""
        own = [int(word) for word in run.done.stdout.split()]
        events = self.dump(run)
        self.assertEqual([sum(event.get("api") == api for event in events) for api in ("cudaMalloc", "cudaFree")], own)
        return events

    def notes(self, run):
        return [note for process in run.report()["processes"] for note in process["capabilities"]["notes"]]

    def test_noise_in_the_unwind_tables(self):
        said = 0
        for seed in range(16):
            with self.subTest(seed), e2e.Recording(RUDE, "noise", seed) as run:
                self.compare(run)
                said += any("unwind tables" in note for note in self.notes(run))
        self.assertGreaterEqual(said, 12)  # noise may spare what is on the stack

    def test_a_title_over_the_arguments_and_the_environment(self):
        for way in range(3):
            with self.subTest(way), e2e.Recording(RUDE, "title", way) as run:
                self.compare(run)


if __name__ == "__main__":
    unittest.main()
