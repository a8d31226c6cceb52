#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""System calls of the agent fail: the job's result is unchanged, and one line of stormlog-run or stormlog-analyze says what
became of the trace."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import e2e
import stormlog_trace

APP = [os.path.join(e2e.APPS, "threads"), "4", "3000"]
ALONE = [os.path.join(e2e.APPS, "oom"), "retry"]  # makes no thread

OPENS_TWICE = """
import ctypes, os, time
assert ctypes.CDLL("libcudart.so.13").cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20)) == 0
while not ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked():
    time.sleep(0.01)
time.sleep(1)
for name in "/begin", "/end":
    try:
        open(name)
    except FileNotFoundError:
        time.sleep(2)
"""


def inject(*faults):
    """The words of a strace command that makes these system calls fail, in every thread by its own count."""
    calls = ",".join(fault.split(":")[0] for fault in faults)
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + calls, *[word for fault in faults for word in ("-e", "inject=" + fault)]]


class Faults(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-faults-")
        self.traces = os.path.join(self.folder, "traces")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def run_with(self, before=(), shell="exec \"$@\"", app=APP, **more):
        """Run the program alone and under stormlog-run; both must end alike.  Returns (launcher's last line, analyzer's output)."""
        environment = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        environment.update(LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=os.path.join(self.folder, "sim"), SIM_DEVICES="2", **more)
        done = [subprocess.run(["sh", "-c", shell, "sh", *before, *launcher, *app], env=environment, capture_output=True,
                               timeout=600) for launcher in ((), (e2e.RUN, "-o", self.traces, "--"))]
        self.assertEqual([done[1].returncode, done[1].stdout], [done[0].returncode, done[0].stdout], done[1].stderr)
        self.assertEqual(done[0].returncode, 0, done[0].stderr)
        said = [line for line in done[1].stderr.decode().splitlines() if re.match("stormlog: .*ecorded|stormlog-run: .*no recording", line)]
        self.assertEqual(len(said), 1, done[1].stderr)
        report = subprocess.run([e2e.ANALYZE, self.traces], capture_output=True, timeout=600)
        return said[0], (report.stdout + report.stderr).decode()

    def needs_strace(self):
        if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode:
            self.skipTest("strace cannot trace here")

    def strace(self, *faults, **how):
        self.needs_strace()
        return self.run_with(inject(*faults), **how)

    def mounted(self, options):
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        os.mkdir(self.traces)
        shell = "[ -d %s/.m ] || { mount -t tmpfs -o %s none %s; }; exec \"$@\"" % (self.traces, options, self.traces)
        return self.run_with(["unshare", "-m", "sh", "-c", shell, "sh"])

    def test_a_disk_without_room(self):
        said, _ = self.mounted("size=1m")
        self.assertRegex(said, "No space left on device")

    def test_a_disk_that_becomes_full(self):
        said, _ = self.mounted("size=5m")
        self.assertIn("1 process recorded", said)

    def test_what_lost_events_held_is_not_called_hidden(self):
        """The disk is full long before the program allocates 512 MiB more: those are no context and no other process."""
        if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        os.mkdir(self.traces)
        out = os.path.join(self.folder, "out")
        program = [sys.executable, os.path.join(e2e.HERE, "..", "apps", "script.py"), "alloc=256", "calls=400000", "alloc=512", "sleep=1"]
        shell = "mount -t tmpfs -o size=6m none $0 && { \"$@\"; } && %s -q -o %s $0/t" % (e2e.ANALYZE, out)
        done = subprocess.run(["unshare", "-m", "sh", "-c", shell, self.traces, e2e.RUN, "-o", self.traces + "/t", "--", *program],
                              env=dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=os.path.join(self.folder, "sim")), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out + "/report.json") as file:
            report = json.load(file)
        lost = report["processes"][0]["lost_events"]
        self.assertGreater(lost, 0)
        self.assertIn("stormlog: %d events were lost" % lost, done.stderr)
        self.assertEqual([(device["partial"], device["hidden_peak_bytes"]) for device in report["run"]["devices"]], [(True, None)])

    def test_a_read_only_file_system(self):
        said, _ = self.mounted("ro")
        self.assertRegex(said, "Read-only file system")

    def test_a_folder_that_may_not_be_written(self):
        if os.getuid() or not shutil.which("setpriv"):
            self.skipTest("needs root and setpriv, to become somebody else")
        os.mkdir(self.traces)
        os.chmod(self.folder, 0o777)
        os.chmod(self.traces, 0o755)
        if not all(os.stat(folder).st_mode & 0o5 == 0o5 for folder in map(str, [e2e.BUILD, *pathlib.Path(os.path.realpath(e2e.BUILD)).parents])):
            self.skipTest("somebody else may not enter the folders above the build")
        said, _ = self.run_with(["setpriv", "--reuid", "65534", "--clear-groups"], shell="umask 0; exec \"$@\"")
        self.assertRegex(said, "Permission denied")

    def test_writes_that_fail_after_a_while(self):
        """The ring keeps the events that could not be written to the file."""
        said, report = self.strace("pwrite64:error=ENOSPC:when=4+")
        self.assertIn("1 process recorded", said)
        self.assertIn("threads", report)

    def test_an_interruption_between_two_clocks(self):
        """The header names one instant by both clocks, also where the recorder is interrupted while it reads them."""
        before = time.time_ns() - time.monotonic_ns()
        for first in (1, 2, 3, 4):  # every fourth reading takes 20 ms
            self.strace("clock_gettime:delay_exit=20000:when=%d+4" % first)
            trace, = stormlog_trace.open_folder(self.traces)
            self.assertAlmostEqual(trace.unix_ns(0), before, delta=10_000_000)
            shutil.rmtree(self.traces)

    def test_a_quota_that_is_used_up(self):
        """strace injects the errors of a kernel with quotas (scripts/test-full-disks).  A lost call counts once, with all calls
        inside it."""
        journals = os.path.join(self.folder, "journals")
        os.mkdir(journals)
        said, report = self.strace("pwrite64:error=EDQUOT:when=4+", "fallocate:error=EDQUOT:when=3+", app=[sys.executable, e2e.SCRIPT, "calls=40000"],
                                   SIM_JOURNAL=journals)
        self.assertIn("1 process recorded", said)
        self.assertRegex(report, r"\d+ events could not be kept between .* s and .* s")
        with open(os.path.join(self.traces, "analysis", "report.json")) as file:
            process, = json.load(file)["processes"]
        self.assertEqual(process["exit_status"], 0)
        truth = e2e.journal.load(journals)[0]
        self.assertEqual(sum(api["calls"] for api in process["apis"]) + process["lost_events"],
                         sum(calls for calls, _ in e2e.expected_apis(truth, e2e.rows_of(self.traces)).values()))

    def test_a_quota_that_leaves_nothing(self):
        said, _ = self.strace("fallocate:error=EDQUOT")
        self.assertRegex(said, "[Qq]uota exceeded")

    def test_no_file_is_opened_while_the_program_runs(self):
        """Whatever is open for a moment takes the lowest number, which the program may be about to get."""
        self.needs_strace()
        log = os.path.join(self.folder, "strace")
        with e2e.Recording("strace", "-f", "-qq", "-o", log, "-e", "trace=openat", "-E", "LD_PRELOAD=" + e2e.PRELOAD, "/usr/bin/python3", "-c", OPENS_TWICE, preload=False):
            with open(log) as file:
                # strace writes two lines of a call during which another thread calls; the first names the path
                lines = [line for line in file.read().splitlines() if "openat(" in line]
        begin, end = [number for number, line in enumerate(lines) if "/begin" in line or "/end" in line]
        # the simulated NVML reads when the processes of its devices began
        self.assertEqual([line for line in lines[begin + 1:end] if not re.search(r'"/proc/\d+/stat"', line)], [])

    def test_a_recording_that_begins_while_the_program_ends_or_becomes_another_user_is_whole(self):
        for how in "012" if os.getuid() == 0 else "01":
            with self.subTest(how):
                self.strace(("statfs" if how == "2" else "fallocate") + ":delay_enter=400000:when=1", app=[os.path.join(e2e.APPS, "foreign"), "at_start", how])
                with open(os.path.join(self.traces, "analysis", "report.json")) as file:
                    process, = json.load(file)["processes"]
                self.assertEqual(process["status"], "completed")
                self.assertIn(process.get("exit_status"), (None, 0) if how == "1" else (0,))  # on a busy machine it is known in time
                shutil.rmtree(self.traces)

    def test_threads_that_are_slow_to_end(self):
        """A slow thread of the agent that tries the loader's locks must not pass for the last thread of a bare clone, whose status would be lost."""
        self.strace("madvise:delay_enter=400000", app=[os.path.join(e2e.APPS, "foreign"), "cloned", "1"])

    def test_writes_that_are_interrupted(self):
        said, report = self.strace("pwrite64:error=EINTR:when=1+2", "fallocate:error=EINTR:when=1+2")
        self.assertIn("1 process recorded", said)
        self.assertIn("completed", report)

    def test_a_ring_that_cannot_be_made(self):
        said, _ = self.strace("fallocate:error=ENOSPC")
        self.assertIn("no recording", said)

    def test_no_more_threads(self):
        """There is no writer, so the thread that ends the process writes its events."""
        # clone3 makes threads alone: the launcher's own fork is a clone.
        said, report = self.strace("clone3:error=EAGAIN", app=ALONE)
        self.assertIn("1 process recorded", said)
        self.assertIn("completed", report)
        with open(os.path.join(self.traces, "analysis", "report.json")) as file:
            process, = json.load(file)["processes"]
        self.assertGreater(process["host_memory"]["rss_peak_bytes"], 0)

    def test_a_writer_that_never_runs(self):
        """clone3 reports success without making a thread: only the ring has the events."""
        said, report = self.strace("clone3:retval=999999", app=ALONE)
        self.assertIn("1 process recorded", said)
        self.assertIn("oom", report)

    def opens(self, name, preload, refused=None, path=None):
        """Run the program alone or with the agent; each thread's `refused`th open fails, of that path alone if there is one.  Returns its result and output, and
        [(thread, file, it failed)]."""
        log = os.path.join(self.folder, name)
        environment = {key: value for key, value in os.environ.items() if not e2e.SETTINGS.match(key)}
        environment.update(LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=log + ".sim", SIM_DEVICES="2", STORMLOG_DIR=log + ".traces")
        fault = ["-e", "inject=openat:error=EMFILE:when=%d" % refused] if refused else []
        fault += ["-P", path] if path else []
        done = subprocess.run(["strace", "-f", "-qq", "-o", log, "-e", "trace=openat", *fault, *(["-E", "LD_PRELOAD=" + e2e.PRELOAD] if preload else []),
                               *ALONE], env=environment, capture_output=True, timeout=600)
        with open(log) as lines:
            found = [(match.group(1), match.group(2), "(INJECTED)" in line)
                     for line in lines for match in [re.match(r"(\d+) +openat\(\w+, \"([^\"]*)\"", line)] if match]
        return (done.returncode, done.stdout, re.sub(rb"strace: Requested path .*\n", b"", done.stderr)), found

    def test_each_file_that_the_agent_opens_is_refused_once(self):
        """strace injects EMFILE for one open at a time; a limit would hit the program's own files too."""
        if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode:
            self.skipTest("strace cannot trace here")
        plain, own = self.opens("plain", False)
        own = {os.path.basename(path) for _, path, _ in own} | {os.path.basename(e2e.PRELOAD)}
        _, all_opens = self.opens("ours", True)
        threads = {}
        for thread, path, _ in all_opens:
            threads.setdefault(thread, []).append(os.path.basename(path))
        # Only the first open of each file: how often the writer opens some depends on time.
        ours = {(files.index(name) + 1, None) for files in threads.values() for name in set(files) - own}
        ours |= {(1, path) for _, path, _ in all_opens if os.path.basename(path) not in own and path.startswith(("/proc/self/", "/sys/", "/usr/", "/lib/", "/etc/")) and "/task/" not in path}
        refused = set()
        for number, path in sorted(ours, key=str):
            result, found = self.opens("refused-%d" % number, True, refused=number, path=path)
            hit = {os.path.basename(path) for _, path, injected in found if injected}
            if hit & own:  # in another thread that open is one of the program's own
                continue
            self.assertEqual(result, plain, "refused: %s" % hit)
            refused |= hit
        self.assertGreater(len(refused), 8, refused)

    def test_limits(self):
        for limit, why in (("-f 512", "the limit on file sizes"), ("-n 6", ""), ("-v 200000", "")):
            with self.subTest(limit):
                shutil.rmtree(self.traces, True)
                said, _ = self.run_with(shell="ulimit %s; exec \"$@\"" % limit, app=ALONE)
                self.assertIn(why, said)

    def test_a_kernel_that_refuses_to_look_into_processes(self):
        said, report = self.strace("process_vm_readv:error=EPERM", "process_vm_writev:error=EPERM", "madvise:error=EINVAL")
        self.assertIn("1 process recorded", said)
        self.assertIn("completed", report)


if __name__ == "__main__":
    unittest.main(verbosity=2)
