#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: programs that are at odds with a recorder beside them (tests/apps/foreign.c) end as they end without one."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import e2e
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)
from e2e import Recording

FOREIGN = os.path.join(e2e.APPS, "foreign")


class Foreign(unittest.TestCase):
    maxDiff = None

    def plain_and_recorded(self, *argv, **environment):
        """The same exit status and output with and without us; the recording."""
        with Recording(FOREIGN, *argv, preload=False, code=None) as plain:
            run = Recording(FOREIGN, *argv, code=None, **environment)
            self.addCleanup(run.__exit__)
            self.assertEqual((run.done.returncode, run.done.stdout, run.done.stderr),
                             (plain.done.returncode, plain.done.stdout, plain.done.stderr), argv)
        return run

    def device_row(self, run):
        process, = run.report()["processes"]
        row, = [row for row in process["memory"] if row["kind"] == "device"]
        return row

    def test_what_is_freed_after_our_end_on_a_small_stack_leaves_the_data_below_its_guard_page_alone(self):
        for stack in (16384, 20480, 24576, 28672, 32768):
            with self.subTest(stack=stack):
                run = self.plain_and_recorded("late", stack)
                self.assertEqual(run.done.returncode, 0)
                row = self.device_row(run)
                self.assertEqual((row["allocations"], row["frees"], row["live_blocks"]), (100, 100, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
