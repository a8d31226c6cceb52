#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real file systems without room for the trace, by quota and by a full disk: full_disks.py FOLDER... [TEST...]

Needs root in a virtual machine (scripts/test-full-disks), since it sets quotas and fills the disks.  Each folder is the mount point of a
file system and has its name.  On ext4 and xfs users have quotas; the ring of a trace on btrfs, or an overlay on one, lies elsewhere.  The recorded program runs
as an ordinary user."""
import collections
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import e2e
import kills
import stormlog_trace

NOBODY = 65534
USER = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
RING_KIB = 3328  # the size of a fresh ring, as in agent/launcher/folder.c
AFTERWARDS = 4000
MEMORY_KIB = 32 << 10  # the most memory that the agent may add to the program's, its ring included
OVERFLOW = 14000  # pairs of calls: more than fit in a ring that does not grow
GAP = re.compile(r"(\d+) events could not be kept between ([\d.]+) s and ([\d.]+) s")
FAILED = re.compile(r"(\w+)\(.* = -1 (EDQUOT|ENOSPC) ")


class Quota:
    says = "[Qq]uota exceeded"

    def __init__(self, folder):
        self.folder = folder

    def limit(self, kib, inodes=0):
        subprocess.run(["setquota", "-u", str(NOBODY), "0", str(kib), "0", str(inodes), self.folder], check=True)

    def leave(self, kib):
        """Set the quota to `kib` more than is in use.  With less than is in use every new block is refused."""
        os.sync()  # so that blocks of delayed allocation count too
        used = [line.split()[2] for line in subprocess.run(["repquota", "-n", self.folder], check=True, capture_output=True, text=True)
                .stdout.splitlines() if line.startswith("#%d " % NOBODY)]
        self.limit(max(1, int(used[0] if used else 0) + kib))

    def lift(self):
        self.limit(0)


class Room:
    says = "No space left on device"

    def __init__(self, folder):
        self.folder, self.ballast = folder, os.path.join(folder, "ballast")

    def leave(self, kib):
        """Leave at most `kib` free: btrfs rounds."""
        os.makedirs(self.ballast)
        for piece in (1 << 20, 4096):
            with open(os.path.join(self.ballast, str(piece)), "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(piece))
                except OSError:
                    pass
            os.sync()
        with open(os.path.join(self.ballast, str(1 << 20)), "r+b") as file:
            file.truncate(max(0, os.path.getsize(file.name) - (kib << 10)))
        os.sync()

    def lift(self):
        shutil.rmtree(self.ballast, True)
        os.sync()


class Run:
    """One run of script.py with `steps` by the ordinary user, with its trace on the disk under test."""

    def __init__(self, test, *steps, recorded=True, before=(), how=()):
        self.test, self.folder = test, tempfile.mkdtemp(dir=test.scratch)
        self.journals = os.path.join(self.folder, "journal")
        self.out, self.err = (os.path.join(self.folder, name) for name in ("out", "err"))
        os.makedirs(self.journals)
        for folder in (self.folder, self.journals):
            os.chmod(folder, 0o777)
        environment = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        environment.update(LD_LIBRARY_PATH=e2e.SIM, SIM_JOURNAL=self.journals, SIM_DIR=os.path.join(self.folder, "sim"), SIM_DEVICES="1",
                           STORMLOG_DIR=test.traces, APPS=e2e.APPS)
        preload = ["env", "LD_PRELOAD=" + e2e.PRELOAD] if recorded and not how else []
        self.process = subprocess.Popen([*how, *preload, sys.executable, e2e.SCRIPT, *steps], env=environment, cwd=self.folder,
                                        stdout=open(self.out, "w"), stderr=open(self.err, "w"), **USER)
        test.addCleanup(self.stop)

    def stop(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    def until(self, name):
        while not os.path.exists(self.test.path(name)):
            self.test.assertIsNone(self.process.poll(), "it ended before it was " + name)
            time.sleep(0.01)

    def end(self):
        """What the program did, observed without the agent."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
        self.rss_kib = usage.ru_maxrss
        self.truth, = e2e.journal.load(self.journals)
        calls = [(call.api, call.result, call.address, call.bytes, call.other) for call in self.truth.calls]
        with open(self.out) as out, open(self.err) as err:
            self.out, self.err = out.read(), err.read()
        return self.code, self.out, calls


