#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_keep.py STORMLOG_SERVER STORMLOG_ANALYZE page|plain: which runs a store removes and which it keeps; a backup is complete."""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import runs
from served import Server, make_pack, name_of, wait_for

PROGRAM, ANALYZE = map(os.path.abspath, sys.argv[1:3])
PAGE = sys.argv[3:4] == ["page"]


class Keep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-keep-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = Server(PROGRAM, os.path.join(self.folder, "store")).start()
        self.addCleanup(lambda: self.server.kill())
        self.packs = {}
        for n in range(8):
            self.send(n, "a" if n % 2 else "b")
        wait_for(lambda: self.count() == 8)

    def send(self, n, project):
        pack = runs.record(ANALYZE, self.folder, n, [10 + n], second=60 * n, metadata={"project": project})
        self.packs[n] = name_of(pack)
        self.assertEqual(self.server.put(pack)[0], 201)

    def all(self):
        return json.loads(self.server.get("/api/v1/runs")[2])["runs"]

    def count(self):
        return len(self.all())

    def restart(self, *options, without_pages=False):
        self.server.kill()
        if without_pages:  # moved in one step: a child that makes pages may still run
            os.rename(os.path.join(self.server.store, "pages"), os.path.join(self.folder, "gone"))
        self.server.options = options
        self.server.start()

    def kept(self, wanted):
        """Waits until the runs, the packs and the pages are exactly those of `wanted`."""
        wait_for(lambda: self.count() == len(wanted))
        names = {self.packs[n] for n in wanted}
        wait_for(lambda: set(self.server.packs()) == names)
        self.assertEqual({r["run"]["identity"] for r in self.all()}, names)
        wait_for(lambda: {name for at, folders, _ in os.walk(os.path.join(self.server.store, "pages")) for name in folders if len(name) == 64} == names)

    def test_nothing_goes_unless_somebody_says_so(self):
        self.restart()
        time.sleep(0.5)
        self.kept(range(8))

    def test_the_newest_of_each_project_and_the_pinned_stay(self):
        number, = [r["number"] for r in self.all() if r["run"]["identity"] == self.packs[0]]
        writer = self.server.token("pin", "--write")
        self.assertEqual(self.server.ask("POST", f"/runs/{number}/pin", body="", token=writer)[0], 303)
        self.restart("--keep-count", "2")
        self.kept([0, 4, 6, 5, 7])

    @unittest.skipUnless(PAGE, "built without the interactive page")
    def test_comparisons_are_few_and_go_with_their_runs(self):
        folder = os.path.join(self.server.store, "pages", "compare")
        for n in range(100):  # as if an earlier server had left them
            with open(os.path.join(folder, f"{self.packs[0]}-{n:064x}.page-2.msgpack.gz"), "w"):
                pass
        numbers = {r["run"]["identity"]: r["number"] for r in self.all()}
        for a, b in ((6, 7), (0, 7)):
            path = f"/api/v1/compare?before={numbers[self.packs[a]]}&after={numbers[self.packs[b]]}"
            wait_for(lambda: self.server.get(path)[0] == 200)
        self.assertEqual(len(os.listdir(folder)), 32)
        self.restart("--keep-count", "1")
        self.kept([6, 7])
        wait_for(lambda: [name[:129] for name in os.listdir(folder)] == [f"{self.packs[6]}-{self.packs[7]}"])

    def test_age_is_that_of_the_coming_and_what_was_no_run_goes_too(self):
        noise = make_pack(1)
        self.server.put(noise)
        wait_for(lambda: self.server.get("/packs/" + name_of(noise))[0] == 422)
        old = time.time() - 10 * 86400
        for name in (self.packs[2], self.packs[7], name_of(noise)):
            os.utime(self.server.packs()[name], (old, old))
        self.restart("--keep-age", "9")
        self.kept([0, 1, 3, 4, 5, 6])

    def age(self):
        """Each pack is as if it had come ten days ago."""
        for path in self.server.packs().values():
            os.utime(path, (time.time() - 10 * 86400,) * 2)

    def test_without_a_catalogue_runs_are_learned_before_any_is_let_go(self):
        self.send_a_change()
        self.server.kill(signal.SIGTERM)
        os.unlink(os.path.join(self.server.store, "catalogue.sqlite"))
        self.age()
        self.server.options = "--keep-age", "9"
        self.server.start()
        self.kept([28, 29, 30])

    def test_a_catalogue_that_cannot_be_read_lets_no_pack_go(self):
        self.server.kill(signal.SIGTERM)
        path = os.path.join(self.server.store, "catalogue.sqlite")
        with contextlib.closing(sqlite3.connect(path)) as database:
            pages = database.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'runs'").fetchall()
        with open(path, "r+b") as file:
            for page, in pages:
                file.seek((page - 1) * 4096)
                file.write(b"garbage!" * 512)
        self.age()
        self.server.options = "--keep-age", "9"
        self.assertRaisesRegex(RuntimeError, "the catalogue is damaged", self.server.start)
        self.assertEqual(self.server.process.returncode, 4)
        self.assertEqual(set(self.server.packs()), set(self.packs.values()))

    def test_a_catalogue_that_is_none_is_said_before_anything_is_served(self):
        self.server.kill(signal.SIGTERM)
        path = os.path.join(self.server.store, "catalogue.sqlite")
        os.rename(path, path + ".mine")
        pathlib.Path(path).write_bytes(b"garbage!" * 512)
        self.assertRaisesRegex(RuntimeError, "no catalogue of stormlog", self.server.start)
        self.assertEqual(self.server.process.returncode, 4)
        os.rename(path + ".mine", path)
        self.server.start()
        self.kept(range(8))

    def test_a_run_that_a_locked_catalogue_did_not_take_is_taken_later(self):
        with contextlib.closing(sqlite3.connect(os.path.join(self.server.store, "catalogue.sqlite"), isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            self.send(8, "a")
            wait_for(lambda: "pack " + self.packs[8] + ": another process writes into the catalogue" in self.server.said()
                     or self.server.get("/packs/" + self.packs[8])[0] == 422, 120)
        wait_for(lambda: self.server.get("/packs/" + self.packs[8])[0] == 302, 120)
        self.kept(range(9))

    def test_a_run_that_a_locked_catalogue_did_not_take_is_known_before_any_is_let_go(self):
        self.server.kill(signal.SIGTERM)
        path = os.path.join(self.server.store, "catalogue.sqlite")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("DELETE FROM runs WHERE identity = ?", (self.packs[7],))
        self.server.options = "--keep-count", "3"
        self.server.start()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            wait_for(lambda: os.path.exists(os.path.join(self.server.store, "work", "now")) or self.packs[7] in {r["run"]["identity"] for r in self.all()})  # its child runs
            database.execute("BEGIN IMMEDIATE")
            if database.execute("SELECT count(*) FROM runs WHERE identity = ?", (self.packs[7],)).fetchone()[0]:
                self.skipTest("the run was taken before the catalogue was locked")
            wait_for(lambda: "pack " + self.packs[7] + ": another process writes" in self.server.said(), 120)
        wait_for(lambda: "was let go" in self.server.said(), 120)
        self.assertIn(self.packs[7], {r["run"]["identity"] for r in self.all()})
        self.kept([2, 4, 6, 3, 5, 7])

    def test_a_locked_catalogue_keeps_no_server_from_starting(self):
        self.server.kill(signal.SIGTERM)
        with contextlib.closing(sqlite3.connect(os.path.join(self.server.store, "catalogue.sqlite"), isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            self.server.start()
        self.assertIn("another process writes into the catalogue", self.server.said())
        self.kept(range(8))

    def test_a_catalogue_that_may_not_be_read_or_written_ends_the_server(self):
        self.server.kill(signal.SIGTERM)
        user = os.getuid() or 12345
        os.chmod(self.folder, 0o755)
        for at, folders, files in os.walk(self.server.store):
            for path in [at] + [os.path.join(at, name) for name in files]:
                os.chown(path, user, -1)
        for path, mode in (os.path.join(self.server.store, "catalogue.sqlite"), 0), (self.server.store, 0o500):
            before = os.stat(path).st_mode & 0o777
            os.chmod(path, mode)
            done = subprocess.run([PROGRAM, "--store", self.server.store, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=60, user=user)
            os.chmod(path, before)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (4, 1), done.stderr)
            self.assertIn("catalogue.sqlite: ", done.stderr)

    def sizes(self):
        """Bytes of each run: its pack and its pages."""
        def under(folder):
            return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
        return {n: os.path.getsize(self.server.packs()[name]) + under(os.path.join(self.server.store, "pages", name[:2], name))
                for n, name in self.packs.items()}

    def test_size_is_of_a_project(self):
        sizes = self.sizes()
        self.restart("--keep-size", str(max(sizes[7] + sizes[5], sizes[6] + sizes[4]) + 1))
        self.kept([5, 7, 4, 6])

    def test_a_run_too_many_for_its_project_is_refused_and_others_are_not(self):
        sizes = self.sizes()
        self.restart("--project-quota", str(sum(sizes[n] for n in (1, 3, 5, 7)) + 10))
        self.kept(range(8))
        pack = runs.record(ANALYZE, self.folder, 9, [19], second=600, metadata={"project": "a"})
        self.assertEqual(self.server.put(pack)[0], 201)  # the server does not know its project before it has read it
        wait_for(lambda: self.server.get("/packs/" + name_of(pack))[0] == 507)
        self.kept(range(8))
        status, _, body = self.server.put(pack)
        self.assertEqual(status, 507)
        self.assertIn(b"--project-quota", body)
        self.send(10, "c")
        self.kept([*range(8), 10])
        self.restart("--project-quota", "1")  # runs that were accepted stay and can be read
        self.kept([*range(8), 10])
        self.restart("--project-quota", "1", without_pages=True)
        pages = [os.path.join(self.server.store, "pages", name[:2], name, "report.json") for name in self.packs.values()]
        wait_for(lambda: all(map(os.path.exists, pages)))
        self.kept([*range(8), 10])

    def test_an_upload_opens_no_pack_of_another_run(self):
        libc = ctypes.CDLL(None)
        self.restart("--project-quota", "1G")
        self.send(8, "a")  # what all runs take is read once
        wait_for(lambda: self.count() == 9)
        opened = libc.inotify_init1(os.O_NONBLOCK)
        if opened < 0:
            self.skipTest("no inotify here")
        self.addCleanup(os.close, opened)
        for folder in {os.path.dirname(path) for path in self.server.packs().values()}:
            libc.inotify_add_watch(opened, os.fsencode(folder), 0x20)  # IN_OPEN
        self.send(9, "a")
        wait_for(lambda: self.count() == 10)
        with contextlib.suppress(BlockingIOError):
            seen = os.read(opened, 1 << 16)
            self.assertEqual([n for n in range(8) if self.packs[n].encode() in seen], [])  # 8 is opened once more when its job ends

    def test_pages_count_against_the_quota(self):
        def used():
            return sum(os.path.getsize(os.path.join(at, name)) for part in ("packs", "pages")
                       for at, _, names in os.walk(os.path.join(self.server.store, part)) for name in names)
        pack = runs.record(ANALYZE, self.folder, 9, [19], second=600, metadata={"project": "a"})
        self.restart("--quota", str(used() + len(pack) - 1))
        self.assertEqual(self.server.put(pack)[0], 507)
        self.restart("--quota", str(used() + len(pack) + 100))
        self.assertEqual(self.server.put(pack)[0], 201)
        wait_for(lambda: self.server.get("/packs/" + name_of(pack))[0] == 422)
        self.assertIn(b"--quota", self.server.get("/packs/" + name_of(pack))[2])
        self.assertEqual(os.listdir(os.path.join(self.server.store, "pages", name_of(pack)[:2], name_of(pack))), ["failed"])
        self.assertEqual(self.count(), 8)
        self.restart()  # there is room again
        wait_for(lambda: self.count() == 9)
        self.assertIn("report.json", os.listdir(os.path.join(self.server.store, "pages", name_of(pack)[:2], name_of(pack))))

    def send_a_change(self):
        """Twenty runs of a project whose peak changes at number 29."""
        for n in range(20, 40):
            pack = runs.record(ANALYZE, self.folder, n, [100 if n < 29 else 150], second=60 * n, metadata={"project": "c"})
            self.packs[n] = name_of(pack)
            self.assertEqual(self.server.put(pack)[0], 201)
        wait_for(lambda: self.count() == 28)

    def test_runs_on_either_side_of_a_change_stay(self):
        self.send_a_change()
        self.restart("--keep-count", "3")
        self.kept([28, 29, 30, 37, 38, 39, 2, 4, 6, 3, 5, 7])

    def test_a_backup_is_whole_and_opens(self):
        copy = os.path.join(self.folder, "copied")
        os.mkdir(copy)
        subprocess.run([PROGRAM, "--store", self.server.store, "backup", os.path.join(copy, "catalogue.sqlite")], check=True)
        for name in ("packs", "pages"):
            shutil.copytree(os.path.join(self.server.store, name), os.path.join(copy, name))
        nowhere = os.path.join(self.server.store, "no-such-store")
        done = subprocess.run([PROGRAM, "--store", nowhere, "backup", os.path.join(copy, "none.sqlite")], capture_output=True, text=True)
        self.assertEqual((done.returncode, os.path.exists(nowhere)), (4, False))
        self.assertIn("No such file or directory", done.stderr)
        os.mkdir(nowhere)  # a folder that is no store
        done = subprocess.run([PROGRAM, "--store", nowhere, "backup", os.path.join(copy, "none.sqlite")], capture_output=True, text=True)
        self.assertEqual((done.returncode, os.listdir(nowhere), os.path.exists(os.path.join(copy, "none.sqlite"))), (4, [], False))
        self.assertIn("No such file or directory", done.stderr)
        self.server.kill()
        self.server = Server(PROGRAM, copy).start()
        self.assertEqual({r["run"]["identity"] for r in self.all()}, set(self.packs.values()))

    def test_who_looks_into_the_catalogue_from_outside_is_not_alone_with_it(self):
        path = os.path.join(self.server.store, "catalogue.sqlite")
        before = os.stat(path + "-wal").st_ino
        with contextlib.closing(sqlite3.connect(path)) as database:
            self.assertEqual(database.execute("SELECT count(*) FROM runs").fetchone(), (8,))
        self.assertEqual(os.stat(path + "-wal").st_ino, before, "the last one to close a database removes the file in which the others write")

    def test_a_backup_replaces_an_older_one_and_nothing_else(self):
        folder = os.path.join(self.folder, "backups")
        os.mkdir(folder)
        older, foreign, link, text = (os.path.join(folder, name) for name in ("older", "foreign", "link", "text"))

        def back_up(path):
            return subprocess.run([PROGRAM, "--store", self.server.store, "backup", path], capture_output=True, text=True).returncode
        self.assertEqual([back_up(older), back_up(older)], [0, 0])
        catalogue = os.path.join(folder, "mine")
        shutil.copy(older, catalogue)
        with contextlib.closing(sqlite3.connect(catalogue)) as database:
            database.execute("PRAGMA journal_mode=WAL")  # as who opens it as a catalogue does
            self.assertEqual(back_up(catalogue), 4, "who has it open may yet write")
            database.execute("INSERT INTO notes(run, at_ns, written_ns, author, text) VALUES(1, 1, 1, 'me', 'written into the old one')")
            database.commit()
            self.assertEqual(database.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        at_rest = os.path.join(folder, "catalogue.sqlite")
        shutil.copy(older, at_rest)
        with contextlib.closing(sqlite3.connect(foreign)) as database:
            database.execute("CREATE TABLE theirs(x)")
        os.symlink("foreign", link)
        with open(text, "w") as file:
            file.write("theirs")

        def content():
            return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}
        before = content()
        self.assertEqual([back_up(path) for path in (catalogue, foreign, link, text, at_rest, "-", "/dev/null", folder, os.path.join(self.server.store, "catalogue.sqlite"))], [4] * 9)
        self.assertEqual(content(), before)
        self.assertTrue(os.path.islink(link))

    def test_a_run_that_goes_while_its_pages_are_made_again_leaves_nothing(self):
        self.restart("--keep-count", "2", without_pages=True)
        self.send(9, "c")  # the server reads it after all others
        wait_for(lambda: self.packs[9] in {r["run"]["identity"] for r in self.all()})
        self.kept([4, 6, 5, 7, 9])
        self.assertNotIn("unpacked", self.server.said())

    def test_pages_that_somebody_removed_are_made_again(self):
        self.restart(without_pages=True)
        number = self.all()[0]["number"]
        wait_for(lambda: self.server.get(f"/api/v1/runs/{number}/report")[0] == 200)


unittest.main(argv=sys.argv[:1] + sys.argv[5:], verbosity=2)
