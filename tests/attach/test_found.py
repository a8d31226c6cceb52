#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-attach on processes whose programs and libraries are hard to find (replaced, in a chroot...): the trace must hold the calls
that the program made, with their sizes."""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import stormlog_trace
import attachments
from test_asleep import exists, touch, wait_until
why_not = attachments.permitted()
if why_not:
    print("skipped:", why_not)
    sys.exit(77)

# Loads a copy of the runtime, does what the test says, and allocates 4096 bytes, 4097 and so on when it is told to.
PROGRAM = """
import ctypes, mmap, os, shutil, sys, threading, time
def load(name):
    shutil.copy(os.environ["LD_LIBRARY_PATH"] + "/libcudart.so.12", name)
    return ctypes.CDLL(os.path.abspath(name))
def wait(name):
    while not os.path.exists(os.path.join(here, name)): time.sleep(0.01)
def say(name):
    os.close(os.open(os.path.join(here, name), os.O_CREAT))
def allocate(cuda, size, count):
    for i in range(count):
        assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), size + i)
        time.sleep(0.01)
here = os.getcwd()
%s
say("made")
wait("go")
allocate(cuda, 4096, 50)
say("done")
wait("end")
os._exit(0)
"""


def sizes(trace, first=4096, last=9999):
    verbs, events = trace.verbs(), trace.events()
    return [size for api, size in zip(*(events[name].tolist() for name in ("api", "bytes") if events)) if verbs[api] == "ALLOC" and first <= size <= last]


def callers(trace, size):
    """Names of the Python functions that allocated so many bytes, innermost first."""
    events, stacks = trace.events(), attachments.python_stacks(trace)
    return [[frame[0] for frame in stacks.get(python, [])] for bytes, python in zip(*(events[name].tolist() for name in ("bytes", "python"))) if bytes == size]


class Found(unittest.TestCase):
    def watched(self, prepared, then=lambda run: None):
        """The trace of a program that does what is `prepared` before the attachment, and what it said."""
        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            self.assertIsNotNone(attached.since_ns, attached.said)
            touch(run, "go")
            then(run)
            wait_until(lambda: exists(run, "done"))
            touch(run, "end")
            self.assertEqual(attached.end(), 0, attached.said)
            self.said = "".join(attached.said)
        with e2e.Recording("python3", "-c", PROGRAM % prepared, preload=False, during=during) as run:
            return stormlog_trace.open_folder(run.traces)[0]

    def test_a_library_that_was_removed(self):
        trace = self.watched("cuda = load('libcudart.so.12'); os.unlink('libcudart.so.12')")
        self.assertEqual(sizes(trace), [4096 + i for i in range(50)])

    def test_a_library_that_was_replaced(self):
        """Its file was replaced by another one that has none of the hooked functions."""
        trace = self.watched("cuda = load('libcudart.so.12'); os.rename(shutil.copy('/bin/true', 'true'), 'libcudart.so.12')")
        self.assertEqual(sizes(trace), [4096 + i for i in range(50)])

    @unittest.skipIf(os.geteuid(), "only root changes its root")
    def test_a_library_behind_a_chroot(self):
        """The interpreter's own file is not seen from inside the chroot either, so this is also about Python's stacks."""
        trace = self.watched("cuda = load('libcudart.so.12'); cuda.cudaFree(None); os.chroot('.'); here = '/'")
        self.assertEqual(sizes(trace), [4096 + i for i in range(50)])
        self.assertEqual(callers(trace, 4100), [["allocate", "<module>"]])
        ids = {os.path.basename(module["path"]): module.get("build_id") for module in trace.defs["module"]}
        self.assertTrue(ids["libcudart.so.12"], ids)

    def test_a_library_after_forty_others_of_such_a_name(self):
        trace = self.watched("""
cuda, kept = load('libcudart.so.12'), []
for i in range(40):
    with open('libcuda-%d.so' % i, 'w+b') as file:
        file.truncate(4 << 20)
        kept.append(mmap.mmap(file.fileno(), 4 << 20, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE))""")
        self.assertEqual(sizes(trace), [4096 + i for i in range(50)])

    EXECS = """
cuda = load('libcudart.so.12')
if len(sys.argv) > 1:
    def second_life(): allocate(cuda, 8000, 300)
    second_life(); say("done"); wait("end"); os._exit(0)
def execute():
    wait("go")
    time.sleep(0.3)
    os.execv(sys.executable, [*sys.orig_argv, "second"])
