#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How a command ends: output that cannot be written is an error, unfinished output is removed, nothing waits for ever, and a trace
that is given twice counts once.
Longer than other files: what is written, killed, torn and given twice are the same few traces and folders."""
import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import traces as t
import verbs

ANALYZE = os.path.abspath(sys.argv[1])
UNSAVED = 4
FORMS = "pytorch-snapshot perfetto pprof collapsed speedscope prometheus sqlite csv ndjson".split()


class Endings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-endings-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.traces = os.path.join(self.folder, "t")
        self.record("rank-00000-100")

    def record(self, name, blocks=3, **fields):
        numbers = list(range(1, blocks + 1))
        return t.write(os.path.join(self.traces, name + ".msgpack.zst"), t.header(**fields), t.Thread().events(
            blocks, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * n for n in numbers], bytes=4096), t.footer())

    def run_it(self, *arguments, **how):
        how.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([ANALYZE, *arguments], stderr=subprocess.PIPE, text=True, timeout=60, cwd=self.folder,
                              env=dict(os.environ, TMPDIR=self.temporary), **how)

    # ---- output that cannot be written

    def test_a_full_disk_under_standard_output(self):
        for verb in (["tree"], ["table"], ["flame"], ["dump"], ["-o", "o"], ["--json"], ["export", "csv"], ["export", "ndjson"],
                     ["export", "prometheus"], ["pack", "-o", "-"], ["check", "--max-peak", "1T"], ["check", "--json", "--max-peak", "1T"]):
            with open("/dev/full", "w") as full:
                done = self.run_it(*verb, self.traces, stdout=full)
            self.assertEqual(done.returncode, UNSAVED, (verb, done.stderr))
            self.assertRegex(done.stderr, "No space left|not all could be written", verb)
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_it("diff", "t", "t", stdout=full).returncode, UNSAVED)
            self.assertEqual(self.run_it("--version", stdout=full).returncode, UNSAVED)
            self.assertEqual(self.run_it("check", "--max-peak", "1", self.traces, stdout=full).returncode, 1, "a limit is a limit")

    def test_no_file_that_is_opened_gets_what_is_printed_to_a_closed_output(self):
        for verb in ("tree", "table", "flame", "dump", "report", "fit"):
            done = self.run_it(verb, self.traces, stdout=None, preexec_fn=lambda: os.close(1))
            self.assertEqual(done.returncode, UNSAVED, (verb, done.stderr))
            self.assertIn("not all could be written", done.stderr, verb)

    def test_a_closed_pipe(self):
        for verb in (["tree"], ["dump"], ["--json"], ["export", "csv"], ["flame"]):
            read, write = os.pipe()
            os.close(read)
            done = self.run_it(*verb, self.traces, stdout=write)
            os.close(write)
            self.assertEqual((done.returncode, done.stderr), (UNSAVED, ""), verb)

    def test_files_that_cannot_be_written_leave_the_old_ones(self):
        verbs = [["check", "--max-peak", "1T", "--junit", "j.xml", "t"], ["check", "--max-peak", "1T", "--sarif", "s.json", "t"],
                 ["check", "--max-peak", "1T", "--metrics", "m.prom", "t"], ["diff", "--html", "d.html", "t", "t"],
                 ["check", "--baseline", "b.json", "--update-baseline", "t"], ["pack", "-o", "x.stormlog", "t"], ["summarize", "-q", "t", "-o", "x.summary"],
                 *(["export", form, "-o", "x." + form, "t"] for form in FORMS)]
        for verb in verbs:
            self.assertEqual(self.run_it(*verb).returncode, 0, verb)
        before = self.contents()
        limit = "ulimit -f 0; exec \"$0\" \"$@\""
        for verb in verbs:
            done = subprocess.run(["bash", "-c", limit, ANALYZE, *verb], capture_output=True, text=True, cwd=self.folder, timeout=60)
            self.assertEqual(done.returncode, UNSAVED, (verb, done.stderr))
        done = subprocess.run(["bash", "-c", limit, ANALYZE, "runs", "-q", "--catalogue", "tmp/c.sqlite", "t"], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, UNSAVED, done.stderr)
        self.assertEqual(len(before), len(verbs))
        self.assertEqual(self.contents(), before)

    def test_a_masked_pack_for_which_tmpdir_is_too_small_is_not_fine(self):
        """The masked trace is larger than its pack, so there is a size of TMPDIR at which only one of the two fits."""
        self.assertEqual(self.run_it("pack", "--redact", "-o", "whole.stormlog", "t").returncode, 0)
        events = self.run_it("dump", "whole.stormlog").stdout.count("\n")
        self.assertGreater(events, 1)
        endings = set()
        for size in range(0, 2 * os.path.getsize(os.path.join(self.folder, "whole.stormlog")), 128):
            done = self.run_it("pack", "--redact", "-o", "x.stormlog", "t", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
            endings.add(done.returncode)
            if done.returncode == 0:
                self.assertEqual(self.run_it("dump", "x.stormlog").stdout.count("\n"), events, size)
        self.assertEqual(endings, {0, UNSAVED})

    def test_a_pack_for_which_tmpdir_is_too_small_has_no_answer(self):
        self.record("rank-00001-101", rank=1, pid=101)
        self.assertEqual(self.run_it("pack", "-o", "p.stormlog", "t").returncode, 0)
        for verb in ["tree"], ["table"], ["dump"], ["report", "-o", "o"], ["export", "csv", "-o", "o.csv"], ["check", "--no-oom"], ["summarize", "-q", "-o", "o.summary"], ["diff", "t"]:
            for size in 0, 100, os.path.getsize(os.path.join(self.traces, "rank-00000-100.msgpack.zst")) - 1:
                done = self.run_it(*verb, "p.stormlog", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
                self.assertEqual((done.returncode, done.stdout), (UNSAVED, ""), (verb, size, done.stderr))
                self.assertIn("p.stormlog: it cannot be unpacked: File too large", done.stderr)
        done = subprocess.run([ANALYZE, "tree", "p.stormlog"], capture_output=True, text=True, cwd=self.folder, timeout=60, env=dict(os.environ, TMPDIR=self.folder + "/none"))
        self.assertEqual((done.returncode, done.stdout), (UNSAVED, ""), done.stderr)
        self.assertEqual((sorted(os.listdir(self.folder)), os.listdir(self.temporary)), (["p.stormlog", "t", "tmp"], []))

    def test_a_pack_without_room_is_said_and_read_the_next_time(self):
        self.assertEqual(self.run_it("pack", "-o", "a.stormlog", "t").returncode, 0)
        self.record("rank-00000-100", 300000, run_id="large")
        self.assertEqual(self.run_it("pack", "-o", "b.stormlog", "t").returncode, 0)
        size = os.path.getsize(os.path.join(self.traces, "rank-00000-100.msgpack.zst")) - 1
        with open(os.path.join(self.folder, "c.stormlog"), "w") as file:
            file.write("not ours")
        os.mkfifo(os.path.join(self.folder, "d.stormlog"))
        for limit, runs in (size, 1), (resource.RLIM_INFINITY, 2):
            done = self.run_it("runs", "-q", "--json", "--catalogue", "tmp/c.sqlite", "b.stormlog", "a.stormlog", "c.stormlog", "d.stormlog",
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            self.assertEqual((done.returncode, len(json.loads(done.stdout)["runs"])), (UNSAVED if runs == 1 else 0, runs), done.stderr)
            self.assertEqual("b.stormlog: it cannot be unpacked: File too large" in done.stderr, runs == 1)
            self.assertIn("c.stormlog: no pack of a run", done.stderr)
            self.assertIn("d.stormlog: Invalid argument", done.stderr)

    def contents(self):
        found = {}
        for name in os.listdir(self.folder):
            if "." in name:
                with open(os.path.join(self.folder, name), "rb") as file:
                    found[name] = file.read()
        return found

    def test_a_pack_of_empty_files_is_not_readable(self):
        members = b"".join(len(n).to_bytes(4, "little") + n + bytes(8) for n in (b"rank-%05d-%d.msgpack.zst" % (i, i) for i in range(3)))
        with open(os.path.join(self.folder, "e.stormlog"), "wb") as file:
            file.write(b"stormlog.pack\n\1\0" + t.zstandard.ZstdCompressor().compress(members + bytes(4)))
        for verb in ["tree"], ["table"], ["flame"], ["report", "-o", "o"], ["check", "--no-oom"], ["export", "csv"]:
            done = self.run_it(*verb, "e.stormlog")
            self.assertEqual(done.returncode, 3, (verb, done.stderr))
            self.assertNotIn("rank -1", done.stderr)

    def test_a_torn_or_foreign_summary_damages_its_own_run_alone(self):
        self.record("rank-00000-200", run_id="other", pid=200)
        self.record("rank-00001-201", run_id="other", pid=201, rank=1)
        self.assertEqual(self.run_it("summarize", "-q", "--run", "other", "-o", "one.summary", "t").returncode, 0)
        one = self.contents()["one.summary"]
        for name in "rank-00000-200", "rank-00001-201":
            os.unlink(os.path.join(self.traces, name + ".msgpack.zst"))
        foreign = b"not ours", t.zstandard.ZstdCompressor().compress(t.packed({"format": "another"}))
        for content in one, one[:-1], one[:len(one) // 2], one[:10], b"", *foreign:
            with open(os.path.join(self.traces, "x.summary"), "wb") as file:
                file.write(content)
            for verb in ["-o", "o", "--run", "run1", "t"], ["-o", "o", "--run", "run1", "t", "t"]:
                done = self.run_it(*verb)
                # where its list of processes is torn, a part of any run may be in it
                self.assertEqual("\nincomplete: " in done.stdout, content in (one[:10], b""), (len(content), done.stdout, done.stderr))
            done = self.run_it("summarize", "-q", "-o", "all.summary", "t")
            self.assertEqual(done.returncode, 0 if content in (one, *foreign) else 3, (len(content), done.stderr))
            self.assertIn("x.summary" if content != one else "", done.stderr)
            if content == one[:-1]:
                done = self.run_it("-o", "o", "--run", "other", "t")
                self.assertIn("x.summary: offset", done.stdout + done.stderr)

    def test_a_link_to_nothing_or_elsewhere_does_not_keep_a_summary_from_being_written(self):
        with open(os.path.join(self.folder, "key"), "w") as file:
            file.write("private")
        for to in "../none", "../key", "../none.msgpack.zst":
            os.symlink(to, os.path.join(self.traces, "rank-00007-107.msgpack.zst"))
            self.assertEqual(self.run_it("summarize", "-q", "-o", "all.summary", "t").returncode, 0, to)
            os.unlink(os.path.join(self.traces, "rank-00007-107.msgpack.zst"))

    WRITERS = [["export", "csv", "-o"], ["export", "sqlite", "-o"], ["pack", "-o"], ["summarize", "-q", "-o"], ["report", "-o"],
               ["check", "--max-peak", "1T", "--junit"], ["check", "--update-baseline", "--baseline"], ["monitor", "--duration", "0.1", "--output"]]

    def test_an_output_may_have_a_name_as_long_as_the_disk_allows(self):
        for verb in self.WRITERS:
            name = "é" * 120 + ("n" * 15 if verb[0] != "summarize" else "n.summary")
            done = self.run_it(*verb, name, "t")
            self.assertEqual((done.returncode, os.path.exists(os.path.join(self.folder, name))), (0, True), (verb, done.stderr))
            (shutil.rmtree if verb[0] == "report" else os.unlink)(os.path.join(self.folder, name))

    def test_what_lies_under_a_temporary_name_is_in_nobodys_way(self):
        """As a killed program of the same number left it, or as another user made it."""
        def plant(kind, name):
            for planted in "%s.%d.part" % (name, os.getpid()), ".%s.%d.tmp" % (name, os.getpid()):
                if kind == "link":
                    os.symlink("precious", planted)
                elif kind == "fifo":
                    os.mkfifo(planted)
                elif kind == "folder":
                    os.mkdir(planted)
                else:
                    open(planted, "w").close()
        with open(os.path.join(self.folder, "precious"), "w") as file:
            file.write("thesis")
        for verb in self.WRITERS:
            for kind in "link", "fifo", "folder", "file":
                name = "x.summary" if verb[0] == "summarize" else "x.out"
                done = self.run_it(*verb, name, "t", preexec_fn=lambda: plant(kind, name))
                self.assertEqual(done.returncode, 0, (verb, kind, done.stderr))
                (shutil.rmtree if verb[0] == "report" else os.unlink)(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, "precious")) as file:
            self.assertEqual(file.read(), "thesis")

    def test_a_database_is_not_put_beside_what_another_left_to_be_brought_into_it(self):
        import sqlite3
        at = os.path.join(self.folder, "x.sqlite")
        self.assertEqual(self.run_it("export", "sqlite", "-o", at, "t").returncode, 0)
        left = sqlite3.connect(at)
        left.execute("PRAGMA journal_mode=WAL")
        left.execute("CREATE TABLE mine(x)")
        left.commit()
        before = {name: open(os.path.join(self.folder, name), "rb").read() for name in os.listdir(self.folder) if name.startswith("x.sqlite")}
        self.assertEqual(set(before), {"x.sqlite", "x.sqlite-wal", "x.sqlite-shm"})
        done = self.run_it("export", "sqlite", "-o", at, "t")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("x.sqlite-wal belongs to a database", done.stderr)
        self.assertEqual({name: open(os.path.join(self.folder, name), "rb").read() for name in before}, before)
        left.close()
        self.assertEqual(self.run_it("export", "sqlite", "-o", at, "t").returncode, 0)

    # ---- interrupted

    def test_a_signal_leaves_nothing(self):
        shutil.rmtree(self.traces)
        self.record("rank-00000-100", 300000)
        self.run_it("pack", "-o", "p.stormlog", "t")
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            for verb in (["-q", "-o", "o", "p.stormlog"], ["export", "csv", "-o", "x.csv", "p.stormlog"], ["pack", "-o", "x.stormlog", "t"]):
                for milliseconds in 20, 60, 150, 400:
                    child = subprocess.Popen([ANALYZE, *verb], cwd=self.folder, env=dict(os.environ, TMPDIR=self.temporary),
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    time.sleep(milliseconds / 1000)
                    child.send_signal(number)
                    self.assertIn(child.wait(60), (0, -number))
                    self.assertEqual(os.listdir(self.temporary), [], verb)
                    left = set(os.listdir(self.folder)) - {"t", "tmp", "p.stormlog"}
                    self.assertLessEqual(left, {"o", "x.csv", "x.stormlog"}, "whole or not at all")

    def at_moment(self, moment, verb, number=signal.SIGTERM):
        return subprocess.run([ANALYZE, *verb], cwd=self.folder, capture_output=True, timeout=60,
                              env=dict(os.environ, TMPDIR=self.temporary, LD_PRELOAD=os.environ["MOMENTS"], MOMENT=moment, SIGNAL=str(int(number)),
                                       ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"))

    def test_a_signal_while_any_verb_unpacks_leaves_no_names_in_clear(self):
        self.assertEqual(verbs.missing(ANALYZE), set())
        packs = os.path.join(self.folder, "packs")
        os.mkdir(packs)
        self.assertEqual(self.run_it("pack", "-o", "packs/p.stormlog", "t").returncode, 0)
        unpacked = set()
        for place in packs, packs + "/p.stormlog":
            for words, _ in verbs.rows(a=place, b=place, sink="t"):
                if words[0] not in unpacked and b"moment: made" in self.at_moment("made", words).stderr:
                    unpacked.add(words[0])
                self.assertEqual(os.listdir(self.temporary), [], words)
        self.assertEqual(verbs.told(ANALYZE) - unpacked, {"convert", "validate"}, "these read telemetry alone")
        for number in signal.SIGHUP, signal.SIGALRM:  # of a terminal that closes, of a launcher that waits no longer
            self.assertIn(b"moment: made", self.at_moment("made", ["oom", packs], number).stderr)
            self.assertEqual(os.listdir(self.temporary), [], number)

    def test_a_signal_between_two_steps_leaves_nothing(self):
        self.assertEqual(self.run_it("-q", "-o", "o", "t").returncode, 0)
        self.run_it("pack", "-o", "p.stormlog", "t")
        before = sorted(os.listdir(self.folder))
        for moment, verb in (("made", ["-q", "p.stormlog"]), ("made", ["-q", "-o", "o", "t"]), ("exchanged", ["-q", "-o", "o", "t"]),
                             ("entered", ["-q", "-o", "o", "t"]),
                             ("opens", ["export", "csv", "-o", "x.csv", "t"]), ("opens", ["export", "sqlite", "-o", "x.db", "t"])):
            done = self.at_moment(moment, verb)
            self.assertIn(done.returncode, (0, -signal.SIGTERM), (verb, done.stderr))
            if verb[0] == "export" and os.path.exists(os.path.join(self.folder, verb[3])):  # all was done before the thread that takes the signal ran
                os.remove(os.path.join(self.folder, verb[3]))
            self.assertEqual((os.listdir(self.temporary), sorted(os.listdir(self.folder))), ([], before), (moment, verb))

    def test_too_little_memory_leaves_nothing(self):
        before, starved = sorted(os.listdir(self.folder)), set()
        for verb in (["-q", "-o", "x", "t"], ["pack", "-o", "x", "t"], ["diagnose", "-o", "x", "t"], ["export", "sqlite", "-o", "x", "t"]):
            for mebibytes in range(2, 66, 2):
                done = self.run_it(*verb, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (mebibytes << 20,) * 2))
                if "out of memory" in done.stderr:
                    starved.add(verb[0])
                if not done.returncode:
                    (shutil.rmtree if os.path.isdir(os.path.join(self.folder, "x")) else os.unlink)(os.path.join(self.folder, "x"))
                self.assertEqual((sorted(os.listdir(self.folder)), os.listdir(self.temporary)), (before, []), (verb, mebibytes, done))
        if not starved:
            self.skipTest("a sanitizer's own memory is limited too")

    # ---- inputs that are no regular files

    def test_nothing_waits_for_a_fifo(self):
        fifo = os.path.join(self.folder, "f")
        os.mkfifo(fifo)
        self.record("rank-00001-101", rank=1, pid=101, ring=fifo)
        self.assertEqual(self.run_it("--json", "t").returncode, 0)
        os.mkfifo(os.path.join(self.traces, "rank-00002-102.msgpack.zst"))
        os.mkfifo(os.path.join(self.traces, "rank-00000-100.ring"))
        os.symlink("/dev/zero", os.path.join(self.traces, "rank-00003-103.msgpack.zst"))
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(self.traces, "rank-00004-104.ring"))
            report = json.loads(self.run_it("--json", "t").stdout)
        self.assertEqual(len(report["processes"]), 2)
        self.assertEqual(self.run_it("--json", os.path.join(self.traces, "rank-00000-100.msgpack.zst")).returncode, 0)
        for verb in ["--json"], ["tree"], ["dump"], ["pack"], ["validate"], ["convert"]:
            self.assertNotEqual(self.run_it(*verb, os.path.join(self.traces, "rank-00002-102.msgpack.zst")).returncode, 0)
            self.assertNotEqual(self.run_it(*verb, fifo).returncode, 0, verb)
        self.assertEqual(self.run_it("export", "sqlite", "-o", fifo, "t").returncode, UNSAVED)
        self.assertTrue(stat.S_ISFIFO(os.stat(fifo).st_mode), "is not replaced, no more than a device")
        os.mkfifo(os.path.join(self.folder, ".stormlog.ini"))
        self.assertIn(self.run_it("check", "--max-peak", "1T", "t").returncode, (0, 2))

    # ---- one place for several

    def begin_at(self, moment, number, *verb):
        return subprocess.Popen([ANALYZE, *verb], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, TMPDIR=self.temporary, LD_PRELOAD=os.environ["MOMENTS"], MOMENT=moment, SIGNAL=str(int(number))))

    def test_five_at_once_make_one_analysis(self):
        self.assertEqual(self.run_it("-q", "-o", "whole", "t").returncode, 0)
        whole = sorted(os.listdir(os.path.join(self.folder, "whole")))
        for moment in "none", "no exchange":
            for turn in range(10):
                if turn % 2:  # else an old one is replaced
                    shutil.rmtree(os.path.join(self.traces, "analysis"))
                elif turn:
                    os.utime(os.path.join(self.traces, "analysis"), (0, 0))
                for one in [self.begin_at(moment, 0, "-q", "t") for _ in range(5)]:
                    said = one.communicate()[1]
                    self.assertEqual((one.returncode, said), (0, ""), moment)
                self.assertEqual(sorted(os.listdir(self.traces)), ["analysis", "rank-00000-100.msgpack.zst"], moment)
                self.assertEqual(sorted(os.listdir(os.path.join(self.traces, "analysis"))), whole, moment)

    # ---- a machine that dies

    def in_order(self, *verb):
        """What was synced, renamed and removed, by names from the folder of the test on."""
        done = self.begin_at("order", 0, *verb)
        said = done.communicate()[1]
        self.assertEqual(done.returncode, 0, said)
        return [tuple(line[len("order: "):].replace(os.path.realpath(self.folder) + "/", "").split(" ", 1)) for line in said.splitlines() if line.startswith("order: ")]

    def test_a_file_is_on_the_disk_before_it_replaces_a_former_one(self):
        for verb in (["check", "--baseline", "x", "--update-baseline"], ["check", "--max-peak", "1T", "--junit", "x"], ["pack", "-o", "x"], ["summarize", "-q", "-o", "x.summary"],
                     ["export", "csv", "-o", "x"], ["export", "sqlite", "-o", "x"], ["diff", "--html", "x", "t"]):
            self.assertEqual(self.run_it(*verb, "t").returncode, 0, verb)
            steps = self.in_order(*verb, "t")
            self.assertEqual([what for what, _ in steps], ["sync", "rename"], (verb, steps))
            self.assertEqual(os.path.basename(steps[0][1]), os.path.basename(steps[1][1]), verb)
            place = os.path.join(self.folder, "x.summary" if verb[0] == "summarize" else "x")
            whole = os.stat(place).st_ino
            full = self.begin_at("full", 0, *verb, "t")
            self.assertIn("No space left on device", full.communicate()[1], verb)
            self.assertEqual((full.returncode, os.stat(place).st_ino, len(os.listdir(self.folder))), (UNSAVED, whole, 3), verb)
            os.unlink(place)

    def test_an_analysis_is_on_the_disk_before_it_replaces_a_former_one(self):
        place = os.path.join(self.folder, "o")
        for _ in range(2):
            self.assertEqual(self.run_it("-q", "-o", "o", "t").returncode, 0)
            steps = self.in_order("-q", "-o", "o", "t")
            at = next(i for i, (what, name) in enumerate(steps) if what == "rename" and "/" not in name)  # not of a part of the new one
            made, names = steps[at][1], [name for _, name in steps[:at]]
            for root, folders, files in os.walk(place):
                for name in folders + files + [""]:
                    self.assertIn(os.path.normpath(made + os.path.join(root, name)[len(place):]), names)
            whole = os.stat(place).st_ino
            full = self.begin_at("full", 0, "-q", "-o", "o", "t")
            self.assertIn("o: No space left on device", full.communicate()[1])
            self.assertEqual((full.returncode, os.stat(place).st_ino, sorted(os.listdir(self.folder))), (UNSAVED, whole, ["o", "t", "tmp"]))

    def test_what_a_machine_that_died_left_empty_is_replaced(self):
        baseline = ["check", "--baseline", "b.json", "--update-baseline", "t"]
        for verb, place in (["-q", "-o", "o", "t"], "o"), (baseline, "b.json"):
            self.assertEqual(self.run_it(*verb).returncode, 0)
            place = os.path.join(self.folder, place)
            for root, _, files in os.walk(place):
                for name in files:
                    os.truncate(os.path.join(root, name), 0)
            if os.path.isfile(place):
                os.truncate(place, 0)
                self.assertEqual(self.run_it("check", "--baseline", "b.json", "t").returncode, 2, "nothing is compared with it")
            done = self.run_it(*verb)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(os.path.getsize(os.path.join(self.folder, "o", "report.json")))
        self.assertTrue(os.path.getsize(os.path.join(self.folder, "b.json")))
        for name in os.listdir(os.path.join(self.folder, "o")):
            if os.path.isfile(os.path.join(self.folder, "o", name)):
                os.truncate(os.path.join(self.folder, "o", name), name == "summary.md")
        self.assertEqual(self.run_it("-q", "-o", "o", "t").returncode, 2, "what has a byte may be somebody's")

    # ---- the same trace twice

    def test_the_same_trace_twice_counts_once(self):
        alone = json.loads(self.run_it("--json", "t").stdout)
        ways = {"a link to the folder": lambda: os.symlink(".", os.path.join(self.traces, "loop")),
                "a copy below": lambda: shutil.copytree(self.traces, os.path.join(self.traces, "backup"), ignore=shutil.ignore_patterns("loop", "backup")),
                "a hard link": lambda: os.link(os.path.join(self.traces, "rank-00000-100.msgpack.zst"),
                                               os.path.join(self.traces, "rank-00009-109.msgpack.zst"))}
        for way, make in ways.items():
            make()
            report = json.loads(self.run_it("--json", "t").stdout)
            self.assertEqual([row["memory"] for row in report["processes"]], [row["memory"] for row in alone["processes"]], way)
            done = self.run_it("-q", "t")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is a copy of", done.stderr)
        done = self.run_it("--json", "t", self.traces, os.path.join(self.traces, "backup"))
        self.assertEqual(len(json.loads(done.stdout)["processes"]), 1)

    def test_a_folder_that_may_not_be_read_is_said_and_is_not_empty(self):
        closed, mine = os.path.join(self.folder, "closed"), os.path.join(self.folder, "analyze")
        os.makedirs(os.path.join(self.traces, "inner"))
        shutil.copytree(self.traces, closed)
        shutil.copy(ANALYZE, mine)
        os.chmod(closed, 0)
        os.chmod(os.path.join(self.traces, "inner"), 0)
        self.addCleanup(os.chmod, closed, 0o700)
        self.addCleanup(os.chmod, os.path.join(self.traces, "inner"), 0o700)
        os.chmod(self.temporary, 0o777)
        os.chmod(self.folder, 0o755)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        for verb in (["report"], ["tree"], ["flame"], ["history", "peak"], ["fit"], ["collect"]):
            done = subprocess.run([mine, *verb, closed], capture_output=True, text=True, timeout=60, cwd="/",
                                  env=dict(os.environ, XDG_CACHE_HOME=self.temporary, XDG_STATE_HOME=self.temporary), **user)
            self.assertEqual(done.returncode, 2, (verb, done.stderr))
            self.assertRegex(done.stderr, "%s.*: Permission denied" % closed, verb)
        for verb in (["tree"], ["runs", "--catalogue", os.path.join(self.temporary, "c")], ["fit"], ["pack", "-o", os.path.join(self.temporary, "p")],
                     ["export", "ndjson"]):
            done = subprocess.run([mine, *verb, self.traces], capture_output=True, text=True, timeout=60, cwd="/", **user)
            self.assertEqual(done.returncode, 3 if verb[0] == "pack" else 0, done.stderr)
            self.assertIn("inner: may not be listed by you and is passed over", done.stderr)
        done = subprocess.run([mine, "collect", self.traces], capture_output=True, text=True, timeout=60, cwd="/", **user)
        self.assertEqual((done.returncode, done.stdout), (3, "no ring to collect: every process here ended by itself\n"), done.stderr)
        self.assertRegex(done.stderr, "inner: may not be listed by you and is passed over\n.*stay in /dev/shm")
        part = os.path.join(self.temporary, "part.summary")
        done = subprocess.run([mine, "summarize", self.traces, "-o", part], capture_output=True, text=True, timeout=60, cwd="/", **user)
        self.assertEqual((done.returncode, os.path.exists(part)), (3, False))
        self.assertIn(part + " was not written, since a summary must be whole", done.stderr)

    def test_a_pack_of_what_is_not_all_read_is_written_and_is_not_fine(self):
        self.assertEqual(self.run_it("pack", "-o", "whole.stormlog", "t").returncode, 0)
        torn, key = os.path.join(self.traces, "p.stormlog"), os.path.join(self.traces, "rank-00007-107.msgpack.zst")
        for rank in 0, 1:
            self.record("rank-%05d-%d" % (rank, 100 + rank), rank=rank, pid=100 + rank, host=os.uname().nodename)
        whole = self.contents()["whole.stormlog"]

        def cut(size):
            with open(torn, "wb") as file:
                file.write(whole[:size])

        for make, made, limit in (lambda: cut(len(whole) - 20), torn, ""), (lambda: cut(10), torn, ""), (lambda: os.symlink("../whole.stormlog.key", key), key, ""), (lambda: None, "", "1"):
            with open(os.path.join(self.folder, "whole.stormlog.key"), "w"):
                make()
            for verb in ["pack", "-o", "x.stormlog"], ["collect", "-o", "x.stormlog"]:
                how = dict(os.environ, TMPDIR=self.temporary, **({"STORMLOG_READ_FILES": limit} if limit else {}))
                done = subprocess.run([ANALYZE, *verb, "t"], capture_output=True, text=True, cwd=self.folder, timeout=60, env=how)
                self.assertEqual(done.returncode, 3, (verb, made, limit, done.stderr))
                self.assertIn("x.stormlog may not be the whole run", done.stderr)
                self.assertEqual(self.run_it("tree", "x.stormlog").returncode, 0, "it is written")
                os.unlink(os.path.join(self.folder, "x.stormlog"))
            if made:
                os.unlink(made)
        self.assertEqual(self.run_it("pack", "-o", "x.stormlog", "t").returncode, 0)

    def test_a_merge_of_what_is_not_all_read_is_written_and_is_not_fine(self):
        for rank in 0, 1:
            self.record("rank-%05d-%d" % (rank, 100 + rank), rank=rank, pid=100 + rank, world_size=2)
        whole, more = self.run_it("merge", "-o", "whole", "t"), os.path.join(self.traces, "rank-00002-102.msgpack.zst")
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        os.mkdir(os.path.join(self.folder, "empty"))
        for number, (make, said, paths) in enumerate((
                (lambda: self.record("rank-00002-102", rank=2, pid=102, version=2), "rank-00002-102.msgpack.zst: no readable header", ["t"]),
                (lambda: os.truncate(self.record("rank-00002-102", rank=2, pid=102), 100), "rank-00002-102.msgpack.zst: cut off at 100 bytes, before its first event", ["t"]),
                (lambda: open(more, "w").write("no trace" * 99), "are no frame", ["t"]),
                (lambda: None, "empty: no trace is in it", ["t", "empty"]),
                (lambda: open(os.path.join(self.folder, "words"), "w").write("no trace"), "words: it is not a trace", ["t", "words"]))):
            make()
            done = self.run_it("merge", "-o", "m%d" % number, *paths)
            with self.subTest(said=said):
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(said, done.stderr)
                self.assertIn("m%d may not be the whole run" % number, done.stderr)
                self.assertTrue(os.path.exists(os.path.join(self.folder, "m%d" % number, "manifest.json")), "it is written")
            if os.path.exists(more):
                os.unlink(more)
        segment = os.path.join(self.folder, "whole", "segment-000001.jsonl")
        with open(segment, "a") as file:
            file.write("{}\n")
        done = self.run_it("merge", "-o", "again", "whole")
        self.assertEqual((done.returncode, os.path.exists(os.path.join(self.folder, "again", "manifest.json"))), (3, True), done.stderr)
        self.assertRegex(done.stderr, r"segment-000001\.jsonl:[0-9]+: .*\n.*again may not be the whole run")

    def test_every_verb_says_once_of_a_run_that_a_newer_agent_wrote_it(self):
        verbs = [[name, "after"] for name in t.VERBS] + [["TELEPORT", "after"]]
        for rank in 0, 1:
            self.record("rank-%05d-%d" % (rank, 100 + rank), rank=rank, pid=100 + rank, world_size=2, verbs=verbs, hooks=t.HOOKS + [["cudaNew", len(verbs) - 1, 1, 0]])
        for verb in (["report", "-o", "o"], ["tree"], ["table"], ["table", "--entries", "*"], ["flame"], ["dump"], ["fit", "--capacity", "1T"], ["export", "csv"], ["merge", "-o", "m"],
                     ["runs", "-q", "--catalogue", "c1.sqlite"], ["history", "-q", "--catalogue", "c2.sqlite", "peak"], ["monitor", "--duration", "0.1"], ["track", "--duration", "0.1", "-o", "k"], ["diagnose", "--duration", "0", "-o", "d"], ["diff", "t"], ["oom"], ["summarize", "-o", "a.summary"]):
            done = self.run_it(*verb, "t")
            with self.subTest(verb=verb):
                said = [line for line in done.stderr.splitlines() if "newer agent" in line]
                self.assertEqual(len(said), 1 + (verb[0] == "diff"), done.stderr)
                self.assertRegex(said[0], "^stormlog-analyze: .*rank-00000-100.msgpack.zst: written by a newer agent: parts that this version does not know were skipped$")

    def test_that_no_request_failed_is_no_answer_where_not_all_is_here(self):
        for said, fields in ("no trace of rank 1, of 2", dict(world_size=2)), ("it has no footer and its ring is not here", None):
            if fields:
                self.record("rank-00000-100", **fields)
            else:
                t.write(os.path.join(self.traces, "rank-00000-100.msgpack.zst"), t.header(), t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=[4096], bytes=4096))
            done = self.run_it("oom", "t")
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertRegex(done.stderr, "no allocation failed, but the run is incomplete: .*" + said)
        self.record("rank-00000-100")
        self.assertEqual(self.run_it("oom", "t").stderr, "")

    def test_a_trace_that_is_taken_for_telemetry_is_called_a_trace(self):
        for path in ("t", "t/rank-00000-100.msgpack.zst"):
            for verb in ("convert", "validate"):
                done = self.run_it(verb, path)
                self.assertEqual((done.returncode, done.stderr), (3 if verb == "convert" else done.returncode, path + ": traces, not telemetry; report writes theirs to analysis/telemetry\n"))
                self.assertNotEqual(done.returncode, 0)

    def test_what_is_asked_of_what_is_not_there_is_refused(self):
        for said, arguments in (("this recording has no PyTorch allocator", ["fit", "--allocator-capacity", "1M", "t"]),
                                ("exclude each other", ["fit", "--capacity", "1M", "--allocator-capacity", "1M", "t"]),
                                ("0x1 is no time", ["export", "csv", "--from", "0x1", "t"]), ("is not stack, leak", ["history", "--of", "bogus", "peak", "t"]),
                                ("t/rank-00000-100.msgpack.zst is not a folder", ["collect", "t/rank-00000-100.msgpack.zst"])):
            done = self.run_it(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)

    def test_whether_a_torn_trace_fits_is_unknown(self):
        thread, each = t.Thread(), list(range(1, 1001))
        events = [thread.events(1000, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * (n + part) for n in each], bytes=4096) for part in (0, 1000)]
        whole = t.write(os.path.join(self.traces, "rank-00000-100.msgpack.zst"), t.header(), *events, t.footer())
        self.assertNotIn("missing", self.run_it("fit", "--capacity", "1T", "t").stdout)
        os.truncate(whole, os.path.getsize(whole) * 3 // 4)
        done = self.run_it("fit", "--capacity", "1T", "t")
        self.assertIn("1.00 TiB  unknown  events are missing in the trace", done.stdout)
        self.assertIn("frame is torn", done.stderr)
        for verb in ["diagnose", "--duration", "0", "-o", "bundle"], ["monitor"], ["track", "--output", "sink"], ["watch", "--duration", "1"]:
            self.assertEqual(self.run_it(*verb, "t").stderr.count("frame is torn"), 1, verb)

    def test_a_frame_that_was_taken_out_is_missed(self):
        thread = t.Thread()
        events = [thread.events(10, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * (n + part) for n in range(1, 11)], bytes=4096) for part in (0, 10)]
        path = os.path.join(self.traces, "rank-00000-100.msgpack.zst")
        t.write(path, t.header(), *events, t.footer(events=20))
        self.assertEqual(self.run_it("pack", "-o", "whole.stormlog", "t").returncode, 0)
        t.write(path, t.header(), events[1], t.footer(events=20))
        said = "its end says that it has 20 events, and it has 10: the others are missing"
        for verb, status in (["check", "--no-oom"], 0), (["oom"], 0), (["export", "csv", "-o", "c.csv"], 0):
            done = self.run_it(*verb, "t")
            self.assertIn(said, done.stderr + done.stdout, verb)
            self.assertEqual(done.returncode, status, verb)
        done = self.run_it("pack", "--redact", "-o", "p.stormlog", "t")
        self.assertIn(said, done.stderr)
        self.assertIn("parts of the run could not be read when it was packed", self.run_it("oom", "p.stormlog").stderr)

    def test_a_file_that_can_never_be_a_recording_is_not_waited_for(self):
        with open(os.path.join(self.folder, "words"), "w") as file:
            file.write("no trace\n" * 1000)
        for verb in (["monitor"], ["diagnose", "-o", "bundle"], ["track", "--output", "sink"], ["watch", "--duration", "0.1"]):
            done = self.run_it(*verb, "words")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("words: no recording can be read there", done.stderr)

    def test_where_nothing_could_be_watched_is_said_and_is_not_fine(self):
        for name in "empty", "newer", "zeroes":
            os.mkdir(os.path.join(self.folder, name))
        t.write(os.path.join(self.folder, "newer", "rank-00000-100.msgpack.zst"), t.header(version=2), t.footer())
        with open(os.path.join(self.folder, "zeroes", "rank-00000-100.msgpack.zst"), "wb") as file:
            file.write(bytes(5000))
        for name in "empty", "newer", "zeroes":
            for verb in ["watch", "--rule", "ooms > 0"], ["monitor"]:
                done = self.run_it(*verb, "--duration", "0.1", name)
                self.assertEqual(done.returncode, 3, (verb, name, done.stderr))
                self.assertIn("%s: no recording there yet that you may read" % name, done.stderr)
        watch = "watch", "--rule", "ooms > 0", "--duration", "0.1"
        done = self.run_it(*watch, "t")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.run_it(*watch, "t", "t/rank-00000-100.msgpack.zst")
        self.assertEqual((done.returncode, done.stderr), (0, ""), "as a pattern of the shell's names them")
        zeroes = "zeroes/rank-00000-100.msgpack.zst"
        os.utime(os.path.join(self.folder, zeroes), (1, 1))
        for paths, code in (["t", zeroes], 0), ([zeroes, "t"], 0), ([zeroes], 2):
            done = self.run_it(*watch, *paths)
            self.assertEqual((done.returncode, done.stderr.splitlines()[-1]), (code, "stormlog-analyze: %s: no recording can be read there" % zeroes))

    def test_a_trace_of_an_older_run_that_is_named_is_followed_beside_its_folder(self):
        older = "t/rank-00000-50.msgpack.zst"
        t.write(os.path.join(self.folder, older), t.header(run_id="run0", pid=50, pids=[50], started_ns=t.UNIX0 - 10 ** 12), t.Thread().events(
            1, api=t.MALLOC, kind=1, duration_ns=1, address=[4096], bytes=4096), t.footer())
        os.utime(os.path.join(self.folder, older), (1, 1))
        for paths, pids in ((["t"], {100}), (["t", older], {50, 100}), ([older, "t"], {50, 100})):
            done = self.run_it("monitor", "--duration", "0.1", "--format", "ndjson", *paths)
            self.assertEqual((done.returncode, {json.loads(line)["pid"] for line in done.stdout.splitlines()}), (0, pids), paths)
            self.assertNotIn("no recording can be read", done.stderr)
        self.run_it("pack", "--run", "all", "-o", "two.stormlog", "t")
        done = self.run_it("monitor", "--duration", "0.1", "--format", "ndjson", "two.stormlog")
        self.assertEqual({json.loads(line)["pid"] for line in done.stdout.splitlines()}, {100}, "of a pack, as of a folder, the newest run is followed")

    def test_a_summary_of_what_cannot_be_read_says_so_and_ends_no_other_part(self):
        for rank in range(1, 4):
            path = self.record("rank-%05d-%d" % (rank, 100 + rank), rank=rank, pid=100 + rank)
            os.truncate(path, os.path.getsize(path) - 100)
        for shard, name, code in ([], "x", 3), (["--shard", "1/1"], "x", 0), ([], "%h", 0):
            done = self.run_it("summarize", "-q", *shard, "-o", "o/%s.summary" % name, "t")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual([line.split(":")[1] for line in done.stderr.splitlines() if "inside an index" in line],
                             [" t/rank-%05d-%d.msgpack.zst" % (rank, 100 + rank) for rank in range(1, 4)])
            self.assertEqual("o/x.summary may not be the whole run" in done.stderr, code == 3)
            self.assertIn("incomplete", self.run_it("o").stdout)

    def test_memory_that_runs_out_is_no_damage(self):
        maps = [{"def": "label", "id": i + 1, "text": "%d" % i * 2000} for i in range(6000)]
        t.write(os.path.join(self.traces, "rank-00001-101.msgpack.zst"), t.header(rank=1, pid=101), *(t.defs(maps[i:i + 1500], 16 << 20) for i in range(0, 6000, 1500)),
                t.Thread().events(9000, api=t.MALLOC, kind=1, duration_ns=1, address=[4096 * n for n in range(1, 9001)], bytes=4096), t.footer())
        whole = self.run_it("dump", "t")
        for megabytes in range(20, 120, 3):
            done = self.run_it("dump", "t", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20)))
            with self.subTest(megabytes=megabytes):
                self.assertNotRegex(done.stderr, "frame|no header")
                if done.returncode == 0:
                    self.assertEqual(done.stdout, whole.stdout)

    def test_two_images_of_one_process_are_two(self):
        self.record("rank-00000-100-2", started_ns=t.UNIX0 + 5, monotonic_ns=t.T0 + 5)
        self.assertEqual(len(json.loads(self.run_it("--json", "t").stdout)["processes"]), 2)

    def test_one_name_in_two_folders_of_two_runs(self):
        self.traces = os.path.join(self.traces, "other")
        self.record("rank-00000-100", run_id="run2", started_ns=t.UNIX0 + 10 ** 12)
        done = self.run_it("-q", "--run", "all", "t")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "t/analysis/telemetry"))), 2)

    def test_folders_that_lead_to_each_other_are_read_once(self):
        for i in range(12):
            os.symlink(".", os.path.join(self.traces, "l%d" % i))
        self.assertEqual(len(json.loads(self.run_it("--json", "t").stdout)["processes"]), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
