#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
The library takes little of a program's stacks, which may be of 16 KiB.

    test_stack_depth.py LIBRARY STACK_DEPTH STACK_DEPTH_PYTHON
"""
import os
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM, MODULE = sys.argv[1:4]
KIB = 1024
FIRST, NATIVE, END, WARM = 8 * KIB, 6 * KIB, 6 * KIB, KIB
# A stack that is new to the process is interned, which no warm call does; new_stack is the most of 40 such calls.
BUDGETS = {"first_of_process": FIRST, "first_of_thread": FIRST, "failure": FIRST, "second_failure": FIRST, "end": END,
           "after_end": NATIVE, "new_stack": NATIVE, "known_stack": NATIVE, "warm": NATIVE}
# The same kinds of calls below Python functions.
PYTHON = """
import ctypes, sys, threading
painted = ctypes.CDLL(sys.argv[1]).painted
painted.restype = ctypes.c_size_t
def nest(levels, fails):
    return nest(levels - 1, fails) if levels else painted(fails)
def work(first):
    print(first, painted(0))
    for name in "new_stack", "known_stack":
        print(name, max([nest(levels, 0) for levels in range(40)]))
    for name in "failure", "second_failure":
        print(name, painted(1))
work("first_of_process")
thread = threading.Thread(target=work, args=("first_of_thread",))
thread.start()
thread.join()
"""


def depths(stacks, *argv, interval="100", program=(PROGRAM,)):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*program, *argv], capture_output=True, text=True, check=True,
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
        """The recording ends with the first thread: for the second there is no end to measure."""
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

    def test_below_python_it_is_the_same(self):
        for stacks in ("none", "python", "both"):
            found = depths(stacks, program=(sys.executable, "-c", PYTHON, MODULE))
            self.assertEqual(len(found), 10)
            for name, size in found:
                with self.subTest(stacks=stacks, call=name):
                    self.assertLessEqual(size, BUDGETS[name])

    def test_the_walk_of_python_frames_is_in_the_measure(self):
        def least(stacks):
            found = depths(stacks, interval="0", program=(sys.executable, "-c", PYTHON, MODULE))
            return min(size for name, size in found if name == "new_stack")
        self.assertGreater(least("python"), least("none"))


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
