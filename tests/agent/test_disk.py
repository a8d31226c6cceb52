#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Disks that hang, fill up, are remote, or lose our files while we write: test_disk.py CORE_PROGRAM STORMLOG_ANALYZE."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM, ANALYZE = sys.argv.pop(1), sys.argv.pop(1)


def environment(folder, **more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "RANK", "LOCAL_RANK", "WORLD_SIZE"))}
    return dict(clean, STORMLOG_DIR=folder, STORMLOG_STACKS="none", **more)


def start(folder, *args, **more):
    return subprocess.Popen([PROGRAM, *map(str, args)], env=environment(folder, **more), stdout=subprocess.PIPE, text=True)


def report(folder):
    done = subprocess.run([ANALYZE, "--json", folder], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done
    return json.loads(done.stdout)["processes"][0], done.stderr


def said_calls(process, more_than=0):
    """Wait until the number of calls of a program in mode pace grows; returns it."""
    for line in process.stdout:
        if int(line) > more_than:
            return int(line)
    raise AssertionError("the program ended with %s after at most %d calls" % (process.wait(), more_than))


def end(process):
    """End a program in mode pace.  Returns how many calls it made, without the one that fails, and the longest in microseconds."""
    process.terminate()
    count, longest = process.communicate()[0].split()[-2:]
    assert process.returncode == 0, process.returncode
    return int(count), int(longest)


def wait_until(condition):
    while not condition():
        time.sleep(0.01)


def calls(process):
    return sum(api["calls"] for api in process["apis"])


def mounted(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


class Disk(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-disk-")
        self.mounts = []

    def tearDown(self):
        for mount in self.mounts:
            subprocess.run(["umount", "-l", mount], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def far(self):
        """A folder whose writes hang while self.path("hang") exists; stormlog takes it for a network file system."""
        os.makedirs(self.path("root"))
        os.makedirs(self.path("far"))
        server = subprocess.Popen([sys.executable, os.path.join(HERE, "hanging_fs.py"), self.path("root"), self.path("far")],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.mounts.append(self.path("far"))
        for _ in range(250):
            if os.path.ismount(self.path("far")):
                return self.path("far")
            if server.poll() is not None:
                break
            time.sleep(0.02)
        self.skipTest("no FUSE here (root, /dev/fuse and python3-fusepy are needed)")

    def hang(self):
        """Make writes hang, and wait until one does."""
        open(self.path("hang"), "w").close()
        wait_until(lambda: os.path.exists(self.path("hangs")))

    def small(self, size):
        os.makedirs(self.path("small"))
        if not mounted("mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", self.path("small")):
            self.skipTest("no tmpfs can be mounted here (root is needed)")
        self.mounts.append(self.path("small"))
        return self.path("small")

    def rings(self, process):
        return [name for name in os.listdir("/dev/shm") if name.startswith("stormlog-") and "-%d.ring" % process.pid in name]

    def test_a_disk_that_hangs_makes_no_call_wait_and_loses_nothing(self):
        far, seconds = self.far(), float(os.environ.get("STORMLOG_HANG_SECONDS", "0"))
        process = start(far, "pace", 1, 1 << 40, 1000)
        said_calls(process)
        self.hang()
        time.sleep(seconds)
        said_calls(process, said_calls(process) + 1000)  # never, if one of them waited for the disk
        os.unlink(self.path("hang"))
        said_calls(process, said_calls(process) + 1000)
        count, longest = end(process)
        mine, said = report(far)
        print("longest call %d us" % longest)  # doc/performance.md has the figure
        self.assertEqual((mine["status"], mine["lost_events"], calls(mine)), ("completed", 0, count + 1))

    def test_beyond_the_rings_cap_a_gap_is_counted_with_its_time(self):
        far = self.far()
        process = start(far, "pace", 1, 1 << 40, 50)
        said_calls(process)
        self.hang()
        process.send_signal(signal.SIGUSR1)  # no more pauses
        said_calls(process, said_calls(process) + 2000000)
        os.unlink(self.path("hang"))
        count, longest = end(process)
        mine, said = report(far)
        self.assertEqual(calls(mine) + mine["lost_events"], count + 1, said)
        self.assertGreater(mine["lost_events"], 0)
        self.assertRegex(said, r"\d+ events could not be kept between .* s and .* s")

    def test_what_was_recorded_is_soon_on_a_far_disk(self):
        far = self.far()
        process = start(far, "stay", 1, 50)
        process.stdout.readline()
        rings = self.rings(process)
        self.assertEqual(len(rings), 1)
        os.rename("/dev/shm/" + rings[0], "/dev/shm/hidden-" + rings[0])  # the node is gone
        wait_until(lambda: calls(report(far)[0]) == 51)
        mine, said = report(far)
        os.rename("/dev/shm/hidden-" + rings[0], "/dev/shm/" + rings[0])
        process.kill()
        process.wait()
        self.assertEqual((mine["status"], calls(mine)), ("unknown", 51))
        self.assertIn("out of reach", said)
        collected = subprocess.run([ANALYZE, "collect", far], capture_output=True, text=True)
        self.assertEqual(collected.stdout, "1 brought home, 0 without a trace cleared, 0 still running\n", collected)
        self.assertEqual(self.rings(process), [])
        mine, said = report(far)
        self.assertEqual((mine["status"], calls(mine), mine["lost_events"]), ("interrupted", 51, 0))

    def test_where_no_thread_can_be_made_the_ring_comes_to_the_far_trace_at_the_end(self):
        version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        group = ("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/pids") + "/stormlog-disk-%d" % os.getpid()
        try:
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)
            with open(os.path.join(group, "pids.max"), "w") as file:
                file.write("1")
        except OSError as error:
            self.skipTest("no cgroup can be made here: %s" % error)
        far = self.far()
        process = subprocess.Popen(["sh", "-c", "echo $$ > %s/cgroup.procs; exec \"$@\"" % group, "sh", PROGRAM, "pace", "1", "30000"],
                                   env=environment(far), stdout=subprocess.PIPE, text=True)
        process.communicate()
        self.assertEqual((process.returncode, self.rings(process)), (0, []))
        self.assertEqual(sorted(name.rsplit(".", 1)[1] for name in os.listdir(far)), ["ring", "zst"])
        mine, said = report(far)
        self.assertEqual((mine["status"], calls(mine), mine["lost_events"], mine["damaged"]), ("completed", 30001, 0, False), said)

    def test_collect_leaves_the_living_and_keeps_what_no_file_has_until_the_trace_is_back(self):
        far = self.far()
        process = start(far, "pace", 1, 1 << 40, 50)
        said_calls(process)
        collect = lambda *options: subprocess.run([ANALYZE, "collect", far, *options], capture_output=True, text=True).stdout
        self.assertEqual(collect(), "0 brought home, 0 without a trace cleared, 1 still running\n")
        self.hang()
        said_calls(process, said_calls(process) + 1000)  # no file has them
        process.kill()
        os.unlink(self.path("hang"))
        process.wait()
        before = calls(report(far)[0])
        trace, = (os.path.join(far, name) for name in os.listdir(far))
        os.rename(trace, trace + ".away")
        self.assertEqual(collect(), "0 brought home, 0 without a trace cleared, 0 still running\n1 without a trace kept\n")
        os.rename(trace + ".away", trace)
        self.assertEqual(collect(), "1 brought home, 0 without a trace cleared, 0 still running\n")
        self.assertEqual((calls(report(far)[0]), self.rings(process)), (before, []))

    def test_a_full_disk_stops_the_recording_not_the_job(self):
        small = self.small("4M")
        process = start(small, "pace", 1, 1000000)
        process.communicate()
        self.assertEqual(process.returncode, 0)
        mine, said = report(small)
        self.assertGreater(calls(mine), 16000)
        self.assertEqual(calls(mine) + mine["lost_events"], 1000001, said)
        self.assertRegex(said, r"\d+ events could not be kept between .* s and .* s")

    def test_a_folder_that_cannot_be_written_records_nothing_and_says_nothing(self):
        small = self.small("8M")
        mounted("mount", "-o", "remount,ro", small)
        process = start(small, "pace", 1, 1000)
        process.communicate()
        self.assertEqual((process.returncode, os.listdir(small)), (0, []))

    def test_a_trace_that_was_removed_goes_on_in_a_new_file_that_says_so(self):
        process = start(self.path("traces"), "pace", 1, 1 << 40, 5)
        said_calls(process, 20000)  # more than the ring's first segment
        for name in os.listdir(self.path("traces")):
            if name.endswith(".zst"):
                os.unlink(self.path("traces", name))
        said_calls(process, said_calls(process) + 20000)
        count, longest = end(process)
        mine, said = report(self.path("traces"))
        self.assertEqual(mine["status"], "completed")
        self.assertIn("the trace file was removed", said)
        done = subprocess.run([ANALYZE, "check", "--baseline", self.path("base.json"), "--update-baseline", self.path("traces")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 3, "what was recorded and is gone is no counted loss: " + done.stdout + done.stderr)
        self.assertEqual(calls(mine) + mine["lost_events"], count + 1)

    def stop_between_folds(self, process, folder):
        """A fold that has a file open reads it to its end, whoever removes its name."""
        while True:
            self.assertIsNone(process.poll())
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if not any(name.endswith(".fold") for name in os.listdir(folder)):
                return
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)

    def test_a_file_of_a_long_run_that_was_removed_is_missed_and_the_limit_holds(self):
        for which in (-1, -3):  # by name: file 1, and the one closed last, which waits longest to be folded
            with self.subTest(which):
                folder = self.path("traces%d" % which)
                process = start(folder, "train", 1, 6000, 500, STORMLOG_KEEP="512K")
                trace = lambda: sorted(name for name in os.listdir(folder) if name.endswith(".zst")) if os.path.isdir(folder) else []
                wait_until(lambda: len(trace()) >= 6)
                self.stop_between_folds(process, folder)
                os.unlink(os.path.join(folder, trace()[which]))
                process.send_signal(signal.SIGCONT)
                process.communicate()
                self.assertEqual(process.returncode, 0)
                self.assertLess(sum(os.path.getsize(os.path.join(folder, name)) for name in trace()), 1 << 20)
                mine, said = report(folder)
                self.assertEqual((mine["status"], mine["damaged"]), ("completed", True))
                self.assertIn("a file of the trace was removed", said)

    def test_a_file_that_is_missing_is_said(self):
        folder = self.path("traces")
        start(folder, "train", 1, 6000, 500, STORMLOG_KEEP="2M").communicate()
        names = sorted(name for name in os.listdir(folder) if name.count(".") == 3)
        os.unlink(os.path.join(folder, names[0]))
        mine, said = report(folder)
        self.assertTrue(mine["damaged"])
        self.assertIn("file %d of its process is missing" % int(names[0].split(".")[1]), said)


if __name__ == "__main__":
    unittest.main(verbosity=1)
