#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_ranks.py ANALYZE MAKE_LARGE: the cost of a run grows with what its ranks hold, and with nothing else."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import most  # noqa: E402

ANALYZE, MAKE = map(os.path.abspath, sys.argv[1:3])


class Ranks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-ranks-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_of(self, shape, ranks, events):
        """A folder with a run of so many ranks, each of so many events."""
        folder = os.path.join(self.folder, "%s-%d-%d" % (shape, ranks, events))
        os.mkdir(folder)
        subprocess.run([MAKE, shape, folder, str(ranks * events), str(ranks)], check=True)
        return folder

    def memory_of(self, folder):
        """The most memory that a report of it takes, in bytes."""
        done, kib = most.run([ANALYZE, "-q", "-j", "2", "-o", folder + ".out", folder], env=dict(os.environ, MALLOC_PERTURB_="0"))
        self.assertEqual(done.returncode, 0)
        return kib << 10

    def per_rank(self, shape, events):
        few, many = self.memory_of(self.run_of(shape, 64, events)), self.memory_of(self.run_of(shape, 320, events))
        return (many - few) / 256

    def test_a_rank_of_two_events_is_kilobytes(self):
        self.assertLess(self.per_rank("places", 2), 32 << 10)

    def test_places_that_ranks_have_in_common_are_kept_once(self):
        self.assertLess(self.per_rank("places", 1000), 140 << 10)

    def test_places_of_one_rank_alone_cost_little_more(self):
        self.assertLess(self.per_rank("apart", 1000), 180 << 10)

    @unittest.skipUnless(shutil.which("strace"), "no strace here")
    def test_files_are_listed_once_and_asked_about_only_when_they_are_opened(self):
        """Each file takes one stat and one open for its header, and again for its events; listing the folder adds none."""
        def calls(ranks):
            folder, log = self.run_of("places", ranks, 2), os.path.join(self.folder, "calls")
            traced = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=getdents64,stat,newfstatat,statx,openat", ANALYZE, "--json", folder],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            if traced.returncode and b"ptrace" in traced.stderr.lower():
                self.skipTest("strace may not trace here")
            with open(log) as file:
                lines = [line for line in file if "resumed>" not in line]
            of_files = [line for line in lines if "rank-" in line]
            return len(of_files), sum("stat" in line for line in of_files), sum(
                folder + '"' in line and "openat" in line and "O_PATH" not in line for line in lines)  # O_PATH: what it may read, for Landlock

        few, many = calls(20), calls(120)
        self.assertGreaterEqual(many[0] - few[0], 100, "it opened none of them")
        self.assertLessEqual(many[0] - few[0], 100 * 4)
        self.assertLessEqual(many[1] - few[1], 100 * 2)
        self.assertLessEqual(many[2], 3)  # the folder is opened three times whatever the number of ranks: for what may be read, traces, telemetry


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
