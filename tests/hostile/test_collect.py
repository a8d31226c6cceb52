#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""/dev/shm is everybody's: `collect` takes only rings of the owner of the trace, and nothing that is no ring."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import traces as t  # noqa: E402

ANALYZE = os.path.abspath(sys.argv[1])
OWNER, STRANGER = 12001, 12002


@unittest.skipUnless(os.geteuid() == 0, "only root makes files of others")
class Collect(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="stormlog-collect-")
        self.addCleanup(shutil.rmtree, self.home)
        os.chown(self.home, OWNER, OWNER)
        self.made = []
        self.addCleanup(lambda: [os.unlink(path) for path in self.made if os.path.lexists(path)])

    def trace(self, name, owner=OWNER):
        path = os.path.join(self.home, name + ".msgpack.zst")
        t.write(path, t.header(ring="x.ring"))
        os.chown(path, owner, owner)
        return path

    def shared(self):
        self.made.append("/dev/shm/stormlog-test-%d-%d.ring" % (os.getpid(), len(self.made)))
        return self.made[-1]

    def ring(self, trace, owner=OWNER):
        """The ring of a dead process that names that trace."""
        path, bytes_ = self.shared(), bytearray(t.ring(trace))
        name = trace.encode()
        at = 16 + 16 + 16 + 40 + 16 + 24
        bytes_[at:at + len(name)] = name
        t.write(path, bytes(bytes_))
        os.chown(path, owner, owner)
        return path

    def collect(self):
        done = subprocess.run([ANALYZE, "collect", self.home], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_ring_of_the_traces_owner_is_brought_home(self):
        ring = self.ring(self.trace("rank-00000-1"))
        self.assertEqual(self.collect(), "1 brought home, 0 without a trace cleared, 0 still running\n")
        self.assertEqual(sorted(os.listdir(self.home)), ["rank-00000-1.msgpack.zst", "rank-00000-1.ring"])
        self.assertFalse(os.path.exists(ring))

    def test_a_ring_of_somebody_else_is_not(self):
        ring = self.ring(self.trace("rank-00000-1"), STRANGER)
        self.assertEqual(self.collect(), "0 brought home, 0 without a trace cleared, 0 still running\n")
        self.assertEqual(os.listdir(self.home), ["rank-00000-1.msgpack.zst"])
        self.assertTrue(os.path.exists(ring))

    def test_nor_one_to_a_trace_that_is_a_link_or_lies_elsewhere(self):
        away = tempfile.mkdtemp(prefix="stormlog-away-")
        self.addCleanup(shutil.rmtree, away)
        kept = [t.write(os.path.join(away, "rank-00000-%d.msgpack.zst" % i), t.header()) for i in range(2)]
        link = os.path.join(self.home, "rank-00000-5.msgpack.zst")
        os.symlink(kept[0], link)
        rings = [self.ring(link, 0), self.ring(kept[1], 0), self.ring(os.path.join(self.home, "..", os.path.basename(away), "rank-00000-1.msgpack.zst"), 0)]
        self.assertEqual(self.collect(), "0 brought home, 0 without a trace cleared, 0 still running\n")
        self.assertEqual([os.path.exists(ring) for ring in rings], [True] * 3)
        self.assertEqual(len(os.listdir(away)), 2)

    def test_what_has_no_trace_is_cleared_where_it_is_the_folders_owners(self):
        gone = os.path.join(self.home, "rank-00000-7.msgpack.zst")
        mine, other = self.ring(gone), self.ring(gone, STRANGER)
        self.assertEqual(self.collect(), "0 brought home, 1 without a trace cleared, 0 still running\n")
        self.assertEqual((os.path.exists(mine), os.path.exists(other)), (False, True))

    def test_what_is_no_ring_is_left(self):
        trace = self.trace("rank-00000-1")
        secret = t.write(os.path.join(self.home, "secret"), t.ring(trace))
        link, fifo, text, cut = (self.shared() for _ in range(4))
        os.symlink(secret, link)
        os.mkfifo(fifo)
        t.write(text, b"no ring")
        t.write(cut, t.ring(trace)[:300])
        self.assertEqual(self.collect(), "0 brought home, 0 without a trace cleared, 0 still running\n")
        self.assertEqual([os.path.lexists(path) for path in self.made], [True] * 4)
        self.assertEqual(sorted(os.listdir(self.home)), ["rank-00000-1.msgpack.zst", "secret"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
