#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that do what few do run as without the agent, and the trace has the calls that they counted themselves."""
import collections
import csv
import json
import os
import shutil
import subprocess
import unittest

import e2e

RUDE, HANDLED, SERVED, ASTRAY = (os.path.join(e2e.APPS, name) for name in ("rude", "handled", "served", "astray"))
MIB = 1 << 20


class Rude(unittest.TestCase):
    def dump(self, run):
        done = subprocess.run([e2e.ANALYZE, "dump", run.traces], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def compare(self, run):
        """The trace has as many calls as the program counted.  Returns its events."""
        own = [int(word) for word in run.done.stdout.split()]
        events = self.dump(run)
        # Calls whose result is null are left out: they did not return, or not to their caller.
        self.assertEqual([sum(event["api"] == api and event["result"] == 0 for event in events) for api in ("cudaMalloc", "cudaFree")], own)
        return events

    def notes(self, run):
        return [note for process in run.report()["processes"] for note in process["capabilities"]["notes"]]

    def test_noise_in_the_unwind_tables(self):
        said = 0
        for seed in range(16):
            with self.subTest(seed), e2e.Recording(RUDE, "noise", seed) as run:
                self.compare(run)
                said += any("unwind tables" in note for note in self.notes(run))
        self.assertGreaterEqual(said, 12)  # in some runs the noise spares the tables of the functions on the stack

    def test_a_title_over_the_arguments_and_the_environment(self):
        for way in range(3):
            with self.subTest(way), e2e.Recording(RUDE, "title", way) as run:
                self.compare(run)

    def test_a_handlers_calls_in_the_midst_of_a_call(self):
        for way in range(2):
            with self.subTest(way), e2e.Recording(RUDE, "handler", way) as run:
                events = self.compare(run)
                self.assertEqual(sum(event["api"] == "cudaMallocHost" for event in events), 50)

    def handled(self, mode, **settings):
        """Every call of the handlers is recorded.  Returns how often something was allocated in them."""
        with e2e.Recording(HANDLED, mode, **settings) as run:
            foreign, inside, outside = map(int, run.done.stdout.split())
            made = collections.Counter(event["bytes"] for event in self.dump(run) if event["api"] == "cudaMalloc")
            self.assertEqual((made[MIB], made[512]), (inside, outside))
        return foreign

    def test_the_first_call_is_made_by_a_handler_that_interrupted_malloc(self):
        self.assertEqual(self.handled("first"), 0)

    def test_a_handlers_calls_in_the_midst_of_our_own_work(self):
        for mode, settings in (("often", {}), ("often", {"STORMLOG_LIMIT": "8G"}), ("ranges", {}), ("errors", {}), ("threads", {}), ("blocks", {"STORMLOG_STACKS": "none"})):
            with self.subTest(mode=mode, settings=settings):
                self.handled(mode, **settings)

    def test_a_handler_that_interrupted_malloc_calls_and_ends_the_process(self):
        self.assertEqual(self.handled("crash"), 0)

    def test_a_child_that_a_handler_makes_and_that_lives_in_it(self):
        """PostgreSQL's workers live so.  Whatever system call the handler interrupted, the child has a writer and native stacks."""
        for way in range(7):
            with self.subTest(way), e2e.Recording(RUDE, "worker", way) as run:
                counts = [int(word) for word in run.done.stdout.split()]
                events = collections.Counter(event["api"] for event in self.dump(run) if event["result"] == 0)
                self.assertEqual([events["cudaMalloc"], events["cudaFree"]], [counts[0], counts[1]])
                processes = run.report()["processes"]
                self.assertEqual(self.notes(run), [])
                self.assertEqual([(process["lost_events"], process["capabilities"]["native_stacks"]) for process in processes], [(0, True)] * len(processes))
                self.assertFalse([name for name in run.files() if name.endswith(".ring")])

    def test_exit_in_a_handler_in_the_midst_of_a_call(self):
        with e2e.Recording(RUDE, "leaving") as run:
            self.compare(run)
            self.assertEqual([row["live_blocks"] for row in run.report()["processes"][0]["memory"]], [0])

    def test_fibers_that_change_threads_in_the_midst_of_a_call(self):
        with e2e.Recording(RUDE, "fibers") as run:
            self.compare(run)

    def test_fibers_that_several_threads_carry_at_once(self):
        with e2e.Recording(RUDE, "carriers") as run:
            self.compare(run)

    def test_a_cancelled_call_is_told_from_a_success(self):
        with e2e.Recording(RUDE, "cancel") as run:
            events = self.compare(run)
            self.assertEqual(sum(event["result"] is None for event in events), 20)
            for form in "csv", "ndjson":
                exported = subprocess.run([e2e.ANALYZE, "export", form, "-q", run.traces], capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
                rows = list(csv.DictReader(exported)) if form == "csv" else [json.loads(line) for line in exported]
                self.assertEqual(sum(row["api"] == "cudaMalloc" and row["result"] in ("", None) for row in rows if "api" in row), 20)

    def test_threads_that_wait_for_the_start_of_a_recording_sleep(self):
        """Each thread gives up the processor fewer than 50 times; to look every 0.1 ms would be some 500 times."""
        with e2e.Recording(RUDE, "crowd", 200) as run:
            self.compare(run)
            self.assertLess(int(run.done.stderr), 200 * 50)

    def test_pages_beyond_a_stack_that_the_program_serves_are_not_read(self):
        for way in (0, 1, 8, 24, 4100, -8, -16):
            if subprocess.run([SERVED, str(way)], env=dict(os.environ, LD_LIBRARY_PATH=e2e.SIM), stdout=subprocess.DEVNULL).returncode == 77:
                self.skipTest("no userfaultfd here")
            with self.subTest(way), e2e.Recording(SERVED, way) as run:
                self.compare(run)

    def astray(self, mode, *numbers):
        for number in numbers or (0,):
            for host in (), ("--host",):
                with self.subTest(number, host=host), e2e.Recording(ASTRAY, mode, number, launcher=host and ("--host", "-o", "traces")) as run:
                    self.assertEqual(run.done.returncode, 0)
                    self.compare(run)

    def test_a_stack_that_a_coroutine_was_begun_on_is_gone(self):
        self.astray("gone", 0, 1, 2)

    def test_a_coroutine_without_a_return_address(self):
        self.astray("junk", 0, 1, 0xdeadbeef, 0x4141414141414141)

    def test_a_guard_page_where_calls_were_made(self):
        self.astray("guard", 1600, 2400, 3200, 4096)

    def test_a_thread_with_a_filter_of_its_own_calls_first(self):
        self.astray("filter", 5, 50000)

    def test_calls_after_a_handler_left_our_own_work_by_longjmp(self):
        self.astray("jumps", 200)

    def test_calls_after_a_handler_left_the_first_one_by_longjmp(self):
        self.astray("first")

    def test_calls_of_a_coroutine_have_its_stack(self):
        with e2e.Recording(ASTRAY, "fiber") as run:
            stacks = {tuple(event["stack"][:2]) for event in self.compare(run) if event["api"] == "cudaMalloc"}
            self.assertEqual((len(stacks), [frame.partition("+")[0] for frame in min(stacks)]), (1, ["astray"] * 2))

    def test_memory_that_is_locked_as_it_is_mapped(self):
        """The limit is less than a recording takes, or so large that the program needs all of it but 1 MiB."""
        for kib in (300, 8192):
            with self.subTest(kib), e2e.Recording(RUDE, "locked", kib) as run:
                self.compare(run)
                processes = run.report()["processes"]
                self.assertEqual([(process["status"], process["lost_events"]) for process in processes], [("completed", 0)] * 2)
                self.assertFalse([note for note in self.notes(run) if "thread" in note])

    def test_a_program_without_memory_for_a_recording_is_told(self):
        with e2e.Recording(RUDE, "starved", 20000, launcher=("-o", "traces")) as run:
            self.assertEqual((run.done.stdout, run.files()), (b"\n20000 20000\n", []))
            self.assertIn(b"nothing recorded: no GPU call was seen", run.done.stderr)

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_memory_for_a_recording_is_not_asked_for_at_every_call(self):
        with e2e.Recording("strace", "-f", "-e", "trace=mmap", "-o", "calls", RUDE, "starved", 20000) as run, open(os.path.join(run.folder, "calls")) as calls:
            self.assertLess(sum("ENOMEM" in line for line in calls), 100)


if __name__ == "__main__":
    unittest.main()
