#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze runs: runs of the simulated GPU are found, with the figures of its journal; only what is new is read."""
import contextlib
import functools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "hostile")]
import traces
from e2e import ANALYZE, Ranks, Recording

MIB = 1 << 20
WRITE = 1 if os.uname().machine == "x86_64" else 64  # the system call's number
PROGRAM = """
import ctypes
cudart = ctypes.CDLL("libcudart.so.13")
def take(mib):
    p = ctypes.c_void_p()
    return cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)), p
def %s():
    return take(%d)
def remember():
    return take(%d)
cudart.cudaFree(%s()[1])
remember()
%s
"""


class Catalogue(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-runs-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.catalogue = os.path.join(self.folder, "state", "c.sqlite")
        self.runs = os.path.join(self.folder, "runs")

    def record(self, name, work=10, leak=4, function="work", more="", file=None, meta="", **environment):
        """Record a run in self.runs/NAME; returns its processes from the journal."""
        script = os.path.join(self.folder, file or "job_%s.py" % name)
        with open(script, "w") as out:
            out.write(PROGRAM % (function, work, leak, function, more))
        with Recording(sys.executable, script, SIM_VRAM="8G", STORMLOG_RUN_ID=name, **{"STORMLOG_META": "project=alpha\ngit.commit=%s\ngit.branch=main%s"
                       % ((name.encode().hex() * 40)[:40], meta), **environment}) as recording:
            os.makedirs(self.runs, exist_ok=True)
            shutil.copytree(recording.traces, os.path.join(self.runs, name))
            return recording.truth()

    def lose_events(self, name):
        folder = os.path.join(self.runs, name)
        trace, = (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".zst"))
        with open(trace, "ab") as file:
            file.write(traces.defs([{"def": "gap", "count": 3, "begin_ns": 0, "end_ns": 5, "why": "the disk was slow"}]))

    def ask(self, verb, *arguments, code=0, **environment):
        done = subprocess.run([ANALYZE, verb, "--catalogue", self.catalogue, *arguments], capture_output=True, text=True,
                              env=dict(os.environ, **{"COLUMNS": "400", **environment}), timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.said = done.stderr
        return done.stdout

    def list(self, *arguments):
        found = json.loads(self.ask("runs", "--json", *arguments))
        return found["read"], {run["run"]: run for run in found["runs"]}

    def ids(self, *arguments):
        return sorted(self.list(*arguments)[1])


class Runs(Catalogue):
    def test_figures_are_those_of_the_journal(self):
        truth = self.record("one", 10, 4)[0]
        read, runs = self.list(self.runs)
        self.assertEqual((read, list(runs)), (1, ["one"]))
        run = runs["one"]
        row = truth.memory[("device", 0)] if ("device", 0) in truth.memory else next(row for row in truth.memory.values() if row.peak_bytes)
        self.assertEqual((run["peak"], run["leak"], run["oom"]), (row.peak_bytes, row.live_bytes, 0))
        self.assertEqual((run["project"], run["commit"], run["branch"], run["status"]), ("alpha", ("6f6e65" * 40)[:40], "main", "completed"))
        self.assertEqual((run["ranks"], run["processes"], run["tag"]), (1, 1, "job_one.py"))
        self.assertIn("job_one.py", run["command"])
        self.assertLess(abs(run["when"] / 1e9 - time.time()), 120)
        self.assertEqual(run["source"], os.path.realpath(os.path.join(self.runs, "one")))

    def test_only_what_is_new_or_changed_is_read(self):
        self.record("one")
        self.record("two")
        self.assertEqual(self.list(self.runs)[0], 2)
        self.assertEqual(self.list(self.runs)[0], 0)
        self.assertEqual(self.ids(self.runs), ["one", "two"])
        self.record("three", meta="\ncommit=release-7")  # the user's word, before git's
        read, runs = self.list(self.runs)
        self.assertEqual((read, runs["three"]["commit"]), (1, "release-7"))
        (trace,) = [name for name in os.listdir(os.path.join(self.runs, "one")) if name.endswith(".zst")]
        os.utime(os.path.join(self.runs, "one", trace))
        read, runs = self.list(self.runs)
        self.assertEqual((read, sorted(runs)), (1, ["one", "three", "two"]))
        self.assertEqual(self.list(), (0, runs))  # without a path: what the catalogue has
        self.assertEqual(self.ids(os.path.join(self.runs, "two")), ["two"])
        shutil.rmtree(os.path.join(self.runs, "two"))
        self.assertEqual(self.ids(), ["one", "three", "two"])  # a run stays in the catalogue after its traces are removed

    def test_a_query_and_upstreams_filters_choose(self):
        self.record("small", 10, 4, "forward_pass")
        self.record("large", 900, 4, "backward_pass")
        self.record("full", 10, 4, more="print(take(9000))")
        self.assertEqual(self.ids("peak>500MiB", self.runs), ["large"])
        for query, wanted in (("forward_pass", ["small"]), ("function:backward*", ["large"]), ("file:job_full.py", ["full"]),
                              ("oom>=1", ["full"]), ("project:alpha -oom>0", ["large", "small"]), ("when>-1h", ["full", "large", "small"]),
                              ("when<-1h", []), ("library:python3* or library:libcudart*", ["full", "large", "small"]), ("place:remember", ["full", "large", "small"]),
                              ("commit:" + b"large".hex()[:6], ["large"])):
            self.assertEqual(self.ids(query), wanted, query)
        session = json.loads(subprocess.run([ANALYZE, "--json", os.path.join(self.runs, "small")], capture_output=True).stdout)["processes"][0]["session_id"]
        for options, wanted in ((["--run-id", "small"], ["small"]), (["--session-id", session], ["small"]), (["--status", "completed"], ["full", "large", "small"]),
                                (["--status", "killed"], []), (["--has-oom-bundle"], ["full"]), (["--no-has-oom-bundle"], ["large", "small"]),
                                (["--created-after", "-1h", "peak<100M"], ["full", "small"]), (["--created-before", "2020"], []), (["--job-id", "7"], [])):
            self.assertEqual(self.ids(*options), wanted, options)
        self.assertEqual(self.ids("--limit", "1", "--sort", "peak"), ["large"])

    def test_the_table_has_a_line_a_run(self):
        self.record("one", 100, 4)
        self.record("full", 10, 4, more="print(take(9000))")
        lines = self.ask("runs", self.runs).splitlines()
        self.assertEqual(lines[0].split(), ["WHEN", "PROJECT", "COMMAND", "RANKS", "PEAK", "LEFT", "OOM", "STATUS", "COMMIT"])
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[1], r"^\d{4}-\d\d-\d\d \d\d:\d\d  alpha    python[\d.]* job_full.py +1 +10\.0+ MiB +4\.0+ MiB +1  completed +66756c6c66")
        self.assertRegex(lines[2], r" 100(\.0+)? MiB +4\.0+ MiB +0  completed +6f6e65")
        self.assertLessEqual(max(map(len, lines)), 132)

    def test_a_narrow_table_has_no_part_of_titles_alone(self):
        self.record("one", STORMLOG_META="project=alpha")
        width = str(len(self.ask("runs", self.runs).splitlines()[1].rstrip()))
        self.assertEqual(len(self.ask("runs", self.runs, COLUMNS=width).splitlines()), 2)
        self.record("two")
        self.assertEqual(len(self.ask("runs", self.runs, COLUMNS=width).splitlines()), 6)

    def test_wrong_queries_name_the_column(self):
        self.ask("runs", "project:x peek>3", code=2)
        self.assertIn("query, column 11: peek is no field; did you mean peak?\n  project:x peek>3\n            ^\n", self.said)
        for option, value in ("--status", "finished"), ("--created-after", "2026-02-31"), ("--symbols", "nowhere"):
            self.ask("runs", option, value, code=2)
            self.assertIn('%s: "%s" is not ' % (option, value), self.said)
        self.ask("runs", "no/such/folder", code=2)
        self.assertIn("no/such/folder", self.said)
        self.assertFalse(os.path.exists(self.catalogue))
        self.ask("runs", "--run-id", 'a" or peak>0', code=2)
        self.ask("runs", "--rank", "x", code=2)

    def test_ranks_of_one_run_are_one_line_however_they_come(self):
        with Ranks(3, lambda rank: ["alloc=1"]) as ranks:
            files = sorted(os.listdir(ranks.traces))
            late = os.path.join(self.folder, "late")
            os.mkdir(late)
            for name in files:
                if "rank-00002" in name:
                    shutil.move(os.path.join(ranks.traces, name), late)
            self.assertEqual([run["processes"] for run in self.list(ranks.traces)[1].values()], [2])
            found = json.loads(self.ask("runs", "--json", late, TMPDIR=self.folder))
            read, processes = found["read"], [run["processes"] for run in found["runs"]]
            if read:  # where no sandbox limits the process that reads traces
                self.assertEqual(processes, [3])
            else:
                self.assertIn("name the folder of " + os.path.realpath(ranks.traces), self.said)
                self.assertEqual(processes, [2])
            self.assertEqual([(run["processes"], run["ranks"]) for run in self.list(ranks.traces, late)[1].values()], [(3, 3)])
            self.assertEqual(self.list(ranks.traces, late)[0], 0)
            self.assertEqual(self.ids("--rank", "2"), ["ranks"])
            self.assertEqual(self.ids("--rank", "3"), [])

    def test_what_is_still_recorded_is_read_until_it_ended(self):
        script = os.path.join(self.folder, "slow.py")
        with open(script, "w") as out:
            out.write(PROGRAM % ("work", 10, 4, "work", "open('ready', 'w').close()\nimport time\ntime.sleep(100)"))
        seen = []

        def look(recording):
            while not os.path.exists(os.path.join(recording.folder, "ready")):
                time.sleep(0.02)
            for _ in range(2):
                read, runs = self.list(recording.traces)
                seen.append((read, [run["status"] for run in runs.values()]))

        with Recording(sys.executable, script, code=-9, kill_when=look) as recording:
            self.assertEqual(seen, [(1, ["running"])] * 2)
            read, runs = self.list(recording.traces)
            self.assertEqual((read, [run["status"] for run in runs.values()]), (1, ["killed"]))
            self.assertEqual(self.list(recording.traces)[0], 0)

    def test_a_program_that_failed_is_no_completed_run(self):
        for status, word in ((0, "completed"), (3, "failed")):
            script = "import ctypes, sys\nctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), 9)\nsys.exit(%d)\n" % status
            with Recording(sys.executable, "-c", script, code=status) as recording:
                self.assertEqual([run["status"] for run in self.list(recording.traces)[1].values()], [word])

    def test_packs_and_summaries_are_runs_too(self):
        self.record("one")
        self.record("two", 700)
        whole = self.list(self.runs)[1]
        os.unlink(self.catalogue)
        packs = os.path.join(self.folder, "packs")
        os.mkdir(packs)
        for name in ("one", "two"):
            subprocess.run([ANALYZE, "pack", os.path.join(self.runs, name), "-o", os.path.join(packs, name + ".stormlog")], check=True)
        own = os.path.join(self.folder, "own")
        os.mkdir(own)
        with unittest.mock.patch.dict(os.environ, TMPDIR=own):
            read, runs = self.list(packs)
        self.assertEqual(os.listdir(own), [])
        self.assertEqual(read, 2)
        for name, run in runs.items():
            self.assertEqual(dict(run, source=None), dict(whole[name], source=None))
        self.assertEqual(self.list(packs)[0], 0)
        os.unlink(self.catalogue)
        both = os.path.join(self.folder, "both.summary")
        subprocess.run([ANALYZE, "summarize", self.runs, "-o", both], check=True)
        read, runs = self.list(both)
        self.assertEqual((read, sorted(runs), runs["two"]["peak"]), (2, ["one", "two"], whole["two"]["peak"]))
        self.assertEqual(self.list(both)[0], 0)

    def test_logs_are_runs_too(self):
        fails = ('Traceback (most recent call last):\n  File "/home/u/train.py", line 61, in main\n    y = model(x)\n'
                 "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.41 GiB is free.\n")
        os.makedirs(os.path.join(self.runs, "below"))
        for name, text in (("job.log", fails), ("below/slurm-7.out", "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0.\n"), ("fine.log", "step 1\n"), ("notes.txt", fails)):
            with open(os.path.join(self.runs, name), "w") as out:
                out.write(text)
        os.symlink(os.path.join(self.runs, "notes.txt"), os.path.join(self.runs, "link.log"))
        self.assertEqual({(run["tag"], run["status"], run["oom"]) for run in self.list(self.runs)[1].values()}, {("job.log", "failed", 1), ("slurm-7.out", "killed", 0)})
        self.assertEqual([run["tag"] for run in self.list("place:train.py:61", self.runs)[1].values()], ["job.log"])
        self.assertEqual(self.list(self.runs)[0], 0)
        with open(os.path.join(self.runs, "fine.log"), "a") as out:
            out.write(fails)
        self.assertEqual(len(self.ids(self.runs)), 3)
        self.assertEqual([run["finding"] for run in self.list(os.path.join(self.runs, "notes.txt"))[1].values()], ["out_of_memory"])

    def test_what_cannot_be_read_is_said_each_time(self):
        self.record("one")
        bad = os.path.join(self.runs, "rank-00000-1.msgpack.zst")
        with open(bad, "wb") as file:
            file.write(b"nothing of ours")
        pack, part = (os.path.join(self.folder, name) for name in ("no.stormlog", "no.summary"))
        for path in pack, part, bad.replace("1.msg", "2.msg"):
            shutil.copyfile(bad, path)
        for read in 1, 0:
            found, runs = self.list(self.runs, pack, part)
            self.assertEqual((found, list(runs)), (read, ["one"]))
            for name in "rank-00000-1.msgpack.zst: no header can be read", "rank-00000-2.msgpack.zst: no header", "no.stormlog: no pack of a run", "no.summary: ":
                self.assertIn(name, self.said)
            for path in bad, pack, part:
                for verb in ["runs"], ["runs", "--json"], ["history", "peak"]:
                    self.assertEqual(self.ask(*verb, path, code=3), "")
                    self.assertIn(os.path.basename(path), self.said)

    def test_a_folder_without_a_run_is_an_error_as_for_other_verbs(self):
        os.makedirs(self.runs)
        for verb in ["runs"], ["runs", "--json"], ["history", "peak"]:
            self.assertEqual(self.ask(*verb, self.runs, code=3), "")
            self.assertIn("no trace, summary, pack or log in " + self.runs, self.said)
        self.ask("runs")  # nothing was ever learned
        with open(os.path.join(self.runs, "fine.log"), "w") as out:
            out.write("step 1\n")
        self.ask("runs", self.runs)
        self.assertIn("no such runs", self.said)
        self.record("one")
        self.assertEqual(self.ids("peak>1TiB", self.runs), [])

    def test_a_torn_trace_has_no_figures(self):
        self.record("whole")
        self.record("torn")
        folder = os.path.join(self.runs, "torn")
        trace, = (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".zst"))
        with open(trace, "r+b") as file:
            file.truncate(os.path.getsize(trace) * 9 // 10)
        runs = self.list(self.runs)[1]
        self.assertEqual({name: (run["status"], run["peak"] is None) for name, run in runs.items()},
                         {"whole": ("completed", False), "torn": ("damaged", True)})

    def test_a_run_that_lost_events_and_says_so_keeps_its_figures(self):
        self.record("lossy")
        peak = self.list(self.runs)[1]["lossy"]["peak"]
        self.lose_events("lossy")
        part = os.path.join(self.folder, "lossy.summary")
        subprocess.run([ANALYZE, "summarize", self.runs, "-o", part], capture_output=True)
        for path in self.runs, part:
            os.unlink(self.catalogue)
            run = self.list(path)[1]["lossy"]
            self.assertEqual((run["status"], run["peak"], run["lost"]), ("completed", peak, 3), path)
            self.assertIn(" at least 10.0", self.ask("runs", path))
        self.assertEqual((self.ids("lost>0"), self.ids("lost=0")), (["lossy"], []))

    def test_names_steer_no_terminal(self):
        self.record("one")
        self.list(self.runs)
        with sqlite3.connect(self.catalogue) as db:
            db.execute("UPDATE runs SET project = ?, command = ?, status = ?", ("\x1b[31mred", "a\nb\x07\u202e", "::error::x"))
        db.close()
        out = self.ask("runs")
        self.assertNotRegex(out, "[\x00-\x09\x0b-\x1f\x7f\u202e]")
        self.assertEqual(len(out.splitlines()), 2)
        self.ask("runs", "\x1b[31m\u202e(", code=2)
        self.assertNotRegex(self.said, "[\x00-\x09\x0b-\x1f\x7f\u202e]")

    def test_a_foreign_database_is_refused_and_stays(self):
        self.record("one")
        os.makedirs(os.path.dirname(self.catalogue))
        with sqlite3.connect(self.catalogue) as db:
            db.execute("CREATE TABLE runs(identity TEXT)")
        db.close()
        with open(self.catalogue, "rb") as file:
            before = file.read()
        self.ask("runs", self.runs, code=2)
        self.assertIn("no catalogue of stormlog", self.said)
        with open(self.catalogue, "rb") as file:
            self.assertEqual(file.read(), before)
        self.assertEqual(os.listdir(os.path.dirname(self.catalogue)), ["c.sqlite"])
        os.unlink(self.catalogue)
        os.mkfifo(self.catalogue)
        self.ask("runs", self.runs, code=2)

    def test_a_catalogue_is_not_made_where_it_would_be_read_as_a_part_of_the_run(self):
        self.record("one")
        os.symlink("one", os.path.join(self.runs, "link"))
        for name in "x.stormlog", "x.ring", "x.summary", "manifest.json", "segment-1.jsonl", "rank-00007-7.msgpack.zst":
            for folder in "one", "link":
                path = os.path.join(self.runs, folder, name)
                for verb in ["runs"], ["history", "peak"]:
                    before = os.listdir(os.path.join(self.runs, "one"))
                    self.ask(*verb, "--catalogue", path, os.path.join(self.runs, "one"), code=2)
                    self.assertIn("%s is among the traces to read" % path, self.said)
                    self.assertEqual(os.listdir(os.path.join(self.runs, "one")), before)

    def test_a_file_of_one_byte_is_no_empty_catalogue(self):
        self.record("one")
        os.makedirs(os.path.dirname(self.catalogue))
        with open(self.catalogue, "w") as file:
            file.write("7")
        for verb in ["runs", self.runs], ["runs"], ["diff", "a=1", "b=2"]:
            self.ask(*verb, code=2)
            self.assertIn("no catalogue of stormlog", self.said)
            self.assertEqual(self.all_of_state(), {"c.sqlite": b"7"})

    def all_of_state(self):
        folder, found = os.path.dirname(self.catalogue), {}
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[name] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[name] = file.read()
        return found

    @unittest.skipUnless(os.geteuid() == 0, "only root makes files of others")
    def test_a_strangers_catalogue_in_a_folder_of_all_is_refused(self):
        self.record("one")
        self.ask("runs", self.runs)
        os.chown(self.catalogue, 65534, 65534)
        self.ask("runs", self.runs)
        os.chmod(os.path.dirname(self.catalogue), 0o1777)
        before = self.all_of_state()
        self.ask("runs", self.runs, code=2)
        self.assertIn("another user than you, root and its folder's owner", self.said)
        self.assertEqual(self.all_of_state(), before)

    def test_no_damage_to_a_catalogue_is_more_than_said(self):
        self.record("one")
        self.record("two")
        self.ask("runs", self.runs)
        with sqlite3.connect(self.catalogue) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        for end in ("-wal", "-shm"):
            if os.path.exists(self.catalogue + end):
                os.unlink(self.catalogue + end)
        with open(self.catalogue, "rb") as file:
            whole = file.read()
        dice = random.Random(7)
        for i in range(60):
            bytes_ = bytearray(whole)
            for _ in range(dice.choice((1, 8, 200))):
                bytes_[dice.randrange(100 if i % 3 else 0, len(bytes_))] = dice.randrange(256)
            if i % 10 == 9:
                del bytes_[dice.randrange(len(bytes_)):]
            with open(self.catalogue, "wb") as file:
                file.write(bytes_)
            for end in ("-wal", "-shm"):
                if os.path.exists(self.catalogue + end):
                    os.unlink(self.catalogue + end)
            for arguments in (["runs", "one or alpha"], ["history", "remember"]):
                done = subprocess.run([ANALYZE, *arguments, "--catalogue", self.catalogue], capture_output=True, text=True, timeout=60)
                self.assertIn(done.returncode, (0, 2, 4), done.stderr)
                self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x09\x0b-\x1f\x7f]")

    def test_several_at_once_learn_each_run_once(self):
        for name in ("one", "two", "three", "four"):
            self.record(name)
        command = [ANALYZE, "runs", "--json", self.runs, "--catalogue", self.catalogue]
        children = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(6)]
        for child in children:
            out, said = child.communicate(timeout=120)
            self.assertEqual((child.returncode, said), (0, ""))
            self.assertEqual(len(json.loads(out)["runs"]), 4)
        db = sqlite3.connect(self.catalogue)
        self.assertEqual(db.execute("SELECT count(*), count(DISTINCT identity) FROM runs").fetchone(), (4, 4))
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        self.assertEqual(db.execute("SELECT count(*) FROM sessions").fetchone(), (4,))
        db.close()

    def test_a_kill_leaves_a_whole_catalogue(self):
        for name in ("one", "two", "three"):
            self.record(name)
        for wait in (0.01, 0.03, 0.06, 0.1, 0.2):
            child = subprocess.Popen([ANALYZE, "runs", self.runs, "--catalogue", self.catalogue], stdout=subprocess.DEVNULL)
            time.sleep(wait)
            child.kill()
            child.wait()
            self.assertEqual(self.ids(self.runs), ["one", "three", "two"])
            os.unlink(self.catalogue)

    def test_where_hosts_may_share_it_nothing_of_it_is_kept_in_memory(self):
        for name in "root", "far":
            os.mkdir(os.path.join(self.folder, name))
        far = os.path.join(self.folder, "far")
        server = subprocess.Popen([sys.executable, os.path.join(HERE, "..", "agent", "hanging_fs.py"), os.path.join(self.folder, "root"), far], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(subprocess.run, ["umount", "-l", far], stderr=subprocess.DEVNULL)
        while not os.path.ismount(far):
            if server.poll() is not None:
                self.skipTest("no FUSE here (root, /dev/fuse and python3-fusepy are needed)")
            time.sleep(0.02)
        self.record("one")
        near, self.catalogue = self.catalogue, os.path.join(far, "c.sqlite")

        def mode(path):
            with open(path, "rb") as file:
                return file.read(20)[18:]

        elsewhere = os.path.join(self.folder, "elsewhere")  # below TMPDIR a confined verb may open everything
        os.mkdir(elsewhere)
        self.ask = functools.partial(self.ask, TMPDIR=elsewhere)
        self.assertEqual(self.ids(self.runs), ["one"])
        self.assertEqual((mode(self.catalogue), sorted(os.listdir(far))), (b"\1\1", ["c.sqlite", "c.sqlite-journal"]))
        self.catalogue = near
        self.assertEqual((self.ids(self.runs), mode(near)), (["one"], b"\2\2"))
        self.catalogue = shutil.copyfile(near, os.path.join(far, "moved.sqlite"))
        self.record("two")
        self.assertEqual((self.ids(self.runs), mode(self.catalogue)), (["one", "two"], b"\1\1"))
        self.catalogue = shutil.copyfile(self.catalogue, os.path.join(far, "without_its_journal.sqlite"))
        os.chmod(self.catalogue, 0o640)
        self.record("three")
        self.assertEqual(self.ids(self.runs), ["one", "three", "two"])
        self.assertEqual(os.stat(self.catalogue + "-journal").st_mode & 0o777, 0o640)
        self.assertIn("peak", self.ask("history", "peak", self.runs))
        self.assertIn("\nbefore  ", self.ask("diff", "run:one", "run:two"))
        killed = os.path.join(far, "killed.sqlite")
        with contextlib.closing(sqlite3.connect(self.catalogue)) as db:
            db.executescript("PRAGMA cache_size=1; BEGIN; UPDATE runs SET run_id = 'half'; WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
                             " INSERT INTO names(kind, text) SELECT 9, i || hex(randomblob(500)) FROM n")
            for end in "", "-journal":
                shutil.copyfile(self.catalogue + end, killed + end)
        self.assertTrue(os.path.getsize(killed + "-journal"))
        self.catalogue = killed
        self.assertIn("\nbefore  ", self.ask("diff", "run:one", "run:two"))
        self.assertEqual(self.ids(), ["one", "three", "two"])

    def test_who_learns_runs_is_not_alone_with_the_catalogue(self):
        """The last one to close a database takes away the file in which the others write.  He must see that he is not the last."""
        os.makedirs(self.runs)
        with open(os.path.join(self.runs, "no.stormlog"), "wb") as file:
            file.write(b"of no run")
        reads, writes = os.pipe()  # it is full: the child waits where it says what it could not read
        os.set_blocking(writes, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(writes, b" "):
                pass
        os.set_blocking(writes, True)
        child = subprocess.Popen([ANALYZE, "runs", self.runs, "--catalogue", self.catalogue], stdout=subprocess.DEVNULL, stderr=writes)
        os.close(writes)

        def writes_to_stderr():
            self.assertIsNone(child.poll())
            for task in os.listdir("/proc/%d/task" % child.pid):
                with open("/proc/%d/task/%s/syscall" % (child.pid, task)) as file:
                    if file.read().split()[:2] == [str(WRITE), "0x2"]:
                        return True
            return False
        try:
            until = time.monotonic() + 120
            while not writes_to_stderr():
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
            with contextlib.closing(sqlite3.connect(self.catalogue)) as db:
                self.assertEqual(db.execute("SELECT count(*) FROM runs").fetchone(), (0,))
            self.assertTrue(os.path.exists(self.catalogue + "-wal"))
        finally:
            with open(reads, "rb") as file:
                said = file.read()
            self.assertEqual((child.wait(120), b"no.stormlog: no pack of a run" in said), (3, True), said.strip())

    def test_json_is_as_its_schema_says(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("no jsonschema")
        self.record("one")
        with open(os.path.join(HERE, "..", "..", "schemas", "runs.schema.json")) as file:
            schema = json.load(file)
        jsonschema.validate(json.loads(self.ask("runs", "--json", self.runs)), schema)

    def test_the_default_place_is_the_users_state(self):
        self.record("one")
        state = os.path.join(self.folder, "xdg")
        done = subprocess.run([ANALYZE, "runs", self.runs], env=dict(os.environ, XDG_STATE_HOME=state), capture_output=True)
        self.assertEqual((done.returncode, os.listdir(os.path.join(state, "stormlog"))), (0, ["catalogue.sqlite"]))
        self.assertEqual(os.stat(os.path.join(state, "stormlog")).st_mode & 0o77, 0)


if __name__ == "__main__":
    unittest.main()
