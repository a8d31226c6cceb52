#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--host: until its first GPU call a program is sampled from outside, and the agent has no thread in it."""
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import e2e
    import stormlog_trace
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)
from e2e import Recording

# Counts its threads, then touches every page of so many MiB; its own figure of its memory is compared.
HOLDS = """
import os, sys, time
seen = [len(os.listdir("/proc/self/task"))]
held = bytearray(int(sys.argv[1]) << 20)
rss = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGESIZE")
time.sleep(1)
seen.append(len(os.listdir("/proc/self/task")))
"""
PRINTS = "print(rss, *seen, flush=True)\n"
CALLS = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
time.sleep(1)
"""
HOST = ("--host", "--quiet")
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Outside(unittest.TestCase):
    def recorded(self, *argv, launcher=HOST, **more):
        run = Recording(*argv, launcher=launcher, **more)
        self.addCleanup(run.__exit__)
        return run

    def samples(self, run, pid=None):
        """Samples of process `pid`, or of the run's only process, in order of time."""
        trace, = [trace for trace in stormlog_trace.open_folder(run.traces) if pid in (None, trace.header["pid"])]
        return sorted((sample for sample in trace.defs["sample"] if "rss_bytes" in sample), key=lambda sample: sample["ns"])

    def assert_whole(self, run):
        report = run.report()
        for process in report["processes"]:
            self.assertEqual((process["status"], process["damaged"], process["lost_events"]), ("completed", False, 0))
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
            process, = self.assert_whole(self.recorded("/usr/bin/python3", "-c", "import sys, time\n" + script, code=3))
            self.assertEqual(process["exit_status"], 3)

    def test_a_program_that_calls_no_gpu_has_the_threads_that_it_made(self):
        for launcher in (HOST, ("--host", "--quiet", "--report"), ("--host", "--rank", "3", "--world-size", "4")):
            with self.subTest(launcher=launcher):
                run = self.recorded(sys.executable, "-c", HOLDS + PRINTS, 100, launcher=launcher)
                rss, before, after = map(int, run.done.stdout.split())
                self.assertEqual((before, after), (1, 1))
                self.assert_whole(run)
                self.assert_sampled(run, rss)

    def test_alone_the_library_makes_no_thread_either_and_samples_both_ends(self):
        with Recording(sys.executable, "-c", HOLDS + PRINTS, 10, STORMLOG_HOST=1) as run:
            self.assertEqual(run.done.stdout.split()[1:], [b"1", b"1"])
            self.assert_whole(run)
            self.assertEqual(len(self.samples(run)), 2)

    def test_from_the_first_gpu_call_on_the_programs_own_writer_samples(self):
        run = self.recorded(sys.executable, "-c", HOLDS + CALLS + PRINTS, 100)
        process, = self.assert_whole(run)
        self.assertEqual([row["allocations"] for row in process["memory"]], [1])
        samples = self.assert_sampled(run, int(run.done.stdout.split()[0]), most=3)
        apart = [later["ns"] - earlier["ns"] for earlier, later in zip(samples, samples[1:])]
        self.assertGreater(len(samples), 8)
        self.assertLess(max(apart), 1e9)
        self.assertEqual(len([name for name in run.files() if name.startswith("rank-")]), 1)

    def test_a_program_that_closes_all_descriptors_is_sampled_on(self):
        closes = "import os, time\nos.closerange(3, 2000)\n"
        run = self.recorded(sys.executable, "-c", closes + HOLDS + CALLS + PRINTS, 100)
        process, = self.assert_whole(run)
        self.assertEqual([row["allocations"] for row in process["memory"]], [1])
        self.assert_sampled(run, int(run.done.stdout.split()[0]), most=3)

    def test_one_whose_exec_fails_is_sampled_on(self):
        fails = "import os\ntry: os.execv('/nowhere', ['x'])\nexcept OSError: pass\n"
        run = self.recorded(sys.executable, "-c", fails + HOLDS + PRINTS, 100)
        self.assert_whole(run)
        self.assert_sampled(run, int(run.done.stdout.split()[0]))

    def test_two_launchers_sample_once(self):
        run = self.recorded(e2e.RUN, *HOST, "--", sys.executable, "-c", HOLDS + PRINTS, 100)
        rss = int(run.done.stdout.split()[0])
        pid, = [process["pid"] for process in self.assert_whole(run) if process["command"][0] == sys.executable]
        self.assert_not_more([sample for sample in self.samples(run, pid) if abs(sample["rss_bytes"] - rss) < 0.05 * rss], 1, 3)

    @unittest.skipUnless(shutil.which("strace"), "no strace")
    def test_a_sample_that_takes_long_to_write_lies_behind_what_the_program_wrote_meanwhile(self):
        calls = """
import ctypes, sys, time
time.sleep(0.5)
cuda = ctypes.CDLL("libcudart.so.13")
for _ in range(int(sys.argv[1])):
    assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))
    time.sleep(0.05)
"""
        for write in (1, 2):
            for count in (5, 70):  # the program ends while the write is delayed, or goes on
                with self.subTest(write=write, count=count):
                    run = self.recorded("strace", "-o", "/dev/null", "-e", f"inject=pwrite64:delay_enter=2500000:when={write}",
                                        e2e.RUN, *HOST, "--", sys.executable, "-c", calls, count, launcher=None, preload=False)
                    process, = self.assert_whole(run)
                    self.assertEqual([row["allocations"] for row in process["memory"]], [count])

    def test_a_program_whose_launcher_is_killed_ends_as_without_it(self):
        """The kernel kills it with its launcher.  A program that has cleared its parent-death signal lives on, and is sampled from outside no more."""
        script = (f"import ctypes; ctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, 0); open('lives_on', 'w').close()\n"
                  + HOLDS + "open('said', 'w').write('%d %d' % tuple(seen))\n")
        run = self.recorded(sys.executable, "-c", script, 10, code=-signal.SIGKILL,
                            kill_when=lambda run: wait_for(lambda: os.path.exists(os.path.join(run.folder, "lives_on")) and any(
                                name.endswith(".zst") and os.path.getsize(os.path.join(run.traces, name)) for name in run.files())))
        said = os.path.join(run.folder, "said")
        wait_for(lambda: os.path.exists(said) and os.path.getsize(said) and not [name for name in run.files() if name.endswith(".ring")])
        with open(said) as file:
            self.assertEqual(file.read(), "1 1")
        self.assert_whole(run)

    @unittest.skipIf(subprocess.run(["unshare", "-Urpf", "--mount-proc", "true"], capture_output=True).returncode, "no user namespaces here")
    def test_in_namespaces_of_its_own_it_is_sampled_by_the_one_outside(self):
        for more in ((), ("--mount-proc",)):
            with self.subTest(more=more):
                run = self.recorded("unshare", "-Urpf", *more, sys.executable, "-c", HOLDS + PRINTS, 100)
                rss, *threads = map(int, run.done.stdout.split())
                self.assertEqual(threads, [1, 1] if more else threads)
                self.assert_whole(run)
                self.assertGreaterEqual(len([sample for sample in self.samples(run, 1) if abs(sample["rss_bytes"] - rss) < 0.05 * rss]), 4)

    @unittest.skipUnless(os.geteuid() == 0, "another user's file is needed")
    def test_a_strangers_ring_has_nothing_written(self):
        """It names the run, a process that lives, and a file of ours; another has a trace of the stranger's own."""
        name, said = "stormlog-test-%d" % os.getpid(), b"export PATH\n"
        with tempfile.TemporaryDirectory() as folder, open("/proc/sys/kernel/random/boot_id") as boot, open("/proc/self/stat") as stat:
            started, boot_id = int(stat.read().rpartition(")")[2].split()[19]), boot.read().strip().encode()
            header = b"\xa6run_id" + bytes([0xa0 | len(name)]) + name.encode() + b"\nevil\n" + os.urandom(300)
            for number, owner in enumerate((0, 65534)):
                trace, ring = os.path.join(folder, "%d.conf" % number), "/dev/shm/%s-%d.ring" % (name, number)
                with open(trace, "wb") as file:
                    file.write(said * (not owner))
                head = struct.pack("<16s4I2Q40s40x256s", b"stormlog.ring\n\1", 2, 1 << 20, 256, len(header), os.getpid(), started, boot_id, trace.encode())
                head = head.ljust(396, b"\0") + struct.pack("<I", 1)
                with open(ring, "wb") as file:
                    self.addCleanup(os.unlink, ring)
                    file.write(head.ljust(64 << 10, b"\0") + header)
                    file.truncate(256 << 10)
                for path in (trace, ring)[not owner:]:
                    os.chown(path, 65534, 65534)
                os.chmod(ring, 0o666)
            subprocess.run([e2e.RUN, *HOST, "-o", os.path.join(folder, "traces"), "--", "sleep", "1"], check=True, timeout=60,
                           env=dict(os.environ, STORMLOG_RUN_ID=name))
            for number, left in enumerate((said, b"")):
                with open(os.path.join(folder, "%d.conf" % number), "rb") as file:
                    self.assertEqual(file.read(), left)

    @unittest.skipUnless(shutil.which("chromium-headless-shell"), "no chromium-headless-shell")
    def test_chromiums_zygote_finds_itself_alone(self):
        argv = ("chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--dump-dom", "data:text/html,<p>hello")
        with Recording(*argv, preload=False, code=None) as plain:
            run = self.recorded(*argv, code=None)
            self.assertEqual((run.done.returncode, run.done.stdout), (plain.done.returncode, plain.done.stdout))


if __name__ == "__main__":
    e2e.side_by_side()
