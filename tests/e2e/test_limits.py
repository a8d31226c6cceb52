#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: programs with little stack, few descriptors, processes or bytes, in a nearly full cgroup, or under a tracer run as without the agent."""
import itertools
import os
import shutil
import sys
import unittest

import e2e
import stormlog_trace
from e2e import Recording, equal_to_journal

THREADS = os.path.join(e2e.APPS, "threads")
RUNTIME = os.path.join(e2e.APPS, "runtime13")
MIB = 1 << 20
BELOW_PYTHON = """
import ctypes, sys, threading
allocate, left, calls = ctypes.PyDLL(sys.argv[1]).allocate_above, int(sys.argv[2]), int(sys.argv[3])
allocate.argtypes = [ctypes.c_size_t]
def work():
    for _ in range(calls):
        allocate(100000)
    allocate(left)
allocate(100000)
threading.stack_size(512 << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


class Limits(unittest.TestCase):
    def holds(self, *argv, recorded=True, threads=1, **environment):
        """The program prints the same with and without the agent, and the report equals the simulator's journal."""
        with Recording(*argv, preload=False, timeout=300, **environment) as plain, Recording(*argv, timeout=300, **environment) as run:
            self.assertEqual((run.done.stdout, run.done.stderr), (plain.done.stdout, plain.done.stderr))
            if recorded:
                wrong, report = equal_to_journal(run, threads)
                self.assertEqual((wrong, len(report["processes"])), ([], 1))

    def below(self, limit, *argv, **how):
        with self.subTest(limit=limit):
            self.holds("sh", "-c", "ulimit %s; exec \"$@\"" % limit, "sh", *argv, **how)

    def test_small_stacks_for_every_thread(self):
        for kib in (64, 128):
            self.below("-s %d" % kib, THREADS, 8, 100, threads=8)

    def test_little_of_a_stack_left(self):
        """The agent leaves out what needs more stack, and the trace says so.  A warm call takes up to 1 KiB more than the simulated driver alone."""
        for stacks in ("none", "native"):
            for calls, left in itertools.product((0, 3), (2500, 4000, 5500, 7500, 12000)):
                with self.subTest(stacks=stacks, calls=calls, left=left), Recording(os.path.join(e2e.APPS, "little"), left, calls, STORMLOG_STACKS=stacks) as run:
                    trace, = stormlog_trace.open_folder(run.traces)
                    made = [native for size, native in zip(*(trace.events()[name].tolist() for name in ("bytes", "native"))) if size == 4096]
                    self.assertEqual(len(made), calls + (calls > 0 or left > 8192))
                    missing = len(made) <= calls or stacks == "native" and not made[-1]
                    self.assertEqual(missing, left < (6144 if calls and stacks == "native" else 0 if calls else 8192))
                    self.assertEqual(missing, any("stack was left" in note["text"] for note in trace.defs.get("note", [])))

    def test_little_of_the_first_threads_stack_left(self):
        """The first thread's stack grows up to the program's limit."""
        for stacks in ("none", "native"):
            for left in (2500, 4000, 5500, 7500, 12000):
                with self.subTest(stacks=stacks, left=left), Recording(os.path.join(e2e.APPS, "little"), left, 3, "first", STORMLOG_STACKS=stacks) as run:
                    trace, = stormlog_trace.open_folder(run.traces)
                    made = [native for size, native in zip(*(trace.events()[name].tolist() for name in ("bytes", "native"))) if size == 4096]
                    self.assertEqual(len(made), 4)
                    missing = stacks == "native" and not made[-1]
                    self.assertEqual(missing, stacks == "native" and left < 6144)
                    self.assertEqual(missing, any("stack was left" in note["text"] for note in trace.defs.get("note", [])))

    def test_little_of_an_alternate_stack_left(self):
        """The data below it stays what it was."""
        for stacks in ("none", "native"):
            for left in (2500, 4000, 5500, 7500, 12000):
                with self.subTest(stacks=stacks, left=left), Recording(os.path.join(e2e.APPS, "little"), left, 3, "alternate", STORMLOG_STACKS=stacks) as run:
                    trace, = stormlog_trace.open_folder(run.traces)
                    made = [native for size, native in zip(*(trace.events()[name].tolist() for name in ("bytes", "native"))) if size == 4096]
                    self.assertEqual((len(made), stacks == "native" and not made[-1]), (4, stacks == "native" and left < 6144))

    def test_little_of_a_stack_left_below_python(self):
        for stacks in ("none", "python", "python,native"):
            for calls, left in itertools.product((0, 3), (1800, 4000, 12000)):
                with self.subTest(stacks=stacks, calls=calls, left=left), \
                        Recording(sys.executable, "-c", BELOW_PYTHON, os.path.join(e2e.APPS, "little_library.so"), left, calls, STORMLOG_STACKS=stacks) as run:
                    trace, = stormlog_trace.open_folder(run.traces)
                    made = [python for size, python in zip(*(trace.events()[name].tolist() for name in ("bytes", "python"))) if size == 4096]
                    self.assertEqual(len(made), 1 + calls + (calls > 0 or left > 8192))
                    if stacks != "none" and calls:
                        self.assertEqual([bool(python) for python in made], [True] * (1 + calls) + [left > 6144])

    def test_few_descriptors(self):
        for count in (16, 12, 11, 8, 7, 5, 4):
            self.below("-n %d" % count, RUNTIME, recorded=count >= 12)  # with fewer there is no recording, so that the driver has enough

    def test_little_address_space(self):
        self.below("-v 4000000", RUNTIME)

    def test_small_files(self):
        self.below("-f 65536", RUNTIME)

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv") and shutil.which("prlimit"), "only root has another user at hand, and setpriv")
    def test_no_more_processes(self):
        """Threads count as processes for this limit, so there is no writer."""
        folder = os.path.dirname(os.path.abspath(e2e.PRELOAD))
        while folder != "/":
            if not os.stat(folder).st_mode & 1:
                self.skipTest("another user cannot read the build")
            folder = os.path.dirname(folder)
        argv = ("sh", "-c", "umask 0; mkdir -p traces && chown 65533 traces && chmod 777 . journal && exec setpriv --reuid=65533 --clear-groups prlimit --nproc=1 \"$@\"", "sh", RUNTIME)
        self.holds(*argv, SIM_DEVICES=1)
        for flags in ([], ["--host", "--quiet"]):
            with self.subTest(flags=flags), Recording(*argv[:-1], e2e.RUN, *flags, "--", RUNTIME, preload=False, SIM_DEVICES=1) as run:
                wrong, report = equal_to_journal(run)
                self.assertEqual((wrong, len(report["processes"])), ([], 1))

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("unshare"), "only root makes namespaces, by unshare")
    def test_the_first_process_of_a_namespace_is_the_programs(self):
        for flags in ([], ["--host"]):
            with self.subTest(flags=flags), Recording("unshare", "--pid", e2e.RUN, *flags, "--", "sh", "-c", "/bin/echo forked; exec \"$0\"", RUNTIME, preload=False) as run:
                self.assertIn(b"forked\n", run.done.stdout)
                self.assertTrue(run.truth())

    @unittest.skipUnless(shutil.which("bwrap"), "no bubblewrap")
    def test_in_a_sandbox_of_namespaces(self):
        self.holds("bwrap", "--dev-bind", "/", "/", "--unshare-ipc", "--unshare-uts", "--die-with-parent", RUNTIME)

    def test_below_tracers(self):
        for argv in (["gdb", "-nx", "-q", "-batch", "-ex", "set print thread-events off", "-ex", "run"], ["strace", "-f", "-qq", "-o", "/dev/null"]):
            if shutil.which(argv[0]):
                with self.subTest(argv=argv[0]), Recording(*argv, *(["--args"] if argv[0] == "gdb" else []), THREADS, 4, 50, timeout=300) as run:
                    wrong, _ = equal_to_journal(run, 4)
                    self.assertEqual(wrong, [])

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_below_valgrind_with_its_search_for_leaks(self):
        with Recording("valgrind", "-q", "--leak-check=full", "--error-exitcode=0", RUNTIME, timeout=500, STORMLOG_STACKS="none") as run:
            wrong, _ = equal_to_journal(run)
            self.assertEqual(wrong, [])

    @unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
    def test_valgrind_has_nothing_to_say_of_us(self):
        for tool, argv, threads in (("memcheck", (RUNTIME,), 1), ("memcheck", (THREADS, 4, 50), 4), ("helgrind", (RUNTIME,), 1), ("drd", (RUNTIME,), 1)):
            for stacks, host in (("none", 0), ("native", 0), ("native", 1)):
                with self.subTest(tool=tool, argv=argv, stacks=stacks, host=host):
                    self.holds("valgrind", "-q", "--tool=" + tool, "--error-exitcode=99", *argv, threads=threads, recorded=not host, STORMLOG_STACKS=stacks,
                               STORMLOG_HOST=host)
        self.holds("valgrind", "-q", "--tool=dhat", "--dhat-out-file=/dev/null", RUNTIME)

    def test_in_a_cgroup_that_is_nearly_full(self):
        version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        folder = ("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/memory") + "/stormlog-limits-%d" % os.getpid()
        try:
            os.mkdir(folder)
            self.addCleanup(os.rmdir, folder)
            with open(os.path.join(folder, "memory.max" if version2 else "memory.limit_in_bytes"), "w") as file:
                file.write(str(100 * MIB))
        except OSError as error:
            self.skipTest("no cgroup can be made here: %s" % error)
        # the process itself holds 95 MiB of 100; the agent's pages and those of its files must fit in the rest
        script = "import ctypes; cuda = ctypes.CDLL('libcudart.so.13'); p = ctypes.c_void_p()\n" \
                 "rss = int(open('/proc/self/statm').read().split()[1]) * 4096; x = bytearray((95 << 20) - rss)\n" \
                 "for i in range(20000): assert not cuda.cudaMalloc(ctypes.byref(p), 4096) and not cuda.cudaFree(p)\nprint(len(x) > 0)"
        with Recording("sh", "-c", "echo $$ > %s/cgroup.procs; exec /usr/bin/python3 -c \"$0\"" % folder, script) as run:
            process, = run.report()["processes"]
            self.assertEqual((run.done.stdout, process["status"], process["lost_events"]), (b"True\n", "completed", 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
