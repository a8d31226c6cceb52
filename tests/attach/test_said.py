#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What stormlog-attach says, and its exit status, where it cannot do what it was asked."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import attachments
why_not = attachments.permitted()
if why_not:
    print("skipped:", why_not)
    sys.exit(77)

KILL_ME = os.path.join(e2e.APPS, "kill_me")
NO_CALLS = """import mmap, time
file = open("libcuda-of-no-calls.so", "w+b")
file.truncate(4096)
map = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
print("made", flush=True)
time.sleep(600)"""


def attach(*options, **how):
    return subprocess.run([e2e.ATTACH, *options], capture_output=True, text=True, timeout=120, **how)


class Said(unittest.TestCase):
    def beside(self, look, *argv):
        """Run a program and call look(run) while it runs."""
        def during(run):
            self.addCleanup(run.process.wait)
            self.addCleanup(run.process.kill)
            run.process.stdout.readline()
            look(run, str(run.process.pid))
            run.process.kill()
        with e2e.Recording(*(argv or (KILL_ME, "1")), preload=False, SIM_LATENCY=1000000, code=-9, during=during):
            pass

    def test_a_process_that_is_named_twice_is_watched_once(self):
        def look(run, pid):
            done = attach("-o", run.traces, "--duration", "0.3", "-p", pid, pid)
            self.assertEqual((done.returncode, done.stderr.count("are watched"), len(run.files())), (0, 1, 1), done.stderr)
        self.beside(look)

    def test_where_no_trace_can_be_written_the_folder_is_named(self):
        def look(run, pid):
            open(os.path.join(run.folder, "file"), "w").close()
            done = attach("-o", os.path.join(run.folder, "file"), "--duration", "0.3", pid)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertIn("%s/file: Not a directory" % run.folder, done.stderr)
        self.beside(look)

    def test_a_cgroup_without_its_path_is_refused(self):
        done = attach("--cgroup", "docker-0123456789ab.scope", "--duration", "0.3")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("begins with /", done.stderr)

    def test_all_says_how_many_it_would_touch_and_wants_a_yes(self):
        def look(run, pid):
            done = attach("-o", run.traces, "--all", "--duration", "0.3", stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"--all wakes \d+ recordings and watches [1-9]\d* other processes of this node: add --yes")
            self.assertEqual(run.files(), [])
            done = attach("--al", "--duration", "0.3")
            self.assertEqual((done.returncode, "options are written in full: --all" in done.stderr), (2, True), done.stderr)
        self.beside(look)

    def test_a_group_without_the_rights_to_watch_is_refused(self):
        try:
            done = attach("--all", "--yes", "--duration", "0.3", user=65534, group=65534, extra_groups=[])
        except PermissionError as error:
            self.skipTest(str(error))
        self.assertEqual((done.returncode, "ready" in done.stderr), (3, False), done.stderr)
        self.assertIn("--all: the kernel does not permit it: root is needed, or CAP_BPF", done.stderr)

    def test_a_member_that_cannot_be_watched_is_told_of_once(self):
        group, _ = attachments.make_group("stormlog-said-%d" % os.getpid())
        if not group:
            self.skipTest("no cgroup can be made here")
        self.addCleanup(os.rmdir, group)

        def look(run, pid):
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(pid)
            done = attach("-o", run.traces, "--cgroup", group, "--duration", "3.5")
            self.assertEqual((done.returncode, done.stderr.count(pid + ": it has not loaded")), (0, 1), done.stderr)
        self.beside(look, "python3", "-c", NO_CALLS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
