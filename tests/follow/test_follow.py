#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_follow.py FOLLOWED: a reader follows a job that runs.  At random moments the job is stopped, and the reader's figures must be those of
stormlog-analyze on a copy of the folder."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import journal
import kills
import stormlog_trace
FOLLOWED = sys.argv.pop(1)
STOPS = int(os.environ.get("STORMLOG_STOPS", "4"))
KILLS = int(os.environ.get("STORMLOG_KILLS", "4"))
FIGURES = ("events", "unknown_frees", "in_flight", "memory", "apis", "libraries", "pytorch")


class Job:
    """A program under the agent, and a reader that follows its folder."""

    def __init__(self, *argv, **environment):
        self.run = e2e.Recording("true", preload=False)
        self.traces = self.run.traces
        os.makedirs(self.traces, exist_ok=True)
        env = {name: value for name, value in os.environ.items() if not e2e.SETTINGS.match(name)}
        env.update(LD_LIBRARY_PATH=e2e.SIM, SIM_JOURNAL=self.run.journals, SIM_DIR=os.path.join(self.run.folder, "sim"),
                   STORMLOG_DIR=self.traces, LD_PRELOAD=e2e.PRELOAD, APPS=e2e.APPS, **{"STORMLOG_RUN_ID": "follow", **environment})
        env.pop("STORMLOG_BUILD", None)
        self.environment = env
        self.process = subprocess.Popen([str(arg) for arg in argv], env=env, stdout=subprocess.DEVNULL, cwd=self.run.folder)
        self.reader = subprocess.Popen([FOLLOWED, self.traces], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self.reader.stdin.close()
        self.reader.stdout.close()
        self.reader.wait()
        self.run.__exit__(*error)

    def poll(self, word="poll"):
        self.reader.stdin.write(word + "\n")
        self.reader.stdin.flush()
        return json.loads(self.reader.stdout.readline())

    def wait_for(self, condition):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            known = self.poll()
            if condition(known):
                return known
            time.sleep(0.02)
        raise AssertionError("never: %s" % known)

    def stop(self):
        """Stop all threads of the job.  False: it has ended."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = pathlib.Path("/proc/%d/task" % self.process.pid)
        try:
            while any(task.joinpath("stat").read_text().rsplit(")")[-1].split()[0] not in "TZ" for task in tasks.iterdir()):
                time.sleep(0.001)
        except (FileNotFoundError, ProcessLookupError):  # a thread ended meanwhile, or the job did
            return self.process.poll() is None and self.stop()
        return self.process.poll() is None

    def report_of_a_copy(self):
        copy = os.path.join(self.run.folder, "copy")
        shutil.copytree(self.traces, copy)
        try:
            done = subprocess.run([e2e.ANALYZE, "--json", copy], capture_output=True, timeout=600)
            if done.returncode:
                raise AssertionError("stormlog-analyze: exit %s\n%s" % (done.returncode, done.stderr.decode()))
            return json.loads(done.stdout)["processes"]
        finally:
            shutil.rmtree(copy)


def by_trace(processes):
    return {process["trace"]: {figure: process[figure] for figure in FIGURES} for process in processes}


def without_late(processes):
    """The figures that must be equal even after late events: without peaks and counts of frees, since an address may be given out again before its free is read."""
    found = by_trace(processes)
    for process in found.values():
        process["unknown_frees"] = None
        process["memory"] = [{key: value for key, value in row.items() if "peak" not in key} for row in process["memory"]]
        for row in process["memory"]:
            row["frees"] = row["implicit_frees"] = None
        process["libraries"] = [{key: value for key, value in row.items() if "peak" not in key} for row in process["libraries"]]
    return found


class Follow(unittest.TestCase):
    maxDiff = None

    def stop_and_compare(self, job):
        job.wait_for(lambda known: known)
        if not job.stop():
            return job.poll()
        time.sleep(1.1)  # the reader waits no longer than this for a free that does not return
        known, report = job.poll(), job.report_of_a_copy()
        self.assertEqual(without_late(known), without_late(report))
        if not any(process["late"] for process in known):
            self.assertEqual(by_trace(known), by_trace(report))
        job.process.send_signal(signal.SIGCONT)
        return known

    def end_equals_report(self, job):
        known = job.wait_for(lambda known: known and all(process["ended"] for process in known))
        self.assertEqual(by_trace(known), by_trace(job.report_of_a_copy()))
        return known

    def test_random_stops_of_a_job_that_is_killed(self):
        for threads in (1, 4):
            with self.subTest(threads), Job(os.path.join(e2e.APPS, "kill_me"), threads) as job:
                for _ in range(STOPS):
                    time.sleep(random.random() / 5)
                    self.stop_and_compare(job)
                job.process.kill()
                known, = self.end_equals_report(job)
                self.assertEqual(known["status"], "interrupted")

    def test_a_recording_that_is_removed_while_its_process_lives(self):
        with Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            shutil.rmtree(job.traces)
            known, = job.wait_for(lambda known: known[0]["ended"])
            self.assertTrue(known["removed"])
            self.assertIsNone(job.process.poll())

    def test_a_recording_that_is_removed_once_its_process_was_killed(self):
        with Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            job.process.kill()
            job.process.wait()
            shutil.rmtree(job.traces)
            known, = job.wait_for(lambda known: known[0]["ended"])
            self.assertFalse(known["removed"])

    def test_random_stops_of_a_job_that_ends_and_the_simulators_journal(self):
        for threads in (1, 4):
            with self.subTest(threads), Job(os.path.join(e2e.APPS, "threads"), threads, 30000 // threads) as job:
                while job.process.poll() is None:
                    time.sleep(random.random() / 5)
                    if job.poll() and job.process.poll() is None:
                        self.stop_and_compare(job)
                known, = self.end_equals_report(job)
                truth, = [process for process in journal.load(job.run.journals) if process.apis]
                self.assertEqual(e2e.differences(known, truth, e2e.rows_of(job.traces), threads), [])

    def test_blocks_of_a_framework_through_files_that_are_folded(self):
        with Job(os.path.join(e2e.APPS, "keep_me"), "journal.bin", 4, 500000, "exit", STORMLOG_KEEP="256K") as job:
            seen = set()
            while job.process.poll() is None:
                job.poll()
                seen.update(os.listdir(job.traces))
                time.sleep(0.02)
            self.assertTrue([name for name in seen if ".000003." in name], seen)
            known = job.wait_for(lambda known: known and all(process["ended"] for process in known))
            report = job.report_of_a_copy()
            for row in ("in_flight", "memory", "apis", "libraries", "pytorch"):
                self.assertEqual(without_late(known)[known[0]["trace"]][row], without_late(report)[known[0]["trace"]][row])

    def test_fork_and_exec_and_the_end(self):
        with Job(os.path.join(e2e.APPS, "fork_exec")) as job:
            while job.process.poll() is None:
                job.poll()
            known = self.end_equals_report(job)
            self.assertGreater(len(known), 1)

    def test_kills_while_followed_lose_nothing(self):
        """Each call of the trace is in the journal, and the reader's last figures are the report's."""
        for number in range(KILLS):
            with self.subTest(number), Job(os.path.join(e2e.APPS, "kill_me"), random.choice((1, 2, 8))) as job:
                end = time.monotonic() + random.uniform(0.05, 0.3)
                while time.monotonic() < end:
                    job.poll()
                job.process.kill()
                job.process.wait()
                truth = [process for process in journal.load(job.run.journals) if process.apis or process.in_flight]
                if not truth or not [name for name in os.listdir(job.traces) if name.endswith(".zst")]:
                    continue  # killed before its first call
                self.end_equals_report(job)
                (trace,) = stormlog_trace.open_folder(job.traces)
                self.assertEqual(kills.differences(trace, truth[0]), [])

    def test_a_finished_run_opens_as_well(self):
        with Job(os.path.join(e2e.APPS, "runtime12")) as job:
            job.process.wait()
            self.end_equals_report(job)

    def test_what_lives_of_other_runs_is_followed_too(self):
        with Job("python3", e2e.SCRIPT, "alloc=5", "sleep=100") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            second = subprocess.Popen(["python3", e2e.SCRIPT, "alloc=7", "sleep=100"], stdout=subprocess.DEVNULL,
                                      env={**job.environment, "STORMLOG_RUN_ID": "newer"})
            try:
                job.wait_for(lambda known: len(known) == 2 and all(process["memory"] for process in known))
                late = subprocess.Popen([FOLLOWED, job.traces], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                known = json.loads(late.communicate("poll\n")[0].splitlines()[0])
                self.assertEqual({process["pid"] for process in known}, {job.process.pid, second.pid})
            finally:
                second.kill()
                second.wait()

    def test_rings_of_the_node_are_found(self):
        with Job("python3", e2e.SCRIPT, "alloc=3", "sleep=60") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            other = subprocess.Popen([FOLLOWED, "/nowhere"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            said, _ = other.communicate("node\n")
            found = [process for process in json.loads(said) if process["pid"] == job.process.pid]
            self.assertEqual([row["live_bytes"] for row in found[0]["memory"]], [3 << 20])


if __name__ == "__main__":
    unittest.main(verbosity=2)
