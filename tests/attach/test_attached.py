#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Processes that have no recorder, attached to while they run, against the simulator's journal; skipped where the kernel does not let us."""
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
try:
    import e2e
    import stormlog_trace
    import attachments
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)
why_not = attachments.permitted()
if why_not:
    print("skipped:", why_not)
    sys.exit(77)

KILL_ME = os.path.join(e2e.APPS, "kill_me")


class Attached(unittest.TestCase):
    def test_the_program_holds_the_probes_that_were_compiled_last(self):
        with open(os.path.join(os.path.dirname(e2e.ATTACH), "seen.bpf"), "rb") as file, open(e2e.ATTACH, "rb") as program:
            self.assertIn(file.read(), program.read())

    def test_from_the_attachment_on_calls_are_the_journals(self):
        first, wrong, compared = random.randrange(1 << 30), [], 0
        for seed in range(first, first + int(os.environ.get("STORMLOG_ATTACHMENTS", "8"))):
            what, calls, bad = attachments.attachment(seed)
            compared += calls
            wrong += [(what, bad)] if bad else []
        self.assertEqual(wrong, [])
        self.assertGreater(compared, 0)

    def test_it_comes_and_goes_under_load_and_the_program_does_not_notice(self):
        def during(run):
            run.process.stdout.readline()
            for i in range(10):
                done = subprocess.run([e2e.ATTACH, "--duration", "0.1", "-o", run.traces, str(run.process.pid)], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, "detached after" in done.stderr), (0, True), done.stderr)
        with e2e.Recording(KILL_ME, 2, "_exit", 12000000, preload=False, SIM_LATENCY=50000, during=during) as run:
            traces = stormlog_trace.open_folder(run.traces)
            self.assertEqual((len(traces), run.done.stderr), (10, b""))
            for trace in traces:
                self.assertEqual((trace.damage, trace.defs.get("gap", [])), ([], []))
                self.assertGreater(len(trace.events()["api"]), 10)
            self.assertEqual({process["status"] for process in run.report()["processes"]}, {"unknown"})
            self.assertEqual(run.report()["leaks"], [])

    def test_an_interrupt_ends_it_and_what_was_seen_is_in_the_trace(self):
        def during(run):
            run.process.stdout.readline()
            attached = attachments.Attached(run)
            time.sleep(0.3)
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0)
            run.process.kill()
        with e2e.Recording(KILL_ME, 1, preload=False, SIM_LATENCY=1000000, code=-9, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertEqual([footer["how"] for footer in trace.defs["footer"]], ["detached"])
            self.assertEqual(trace.defs["capability"], [{"def": "capability", "name": "recorded", "value": "attached by BPF while it ran"}])
            stacks = {stack["id"]: stack["pcs"] for stack in trace.defs["native_stack"]}
            self.assertTrue(all(native in stacks for native in trace.events()["native"].tolist()))
            # without its build id no library gives names
            notes = subprocess.run(["readelf", "-n", KILL_ME], capture_output=True, text=True).stdout
            ids = {os.path.basename(module["path"]): module.get("build_id") for module in trace.defs["module"]}
            self.assertEqual(ids["kill_me"], re.search(r"Build ID: (\w+)", notes).group(1))
            self.assertRegex(subprocess.run([e2e.ANALYZE, "-o", os.path.join(run.folder, "a"), run.traces],
                                            capture_output=True, text=True).stdout, r"\w+\.c:[0-9]+ ")
            self.assertIn("watched from outside for", " ".join(run.report()["warnings"]))

    def test_a_group_is_all_of_its_processes_and_those_to_come(self):
        group = "/sys/fs/cgroup/stormlog-test-%d" % os.getpid()
        try:
            os.mkdir(group)
        except OSError as error:
            self.skipTest("no cgroup can be made: %s" % error)
        self.addCleanup(os.rmdir, group)
        if not os.path.exists(os.path.join(group, "cgroup.procs")):
            self.skipTest("no cgroups of version 2 are mounted")

        def join():
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write("0")
        with e2e.Recording("true", preload=False) as run:
            watcher = subprocess.Popen([e2e.ATTACH, "--cgroup", group, "-o", run.traces], stderr=subprocess.PIPE, text=True)
            self.assertEqual(watcher.stderr.readline(), "ready\n")
            environment = dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_LATENCY="1000000", SIM_DIR=run.folder)
            children = [subprocess.Popen([KILL_ME, "1", "_exit", "4000000"], env=environment, stdout=subprocess.DEVNULL, preexec_fn=join) for _ in range(2)]
            for child in children:
                child.wait()
            watcher.send_signal(signal.SIGINT)
            watcher.communicate()
            self.assertEqual(watcher.returncode, 0)
            pids = {trace.header["pid"] for trace in stormlog_trace.open_folder(run.traces)}
            self.assertLessEqual({child.pid for child in children}, pids)


if __name__ == "__main__":
    unittest.main(verbosity=2)
