#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Recordings that sleep, are woken, sleep again, and are killed at any of these times: the report must agree with the simulator's journal."""
import collections
import json
import os
import random
import re
import struct
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import stormlog_trace
import wakings

KILL_ME = os.path.join(e2e.APPS, "kill_me")
TENSORS = """
import ctypes, os, sys, time
c10 = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
new = lambda bytes: c10.caching_new(ctypes.c_size_t(bytes))
kept = [new(3 << 20) for _ in range(5)]
for i in range(1000):
    c10.caching_delete(ctypes.c_void_p(new(1 << 20)))
open("made", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
c10.caching_delete(ctypes.c_void_p(kept.pop()))
kept.append(new(7 << 20))
"""
# The owner of a ring that is asked to wake: cuts it, puts a link or another file in its place, and never answers.
OWNER = """
import fcntl, os, struct, sys, time
way, name = sys.argv[1:]
def make(name):
    head = bytearray(256 << 10)
    head[:16] = b"stormlog.ring\\n\\1\\0"
    struct.pack_into("<Q", head, 32, os.getpid())
    struct.pack_into("<3I", head, 384, 1, 0, 1)  # obeys, is asked nothing, is asleep
    open(name, "wb").write(head)
    file = open(name, "r+b")
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file
ring, other = make(name), make("other")
print("made", flush=True)
while not struct.unpack("<I", os.pread(ring.fileno(), 4, 388))[0]:
    time.sleep(0.001)
if way == "cut":
    ring.truncate(0)
elif way == "link":
    os.rename(name, "moved")
    os.symlink("moved", name)
else:
    os.rename("other", name)
time.sleep(60)
"""


def wait_until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise AssertionError("it did not happen within %d s" % seconds)
        time.sleep(0.005)


def touch(run, name):
    open(os.path.join(run.folder, name), "w").close()


def is_asleep(ring):
    with open(ring, "rb") as file:
        return struct.unpack_from("<I", file.read(396), 392)[0]  # common/ringfile.h


def exists(run, name):
    return os.path.exists(os.path.join(run.folder, name))


