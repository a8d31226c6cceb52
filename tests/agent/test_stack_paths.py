#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
No way through the library's own code takes more of a program's stack than agent/README.md says, by its machine code
(scripts/stack-paths); what the C library, libunwind and vendors take is measured by test_stack_depth.py.

    test_stack_paths.py LIBRARY STACK_PATHS
"""
import importlib.machinery
import importlib.util
import platform
import shutil
import subprocess
import sys
import unittest

LIBRARY, SCRIPT = sys.argv[1:3]
if platform.machine() != "x86_64" or not shutil.which("objdump"):
    print("skipped: x86-64 and objdump are needed")
    sys.exit(77)
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("stack_paths", SCRIPT)
STACK_PATHS = importlib.util.module_from_spec(importlib.util.spec_from_loader("stack_paths", LOADER))
LOADER.exec_module(STACK_PATHS)
KIB = 1024
# Who calls whom by pointer on a program's thread.
POINTERS = [("sl_objects_walk", visit) for visit in ("add_node", "add_provider", "find_data", "find_path", "is_around", "look", "read_place",
                                                     "read_wanted", "run_locked", "search_in", "visit", "visit_module")]
POINTERS += [("run_locked", run) for run in ("run_for", "run_in_group")]
POINTERS += [("sl_options_read", "bad_option")]
# Not reached by a call that was made before and succeeds: each is a separate function so that the tables show it.
RARE = ("attach_thread", "close_failed", "close_limit", "close_late", "take_stack", "take_late_stack", "find_real", "first_used", "sample_here",
        "ask_place", "ask_more", "device_of_pointer", "free_around", "tell_version", "sl_resolve_for", "sl_ring_next",
        "sl_unwound_drop", "sl_unwound_inside", "is_autograd", "sl_objects_walk", "sl_ring_make_room", "close_segment", "sl_stacks_capture", "sl_record_failed")

OURS = ("finish_as_writer", "drain_as_writer")  # where the writer is the last thread and the process ends on it


class Paths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.code = STACK_PATHS.Code(LIBRARY)
        symbols = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        known = set(cls.code.names.values())
        cls.exported = [name for name in (line.split()[2].split("@")[0] for line in symbols.splitlines() if line.split()[1] == "T") if name in known]

    def holds(self, budget, names, *without):
        way = self.code.deepest(names, without + OURS, POINTERS)
        said = "\n".join("%6d  %s" % (size, self.code.names[function]) for function, size in way.steps)
        self.assertLessEqual(way.bytes, budget, "the deepest way:\n" + said)
        self.assertGreater(way.bytes, 100, said)

    def test_the_table_names_functions_of_the_library(self):
        known = {name.split(".")[0] for name in self.code.names.values()}
        self.assertLessEqual(set(OURS), known)
        self.assertEqual([name for name in {to for _, to in POINTERS} if name not in known], [])
        self.assertGreater(len(self.exported), 400)

    def test_whatever_is_called_takes_eight_kilobytes(self):
        self.holds(8 * KIB, self.exported)

    def test_a_first_call_takes_eight_kilobytes(self):
        self.holds(8 * KIB, ["attach_thread"])

    def test_the_end_takes_two_kilobytes(self):
        """Where there is a writer, which encodes; without one nothing is encoded, and the host's memory is sampled here."""
        self.holds(2 * KIB, ["sl_preload_finish"], "finish_alone")
        self.holds(8 * KIB, ["sl_preload_finish"])
        self.holds(2 * KIB, ["sl_late_write"])

    def test_a_call_made_before_takes_one_kilobyte(self):
        wrappers = [name for name in self.exported if name.startswith(("cudaMalloc", "cudaFree", "cuMem", "hipMalloc", "hipFree", "hsa_amd"))]
        self.assertGreater(len(wrappers), 50)
        self.holds(KIB, wrappers, *RARE)


if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main()