class OnDisk:
    make = None  # Quota or Room

    def setUp(self):
        self.scratch = tempfile.mkdtemp()  # not on that disk: the journal, and files by which test and program wait for each other
        os.chmod(self.scratch, 0o777)
        self.traces = os.path.join(self.disk, "traces")
        self.room = self.make(self.disk)
        self.addCleanup(shutil.rmtree, self.scratch)
        self.addCleanup(shutil.rmtree, self.traces, True)
        self.addCleanup(self.room.lift)
        os.chmod(self.disk, 0o777)

    def path(self, name):
        return os.path.join(self.scratch, name)

    def say(self, name):
        open(self.path(name), "w").close()

    def finish(self, run, steps):
        """The program ended as without the agent, with the same output and calls, and took at most MEMORY_KIB more memory."""
        did = run.end()
        alone = Run(self, *steps, recorded=False)
        self.assertEqual(did, alone.end(), run.err)
        self.assertEqual(run.code, 0, run.err)
        self.assertLess(run.rss_kib, alone.rss_kib + MEMORY_KIB)

    def analyze(self, *options):
        return subprocess.run([e2e.ANALYZE, *options, self.traces], capture_output=True, text=True, timeout=600, **USER)

    def judge(self, run):
        """The trace has only calls that were made; those that it lacks are counted and lie in the gaps that the report names.  Returns
        the process of the report and the sizes of the allocations in the trace."""
        done = self.analyze("--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        process, = e2e.json.loads(done.stdout)["processes"]
        self.assertEqual(process["status"], "completed")
        wanted = e2e.expected_apis(run.truth, e2e.rows_of(self.traces))
        self.assertEqual(sum(api["calls"] for api in process["apis"]) + process["lost_events"], sum(calls for calls, _ in wanted.values()))
        gaps = [(int(count), float(begin), float(end)) for count, begin, end in GAP.findall(done.stderr)]
        self.assertEqual(sum(count for count, _, _ in gaps), process["lost_events"], done.stderr)

        trace, = stormlog_trace.open_folder(self.traces)
        (all_made,), ((made, flying),) = kills.by_thread_of_journal(run.truth).values(), kills.by_thread_of_trace(trace).values()
        self.assertEqual(flying, [])
        sizes = [size for name, _, size in made if name == "cudaMalloc"]
        there = [size for name, _, size in all_made if name == "cudaMalloc"]
        self.assertLessEqual({row for row in made if row[0] == "cudaMalloc"}, set(all_made))
        self.assertEqual(sizes, [size for size in there if size in set(sizes)])
        self.judge_times(trace, gaps, there)
        return process, sizes

    def judge_times(self, trace, gaps, there):
        """Where allocations are missing between two recorded ones, a reported gap lies between these."""
        events, start_ns = trace.events(), trace.header["monotonic_ns"]
        names = trace.names()
        kept = [(there.index(size), (time_ns - start_ns) / 1e9) for api, size, time_ns in
                zip(*(events[name].tolist() for name in ("api", "bytes", "time_ns"))) if names[api] == "cudaMalloc"]
        kept.append((len(there), float("inf")))
        rounded = 0.001
        for (place, before), (following, after) in itertools.pairwise(kept):
            if following != place + 1:
                self.assertTrue([gap for gap in gaps if before <= gap[1] + rounded and gap[2] <= after + rounded], (place, following, gaps))

    def test_room_that_ends_while_the_trace_grows(self):
        steps = ["calls=%d" % OVERFLOW]
        self.room.leave(RING_KIB + 16)
        run = Run(self, *steps)
        self.finish(run, steps)
        process, sizes = self.judge(run)
        if not self.elsewhere:
            self.assertGreater(process["lost_events"], 0)
        self.assertGreater(len(sizes), 8000)

    def test_no_room_from_the_start(self):
        steps = ["alloc=1", "calls=10"]
        for kib in (0, RING_KIB // 2):
            self.room.leave(kib)
            run = Run(self, *steps, how=[e2e.RUN, "-o", self.traces, "--"])
            self.finish(run, steps)
            if not kib or not self.elsewhere:
                self.assertRegex(run.err, "nothing recorded: .*" + self.room.says)
                self.assertFalse(os.path.isdir(self.traces) and os.listdir(self.traces))
            shutil.rmtree(self.traces, True)
            run = Run(self, *steps)
            self.finish(run, steps)
            if not kib or not self.elsewhere:
                self.assertFalse(os.path.isdir(self.traces) and os.listdir(self.traces))
            shutil.rmtree(self.traces, True)
            self.room.lift()

    def test_room_that_ends_and_comes_back(self):
        """Somebody else takes all the room, which the ring's own blocks survive, and gives it back later."""
        words = ["alloc=1", "ready=" + self.path("ready"), "wait=" + self.path("full"), "calls=%d" % OVERFLOW, "ready=" + self.path("done"),
                 "wait=" + self.path("lifted"), "calls=%d" % AFTERWARDS]
        run = Run(self, *words)
        run.until("ready")
        self.room.leave(0)
        self.say("full")
        run.until("done")
        os.sync()  # writes out the ring's pages too
        summary = self.analyze()
        self.assertIn(summary.returncode, (0, 4), summary.stderr)  # 4: there is no room for the analysis, which is printed
        self.assertIn("script.py", summary.stdout)
        self.room.lift()
        self.say("lifted")
        self.finish(run, words)
        process, sizes = self.judge(run)
        self.assertEqual(process["lost_events"] == 0, self.elsewhere)  # a ring in memory has room for all
        self.assertGreater(sum(OVERFLOW < size <= OVERFLOW + AFTERWARDS for size in sizes), AFTERWARDS // 2)

    def test_what_the_kernel_answers(self):
        """The kernel's errors are those that test_faults.py injects by strace: these calls fail, without a signal, and fewer times than
        there are dropped events."""
        log, words = self.path("strace"), ["calls=%d" % OVERFLOW]
        self.room.leave(RING_KIB + 16)
        run = Run(self, *words, how=["strace", "-f", "-qq", "-e", "trace=all", "-e", "status=failed", "-o", log, "-E", "LD_PRELOAD=" + e2e.PRELOAD])
        run.end()
        self.assertEqual(run.code, 0, run.err)
        with open(log) as file:
            lines = file.read()
        failed = collections.Counter(FAILED.findall(lines))
        print(self.id().split(".")[-2], dict(failed))
        self.assertNotIn("SIGBUS", lines)
        if not self.elsewhere:
            self.assertEqual({call for call, _ in failed}, {"fallocate", "pwrite64"})
            self.assertLess(sum(count for (call, _), count in failed.items() if call == "fallocate"), self.judge(run)[0]["lost_events"] / 2)


class OnQuota(OnDisk):
    make = Quota

    def test_no_more_files(self):
        self.room.limit(0, inodes=1)
        run = Run(self, "alloc=1", how=[e2e.RUN, "-o", self.traces, "--"])
        self.finish(run, ["alloc=1"])
        self.assertRegex(run.err, "nothing recorded: .*" + self.room.says)


if __name__ == "__main__":
    folders = [word for word in sys.argv[1:] if word.startswith("/")]
    for folder in folders:
        name = os.path.basename(folder)
        more = {"disk": folder, "elsewhere": name in ("btrfs", "overlay")}
        globals()["Full_" + name] = type("Full_" + name, (OnDisk, unittest.TestCase), {**more, "make": Room})
        if name in ("ext4", "xfs"):
            globals()["Quota_" + name] = type("Quota_" + name, (OnQuota, unittest.TestCase), more)
    unittest.main(argv=[word for word in sys.argv if word not in folders], verbosity=2, warnings="ignore")
