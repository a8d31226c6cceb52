#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: the report says how a process ended, even if the agent did not run at its end; of two loaded copies of the agent one records."""
import os
import shutil
import subprocess
import tempfile
import unittest

import e2e
from e2e import Recording

FOREIGN = os.path.join(e2e.APPS, "foreign")
GO = """package main

// #cgo LDFLAGS: -L%s -l:libcudart.so.13 -Wl,--allow-shlib-undefined
// #include <stddef.h>
// int cudaMalloc(void **, size_t);
// static int one(void) { void *p = 0; return cudaMalloc(&p, 4096); }
import "C"
import "os"

func main() {
	if C.one() != 0 || len(os.Args) < 2 {
		os.Exit(4)
	}
	if os.Args[1] == "kill" {
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	os.Exit(3)
}
""" % e2e.SIM


class Ends(unittest.TestCase):
    def status(self, *argv, launcher=None, code=0, processes=1):
        with Recording(*argv, launcher=launcher, code=code) as run:
            report = run.report()
            self.assertEqual(len(report["processes"]), processes)
            for process in report["processes"]:
                row, = [row for row in process["memory"] if row["kind"] == "device"]
                self.assertEqual((row["allocations"], row["live_blocks"], process["lost_events"]), (1, 1, 0))
            return report["processes"][0]["status"]

    def test_the_launcher_tells_an_end_by_system_call_from_a_kill(self):
        for argument, code, status in ((0, 0, "completed"), (3, 3, "failed"), (256, -9, "interrupted")):
            with self.subTest(argument=argument):
                self.assertEqual(self.status(FOREIGN, "raw_end", argument, launcher=["--quiet", "--report"], code=code), status)

    def test_the_status_is_known_where_a_librarys_constructor_makes_the_first_call(self):
        both = e2e.PRELOAD + ":" + os.path.join(e2e.APPS, "ctor_alone.so")
        for host, environment in (0, {}), (1, {}), (0, {"CTOR_THREAD": "1"}):
            with self.subTest(host=host, **environment), Recording("/usr/bin/python3", "-S", "-c", "raise SystemExit(5)", LD_PRELOAD=both, code=5, STORMLOG_HOST=host, **environment) as run:
                process, = run.report()["processes"]
                self.assertEqual((process["ended"], process["exit_status"]), ("failed", 5))

    def test_an_end_that_the_c_librarys_own_handle_was_asked_for_is_told(self):
        """So do ctypes and cffi, and programs that ask for a version."""
        begin = "import ctypes\nlibc = ctypes.CDLL('libc.so.6')\nctypes.CDLL('%s/libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(4096))\n" % e2e.SIM
        versioned = "ask = ctypes.CDLL(None).dlvsym\nask.restype = ctypes.c_void_p\nctypes.CFUNCTYPE(None, ctypes.c_int)(ask(ctypes.c_void_p(libc._handle), b'_exit', b'%s'))(5)"
        version = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[os.uname().machine]
        for end in "libc._exit(5)", "libc._Exit(5)", "libc.quick_exit(5)", versioned % version:
            with self.subTest(end), Recording("/usr/bin/python3", "-c", begin + end, code=5) as run:
                process, = run.report()["processes"]
                self.assertEqual((process["ended"], process["exit_status"]), ("failed", 5))
        with Recording("/usr/bin/python3", "-c", begin + "libc.execv(b'/bin/true', (ctypes.c_char_p * 2)(b'true', None))") as run:
            self.assertEqual([process["status"] for process in run.report()["processes"]], ["completed"])

    def test_a_program_that_drops_its_environment_is_recorded_as_it_was_to_be(self):
        """nginx does so: settings that are gone at the first call are read at the start."""
        program = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.clearenv()\nctypes.CDLL('%s/libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(4096))" % e2e.SIM
        with Recording("/usr/bin/python3", "-c", program, STORMLOG_RUN_ID="mine", STORMLOG_STACKS="none") as run:
            report = run.report()
            self.assertEqual(report["run"]["id"], "mine")
        with Recording("/usr/bin/python3", "-c", program, STORMLOG_DISABLE=1) as run:
            self.assertEqual((run.files(), [name for name in os.listdir(run.folder) if name.endswith(".zst")]), ([], []))
        program += "\nlibc.getenv.restype = ctypes.c_char_p\nprint(libc.getenv(b'NVTX_INJECTION64_PATH') is not None)"
        for setting, answered in (("STORMLOG_LABELS", "off"), False), (("STORMLOG_DISABLE", 1), False), (("STORMLOG_LABELS", "on"), True):
            with self.subTest(setting), Recording("/usr/bin/python3", "-c", program, **dict([setting])) as run:
                self.assertEqual(run.done.stdout.decode().split(), [str(answered)])

    def test_also_where_the_name_of_the_folder_says_who_made_it(self):
        with Recording(FOREIGN, "raw_end", 0, launcher=["--report"], STORMLOG_DIR="out/%h-%p") as run:
            self.assertNotIn(b"killed", run.done.stderr)
            self.assertIn(b"completed", run.done.stderr)

    def test_where_nobody_waited_an_end_by_system_call_looks_like_a_kill(self):
        """doc/portability.md, Known not to hold."""
        self.assertEqual(self.status(FOREIGN, "raw_end", 0), "interrupted")
        self.assertEqual(self.status("sh", "-c", FOREIGN + " raw_end 0; true", launcher=["--report"]), "interrupted")

    def test_of_two_copies_of_the_library_one_records(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "libcopy.so")
            shutil.copy(e2e.PRELOAD, copy)
            for order in ((copy, e2e.PRELOAD), (e2e.PRELOAD, copy)):
                with self.subTest(order=order), Recording(os.path.join(e2e.APPS, "runtime13"), LD_PRELOAD=":".join(order)) as run:
                    wrong, report = e2e.equal_to_journal(run)
                    self.assertEqual(wrong, [])
                    self.assertTrue(any("loaded twice" in note for note in report["processes"][0]["capabilities"]["notes"]))


@unittest.skipUnless(shutil.which("go"), "no go")
class Go(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.program = os.path.join(cls.folder, "program")
        with open(cls.program + ".go", "w") as file:
            file.write(GO)
        settings = dict(os.environ, CGO_ENABLED="1", CGO_LDFLAGS_ALLOW=".*", GO111MODULE="off", GOFLAGS="",
                        GOCACHE=os.path.join(e2e.BUILD, "tests", "go-cache"))
        built = subprocess.run(["go", "build", "-o", cls.program, cls.program + ".go"], env=settings, capture_output=True, text=True)
        if built.returncode:
            raise unittest.SkipTest("go builds nothing here: " + built.stderr)

    status = Ends.status

    def test_its_end_is_known_by_the_launcher(self):
        self.assertEqual(self.status(self.program, "exit", launcher=["--report"], code=3), "failed")
        self.assertEqual(self.status(self.program, "kill", launcher=["--report"], code=-9), "interrupted")

    def test_where_nobody_waited_it_is_not_called_a_kill(self):
        for launcher in (None, ["--report"]):
            program = [self.program, "exit"] if not launcher else ["sh", "-c", self.program + " exit; true"]
            with self.subTest(launcher=launcher):
                self.assertEqual(self.status(*program, launcher=launcher, code=0 if launcher else 3), "unknown")


if __name__ == "__main__":
    unittest.main(verbosity=2)
