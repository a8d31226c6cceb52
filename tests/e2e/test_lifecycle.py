#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Threads and processes that begin and end in many ways: no hang, the same end as without the agent, and their calls are in the report."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import e2e
import journal
import stormlog_trace
from e2e import APPS, Recording, differences, rows_of

LIFE = os.path.join(APPS, "life")
THREADS = int(os.environ.get("STORMLOG_THREADS", 1000))  # 20000 by hand
FORK_LOCKED = os.path.join(APPS, "fork_locked")
TLS = os.path.join(APPS, "tls_plugin.so")
PLUGIN = os.path.join(APPS, "ctor_plugin.so")
WORKERS = """
import ctypes, multiprocessing, os, sys
def allocate(mib):
    cudart, p = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
    result = cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))
    return result or cudart.cudaFree(p)
if __name__ == "__main__":
    method, first = sys.argv[1:]
    print(allocate(1) if first == "after" else 0)
    with multiprocessing.get_context(method).Pool(2) as pool:
        print(set(pool.map(allocate, [2, 3, 4, 5], chunksize=1)))
"""
# The device is sampled after the first call, and not again before the end.
SHORT = """
import ctypes, time
runtime, address = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64 << 20)) == 0
while not ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked():
    time.sleep(0.01)
assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(200 << 20)) == 0
"""
# NVML is shut down for all its users, and then more memory is taken on both devices.
SHUT_DOWN = """
import ctypes, time
runtime, nvml, address = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
def take(mib):
    for device in 0, 1:
        assert runtime.cudaSetDevice(device) == 0
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t((mib + 2 * device) << 20)) == 0
def wait():
    until, deadline = nvml.sim_nvml_asked() + 4, time.monotonic() + 60
    while nvml.sim_nvml_asked() < until and time.monotonic() < deadline:
        time.sleep(0.005)
take(64)
wait()
while nvml.nvmlShutdown() == 0:
    pass
take(200)
wait()
"""
THROW = """
#include <cstdio>
extern "C" int cudaMalloc(void **, unsigned long);
int main() {
    void *p;
    int caught = 0;
    for (int i = 0; i < 100; i++)
        try { cudaMalloc(&p, 1 << 20); } catch (int) { caught++; }
    return printf("caught %d\\n", caught) < 0;
}
"""
# A vendor library in which every second call throws an exception through the agent's frames.
THROWER = "extern \"C\" int cudaMalloc(void **, unsigned long) { static int n; if (++n % 2) throw 1; return 0; }\n"


RESETS = """
import ctypes, time
hip = ctypes.CDLL("libamdhip64.so.6")
pointer = ctypes.c_void_p()
for i in range(20):
    assert hip.hipMalloc(ctypes.byref(pointer), 1 << 20) == 0
    time.sleep(.02)  # a sample is due
    assert hip.hipDeviceReset() == 0
"""

