#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_readers.py TOP EXPORTER: readers of a running recording must say when it sleeps or is made from outside.  A command of `watch` wakes it."""
import os
import re
import subprocess
import sys
import unittest

EXPORTER, TOP = (os.path.abspath(sys.argv.pop()) for _ in range(2))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import attachments
from test_asleep import exists, touch, wait_until


def recorded(run):
    """The exporter's label `recorded`, and the live bytes in its metrics."""
    said = subprocess.run([EXPORTER, "--once", run.traces], capture_output=True, text=True, check=True).stdout
    return re.findall(r'^stormlog_process_info.* recorded="(\w+)"|^stormlog_process_info.*,recorded="(\w+)"', said, re.M), \
        [int(bytes) for bytes in re.findall(r"^stormlog_live_bytes{.*} (\d+)", said, re.M)]


def label(run):
    return ["".join(words) for words in recorded(run)[0]]


def watch(run, *options):
    return subprocess.run([e2e.ANALYZE, "watch", "--interval", "0.2", *options, run.traces], capture_output=True, text=True, timeout=120)


def screen(run, pattern):
    """What stormlog-top shows in a terminal that `script` makes."""
    shown = subprocess.run(["timeout", "3", "script", "-qec", "%s --ascii -d 0.2 %s" % (TOP, run.traces), "/dev/null"],
                           capture_output=True, env=dict(os.environ, TERM="xterm", COLUMNS="160", LINES="40", LC_ALL="C"))
    return re.search(pattern, shown.stdout)


class Readers(unittest.TestCase):
    def test_of_one_that_sleeps(self):
        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            self.assertEqual(label(run), ["asleep"])
            self.assertIsNotNone(screen(run, rb"asleep since"))
            done = watch(run, "--duration", "1", "--rule", "used > 90%% => command %s -- $STORMLOG_ALERT_PID" % e2e.ATTACH)  # the condition is false
            self.assertRegex(done.stderr, "pid %d: asleep since" % run.process.pid)
            self.assertEqual(label(run), ["asleep"])
            done = watch(run, "--duration", "8", "--rule", "used > 1MiB => command %s -- $STORMLOG_ALERT_PID" % e2e.ATTACH)
            self.assertIn("is awake", done.stderr)
            wait_until(lambda: label(run) == ["woken"])
            self.assertIsNotNone(screen(run, rb"it slept \d+ s"))
            touch(run, "go")
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "ready=made", "sampled", "wait=go", "alloc=7", STORMLOG_ASLEEP=1, APPS=e2e.APPS,
                           during=during) as run:
            report = run.report()
            self.assertEqual([process["capabilities"]["recorded"] for process in report["processes"]], ["woken"])
            self.assertTrue(any("asleep" in warning for warning in report["warnings"]), report["warnings"])

    def test_of_one_that_is_whole_nothing_is_said(self):
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=300", APPS=e2e.APPS) as run:
            self.assertEqual(label(run), ["whole"])
            self.assertNotIn("recorded", run.report()["processes"][0]["capabilities"])

    def test_of_one_that_is_watched_from_outside(self):
        why_not = attachments.permitted()
        if why_not:
            self.skipTest(why_not)

        def during(run):
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            self.addCleanup(attached.process.kill)
            self.addCleanup(run.process.kill)
            self.assertIsNotNone(attached.since_ns, attached.said)
            touch(run, "go")
            wait_until(lambda: recorded(run)[1] == [70 << 20])
            self.assertEqual(label(run), ["attached"])
            self.assertIsNotNone(screen(run, rb"attached by BPF"))
            self.assertRegex(watch(run, "--duration", "1").stderr, "pid %d: attached by BPF: only later calls" % run.process.pid)
            touch(run, "end")
            attached.end()
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "ready=made", "wait=go", "alloc=70", "wait=end", preload=False, APPS=e2e.APPS,
                           during=during) as run:
            self.assertIn("how the process ended is not known", " ".join(run.report()["warnings"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
