#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The library takes little of a program's stacks, which may be of 16 KiB.

    test_stack_depth.py LIBRARY STACK_DEPTH
"""
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM = sys.argv[1:3]
KIB = 1024
FIRST, NATIVE, END, WARM = 8 * KIB, 6 * KIB, 6 * KIB, KIB
# Where a stack is new to the process it is interned, which is part of no warm call; new_stack is of 40 stacks.
BUDGETS = {"first_of_process": FIRST, "first_of_thread": FIRST, "failure": FIRST, "second_failure": FIRST, "end": END,
           "after_end": NATIVE, "new_stack": NATIVE, "known_stack": NATIVE, "warm": NATIVE}


def depths(stacks, *argv, interval="100"):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([PROGRAM, *argv], capture_output=True, text=True, check=True,
                              env={"LD_PRELOAD": LIBRARY, "STORMLOG_STACKS": stacks, "STORMLOG_DIR": folder, "STORMLOG_DEVICE_INTERVAL": interval})
        if not any(name.endswith(".zst") for name in os.listdir(folder)):
            raise AssertionError("nothing was recorded")
    return [(name, int(size)) for name, size in (line.split() for line in done.stdout.splitlines())]


class Depth(unittest.TestCase):
    def test_every_kind_of_call_stays_within_its_budget(self):
        for stacks in ("none", "native", "both"):
            for name, size in depths(stacks):
                with self.subTest(stacks=stacks, call=name):
                    self.assertLessEqual(size, BUDGETS[name])
                    self.assertGreater(size, 0)

    def test_nor_is_anything_encoded_on_it_where_there_is_no_writer(self):
        """The recording ends with the first thread: the second has no end of its own to measure."""
        for stacks in ("none", "native"):
            for name, size in depths(stacks, "alone")[:8]:
                with self.subTest(stacks=stacks, call=name):
                    self.assertLessEqual(size, BUDGETS[name] if name != "end" else FIRST)

    def test_a_call_made_before_takes_a_kilobyte(self):
        """With NVML: without it a call every tenth of a second would sample the device."""
        for name, size in depths("none", interval="0"):
            if name in ("warm", "known_stack"):
                self.assertLessEqual(size, WARM, name)

    def test_the_measure_sees_what_a_call_takes(self):
        def most(stacks, call):
            return max(size for name, size in depths(stacks, interval="0") if name == call)
        self.assertGreater(most("native", "new_stack"), 2 * most("none", "warm"))


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