"""

    def lives(self, execute):
        trace = self.watched(self.EXECS + execute)
        seen = sizes(trace, 8000)
        self.assertEqual(seen, [8000 + i for i in range(300 - len(seen), 300)])
        self.assertGreater(len(seen), 50)
        self.assertEqual(callers(trace, 8299), [["allocate", "second_life", "<module>"]])

    def test_a_program_that_executes_itself(self):
        self.lives("say('made'); execute()")

    def test_a_program_that_another_thread_of_it_executes(self):
        self.lives("threading.Thread(target=execute).start()")

    def test_what_comes_after_the_main_thread_has_ended_is_said_to_be_missing(self):
        """The runtime loads the driver at the first call, and the driver's own calls are watched if that was seen in time."""
        trace = self.watched("""
cuda = load('libcudart.so.12')
def later():
    while open('/proc/self/stat').read().rpartition(')')[2].split()[0] != 'Z': time.sleep(0.01)
    allocate(load('libcudart-2.so.12'), 8000, 200)
    say("done"); wait("end"); os._exit(0)
threading.Thread(target=later).start()
say("made"); wait("go")
allocate(cuda, 7000, 1)
ctypes.CDLL(None).pthread_exit(None)""")
        names, events = trace.names(), trace.events()
        self.assertEqual([size for api, size in zip(*(events[name].tolist() for name in ("api", "bytes"))) if names[api] == "cudaMalloc"], [7000])
        self.assertIn("its main thread has ended", " ".join(note["text"] for note in trace.defs["note"]))

    def test_each_call_is_of_the_cgroup_that_made_it(self):
        """A process and its child move between three cgroups and out of them, the child one ahead; the last move before a call says where the call was made."""
        folder, path = attachments.make_group("stormlog-places-%d" % os.getpid())
        if not folder:
            self.skipTest("no cgroup can be made here")
        self.addCleanup(os.rmdir, folder)
        if not os.path.exists(os.path.join(folder, "cgroup.controllers")):
            self.skipTest("only of cgroups of version 2 a call says its own")
        groups = ["a", "b", "c", ".."]
        for group in groups[:3]:
            os.mkdir(os.path.join(folder, group))
            self.addCleanup(os.rmdir, os.path.join(folder, group))
        program = """
first = 0 if os.fork() else 1
cuda = load("libcudart.so.%%d" %% first)
def move(turn):
    with open("%s/" + ["a", "b", "c", ".."][(turn + first) %% 4] + "/cgroup.procs", "w") as file: file.write("0")
move(0); say("made%%d" %% first); wait("go")
for turn in range(7):
    move(turn); allocate(cuda, 4096 + 100 * turn, 20)
say("done%%d" %% first); wait("end"); os._exit(0)""" % folder

        def during(run):
            self.addCleanup(run.process.wait)
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made0") and exists(run, "made1"))
            attached = attachments.Attached(run, "--cgroup", folder)
            touch(run, "go")
            wait_until(lambda: exists(run, "done0") and exists(run, "done1"))
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0, attached.said)
            touch(run, "end")
            wait_until(lambda: not any(open(os.path.join(folder, group, "cgroup.procs")).read() for group in groups[:3]))
        with e2e.Recording("python3", "-c", PROGRAM % program, preload=False, during=during) as run:
            traces = stormlog_trace.open_folder(run.traces)
            self.assertEqual(len(traces), 2)
            for trace in traces:
                first = trace.header["pid"] != run.process.pid
                said = [(said["ns"], said["value"].split()) for said in trace.defs["capability"] if said["name"] == "cgroups"]
                events = trace.events()
                seen = [(size, [where for since, where in said if since <= at][-1]) for size, at in zip(*(events[name].tolist() for name in ("bytes", "time_ns")))
                        if 4096 <= size < 4800]
                self.assertEqual([size for size, _ in seen], [4096 + 100 * turn + i for turn in range(7) for i in range(20)])
                for size, where in seen:
                    place = groups[((size - 4096) // 100 + first) % 4]
                    self.assertEqual([at for at in where if at.startswith(path)], [] if place == ".." else [path + "/" + place], size)

    def test_unwind_tables_with_a_register_of_a_ridiculous_number(self):
        def during(run):
            self.addCleanup(run.process.kill)
            run.process.stdout.readline()
            attached = attachments.Attached(run)
            self.assertIsNotNone(attached.since_ns, attached.said)
            wait_until(lambda: len((stormlog_trace.open_folder(run.traces)[0].events() or {"api": ()})["api"]) > 40)
            with open("/proc/%d/status" % attached.process.pid) as status:
                self.most_kib = int(status.read().split("VmHWM:")[1].split()[0])
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0, attached.said)
            run.process.kill()
        with e2e.Recording(os.path.join(e2e.APPS, "far_register"), preload=False, code=-9, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertEqual({(len(pcs), cut) for pcs, cut in attachments.native_stacks(trace).values()}, {(1, True)})
            self.assertLess(self.most_kib, 256 << 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