SLOW_LOADER = """
#define _GNU_SOURCE
#include <link.h>
#include <string.h>
#include <time.h>
unsigned la_version(unsigned version) { return version; }
unsigned la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie)
{
    for (clock_t end = clock() + CLOCKS_PER_SEC / 2; strstr(map->l_name, "libnvidia-ml") && clock() < end;)
        ;
    return 0;
}
"""
FORKS = """
import ctypes, os
runtime = ctypes.CDLL("libcudart.so.13")
assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 0
for _ in range(200):
    child = os.fork()
    if not child:
        ctypes.CDLL("libcudart.so.13")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


class Life(unittest.TestCase):
    maxDiff = None

    def same_end(self, *argv, code=0, **environment):
        """Run without and with the agent: outputs must be equal.  Returns the second Recording."""
        with Recording(*argv, preload=False, code=code, **environment) as plain:
            ours = Recording(*argv, code=code, **environment)
            self.addCleanup(shutil.rmtree, ours.folder, True)
            self.assertEqual([ours.done.stdout, ours.done.stderr], [plain.done.stdout, plain.done.stderr])
        return ours

    def test_a_reset_device_is_left_alone(self):
        retained = []
        for preload in (False, True):
            with Recording("/usr/bin/python3", "-c", RESETS, preload=preload, STORMLOG_DEVICE_INTERVAL=5) as run:
                calls = [call for process in journal.load(run.journals) for call in process.calls]
                retained.append([call.api for call in calls if call.api == "cuDevicePrimaryCtxRetain"])
        self.assertEqual(len(retained[0]), 20)
        self.assertEqual(retained[1], retained[0])

    def assert_journal(self, run, threads=1):
        report, rows = run.report(), rows_of(run.traces)
        for real in run.truth():
            mine = [process for process in report["processes"] if process["pid"] == real.pid]
            if not mine:
                self.assertEqual([call.api for call in real.calls if call.api in rows], [])
                continue
            self.assertEqual(differences(mine[0], real, rows, threads), [])
            self.assertEqual(mine[0]["lost_events"], 0)
        return report

    def test_a_thousand_threads_come_and_go_and_memory_stays_flat(self):
        self.assert_journal(self.same_end(LIFE, "churn", THREADS), threads=8)

    def test_more_threads_at_once_than_the_ring_has_segments(self):
        count = max(400, THREADS // 5)
        self.assert_journal(self.same_end(LIFE, "crowd", count), threads=count)

    def test_calls_in_destructors_of_threads(self):
        """As many rounds as the C library runs, and more threads than the agent has room for at once."""
        self.assert_journal(self.same_end(LIFE, "thread_ends", 100), threads=2)

    def test_a_cancellation_that_is_due_is_not_acted_upon_inside_a_call(self):
        self.assert_journal(self.same_end(LIFE, "cancel", 100), threads=2)

    def test_the_first_call_in_a_signal_handler_on_an_alternate_stack(self):
        self.assert_journal(self.same_end(LIFE, "alternate"))

    def test_a_stack_of_ten_thousand_frames(self):
        report = self.assert_journal(self.same_end(LIFE, "deep", 10000))
        self.assertEqual(report["processes"][0]["status"], "completed")

    def test_calls_in_atexit_handlers(self):
        self.assert_journal(self.same_end(LIFE, "atexit"))

    def test_a_constructor_that_waits_for_a_thread_inside_an_allocation(self):
        for mode in ("locked", "first"):
            with self.subTest(mode):
                self.assert_journal(self.same_end(os.path.join(APPS, "ctor_host"), PLUGIN, mode), threads=2)

    def test_children_of_every_kind_made_in_the_middle_of_calls(self):
        self.assert_journal(self.same_end(LIFE, "fork_busy", 25), threads=4)

    def test_children_forked_while_another_thread_holds_the_lock_of_the_loaders_list(self):
        run = self.same_end(LIFE, "fork_walking", 40)
        self.assertEqual(len(run.report()["processes"]), 40)
        self.assert_journal(run)

    def test_children_forked_while_stacks_are_unwound_have_the_lock_of_the_loaders_list(self):
        self.assert_journal(self.same_end(LIFE, "fork_unwinding", 40), threads=9)

    def test_children_forked_while_the_writer_opens_a_library_have_a_whole_loader(self):
        """An audit library has the loader compute for a while in the middle of its work."""
        with tempfile.TemporaryDirectory() as folder:
            source, audit = os.path.join(folder, "slow.c"), os.path.join(folder, "slow.so")
            with open(source, "w") as file:
                file.write(SLOW_LOADER)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", audit, source], check=True)
            self.same_end("/usr/bin/python3", "-c", FORKS, LD_AUDIT=audit)

    def test_children_made_while_another_thread_holds_the_lock_of_thread_local_data(self):
        """They cannot start a thread, and so have no writer: the thread that ends the process writes."""
        hanging = 0
        for how in ("fork", "_Fork", "clone"):
            with self.subTest(how), Recording(FORK_LOCKED, TLS, how, "thread", preload=False, code=None) as alone:
                if alone.done.returncode == 77:  # an older C library has no _Fork
                    continue
                hangs = alone.done.stdout == b"hangs\n"
                run = self.same_end(FORK_LOCKED, TLS, how, "gpu")
                report = self.assert_journal(run)
                self.assertEqual([process["status"] for process in report["processes"]], ["completed"] * 2)
                said = [[note["text"] for note in trace.defs.get("note", [])] for trace in stormlog_trace.open_folder(run.traces)]
                if hangs:
                    hanging += 1
                    self.assertEqual(len([notes for notes in said if any("no background thread" in note for note in notes)]), 1, said)
        if not hanging:
            self.skipTest("the lock of this C library cannot be held so")

    def test_a_program_without_a_gpu_is_recorded_where_that_is_wanted(self):
        for command in ([sys.executable, "-c", "x = bytearray(200 << 20); import time; time.sleep(0.5)"], ["sh", "-c", "sleep 0.3; exit 3"]):
            with Recording(*command, code=None, STORMLOG_HOST=0) as run:
                self.assertEqual(run.files(), [])
                code = run.done.returncode
            with Recording(*command, code=code, launcher=("--host", "--quiet")) as run:
                report = run.report()
                self.assertEqual((run.done.stdout, run.done.stderr), (b"", b""))
                # sh is one process, which ends with 3, and sleep another
                self.assertEqual(sorted(process["status"] for process in report["processes"]),
                                 ["completed", "failed"] if command[0] == "sh" else ["completed"])
                peak = max(process["host_memory"]["rss_peak_bytes"] for process in report["processes"])
                self.assertGreater(peak, 0 if command[0] == "sh" else 200 << 20)
                self.assertEqual([process["memory"] for process in report["processes"]], [[]] * len(report["processes"]))

    def test_the_limit_of_a_cgroup_is_told_also_of_a_process_that_it_killed(self):
        version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        folder = ("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/memory") + "/stormlog-test-%d" % os.getpid()
        limit = os.path.join(folder, "memory.max" if version2 else "memory.limit_in_bytes")
        try:
            os.mkdir(folder)
            self.addCleanup(os.rmdir, folder)
            with open(limit, "w") as file:
                file.write(str(64 << 20))
        except OSError as error:
            self.skipTest("no cgroup can be made here: %s" % error)
        script = "echo $$ > %s/cgroup.procs; exec %s -c \"import time; x = bytearray(%%d << 20); time.sleep(0.5)\"" % (folder, sys.executable)
        for mib, code in ((8, 0), (200, -9)):
            with Recording("sh", "-c", script % mib, code=code, launcher=("--host",)) as run:
                (process,) = [process for process in run.report()["processes"] if process["command"][0] == sys.executable]
                memory = process["host_memory"]
                self.assertEqual(process["status"], "interrupted" if code else "completed")  # interrupted: the kernel killed it
                self.assertEqual(memory["cgroup_limit_bytes"], 64 << 20)
                self.assertLessEqual(memory["cgroup_peak_bytes"], 64 << 20)
                self.assertGreater(memory["cgroup_peak_bytes"], mib << 20 if not code else 0)

    def test_a_daemon(self):
        report = self.assert_journal(self.same_end(LIFE, "daemonize"), threads=8)
        self.assertEqual([process["status"] for process in report["processes"]], ["completed"])

    def test_a_program_that_closes_every_descriptor_is_recorded_to_the_end(self):
        process, = self.assert_journal(self.same_end(LIFE, "close_under"), threads=12)["processes"]
        self.assertEqual((process["status"], process["damaged"]), ("completed", False))

    def test_a_short_run_has_a_sample_of_its_end(self):
        with Recording("/usr/bin/python3", "-c", SHORT, STORMLOG_DEVICE_INTERVAL="60000", SIM_CTX_BYTES="300M") as run:
            trace, = stormlog_trace.open_folder(run.traces)
            samples = trace.defs["sample"]
            used = [sample["used_bytes"] >> 20 for sample in samples if sample.get("source") == "nvml"]
            self.assertEqual(used[-1], 300 + 64 + 200)
            self.assertGreater(len(used), 1)
            self.assertLessEqual(max(used[:-1]), 300 + 64, "no other sample came after the second call")
            self.assertLessEqual(samples[-1]["ns"], trace.defs["footer"][-1]["ns"])

    def test_each_device_is_sampled_also_after_the_program_has_shut_nvml_down(self):
        with Recording("/usr/bin/python3", "-c", SHUT_DOWN, STORMLOG_DEVICE_INTERVAL="10", SIM_CTX_BYTES="300M") as run:
            trace, = stormlog_trace.open_folder(run.traces)
            for device in 0, 1:
                used = {sample["used_bytes"] >> 20 for sample in trace.defs["sample"] if sample.get("source") == "nvml" and sample["device"] == device}
                self.assertLessEqual({300 + 64 + 2 * device, 300 + 264 + 4 * device}, used)

    def test_workers_of_multiprocessing(self):
        for method in ("fork", "spawn"):
            for first in ("before", "after"):
                with self.subTest(method=method, first=first):
                    with tempfile.TemporaryDirectory() as folder:
                        script = os.path.join(folder, "workers.py")
                        with open(script, "w") as file:
                            file.write(WORKERS)
                        run = self.same_end("/usr/bin/python3", script, method, first)
                        # A worker may end by the pool's SIGTERM; its calls are recorded all the same.
                        self.assert_journal(run)

    def test_an_exception_through_our_frames(self):
        if not shutil.which("g++"):
            self.skipTest("no C++ compiler")
        with tempfile.TemporaryDirectory() as folder:
            def build(name, text, *flags):
                path = os.path.join(folder, name)
                subprocess.run(["g++", "-x", "c++", "-", "-o", path, *flags], input=text.encode(), check=True)
                return path
            build("libcudart.so.13", THROWER, "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13")
            program = build("throw", THROW, "-L" + folder, "-l:libcudart.so.13", "-Wl,-rpath," + folder)
            run = self.same_end(program, LD_LIBRARY_PATH=folder)
            self.assertEqual(run.done.stdout, b"caught 50\n")
            trace, = stormlog_trace.open_folder(run.traces)
            flags = trace.events()["flags"].tolist()
            self.assertEqual([flag & 2 for flag in flags], [2, 0] * 50, "a call left by an exception is abandoned, others not")

    def test_a_pid_used_again_has_a_trace_of_its_own(self):
        if subprocess.run(["unshare", "-fp", "true"], capture_output=True).returncode:
            self.skipTest("no pid namespaces here")
        app = os.path.join(APPS, "ending")
        command = "".join("unshare -fp sh -c '%s %s; true'\n" % (app, how) for how in ("kill", "return", "kill"))
        with Recording("sh", "-c", command, code=None) as run:
            processes = run.report()["processes"]
            self.assertEqual(sorted(process["status"] for process in processes), ["completed", "interrupted", "interrupted"])
            self.assertEqual({process["pid"] for process in processes}, {2})
            self.assertEqual([[row["live_bytes"] for row in process["memory"] if row["kind"] == "device"] for process in processes],
                             [[5 << 20]] * 3)


CROWDS = """
import ctypes, os, sys, threading, time
cudart = ctypes.CDLL("libcudart.so.13")
def crowd(meet, called, looked):
    def work():
        p = ctypes.c_void_p()
        meet.wait()
        for size in range(1, 40):
            assert not cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) and not cudart.cudaFree(p)
        called.release()
        while not looked.is_set():  # what is idle goes back
            assert not cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) and not cudart.cudaFree(p)
            time.sleep(0.005)
        meet.wait()
    return [threading.Thread(target=work) for _ in range(40)]
