#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Code that a hostile file makes the analyzer run stays in the sandbox, in every verb that reads files: a library preloaded into the analyzer
takes over when the first byte is unpacked, and tries to read, write, execute and connect elsewhere."""
import ctypes
import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import landlock  # noqa: E402
import traces as t  # noqa: E402
import verbs  # noqa: E402

ANALYZE, PROBER = map(os.path.abspath, sys.argv[1:3])
# What the filter of system calls alone must refuse.
CALLS = ("a signal", "a queued signal", "a signal to all", "reading another process", "an attribute", "typing into the terminal",
         "typing into the terminal, by a wide request", "BPF", "io_uring", "emptying by name, as the filter sees it", "emptying while reading, as the filter sees it")
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
LANDLOCK_CREATE_RULESET = 444  # the system call's number, the same on every architecture


def without_landlock():
    """Make this process believe that the kernel has no Landlock: its first system call fails with ENOSYS."""
    libc = ctypes.CDLL(None)
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, LANDLOCK_CREATE_RULESET), (0x06, 0, 0, 0x00050000 | errno.ENOSYS), (0x06, 0, 0, 0x7FFF0000)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(filters))
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(SECCOMP, FILTER, ctypes.create_string_buffer(program), 0, 0):
        os._exit(99)


def record(folder, rank=0):
    t.write(os.path.join(folder, "rank-%05d-%d.msgpack.zst" % (rank, 100 + rank)), t.header(rank=rank, pid=100 + rank), t.defs([]),
            t.Thread().events(2, api=t.MALLOC, kind=1, duration_ns=1, address=[4096, 8192], bytes=4096), t.footer())


class Inside(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="stormlog-inside-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.root)
        for name in "a", "b", "tmp", "out":
            os.mkdir(self.at(name))
        record(self.at("a"))
        record(self.at("b"))
        self.furnish()

    def furnish(self):
        """A folder that nothing inside may touch; as new, whatever a former verb let out."""
        shutil.rmtree(self.at("home"), ignore_errors=True)
        os.mkdir(self.at("home"))
        with open(self.at("home/secret"), "w") as out:
            out.write("kept")

    def at(self, name):
        return os.path.join(self.root, name)

    def sink(self):
        self.assertEqual(self.run_inside("report", "-q", "-o", self.at("analysis"), self.at("b"), probe=False).returncode, 0)
        sinks = self.at("analysis/telemetry")
        return os.path.join(sinks, os.listdir(sinks)[0])

    def run_inside(self, *arguments, probe=True, before=None, **changes):
        env = dict(os.environ, TMPDIR=self.at("tmp"), ASAN_OPTIONS="verify_asan_link_order=0", **changes)
        if probe:
            env.update(LD_PRELOAD=PROBER, PROBE_FOLDER=self.at("home"))
        return subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, env=env, cwd=self.at("out"), timeout=60,
                              preexec_fn=before)

    def stays(self, *arguments, codes=(0,)):
        self.furnish()
        done = self.run_inside(*arguments)
        if not landlock.is_here():
            self.skipTest("this kernel has no Landlock")
        said = [line for line in done.stderr.splitlines() if line.startswith("probe: ")]
        self.assertEqual(said, ["probe: done"], arguments)
        self.assertIn(done.returncode, codes, done.stderr)
        self.assertEqual(os.listdir(self.at("home")), ["secret"])
        with open(self.at("home/secret")) as kept:
            self.assertEqual(kept.read(), "kept")

    def test_the_prober_gets_everywhere_where_nobody_confines(self):
        os.environ["PROBE_FOLDER"] = self.at("home")
        self.addCleanup(os.environ.pop, "PROBE_FOLDER")
        told = subprocess.run([sys.executable, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1]).probe()", PROBER], capture_output=True, text=True)
        for way in "writing a file", "making a file", "a mode", "renaming", "execution", "UDP", "a local socket", *CALLS:
            self.assertIn("broke out by " + way, told.stderr)

    def test_every_verb(self):
        self.assertEqual(verbs.missing(ANALYZE), set())
        for words, statuses in verbs.rows(a=self.at("a"), b=self.at("b"), sink=self.sink()):
            with self.subTest(verb=words):
                self.stays(*words, codes=statuses)

    def test_packs_and_summaries(self):
        self.assertEqual(self.run_inside("pack", "-o", "p.stormlog", self.at("a"), probe=False).returncode, 0)
        self.assertEqual(self.run_inside("summarize", "-o", "s.summary", self.at("a"), probe=False).returncode, 0)
        self.stays("report", "--json", self.at("out/p.stormlog"))
        self.stays("report", "--json", self.at("out/s.summary"))

    def test_a_report_of_telemetry(self):
        self.stays("report", "--json", self.sink())

    def test_a_kernel_without_landlock_is_no_error(self):
        usual = self.run_inside("report", "--json", self.at("a"), probe=False)
        done = self.run_inside("report", "--json", self.at("a"), probe=False, before=without_landlock)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(done.stdout)["processes"], json.loads(usual.stdout)["processes"])
        broken = self.run_inside("report", "--json", self.at("a"), before=without_landlock).stderr
        self.assertIn("probe: broke out by writing a file\n", broken)
        for way in "execution", "TCP", "UDP", "a local socket", "netlink", *CALLS:
            self.assertNotIn("broke out by %s\n" % way, broken, "the filter of calls needs no Landlock")

    def test_a_link_to_a_trace_is_read_and_a_link_to_something_else_is_not(self):
        os.mkdir(self.at("links"))
        os.symlink(self.at("b/rank-00000-100.msgpack.zst"), self.at("links/rank-00001-7.msgpack.zst"))
        os.symlink(self.at("a"), self.at("links/more"))
        os.symlink(self.at("home/secret"), self.at("links/rank-00009-9.msgpack.zst"))
        os.symlink(self.at("home"), self.at("links/house"))
        done = self.run_inside("dump", "--run", "all", self.at("links"), probe=False)
        self.assertIn("is a link to a file that is no trace by its name", done.stderr)
        self.assertTrue(done.stdout)
        self.stays("dump", self.at("links"))

    def test_what_lies_beside_a_named_file_opens_nothing_else(self):
        os.mkdir(self.at("beside"))
        one = self.at("beside/rank-00000-100.msgpack.zst")
        shutil.copy(self.at("b/rank-00000-100.msgpack.zst"), one)
        os.symlink(self.at("home/secret"), self.at("beside/rank-00000-100.000002.msgpack.zst"))
        os.symlink(self.at("home"), self.at("beside/rank-00000-100.000003.msgpack.zst"))
        for name in "manifest.json", "rollups.json":
            os.symlink(self.at("home"), self.at("beside/" + name))
        self.stays("dump", one)
        done = self.run_inside("pack", "-o", "beside.stormlog", one, probe=False)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("is a link to a file that is no trace by its name", done.stderr)
        self.assertEqual(self.run_inside("pack", "-o", "folder.stormlog", self.at("beside"), probe=False).returncode, 3)
        self.stays("report", "--json", self.at("out/beside.stormlog"))
        self.run_inside("summarize", "-o", "s.summary", self.at("a"), probe=False)
        os.rename(self.at("out/s.summary"), self.at("beside/s.summary"))
        self.stays("report", "--json", self.at("beside/s.summary"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
