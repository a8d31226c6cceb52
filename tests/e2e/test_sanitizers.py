#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs built with sanitizers (tests/apps/sanitized.c) start, run and end under the agent as without it, and all calls are recorded."""
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import e2e
from e2e import Recording

SOURCE = os.path.join(e2e.HERE, "..", "apps", "sanitized.c")
CALLS = 1 + 8 * 500
# ThreadSanitizer waits so long at an exit where a thread is left; the program leaves none.
PATIENCE = {"TSAN_OPTIONS": "atexit_sleep_ms=120000", "timeout": 100}
BUILDS = [[compiler, "-fsanitize=" + kind, *more]
          for compiler, kinds in (("gcc", (("address",), ("address", "-static-libasan"), ("address", "-DOWN_OPTIONS"), ("thread",), ("thread", "-static-libtsan"),
                                           ("leak",), ("undefined",))),
                                  ("clang", (("address",), ("address", "-shared-libasan"), ("thread",), ("memory",), ("leak",),
                                             ("undefined",))))
          for kind, *more in kinds if shutil.which(compiler)]


def build(command, program):
    return subprocess.run([*command, "-g", "-O1", SOURCE, "-o", program, "-pthread", "-L" + e2e.SIM, "-l:libcudart.so.13",
                           "-Wl,--allow-shlib-undefined"], capture_output=True, text=True)


def runtime_folder(command):
    """The folder of clang's shared runtime, which the loader does not search by itself."""
    if command[0] != "clang":
        return ""
    return ":" + subprocess.run(["clang", "-print-runtime-dir"], capture_output=True, text=True).stdout.strip() + \
        "".join(":" + folder for folder in glob.glob("/usr/lib/llvm-*/lib/clang/*/lib/linux"))


class Sanitizers(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-sanitizers-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.programs = []
        for number, command in enumerate(BUILDS):
            program = os.path.join(cls.folder, "program%d" % number)
            environment = {"LD_LIBRARY_PATH": e2e.SIM + runtime_folder(command)}
            if command == ["gcc", "-fsanitize=thread"]:  # in the program itself its _exit comes before ours
                environment.update(PATIENCE)
            if build(command, program).returncode:
                continue  # this compiler has no such runtime here
            with Recording(program, preload=False, code=None, **environment) as plain:
                if plain.done.returncode == 0:  # ThreadSanitizer fails where the kernel randomizes addresses more than it expects
                    cls.programs.append((command, program, environment, plain.done))

    def check(self, **how):
        for command, program, environment, plain in self.programs:
            if "-DOWN_OPTIONS" in command and "launcher" not in how:
                continue  # such a program takes options from itself and ASAN_OPTIONS alone
            with self.subTest(" ".join(command)), Recording(program, code=None, **environment, **how) as run:
                said = [line for line in run.done.stderr.decode().splitlines() if not line.startswith("stormlog: ")]
                self.assertEqual((run.done.returncode, run.done.stdout, "\n".join(said)), (0, plain.stdout, plain.stderr.decode()))
                processes = sorted(row["allocations"] + row["failed_allocations"] for process in run.report()["processes"] for row in process["memory"]
                                   if row["kind"] == "device")  # the forked child's call fails, as with CUDA
                self.assertEqual(processes, [1, CALLS])

    def test_there_is_one_at_least(self):
        self.assertTrue(self.programs)

    def test_with_a_bare_preload(self):
        self.check()

    def test_with_the_launcher(self):
        self.check(launcher=["-q"], preload=False)

    def test_with_the_runtime_preloaded_too(self):
        """As where an instrumented library is loaded by a program that is not; a child of fork() calls the GPU."""
        program = os.path.join(self.folder, "plain")
        runtime = subprocess.run(["gcc", "-print-file-name=libtsan.so"], capture_output=True, text=True).stdout.strip()
        if not os.path.isabs(runtime) or build(["gcc"], program).returncode:
            self.skipTest("gcc has no runtime of ThreadSanitizer here")
        with Recording(program, preload=False, code=None, LD_PRELOAD=runtime) as plain:
            if plain.done.returncode:
                self.skipTest("the runtime does not start here")
        for order, patience in ((runtime, e2e.PRELOAD), {}), ((e2e.PRELOAD, runtime), PATIENCE):
            with self.subTest(order), Recording(program, code=None, LD_PRELOAD=":".join(order), **patience) as run:
                self.assertEqual((run.done.returncode, run.done.stdout, run.done.stderr), (0, plain.done.stdout, plain.done.stderr))

    def test_with_no_stacks(self):
        self.check(STORMLOG_STACKS="none")

    def test_what_the_program_says_to_its_runtime_is_heard(self):
        for command, program, environment, _ in self.programs:
            if "address" not in command[1] or "-DOWN_OPTIONS" in command:
                continue
            with self.subTest(" ".join(command)), Recording(program, code=None, ASAN_OPTIONS="help=1", **environment) as run:
                self.assertIn(b"Available flags for AddressSanitizer", run.done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