def blocks():
    name, = [name for name in os.listdir(os.environ["STORMLOG_DIR"]) if name.endswith(".ring")]
    state = os.stat(os.path.join(os.environ["STORMLOG_DIR"], name))
    return state.st_blocks >> 11, state.st_size >> 20
for turn in range(2):
    meet, called, looked = threading.Barrier(41), threading.Semaphore(0), threading.Event()
    threads = crowd(meet, called, looked)
    [thread.start() for thread in threads]
    meet.wait()  # what a thread that began long before the last one had would be gone by then
    [called.acquire() for _ in threads]
    print(*blocks())
    looked.set()
    meet.wait()
    [thread.join() for thread in threads]
    end = time.monotonic() + 120
    while blocks()[0] > 6 and time.monotonic() < end:
        time.sleep(0.05)
    print(*blocks())
sys.stdout.flush()
"""


class Crowds(unittest.TestCase):
    def test_what_many_threads_needed_of_the_ring_goes_back_and_comes_again(self):
        with e2e.Recording(sys.executable, "-c", CROWDS) as run:
            wrong, _ = e2e.equal_to_journal(run, threads=82)
            self.assertEqual(wrong, [])
            rows = [tuple(map(int, line.split())) for line in run.done.stdout.decode().splitlines()]
        for there, gone in (rows[:2], rows[2:]):
            self.assertGreater(there[0], 10)  # of 40 segments; on a busy machine some go back although their threads still call
            self.assertLessEqual(gone[0], 6)
            self.assertGreaterEqual(gone[1], max(there))  # the file does not get shorter, for a reader may have it mapped


if __name__ == "__main__":
    e2e.side_by_side()
