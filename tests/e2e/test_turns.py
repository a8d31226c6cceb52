#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
Libraries of the same layout are loaded at one place, one after the other.  Each block must be said to be from the library and function
that made it, by the calling line alone and by whole stacks.  The program writes down the truth, by dladdr.
"""
import collections
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from e2e import ANALYZE, APPS, Recording
import stormlog_trace

TURNS = os.path.join(APPS, "turns")
PLUGINS = [os.path.join(APPS, "turns_%s.so" % name) for name in ("first", "other")]


def copies(folder):
    return [shutil.copy(plugin, os.path.join(folder, "%d%s" % (10 + copy, os.path.basename(plugin)))) for copy in range(6) for plugin in PLUGINS]


def recording(turns, how, plugins=PLUGINS, **more):
    run = Recording(TURNS, turns, how, *plugins, code=None, **more)
    if run.done.returncode == 77:
        raise unittest.SkipTest("the plugins do not come to one place")
    return run


def truth(run):
    """What the program wrote down: {(pid, address): (library, function)}."""
    made = {}
    for name in glob.glob(os.path.join(run.folder, "turns-*")):
        with open(name) as file:
            for line in file:
                address, path, function = line.split()
                made[int(name.rsplit("-", 1)[1]), int(address, 16)] = os.path.basename(path), function
    return made


def export(run, form):
    return subprocess.run([ANALYZE, "export", form, "-q", run.traces], capture_output=True, check=True, text=True).stdout


class Turns(unittest.TestCase):
    def said(self, run, made):
        """What the export says of these blocks, in the form of truth()."""
        said = {}
        for row in map(json.loads, export(run, "ndjson").splitlines()):
            if row.get("verb") == "ALLOC" and (row["pid"], row["address"]) in made:
                said[row["pid"], row["address"]] = row["library"], row["where"].rsplit(" ", 1)[-1]
        return said

    def check(self, run, blocks, code=0):
        """Compare each block's library and function; returns the truth."""
        self.assertEqual(run.done.returncode, code, run.done.stderr)
        made = truth(run)
        said = self.said(run, made)
        self.assertEqual(len(made), blocks)
        wrong = [(real, said.get(block)) for block, real in made.items() if said.get(block) != real]
        self.assertFalse(wrong, "%d of %d, the first: %s" % (len(wrong), len(made), wrong[:1]))
        return made

    def check_frames(self, run, made):
        """Compare the bytes through each library in an export of whole stacks."""
        shown, real = collections.Counter(), collections.Counter()
        for line in export(run, "collapsed").splitlines():
            stack, _, size = line.rpartition(" ")
            for library in ("first", "other"):
                if "%s_inner" % library in stack:
                    self.assertTrue(stack.endswith("turns_%s.so" % library), line)
                    self.assertNotIn("other_inner" if library == "first" else "first_inner", stack)
                    shown["turns_%s.so" % library] += int(size)
        for library, _ in made.values():
            real[library] += 4096
        self.assertEqual(shown, real)

    def test_the_blocks_of_each_library_have_its_names_by_the_calling_line_and_by_stacks(self):
        for stacks in ("none", "python", "native", "python,native"):
            with self.subTest(stacks=stacks), recording(6, "-", STORMLOG_STACKS=stacks) as run:
                self.check_frames(run, self.check(run, 12))

    def test_a_library_that_comes_back_has_the_stacks_that_it_had(self):
        with recording(1000, "-", STORMLOG_STACKS="native") as run:
            made = self.check(run, 2000)
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertLess(len(trace.defs["native_stack"]), 20)
            self.assertLess(len(trace.defs["module"]), 2100)
            for address, native in zip(*(trace.events()[name].tolist() for name in ("address", "native"))):
                if (trace.header["pid"], address) in made:
                    self.assertEqual(os.path.basename(trace.native_stack(native)[0][0]), made[trace.header["pid"], address][0])

    def test_by_the_calling_line_a_thousand_turns_are_told_apart(self):
        with recording(1000, "-", STORMLOG_STACKS="none") as run:
            made = self.check(run, 2000)
            trace, = stormlog_trace.open_folder(run.traces)
            for address, caller, ns in zip(*(trace.events()[name].tolist()[:100] for name in ("address", "caller", "time_ns"))):
                if (trace.header["pid"], address) in made:
                    self.assertEqual(os.path.basename(trace.place(caller, ns)[0]), made[trace.header["pid"], address][0])

    def test_a_dozen_libraries_in_turn(self):
        with tempfile.TemporaryDirectory() as folder:
            for stacks in ("none", "native"):
                with self.subTest(stacks=stacks), recording(100, "t", copies(folder), STORMLOG_STACKS=stacks) as run:
                    self.check(run, 800)

    def test_of_two_threads_that_load_and_unload_at_once_no_block_has_the_neighbours_name(self):
        """A block that a library makes as it is unloaded may be taken for one of the library that comes to its place next."""
        with tempfile.TemporaryDirectory() as folder:
            for stacks in ("none", "native"):
                with self.subTest(stacks=stacks), recording(1500, "s", copies(folder), STORMLOG_STACKS=stacks) as run:
                    made = truth(run)
                    said = self.said(run, made)
                    unknown = [block for block in made if said[block][0] == "a library that is gone"]
                    wrong = [(real, said[block]) for block, real in made.items() if said[block] != real and block not in unknown]
                    self.assertFalse(wrong, "%d of %d, the first: %s" % (len(wrong), len(made), wrong[:1]))
                    self.assertLess(len(unknown), len(made) / 100)

    def test_threads_that_had_the_first_librarys_stacks_get_the_seconds(self):
        for stacks in ("none", "native"):
            with self.subTest(stacks=stacks), recording(100, "t", STORMLOG_STACKS=stacks) as run:
                self.check(run, 800)

    def test_a_child_does_the_same(self):
        for stacks in ("none", "native"):
            with self.subTest(stacks=stacks), recording(20, "f", STORMLOG_STACKS=stacks) as run:
                self.check(run, 80)

    def test_what_a_killed_process_leaves_in_its_ring_says_the_same(self):
        def made(run):
            while not os.path.exists(os.path.join(run.folder, "made")) and run.process.poll() is None:
                pass

        for stacks in ("none", "native"):
            with self.subTest(stacks=stacks), recording(50, "w", STORMLOG_STACKS=stacks, kill_when=made) as run:
                self.check(run, 100, -9)

    def test_older_parts_that_are_folded_keep_the_names_of_what_lives(self):
        for stacks in ("none", "native"):
            with self.subTest(stacks=stacks), recording(3000, "-", STORMLOG_STACKS=stacks, STORMLOG_KEEP="200K") as run:
                self.check(run, 6000)

    def test_what_was_made_asleep_is_each_librarys(self):
        with recording(50, "-", launcher=["--asleep"]) as run:
            shown = collections.Counter(row["library"] for row in map(json.loads, export(run, "ndjson").splitlines()) if row.get("bytes") == 4096)
            self.assertEqual(shown, collections.Counter(library for library, _ in truth(run).values()))

    def test_a_pack_brings_the_names_along(self):
        for stacks in ("none", "native"):
            with self.subTest(stacks=stacks), recording(6, "-", STORMLOG_STACKS=stacks) as run:
                made = self.check(run, 12)
                pack = os.path.join(run.folder, "pack.stormlog")
                subprocess.run([ANALYZE, "pack", "-o", pack, run.traces], check=True, capture_output=True)
                run.traces = pack
                self.check_frames(run, made)


if __name__ == "__main__":
    unittest.main()
