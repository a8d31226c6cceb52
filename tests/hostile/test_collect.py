#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""collect: any user can write to /dev/shm, so it takes only rings of the trace's owner, and nothing that is no ring.  Also: a file for each node, and reading many of them."""
import fcntl
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import traces as t  # exits 77 where it cannot run
import msgpack
import zstandard

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

    def ring(self, trace, owner=OWNER, maps=b""):
        """The ring of a dead process that names that trace."""
        path, bytes_ = self.shared(), bytearray(t.ring(trace, maps))
        name = trace.encode()
        at = 16 + 16 + 16 + 40 + 16 + 24
        bytes_[at:at + len(name)] = name
        t.write(path, bytes(bytes_))
        os.chown(path, owner, owner)
        return path

    def collect(self, *options, code=0, before=()):
        """Run collect with TMPDIR elsewhere, since TMPDIR is writable whatever the inputs are."""
        temporary = tempfile.mkdtemp(prefix="stormlog-tmp-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, temporary)
        done = subprocess.run([*before, ANALYZE, "collect", self.home, *options], capture_output=True, text=True, timeout=60, env={**os.environ, "TMPDIR": temporary})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_a_ring_of_the_traces_owner_is_brought_home(self):
        ring = self.ring(self.trace("rank-00000-1"))
        self.assertEqual(self.collect(), "1 brought home, 0 without a trace cleared, 0 still running\n")
        self.assertEqual(sorted(os.listdir(self.home)), ["rank-00000-1.msgpack.zst", "rank-00000-1.ring"])
        self.assertFalse(os.path.exists(ring))

    def test_a_ring_of_somebody_else_is_not(self):
        ring = self.ring(self.trace("rank-00000-1"), STRANGER)
        self.assertEqual(self.collect(), "no ring to collect: every process here ended by itself\n")
        self.assertEqual(os.listdir(self.home), ["rank-00000-1.msgpack.zst"])
        self.assertTrue(os.path.exists(ring))

    def test_nor_one_to_a_trace_that_is_a_link_or_lies_elsewhere(self):
        away = tempfile.mkdtemp(prefix="stormlog-away-")
        self.addCleanup(shutil.rmtree, away)
        kept = [t.write(os.path.join(away, "rank-00000-%d.msgpack.zst" % i), t.header()) for i in range(2)]
        link = os.path.join(self.home, "rank-00000-5.msgpack.zst")
        os.symlink(kept[0], link)
        rings = [self.ring(link, 0), self.ring(kept[1], 0), self.ring(os.path.join(self.home, "..", os.path.basename(away), "rank-00000-1.msgpack.zst"), 0)]
        self.assertEqual(self.collect(), "no ring to collect: every process here ended by itself\n")
        self.assertEqual([os.path.exists(ring) for ring in rings], [True] * 3)
        self.assertEqual(len(os.listdir(away)), 2)

    def test_what_has_no_trace_may_be_cleared_where_it_is_the_folders_owners(self):
        gone = os.path.join(self.home, "rank-00000-7.msgpack.zst")
        mine, other = self.ring(gone), self.ring(gone, STRANGER)
        self.assertEqual(self.collect("--clear"), "0 brought home, 1 without a trace cleared, 0 still running\n")
        self.assertEqual((os.path.exists(mine), os.path.exists(other)), (False, True))

    def test_what_has_no_trace_is_kept_until_the_trace_is_back_or_it_is_to_be_cleared(self):
        trace = self.trace("rank-00000-7")
        ring = self.ring(trace, maps=t.record(msgpack.packb({"def": "text", "id": 1, "text": "only here"})))
        os.rename(trace, trace + ".away")
        done = subprocess.run([ANALYZE, "collect", self.home], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (3, "0 brought home, 0 without a trace cleared, 0 still running\n1 without a trace kept\n"), done.stderr)
        self.assertIn("%s is kept: its trace %s is not there" % (ring, trace), done.stderr)
        self.assertIn("move the trace back and collect again, or remove it with --clear", done.stderr)
        counts = json.loads(self.collect("--json", code=3))
        self.assertEqual((counts["cleared"], counts["kept"], os.path.exists(ring)), (0, 1, True))
        os.rename(trace + ".away", trace)
        self.assertEqual(self.collect(), "1 brought home, 0 without a trace cleared, 0 still running\n")
        with open(trace.replace(".msgpack.zst", ".ring"), "rb") as file:
            self.assertIn(b"only here", file.read())
        other = self.ring(os.path.join(self.home, "rank-00000-8.msgpack.zst"))
        self.assertEqual(self.collect(code=3), "0 brought home, 0 without a trace cleared, 0 still running\n1 without a trace kept\n", "it says that the process was killed")
        self.assertEqual(self.collect("--clear"), "0 brought home, 1 without a trace cleared, 0 still running\n")
        self.assertFalse(os.path.exists(other))

    def test_what_is_no_ring_is_left(self):
        trace = self.trace("rank-00000-1")
        secret = t.write(os.path.join(self.home, "secret"), t.ring(trace))
        link, fifo, text, cut = (self.shared() for _ in range(4))
        os.symlink(secret, link)
        os.mkfifo(fifo)
        t.write(text, b"no ring")
        t.write(cut, t.ring(trace)[:300])
        self.assertEqual(self.collect(), "no ring to collect: every process here ended by itself\n")
        self.assertEqual([os.path.lexists(path) for path in self.made], [True] * 4)
        self.assertEqual(sorted(os.listdir(self.home)), ["rank-00000-1.msgpack.zst", "secret"])

    def limited(self, most):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        return limit

    def test_holes_stay_holes_and_a_ring_has_a_size(self):
        ring = self.ring(self.trace("rank-00000-1"))
        with open(ring, "rb") as file:
            head = file.read()
        os.truncate(ring, 3 << 40)
        done = subprocess.run([ANALYZE, "collect", self.home], capture_output=True, text=True, timeout=60, preexec_fn=self.limited(1 << 30))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        home = os.path.join(self.home, "rank-00000-1.ring")
        found = os.stat(home)
        self.assertEqual((found.st_size, found.st_mode & 0o777), ((256 << 10) + (256 << 20), 0o600))
        self.assertLess(found.st_blocks * 512, 4 << 20)
        with open(home, "rb") as file:
            self.assertEqual(file.read(len(head)), head)
        self.assertFalse(os.path.exists(ring))

    def test_a_pack_has_no_more_of_a_ring(self):
        trace = self.trace("rank-00000-1")
        t.write(trace.replace(".msgpack.zst", ".ring"), t.ring(trace))
        os.truncate(trace.replace(".msgpack.zst", ".ring"), 1 << 30)
        pack = os.path.join(self.home, "x.stormlog")
        subprocess.run([ANALYZE, "pack", "-o", pack, trace], check=True, capture_output=True, timeout=60)
        with open(pack, "rb") as file:
            members = zstandard.ZstdDecompressor().stream_reader(file.read()[16:])
        name = members.read(struct.unpack("<I", members.read(4))[0])
        self.assertEqual((name, struct.unpack("<Q", members.read(8))[0]), (b"rank-00000-1.ring", (256 << 10) + (256 << 20)))

    def test_a_full_disk_leaves_the_ring_where_it_is(self):
        ring = self.ring(self.trace("rank-00000-1"))
        done = subprocess.run([ANALYZE, "collect", self.home], capture_output=True, text=True, timeout=60, preexec_fn=self.limited(100))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("could not be brought", done.stderr)
        self.assertEqual(os.listdir(self.home), ["rank-00000-1.msgpack.zst"])
        self.assertTrue(os.path.exists(ring))

    def test_a_signal_leaves_nothing_unfinished(self):
        ring = self.ring(self.trace("rank-00000-1"))
        with open(ring, "r+b") as file:
            file.seek(256 << 10)
            for _ in range(240):
                file.write(os.urandom(1 << 10) * 1024)
        process = subprocess.Popen([ANALYZE, "collect", self.home], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while len(os.listdir(self.home)) == 1 and process.poll() is None:
            pass
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (0, -signal.SIGTERM))
        self.assertIn(sorted(os.listdir(self.home)), (["rank-00000-1.msgpack.zst"], ["rank-00000-1.msgpack.zst", "rank-00000-1.ring"]))
        self.collect()
        self.assertTrue(os.path.exists(os.path.join(self.home, "rank-00000-1.ring")))

    def test_nothing_waits_for_a_fifo_in_a_rings_place(self):
        ring = self.ring(self.trace("rank-00000-1"))
        os.mkfifo(os.path.join(self.home, "rank-00000-1.ring"))
        self.collect(code=4)
        self.assertTrue(os.path.exists(ring))

    def node(self, rank, host):
        """Write the trace of a rank on this host, which holds rank + 1 MiB."""
        path = os.path.join(self.home, "rank-%05d-%d.msgpack.zst" % (rank, 100 + rank))
        block = t.Thread().events(1, api=t.MALLOC, kind=t.KIND["device"], address=0x1000, bytes=rank + 1 << 20)
        return t.write(path, t.header(host=host, rank=rank, pid=100 + rank, started_ns=t.UNIX0 + rank), block, t.footer())

    def asked_for(self, path):
        done = subprocess.run([ANALYZE, "--json", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {process["rank"]: [kind["allocated_bytes"] for kind in process["memory"]] for process in json.loads(done.stdout)["processes"]}

    def test_a_file_for_each_node(self):
        target = tempfile.mkdtemp(prefix="stormlog-nodes-")
        self.addCleanup(shutil.rmtree, target)
        here = os.uname().nodename
        for rank, host in enumerate((here, here, "other-node")):
            self.node(rank, host)
        self.assertIn("2 traces in %s/%s.stormlog\n" % (target, here), self.collect("-o", target + "/%h.stormlog"))
        self.assertEqual(self.asked_for(target), {0: [1 << 20], 1: [2 << 20]})
        there = ["unshare", "-u", "sh", "-c", 'hostname other-node && exec "$@"', "-"]
        self.assertIn("1 traces in %s/other-node.stormlog\n" % target, self.collect("-o", target + "/%h.stormlog", before=there))
        self.assertEqual(sorted(os.listdir(target)), sorted([here + ".stormlog", "other-node.stormlog"]))
        self.assertEqual(self.asked_for(target), {0: [1 << 20], 1: [2 << 20], 2: [3 << 20]})
        self.assertEqual(self.asked_for(target), self.asked_for(self.home))

    def test_many_packs_and_no_room_to_unpack_them(self):
        target = tempfile.mkdtemp(prefix="stormlog-nodes-")
        self.addCleanup(shutil.rmtree, target)
        for rank in range(70):
            path = self.node(rank, "h")
            with open(path, "rb") as file:
                member, name = file.read(), os.path.basename(path).encode()
            members = struct.pack("<I", len(name)) + name + struct.pack("<Q", len(member)) + member + struct.pack("<I", 0)
            t.write("%s/%d.stormlog" % (target, rank), b"stormlog.pack\n\1\0" + zstandard.compress(members))
        self.assertEqual(self.asked_for(target), {rank: [rank + 1 << 20] for rank in range(70)})

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        done = subprocess.run([ANALYZE, target, "--json"], capture_output=True, text=True, timeout=60, preexec_fn=small_files, env={**os.environ, "TMPDIR": self.home})
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("0.stormlog: it cannot be unpacked: File too large; TMPDIR=FOLDER names another folder for it", done.stderr)
        self.assertFalse([name for name in os.listdir(self.home) if name.startswith("stormlog-pack")])

    def test_a_living_process_is_not_packed(self):
        path = self.node(0, os.uname().nodename)
        ring = path.replace(".msgpack.zst", ".ring")
        t.write(ring, t.ring(path))
        with open(ring, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            said = self.collect("-o", self.home + "/all.stormlog")
        self.assertIn("was not made", said)
        self.assertFalse(os.path.exists(self.home + "/all.stormlog"))
        self.collect("-o", self.home + "/%s.stormlog", code=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
