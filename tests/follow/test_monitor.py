#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_monitor.py FOLLOWED SCHEMA: rows of `stormlog-analyze monitor` about running jobs, compared with what the jobs were told to allocate."""
import csv
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import unittest

SCHEMA = sys.argv.pop(2)
try:
    import jsonschema
    from test_follow import Job, e2e
except ImportError as error:
    print("skipped: python3-jsonschema is needed:", error)
    sys.exit(77)
MIB = 1 << 20


def monitor(*arguments):
    return subprocess.run([e2e.ANALYZE, "monitor", *map(str, arguments)], capture_output=True, text=True, timeout=60)


class Monitor(unittest.TestCase):
    def rows(self, *arguments):
        done = monitor("--format", "ndjson", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        with open(SCHEMA) as file:
            schema = json.load(file)
        for row in rows:
            jsonschema.validate(row, schema)
        return rows

    def test_rows_of_a_growing_job_until_its_end(self):
        with Job("python3", e2e.SCRIPT, "grow=150", "free", "alloc=7", SIM_VRAM="2G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            rows = self.rows("--interval", "0.1", job.traces)
        live = [row["live_bytes"] for row in rows]
        self.assertEqual(live[:-1], sorted(live[:-1]) if live[-2] != 7 * MIB else live[:-1])
        self.assertEqual((rows[-1]["status"], rows[-1]["live_bytes"], rows[-1]["peak_bytes"]), ("completed", 7 * MIB, 150 * MIB))
        grew = [row for row in rows if row["growth_bytes_per_second"] and row["status"] == "running"]
        self.assertTrue(grew, rows)
        self.assertTrue(10 * MIB < grew[0]["growth_bytes_per_second"] < 60 * MIB, grew[0])  # 1 MiB every 20 ms or more

    def test_a_process_by_its_number_and_a_steady_one_does_not_grow(self):
        with Job("python3", e2e.SCRIPT, "alloc=5", "sleep=60") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            rows = self.rows("--interval", "0.1", "--duration", "2", job.process.pid)
            self.assertEqual({(row["pid"], row["live_bytes"], row["growth_bytes_per_second"], row["full_in_seconds"]) for row in rows},
                             {(job.process.pid, 5 * MIB, None, None)})
            everything = self.rows("--duration", "0.5")
            self.assertIn(job.process.pid, {row["pid"] for row in everything})

    def test_a_device_that_is_used_later_changes_no_growth_of_another(self):
        with Job("python3", e2e.SCRIPT, "device=1", "alloc=500", "wait=more", "device=0", "alloc=10", "sleep=60", SIM_DEVICES="2") as job:
            out = os.path.join(job.run.folder, "rows")
            reader = subprocess.Popen([e2e.ANALYZE, "monitor", "--interval", "0.1", "--format", "ndjson", "--output", out, job.traces])

            def rows(device):
                with open(out) as file:
                    return [row for row in map(json.loads, (line for line in file if line.endswith("\n"))) if row["device_id"] == device]
            for device, name in (1, "more"), (0, "done"):
                job.wait_for(lambda _: os.path.exists(out) and len(rows(device)) >= 12)
                open(os.path.join(job.run.folder, name), "w").close()
            reader.terminate()
            reader.wait()
            self.assertEqual({(row["device_id"], row["live_bytes"] // MIB, row["growth_bytes_per_second"]) for row in rows(0) + rows(1)},
                             {(0, 10, None), (1, 500, None)})

    def test_what_another_recorded_process_holds_is_hidden_of_none(self):
        with Job("python3", e2e.SCRIPT, "alloc=100", "samples=3", "sleep=60", SIM_VRAM="2G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            ready = os.path.join(job.run.folder, "ready")
            with subprocess.Popen(["python3", e2e.SCRIPT, "alloc=500", "samples=3", "ready=" + ready, "sleep=60"], env=dict(job.environment, RANK="1")) as other:
                try:
                    while not os.path.exists(ready):
                        time.sleep(0.02)
                    rows = {row["pid"]: row for row in self.rows("--interval", "0.2", "--duration", "1", job.traces)}  # the last row of each process
                finally:
                    other.kill()
            self.assertEqual({row["live_bytes"] >> 20 for row in rows.values()}, {100, 500})
            self.assertEqual({row["hidden_bytes"] for row in rows.values()}, {300 * MIB})  # its own context
            self.assertEqual({row["device_used_bytes"] for row in rows.values()}, {1200 * MIB})

    def test_csv_and_a_table_say_the_same(self):
        with Job("python3", e2e.SCRIPT, "alloc=9") as job:
            job.process.wait()
            done = monitor("--format", "csv", job.traces)
            row, = csv.DictReader(io.StringIO(done.stdout))
            self.assertEqual((row["live_bytes"], row["status"], row["allocator_allocated_bytes"]), (str(9 * MIB), "completed", ""))
            self.assertIn("9.00 MiB", monitor(job.traces).stdout)
            line, = self.rows(job.traces)
            self.assertEqual({name: "" if value is None else str(value) for name, value in line.items() if not name.startswith(("schema", "timestamp"))},
                             {name: value for name, value in row.items() if name != "timestamp_ns"})

    def test_growth_is_in_each_format(self):
        with Job("python3", e2e.SCRIPT, "alloc=9", "grow=1900", SIM_VRAM="2G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            with subprocess.Popen([e2e.ANALYZE, "monitor", "--format", "csv", "--interval", "0.1", job.traces], stdout=subprocess.PIPE, text=True) as rows:
                row = next(row for row in csv.DictReader(rows.stdout) if row["growth_bytes_per_second"])
                rows.kill()
            self.assertGreater(float(row["growth_bytes_per_second"]), 0)
            with subprocess.Popen([e2e.ANALYZE, "monitor", "--interval", "0.1", job.traces], stdout=subprocess.PIPE, text=True) as rows:
                self.assertRegex(next(rows.stdout), r"used of the card +status$")
                next(row for row in rows.stdout if re.search(r"\+[0-9.]+ MiB/s", row))
                rows.kill()

    def test_a_full_disk_is_said_and_leaves_whole_rows(self):
        def small_disk():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

        with Job("python3", e2e.SCRIPT, "alloc=9", "sleep=100") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            path = os.path.join(job.run.folder, "rows")
            for arguments, place in ((("--format", "ndjson", "--interval", "0.1"), path), ((), "/dev/full")):
                done = subprocess.run([e2e.ANALYZE, "monitor", *arguments, "--output", place, job.traces], capture_output=True, text=True, timeout=60,
                                      preexec_fn=small_disk)
                self.assertEqual(done.returncode, 4)
                self.assertRegex(done.stderr, "^stormlog-analyze: %s: (File too large|No space left on device)\n$" % place)
            with open(path) as file:
                self.assertGreater(len([json.loads(line) for line in file]), 3)

    def test_rows_that_another_file_has_replaced_end_it_and_a_file_that_is_moved_away_keeps_them(self):
        with Job("python3", e2e.SCRIPT, "alloc=5", "sleep=600") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            path = os.path.join(job.run.folder, "rows")
            command = e2e.ANALYZE, "monitor", "--interval", "0.1", "--format", "ndjson", "--output", path, job.traces

            def lines(name):
                with open(name) as file:
                    return file.read().count("\n")
            first = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            self.addCleanup(first.kill)
            job.wait_for(lambda _: os.path.exists(path) and lines(path) > 2)
            os.rename(path, path + ".moved")
            before = lines(path + ".moved")
            job.wait_for(lambda _: lines(path + ".moved") > before + 2)
            second = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            self.addCleanup(second.kill)
            job.wait_for(lambda _: os.path.exists(path) and lines(path) > 2)
            before = lines(path + ".moved")
            job.wait_for(lambda _: lines(path + ".moved") > before + 2)  # a new file at its place (logrotate) does not end it
            first.kill()
            first.communicate()
            third = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            self.addCleanup(third.kill)
            self.assertIn("rows: the file that was begun there was replaced or removed", second.communicate(timeout=60)[1])
            self.assertEqual(second.returncode, 4)
            job.wait_for(lambda _: lines(path) > 2)
            os.unlink(path)
            self.assertIn("rows: the file that was begun there was replaced or removed", third.communicate(timeout=60)[1])
            self.assertEqual(third.returncode, 4)

    def test_an_interrupt_ends_it_and_the_rows_stay(self):
        with Job("python3", e2e.SCRIPT, "alloc=5", "sleep=60") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            path = os.path.join(job.run.folder, "rows")
            for form, read in (("csv", csv.DictReader), ("ndjson", lambda file: map(json.loads, file))):
                process = subprocess.Popen([e2e.ANALYZE, "monitor", "--interval", "0.1", "--format", form, "--output", path + form, job.traces])
                while not os.path.exists(path + form) or os.path.getsize(path + form) < 600:
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(20), -signal.SIGINT)
                with open(path + form) as file:
                    self.assertEqual({str(row["live_bytes"]) for row in read(file)}, {str(5 * MIB)})

    def test_what_is_not_there_is_said(self):
        done = monitor("/no/such/folder")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no such path", done.stderr)
        for number in "0", " 1", "+1", "0x10", "nan", "inf", "1e400", "", "-1", "1s":
            self.assertIn('--interval: "%s" is not seconds' % number, monitor("--interval", number, "/tmp").stderr)
        self.assertEqual(monitor("--interval", "0", "/tmp").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