class Asleep(unittest.TestCase):
    def test_wakings_at_random_moments(self):
        first, wrong = random.randrange(1 << 30), []
        for what, _, bad in wakings.many(first, int(os.environ.get("STORMLOG_WAKINGS", "20"))):
            wrong += [(what, bad)] if bad else []
        self.assertEqual(wrong, [])

    def test_a_run_that_is_never_woken_is_exact_and_small(self):
        sizes = {}
        for asleep in (0, 1):
            with e2e.script("alloc=5", "calls=20000", "alloc=7", STORMLOG_ASLEEP=asleep) as run:
                wrong, report = e2e.equal_to_journal(run, threads=2)
                self.assertEqual(wrong, [])
                sizes[asleep] = sum(os.path.getsize(os.path.join(run.traces, name)) for name in run.files() if name.endswith(".zst"))
        self.assertLess(sizes[1] * 8, sizes[0])
        live, = [row for row in report["processes"][0]["memory"] if row["kind"] == "device"]
        self.assertEqual(live["live_bytes"], 12 << 20)
        self.assertTrue(any("asleep" in json.dumps(warning) for warning in report["warnings"]), report["warnings"])

    def test_what_was_made_asleep_is_one_row_and_what_is_made_awake_has_its_stack(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            self.assertEqual(wakings.attach(run).returncode, 0)
            touch(run, "go")
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=5", "alloc=6", "ready=made", "wait=go", "alloc=7", STORMLOG_ASLEEP=1,
                           APPS=e2e.APPS, during=during) as run:
            report = run.report()
        rows = sorted((leak["bytes"] >> 20, leak["blocks"], leak["stack"][0]["function"]) for leak in report["leaks"])
        self.assertEqual(rows[1], (11, 2, "made while asleep"))
        self.assertEqual((rows[0][:2], len(rows)), ((7, 1), 2))
        self.assertTrue(any(frame["file"] and frame["file"].endswith("script.py")
                            for leak in report["leaks"] if leak["bytes"] == 7 << 20 for frame in leak["stack"]), report["leaks"])

    def test_memory_that_rises_asleep_is_told_though_no_line_of_it_is_known(self):
        for asleep, words in (1, ["GROWS"]), (0, ["LEAK"]):
            with e2e.script("alloc=300", "grow=150", STORMLOG_ASLEEP=asleep) as run:
                self.assertEqual([one["word"] for one in run.report()["answer"]["verdicts"]], words)

    def test_a_call_that_begins_asleep_and_ends_awake_was_made_asleep(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            wait_until(lambda: any(call.api == "cudaMalloc" for process in run.truth() for call in process.in_flight))
            self.assertEqual(wakings.attach(run).returncode, 0)
        with e2e.script("pin=1", "ready=made", "alloc=5", STORMLOG_ASLEEP=1, SIM_LATENCY="cudaMalloc:10000000000", during=during) as run:
            report = run.report()
        self.assertEqual(sorted((leak["kind"], leak["bytes"] >> 20, leak["stack"][0]["function"]) for leak in report["leaks"]),
                         [("device", 5, "made while asleep"), ("host_pinned", 1, "made while asleep")])

    def test_tensors_made_asleep_live_and_totals_are_pytorchs_own(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            self.assertEqual(wakings.attach(run).returncode, 0)
            touch(run, "go")
        with e2e.Recording(sys.executable, "-c", TENSORS, STORMLOG_ASLEEP=1, APPS=e2e.APPS,
                           LD_LIBRARY_PATH=e2e.SIM + ":" + e2e.APPS, during=during) as run:
            wrong, report = e2e.equal_to_journal(run, threads=2)
        self.assertEqual(wrong, [])
        torch, = report["processes"][0]["pytorch"]
        self.assertEqual([torch[name] for name in ("events", "live_blocks", "allocated_bytes")], [2005 + 2, 5, (4 * 3 + 7) << 20])

    def test_a_call_that_runs_out_of_memory_wakes_it(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            ring, = [name for name in run.files() if name.endswith(".ring")]
            wait_until(lambda: "is awake" in wakings.attach(run).stderr)
            touch(run, "go")
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "alloc=200", "try=900", "ready=made", "wait=go", "alloc=3", STORMLOG_ASLEEP=1,
                           APPS=e2e.APPS, SIM_VRAM="1G", during=during) as run:
            wrong, report = e2e.equal_to_journal(run, threads=2)
            trace, = stormlog_trace.open_folder(run.traces)
        self.assertEqual(wrong, [])
        self.assertEqual([(slept["why"], slept["wakes"]) for slept in trace.defs["slept"]], [("a call ran out of memory", 1)])
        oom, = report["ooms"]
        self.assertEqual((oom["requested_bytes"] >> 20, oom["live_bytes"] >> 20), (900, 500))
        self.assertTrue(any(frame["file"] and frame["file"].endswith("script.py") for frame in oom["stack"]), oom["stack"])

    def test_a_device_that_is_nearly_full_wakes_it(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            ring, = [os.path.join(run.traces, name) for name in run.files() if name.endswith(".ring")]
            wait_until(lambda: not is_asleep(ring), 120)  # the agent looks every five seconds
            touch(run, "go")
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "alloc=400", "ready=made", "wait=go", STORMLOG_ASLEEP=1, APPS=e2e.APPS,
                           SIM_VRAM="1010M", during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
        self.assertEqual([slept["why"] for slept in trace.defs["slept"]], ["a device is nearly full"])

    def test_killed_asleep_it_says_so_and_nothing_false(self):
        for threads in (1, 4):
            with self.subTest(threads), e2e.Recording(KILL_ME, threads, STORMLOG_ASLEEP=1, SIM_LATENCY=20000, code=-9,
                                                      kill_when=lambda run: (run.process.stdout.readline(), time.sleep(random.uniform(0.05, 0.4)))) as run:
                report = run.report()
                mine, = report["processes"]
                self.assertEqual((mine["status"], mine["lost_events"], mine["damaged"]), ("interrupted", 0, False))
                self.assertTrue(any("was asleep when it ended" in json.dumps(warning) for warning in report["warnings"]), report["warnings"])
                self.assertEqual((report["leaks"], mine["unknown_frees"]), ([], 0))
                said = re.search(r"(\d+) blocks of (\d+) bytes were made and (\d+) ended, with (\d+) bytes", json.dumps(report["warnings"]))
                self.assertLessEqual(int(said[4]), int(said[2]))
                calls = collections.Counter({row["api"]: row["calls"] for row in mine["apis"]})
                calls.update(call["api"] for call in mine["in_flight"])
                truth, = run.truth()
                for name, counted in (("cudaMalloc", said[1]), ("cudaFree", said[3])):
                    real = truth.apis[name].calls - (name == "cudaFree")  # its first call frees nothing, which is no block's end
                    self.assertLessEqual(real, int(counted) + calls[name], name)
                    self.assertLessEqual(int(counted) + calls[name], real + 2 * threads, name)  # at the kill a free may be counted, in flight and not yet in the journal

    def test_killed_in_the_middle_of_waking(self):
        """The trace may lack events, but what it has is true: each block reported live did live with that size; no call is there twice."""
        for _ in range(int(os.environ.get("STORMLOG_KILLS", "8"))):
            def when(run):
                run.process.stdout.readline()
                time.sleep(random.uniform(0.02, 0.2))
                waker = threading.Thread(target=wakings.attach, args=(run,))
                waker.start()
                time.sleep(random.choice((0, random.uniform(0, 0.02), random.uniform(0, 0.15))))
                run.process.kill()
                waker.join()
            with e2e.Recording(KILL_ME, 4, STORMLOG_ASLEEP=1, SIM_LATENCY=100000, code=-9, kill_when=when) as run:
                report, (truth,) = run.report(), run.truth()
                trace, = stormlog_trace.open_folder(run.traces)
                mine, = report["processes"]
                self.assertEqual((mine["status"], mine["lost_events"], mine["damaged"]), ("interrupted", 0, False), report["warnings"])
                made = {}
                for call in truth.calls:
                    if call.api == "cuMemAlloc_v2":
                        made.setdefault(call.address, set()).add(call.bytes)
                events, verbs = trace.events(), trace.verbs()
                for api, address, size, result in zip(*(events[name].tolist() for name in ("api", "address", "bytes", "result"))) if events else []:
                    if verbs[api] == "ALLOC" and address and not result:
                        self.assertIn(size, made.get(address, ()))
                counted = {row["api"]: row["calls"] for row in mine["apis"]}
                for name, real in truth.apis.items():
                    self.assertLessEqual(counted.get(name, 0), real.calls + 4, name)  # the kill may hit the journal before a call that the trace has
                self.assertLessEqual(sum(row["live_bytes"] for row in mine["memory"]),
                                     sum(sum(sizes) for sizes in made.values()))

    def test_the_program_that_wakes_says_what_it_cannot(self):
        def attach(*arguments):
            return subprocess.run([e2e.ATTACH, *arguments], capture_output=True, text=True, timeout=60)
        for arguments, status in (([], 2), (["/nowhere"], 2), (["999999999"], 2), ([str(os.getpid())], 3), (["/tmp/../usr"], 3),
                                  (["--rest", "--duration", "1", str(os.getpid())], 2), (["--duration", "x", "1"], 2), (["--all", "--cgroup", "/x"], 2), (["--help"], 0)):
            done = attach(*arguments)
            self.assertEqual((done.returncode, bool(done.stderr or done.stdout)), (status, True), (arguments, done))
        with e2e.script("alloc=1", "ready=made", "wait=go", during=lambda run: (wait_until(lambda: exists(run, "made")), attach_awake(run))) as run:
            pass

    def test_a_ring_that_its_owner_cuts_or_replaces_has_ended_and_the_others_are_told(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            for way in ("cut", "link", "other"):
                owner, done = attach_beside(run, way, "x.ring")
                self.assertEqual(done.returncode, 0, (way, done.stderr))
                for line in ("%d has ended (%s/x.ring)" % (owner, run.traces), "%d is awake" % run.process.pid):
                    self.assertIn(line, done.stderr, way)
            touch(run, "go")
        with e2e.script("alloc=1", "ready=made", "wait=go", STORMLOG_ASLEEP=1, during=during):
            pass

    def test_the_name_of_a_ring_steers_no_terminal_and_no_runner(self):
        with e2e.Recording("true", preload=False) as run:
            os.mkdir(run.traces)
            owner, done = attach_beside(run, "cut", "a\x1b]0;b\a\n::error::\u202e##vso[c].ring")
            self.assertIn("%d has ended (%s/a?]0;b??::error::?# #vso[c].ring)\n" % (owner, run.traces), done.stderr)

    def test_a_stay_of_a_while_ends_at_rest(self):
        def during(run):
            run.process.stdout.readline()
            done = wakings.attach(run, "--duration", "0.2")
            self.assertEqual((done.returncode, "is awake" in done.stderr, "is at rest" in done.stderr), (0, True, True), done.stderr)
            self.assertLess(done.stderr.index("is awake"), done.stderr.index("ready"))
        with e2e.Recording(KILL_ME, 2, "_exit", 1500000, STORMLOG_ASLEEP=1, SIM_LATENCY=100000, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertEqual([slept["wakes"] for slept in trace.defs["slept"]], [1, 1])
            events = trace.events()
        self.assertGreater(len(events["api"]), 100)

    def test_it_is_put_to_rest_that_began_awake(self):
        def during(run):
            wait_until(lambda: exists(run, "made"))
            self.assertEqual(wakings.attach(run, "--rest").returncode, 0)
            touch(run, "go")
            wait_until(lambda: exists(run, "freed"))
            self.assertEqual(wakings.attach(run).returncode, 0)
            touch(run, "end")
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=5", "calls=300", "ready=made", "wait=go", "free", "alloc=6", "calls=300", "ready=freed",
                           "wait=end", "alloc=7", "free", "alloc=8", APPS=e2e.APPS, during=during) as run:
            wrong, report = e2e.equal_to_journal(run, threads=2)
        self.assertEqual(wrong, [])
        self.assertEqual([row["live_bytes"] >> 20 for row in report["processes"][0]["memory"] if row["kind"] == "device"], [8])


def attach_beside(run, way, name):
    """stormlog-attach on a folder with a ring of OWNER's.  Returns its pid and what was said."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, way, name], stdout=subprocess.PIPE, cwd=run.traces)
    try:
        owner.stdout.readline()
        return owner.pid, wakings.attach(run)
    finally:
        owner.kill()
        owner.communicate()
        os.unlink(os.path.join(run.traces, name))


def attach_awake(run):
    """stormlog-attach on a recording that is already awake says so at once, whether it is named by folder or by process id."""
    for target in (run.traces, str(run.process.pid)):
        done = subprocess.run([e2e.ATTACH, target], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "is awake" in done.stderr and done.stderr.endswith("ready\n"), done
    touch(run, "go")


if __name__ == "__main__":
    e2e.side_by_side()
