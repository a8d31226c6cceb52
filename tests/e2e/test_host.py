#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--host: the agent samples the memory of a program that calls no GPU."""
import sys
import unittest

import e2e
import stormlog_trace
from e2e import Recording

# Touches every page of so many MiB; its own figure of its memory is compared.
HOLDS = """
import os, sys, time
held = bytearray(int(sys.argv[1]) << 20)
rss = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
time.sleep(1)
"""
PRINTS = "print(rss, flush=True)\n"
CALLS = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
time.sleep(1)
"""
HOST = ("--host", "--quiet")


class Host(unittest.TestCase):
    def recorded(self, *argv, launcher=HOST, **more):
        run = Recording(*argv, launcher=launcher, **more)
        self.addCleanup(run.__exit__)
        return run

    def samples(self, run, pid=None):
        """Samples of process `pid`, or of the run's only process, in order of time."""
        trace, = [trace for trace in stormlog_trace.open_folder(run.traces) if pid in (None, trace.header["pid"])]
        return sorted((sample for sample in trace.defs["sample"] if "rss_bytes" in sample), key=lambda sample: sample["ns"])

    def assert_whole(self, run, status="completed"):
        report = run.report()
        for process in report["processes"]:
            self.assertEqual((process["status"], process["damaged"], process["lost_events"]), (status, False, 0))
        self.assertEqual([name for name in run.files() if name.endswith(".ring")], [])
        return report["processes"]

    def assert_not_more(self, samples, times, ends):
        """No more samples than so many times ten a second, besides those at ends, however long the program took."""
        self.assertLessEqual(len(samples), times * (samples[-1]["ns"] - samples[0]["ns"]) / 1e8 + ends, samples)

    def assert_sampled(self, run, rss, most=1.5):
        """The process was sampled about ten times a second, with figures near its own, and no two samples have one time."""
        samples = self.samples(run)
        times = [sample["ns"] for sample in samples]
        self.assertEqual(len(times), len(set(times)))
        near = [sample for sample in samples if abs(sample["rss_bytes"] - rss) < 0.05 * rss]
        self.assertGreaterEqual(len(near), 4, samples)
        self.assert_not_more(samples, most, 5)
        return samples

    def test_how_it_ended_is_told(self):
        """After exit() and after main's return, which run functions that a constructor registered after the agent's end; with GPU calls and without."""
        for script in ("sys.exit(3)", CALLS + "sys.exit(3)"):
            process, = self.assert_whole(self.recorded("/usr/bin/python3", "-c", "import sys, time\n" + script, code=3), "failed")
            self.assertEqual(process["exit_status"], 3)

    def test_a_program_that_calls_no_gpu_is_sampled(self):
        for launcher in (HOST, ("--host", "--quiet", "--report"), ("--host", "--rank", "3", "--world-size", "4")):
            with self.subTest(launcher=launcher):
                run = self.recorded(sys.executable, "-c", HOLDS + PRINTS, 100, launcher=launcher)
                self.assert_whole(run)
                self.assert_sampled(run, int(run.done.stdout))

    def test_so_it_is_by_the_library_without_a_launcher(self):
        with Recording(sys.executable, "-c", HOLDS + PRINTS, 100, STORMLOG_HOST=1) as run:
            self.assert_whole(run)
            self.assert_sampled(run, int(run.done.stdout))

    def test_its_first_gpu_call_is_recorded_with_its_stack(self):
        run = self.recorded(sys.executable, "-c", HOLDS + CALLS + PRINTS, 100)
        process, = self.assert_whole(run)
        self.assertEqual([row["allocations"] for row in process["memory"]], [1])
        trace, = stormlog_trace.open_folder(run.traces)
        self.assertTrue(trace.defs["native_stack"])
        self.assert_sampled(run, int(run.done.stdout), most=3)
        self.assertEqual(len([name for name in run.files() if name.startswith("rank-")]), 1)

    def test_a_program_that_closes_all_descriptors_is_sampled_on(self):
        closes = "import os, time\nos.closerange(3, 2000)\n"
        run = self.recorded(sys.executable, "-c", closes + HOLDS + CALLS + PRINTS, 100)
        process, = self.assert_whole(run)
        self.assertEqual([row["allocations"] for row in process["memory"]], [1])
        self.assert_sampled(run, int(run.done.stdout), most=3)

    def test_one_whose_exec_fails_is_sampled_on(self):
        fails = "import os\ntry: os.execv('/nowhere', ['x'])\nexcept OSError: pass\n"
        run = self.recorded(sys.executable, "-c", fails + HOLDS + PRINTS, 100)
        self.assert_whole(run)
        self.assert_sampled(run, int(run.done.stdout))


if __name__ == "__main__":
    e2e.side_by_side()
