#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Where several users may write, one of them cannot put files into another's run: neither by a ring of a name that a trace tells, nor by a file
beside its own.  Whole folders and named files of others open."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import traces as t  # exits 77 where it cannot run

ANALYZE = os.path.abspath(sys.argv[1])
READER, STRANGER, COLLEAGUE = 0, 65534, 12001
SECRET = "the stranger's note"


@unittest.skipUnless(os.geteuid() == 0, "only root makes files of others")
class Owners(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-owners-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        self.made = []

    def own(self, path, owner):
        os.chown(path, owner, owner, follow_symlinks=False)
        return path

    def at(self, name):
        return os.path.join(self.folder, name)

    def trace(self, rank, owner, folder="t", end=b"", **fields):
        path = self.at("%s/rank-%05d-%d.msgpack.zst" % (folder, rank, 100 + rank))
        fields.setdefault("ring", "x.ring")
        t.write(path, t.header(rank=rank, pid=100 + rank, **fields), t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=[4096], bytes=4096), end)
        os.chmod(self.at(folder), 0o1777)
        return self.own(path, owner)

    def ring(self, path, owner):
        """Of the process of rank 0, with a note."""
        t.write(path, t.ring(path, t.record(t.packed({"def": "note", "text": SECRET}))))
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        return self.own(path, owner)

    def analyze(self, *arguments, user=0):
        done = subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, timeout=60, cwd=self.folder, **({"user": user, "group": user, "extra_groups": []} if user else {}),
                              env=dict(os.environ, TMPDIR="/var/tmp"))
        return done

    def report(self, *paths, user=0):
        done = self.analyze("report", "--json", *paths, user=user)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def test_a_ring_that_a_trace_names_elsewhere_is_of_the_traces_owner(self):
        for trace, ring, read in (READER, STRANGER, False), (READER, COLLEAGUE, False), (COLLEAGUE, READER, False), (READER, READER, True), (COLLEAGUE, COLLEAGUE, True):
            with self.subTest(trace=trace, ring=ring):
                path = self.ring("/dev/shm/stormlog-owners-%d.ring" % os.getpid(), ring)
                told, said = self.report(self.trace(0, trace, ring=path))
                self.assertEqual(SECRET in json.dumps(told), read)
                self.assertEqual("its ring %s is out of reach" % path in said, not read)

    def test_the_name_of_a_folder_is_no_pattern(self):
        for name in "run[1]", "run1":
            path = self.trace(0, READER, folder=name, run_id=name, started_ns=t.UNIX0 + len(name))
            t.write(path.replace(".msgpack", ".000002.msgpack"), t.header(rank=0, pid=100, file=2, run_id=name, started_ns=t.UNIX0 + len(name)), t.footer())
            told, said = self.report("--run", "all", path)
            self.assertEqual(([process["status"] for process in told["processes"]], said), (["completed"], ""))

    def test_a_strangers_file_in_a_folder_is_named_and_not_read(self):
        self.trace(0, READER)
        stranger = self.trace(1, STRANGER)
        for verb in ["report", "--json"], ["dump"], ["table"], ["oom"], ["runs", "--catalogue", self.at("c")], ["monitor", "--duration", "0.1"], ["pack", "-o", self.at("p.stormlog")]:
            done = self.analyze(*verb, self.at("t"))
            self.assertEqual((done.returncode, done.stderr.count(stranger)), (3 if verb[0] == "pack" else 0, 1), (verb, done.stderr))
            self.assertIn(stranger + ": is not read, because it belongs to another user than you, root and its folder's owner; name it to read it", done.stderr)
        self.assertIn("p.stormlog may not be the whole run", done.stderr)
        self.assertEqual(self.analyze("report", "--json", self.at("p.stormlog")).returncode, 0, "it is written")
        self.assertEqual(self.analyze("summarize", "-q", "-o", self.at("s.summary"), self.at("t")).returncode, 3)
        self.assertFalse(os.path.exists(self.at("s.summary")))
        told, _ = self.report(self.at("t"))
        self.assertEqual([process["rank"] for process in told["processes"]], [0])
        self.assertEqual([process["rank"] for process in self.report(stranger)[0]["processes"]], [1], "a file that is named is read")

    def test_one_note_names_them_all(self):
        self.trace(0, READER)
        for rank in 1, 2, 3:
            self.trace(rank, STRANGER)
        told, said = self.report(self.at("t"))
        self.assertEqual([process["rank"] for process in told["processes"]], [0])
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn("and 2 more are not read", said)

    def test_a_strangers_ring_segment_pack_summary_and_link_are_not_read_either(self):
        first = self.trace(0, READER)
        stem = first[:-len(".msgpack.zst")]
        self.ring(stem + ".ring", STRANGER)
        self.own(shutil.copy(first, stem + ".000002.msgpack.zst"), STRANGER)
        self.trace(5, READER, folder="other")
        for verb, name in ("pack", "p.stormlog"), ("summarize", "p.summary"):
            self.assertEqual(self.analyze(verb, "-o", self.at("t/" + name), self.at("other")).returncode, 0)
            self.own(self.at("t/" + name), STRANGER)
        os.symlink(self.at("other/rank-00005-105.msgpack.zst"), self.at("t/a.msgpack.zst"))
        self.own(self.at("t/a.msgpack.zst"), STRANGER)
        for path in self.at("t"), first:  # what lies beside a named file is found, not named
            told, said = self.report(path)
            self.assertNotIn(SECRET, json.dumps(told))
            self.assertEqual([process["rank"] for process in told["processes"]], [0])
            self.assertIn("more are not read", said)

    def test_a_link_of_a_stranger_hides_nothing(self):
        real = self.trace(0, READER)
        os.symlink(real, self.at("t/a.msgpack.zst"))
        self.own(self.at("t/a.msgpack.zst"), STRANGER)
        self.assertEqual(len(self.report(self.at("t"))[0]["processes"]), 1)

    def test_a_whole_folder_of_a_colleague_opens_and_roots_files_too(self):
        self.trace(0, COLLEAGUE)
        self.trace(1, 0)
        self.trace(2, STRANGER)
        self.own(self.at("t"), COLLEAGUE)
        for user in 0, COLLEAGUE:
            told, said = self.report(self.at("t"), user=user)
            self.assertEqual([process["rank"] for process in told["processes"]], [0, 1], user)
        told, said = self.report(self.at("t"), user=STRANGER)
        self.assertEqual(([process["rank"] for process in told["processes"]], said), ([0, 1, 2], ""))

    def test_a_folder_of_strangers_files_alone_says_why_nothing_is_read(self):
        self.trace(0, STRANGER)
        done = self.analyze("report", "--json", self.at("t"))
        self.assertEqual(done.returncode, 3)
        self.assertIn("another user than you, root and its folder's owner", done.stderr)

    def test_a_strangers_folder_and_a_link_to_one_are_passed_over_where_he_may_make_them(self):
        self.trace(0, READER)
        self.own(self.at("t"), READER)
        os.chmod(self.at("t"), 0o1777)
        for name in "sub", "link":
            self.trace(1, STRANGER, folder="theirs" if name == "link" else "t/sub")
            self.own(self.at("theirs" if name == "link" else "t/sub"), STRANGER)
            if name == "link":
                os.symlink(self.at("theirs"), self.at("t/link"))
                self.own(self.at("t/link"), STRANGER)
            told, said = self.report(self.at("t"))
            self.assertEqual([process["rank"] for process in told["processes"]], [0], name)
            self.assertIn("they belong to other users" if name == "link" else "another user than you, root and its folder's owner", said)

    def test_settings_that_a_stranger_put_into_a_shared_folder_are_refused_until_they_are_named(self):
        self.trace(0, READER)
        os.makedirs(self.at("t/.git"))
        with open(self.at("t/.stormlog.ini"), "w") as file:
            file.write("[check]\nmax-peak = 1B\n")
        for owner, mode, code, says in (STRANGER, 0o1777, 2, "--config"), (STRANGER, 0o755, 1, ""), (READER, 0o1777, 1, ""):
            self.own(self.at("t/.stormlog.ini"), owner)
            os.chmod(self.at("t"), mode)
            for verb in ("check", "watch") if code == 2 else ("check",):
                done = subprocess.run([ANALYZE, verb, "."], capture_output=True, text=True, timeout=60, cwd=self.at("t"))
                self.assertEqual((done.returncode, says in done.stderr), (code, True), (owner, mode, verb, done.stderr))

    def test_a_folder_that_nobody_else_may_write_to_is_read_whole(self):
        self.trace(0, STRANGER)
        os.chmod(self.at("t"), 0o755)
        told, said = self.report(self.at("t"))
        self.assertEqual((len(told["processes"]), said), (1, ""))

    def test_folders_that_may_not_be_listed_are_passed_over_with_one_note(self):
        self.trace(0, COLLEAGUE, end=t.footer())
        os.mkdir(self.at("s"))
        self.own(self.at("s"), COLLEAGUE)
        for names, said in (["lost+found"], "lost+found: may not be listed by you and is passed over"), (["other", "third"], "and 1 more folders may not be listed by you"):
            for name in names:
                os.mkdir(self.at("t/" + name), mode=0o700)
            done = self.analyze("report", "--json", self.at("t"), user=COLLEAGUE)
            told = json.loads(done.stdout)
            self.assertEqual((done.returncode, done.stderr.count("\n"), "incomplete" in self.analyze(self.at("t"), user=COLLEAGUE).stdout, [process["rank"] for process in told["processes"]]),
                             (0, len(names), len(names) == 2, [0]), done.stderr)
            self.assertIn(said, done.stderr)
            done = self.analyze("check", "--strict", "--max-peak", "1G", self.at("t"), user=COLLEAGUE)
            self.assertEqual((done.returncode, "ok " in done.stdout, "incomplete" in done.stdout), (0, True, False) if len(names) == 1 else (1, False, True), done.stdout)
            for paths in ([self.at("t") + "/"], [self.at("whole"), self.at("t")]) if len(names) == 2 else ():
                self.trace(0, COLLEAGUE, folder="whole", end=t.footer())
                done = self.analyze("check", "--strict", "--max-peak", "1G", *paths, user=COLLEAGUE)
                self.assertRegex(done.stdout, "(?m)incomplete +(other|third): folders that may not be listed", paths)
            done = self.analyze("summarize", "-q", "-o", self.at("s/%d.summary" % len(names)), self.at("t"), user=COLLEAGUE)
            self.assertEqual(done.returncode, 0 if len(names) == 1 else 3, done.stderr)

    def test_a_closed_pack_and_what_lies_behind_a_closed_folder_leave_a_run_incomplete(self):
        self.trace(0, COLLEAGUE, end=t.footer())
        os.chmod(self.at("t"), 0o755)
        self.trace(1, COLLEAGUE, folder="closed/traces", end=t.footer())
        self.assertEqual(self.analyze("check", "--strict", "--max-peak", "1G", self.at("t"), user=COLLEAGUE).returncode, 0)
        pack, half, link = self.at("t/p.stormlog"), self.at("t/half"), self.at("t/link")

        def closed_pack():
            os.chmod(t.write(pack, b"of the colleague's group alone"), 0)

        def half_open_folder():
            shutil.copytree(self.at("closed"), half)
            os.chmod(half, 0o644)

        def link_through():
            os.chmod(self.at("closed"), 0o600)
            os.symlink(self.at("closed/traces"), link)

        for make, made, named in (closed_pack, pack, "p.stormlog"), (half_open_folder, half, "traces"), (link_through, link, "link"):
            make()
            done = self.analyze("check", "--strict", "--max-peak", "1G", self.at("t"), user=COLLEAGUE)
            self.assertEqual(done.returncode, 1, (made, done.stdout, done.stderr))
            self.assertRegex(done.stdout, "(?m)incomplete +%s: " % named)
            self.assertIn(named + ": ", done.stderr)
            os.chmod(half, 0o755) if made == half else None
            (shutil.rmtree if made == half else os.unlink)(made)

    def test_a_link_that_the_reader_made_is_read(self):
        os.mkdir(self.at("t"))
        os.symlink(self.trace(0, COLLEAGUE, folder="theirs"), self.at("t/rank-00000-100.msgpack.zst"))
        self.assertEqual(len(self.report(self.at("t"))[0]["processes"]), 1)

    def recording(self, folder, owner, trace=b"", **fields):
        """A living process of this user that has a ring mapped, which names that trace; its own trace is beside it."""
        name = os.path.join(folder, "rank-00000-100.ring")
        os.makedirs(folder, mode=0o755, exist_ok=True)
        self.own(folder, owner)
        content = bytearray(t.ring(name, t.record(t.packed({"def": "note", "text": SECRET})), **fields))
        content[128:128 + len(trace)] = trace
        self.own(t.write(name, bytes(content)), owner)
        self.own(t.write(name.replace(".ring", ".msgpack.zst"), t.header(**fields), t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=[4096], bytes=4096)), owner)
        os.chmod(name, 0o600)
        held = subprocess.Popen([sys.executable, "-c", "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); print(flush=True); sys.stdin.read()", name],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=owner, group=owner)
        self.addCleanup(held.stdout.close)
        self.addCleanup(held.wait)
        self.addCleanup(held.stdin.close)
        held.stdout.readline()

    def sessions_of_the_node(self, run):
        rows = [json.loads(line) for line in self.analyze("monitor", "--format", "ndjson", "--duration", "0.1").stdout.splitlines()]
        return {row["session_id"] for row in rows if run in (row["session_id"] or "")}

    def test_a_ring_of_the_node_leads_to_no_trace_of_another_user(self):
        trace, run = self.trace(0, READER, folder="mine", run_id="mine%d" % os.getpid()), "claims%d" % os.getpid()
        self.recording(self.at("theirs"), STRANGER, trace.encode(), run_id=run)
        self.assertTrue(self.sessions_of_the_node(run), "his own is followed")
        self.assertFalse(self.sessions_of_the_node("mine%d" % os.getpid()))

    def test_rings_of_two_users_that_claim_one_run_are_told_apart(self):
        run = "same%d" % os.getpid()
        self.recording(self.at("theirs"), STRANGER, run_id=run)
        self.recording(self.at("colleagues"), COLLEAGUE, run_id=run)
        told = self.sessions_of_the_node(run)
        self.assertEqual(len(told), 2, told)
        self.assertEqual(len([name for name in told if "(of user %d)" % STRANGER in name or "(of user %d)" % COLLEAGUE in name]), 1, told)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
