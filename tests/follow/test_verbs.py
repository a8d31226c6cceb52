#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_verbs.py FOLLOWED SCHEMAS: track, diagnose, and monitor of devices without a recording.  Expected figures are those that jobs and simulator were given."""
import glob
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCHEMAS = sys.argv.pop(2)
try:
    import jsonschema
    from test_follow import Job, e2e, stormlog_trace
except ImportError as error:
    print("skipped: python3-jsonschema is needed:", error)
    sys.exit(77)
MIB = 1 << 20


def analyze(*arguments, **environment):
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=folder, **environment)
        env.pop("STORMLOG_BUILD", None)
        return subprocess.run([e2e.ANALYZE, *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env)


def schema(name):
    with open(os.path.join(SCHEMAS, name + ".schema.json")) as file:
        return json.load(file)


def load(*path):
    with open(os.path.join(*path)) as file:
        return json.load(file)


def events(sink):
    found = []
    for path in sorted(glob.glob(os.path.join(sink, "segment-*.jsonl"))):
        with open(path) as file:
            text = file.read()
        assert text.endswith("\n"), path
        found += map(json.loads, text.splitlines())
    return found


class System(unittest.TestCase):
    def test_the_header_and_the_bundle_of_an_error_say_what_the_machine_is(self):
        with e2e.script("alloc=3", "try=900000", SIM_VRAM="1G") as run:
            subprocess.run([e2e.ANALYZE, run.traces], check=True, capture_output=True)
            place, = glob.glob(os.path.join(run.traces, "analysis", "oom", "oom_dump_*"))
            said, (trace,) = load(place, "environment.json"), stormlog_trace.open_folder(run.traces)
        with open("/proc/meminfo") as file:
            memory = int(file.readline().split()[1]) << 10
        system = said["system"]
        self.assertEqual(system, trace.header["system"])
        self.assertEqual([system[key] for key in ("kernel", "architecture", "memory_bytes", "distribution", "cpus")],
                         [os.uname().release, os.uname().machine, str(memory), platform.freedesktop_os_release()["PRETTY_NAME"], str(os.sysconf("SC_NPROCESSORS_ONLN"))])


class Monitor(unittest.TestCase):
    def test_devices_that_no_recorded_process_uses_have_rows(self):
        done = analyze("monitor", "--duration", "0.1", "--format", "ndjson", SIM_DEVICES="16", SIM_VRAM="3G")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows:
            jsonschema.validate(row, schema("monitor"))
        last = [row for row in rows if row["device_id"] == 15 and row["pid"] is None]
        self.assertTrue(last, rows)
        self.assertEqual({(row["device_total_bytes"], row["live_bytes"], row["status"]) for row in last}, {(3072 * MIB, None, None)})
        for form in ("csv", "table"):
            self.assertIn(" of 3.00 GiB" if form == "table" else str(3072 * MIB),
                          analyze("monitor", "--duration", "0.1", "--format", form, SIM_DEVICES="16", SIM_VRAM="3G").stdout)


class Track(unittest.TestCase):
    def sink(self, job, *options):
        return os.path.join(job.run.folder, "sink")

    def test_a_sink_is_whole_at_every_moment_and_says_what_the_job_held(self):
        with Job("python3", e2e.SCRIPT, "alloc=15000", "alloc=900", "sleep=2", "free", "alloc=30", "sleep=1", SIM_VRAM="16G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            sink = os.path.join(job.run.folder, "sink")
            process = subprocess.Popen([e2e.ANALYZE, "track", "--interval", "0.1", "--watchdog", "--output", sink, job.traces],
                                       stderr=subprocess.PIPE, text=True)
            manifests = 0
            while process.poll() is None:
                if os.path.exists(os.path.join(sink, "manifest.json")):
                    manifest = load(sink, "manifest.json")
                    events(sink)
                    manifests += 1
                    self.assertLessEqual(len(manifest["sessions"]), 1)
                time.sleep(0.05)
            self.assertGreater(manifests, 3)
            said = process.communicate()[1]
            self.assertEqual(process.returncode, 0, said)
            session, = load(sink, "manifest.json")["sessions"]
            self.assertEqual((session["status"], session["pid"]), ("completed", job.process.pid))
            found = events(sink)
            samples = [event for event in found if event["event_type"] == "sample"]
            self.assertIn(15900 * MIB, {event["allocator_allocated_bytes"] for event in samples})
            self.assertEqual(samples[-1]["allocator_allocated_bytes"], 30 * MIB)
            self.assertEqual({event["device_total_bytes"] for event in samples}, {16384 * MIB})
            alerts = [event["event_type"] for event in found if event["event_type"] in ("warning", "critical")]
            self.assertEqual(alerts.count("critical"), 1, alerts)  # 97 %
            self.assertIn("critical: pid %d device 0: " % job.process.pid, said)
            self.assertEqual([event["event_type"] for event in found][::len(found) - 1], ["start", "stop"])
            self.assertEqual([event["timestamp_ns"] for event in found], sorted(event["timestamp_ns"] for event in found))
            self.assertEqual(analyze("validate", sink).returncode, 0)
            self.assertEqual(analyze("validate", sink).stderr, "")

    def test_thresholds_a_killed_job_and_its_error(self):
        with Job("python3", e2e.SCRIPT, "alloc=1500", "try=1500", "sleep=100", SIM_VRAM="2G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            sink = os.path.join(job.run.folder, "sink")
            process = subprocess.Popen([e2e.ANALYZE, "track", "--interval", "0.1", "--warning-threshold", "10", "--critical-threshold", "99",
                                        "-o", sink, job.traces])
            while not os.path.exists(os.path.join(sink, "manifest.json")):
                time.sleep(0.05)
            time.sleep(0.5)
            job.process.kill()
            job.process.wait()
            self.assertEqual(process.wait(60), 0)
            found = events(sink)
            self.assertEqual([event["event_type"] for event in found if event["event_type"] not in ("sample", "start")], ["warning", "error"])
            self.assertEqual(load(sink, "manifest.json")["sessions"][0]["status"], "interrupted")

    def test_a_threshold_is_of_what_pytorch_gave_out_and_without_it_of_the_whole_device(self):
        """As in upstream's tracker, whose collectors report the allocator where there is one, else the device."""
        for step, crossed in (("alloc=500", True), ("tensor=500", False)):  # 500 MiB are under half of 2 GiB; two processes with contexts are over it
            with self.subTest(step), Job("python3", e2e.SCRIPT, step, "sleep=100", SIM_VRAM="2G") as job:
                other = subprocess.Popen(["python3", e2e.SCRIPT, step, "sleep=100"], env=job.environment, stdout=subprocess.DEVNULL)
                try:
                    job.wait_for(lambda known: len(known) == 2 and all(process["memory"] for process in known))
                    sink = os.path.join(job.run.folder, "sink")
                    done = analyze("track", "--watchdog", "--interval", "0.1", "--duration", "0.5", "--warning-threshold", "50", "-o", sink, job.traces)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual({event["pid"] for event in events(sink) if event["event_type"] == "warning" and "usage" in event["context"]},
                                     {job.process.pid, other.pid} if crossed else set())
                finally:
                    other.kill()
                    other.wait()

    def test_a_full_disk_is_said_and_leaves_nothing_unfinished(self):
        def disk(size):
            def limit():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
            return limit

        with Job("python3", e2e.SCRIPT, "alloc=9", "sleep=100") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            for size, left in ((100, False), (8000, True)):
                sink = os.path.join(job.run.folder, "sink-%d" % size)
                done = subprocess.run([e2e.ANALYZE, "track", "--interval", "0.1", "-o", sink, job.traces], capture_output=True, text=True, timeout=60,
                                      preexec_fn=disk(size))
                self.assertEqual((done.returncode, done.stderr), (4, "stormlog-analyze: %s: File too large\n" % sink))
                self.assertEqual(sorted(os.listdir(sink)) if os.path.exists(sink) else [], ["manifest.json", "segment-000001.jsonl"] if left else [])
            self.assertGreater(len(events(sink)), 3)
            self.assertEqual(analyze("validate", sink).returncode, 0)

    def test_a_signal_ends_it_with_a_whole_sink_and_devices_alone_are_tracked(self):
        folder = tempfile.mkdtemp()
        sink = os.path.join(folder, "sink")
        env = dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_DEVICES="2", SIM_DIR=folder)
        process = subprocess.Popen([e2e.ANALYZE, "track", "--interval", "0.1", "-o", sink], env=env)
        try:
            while not glob.glob(os.path.join(sink, "segment-*")):
                time.sleep(0.05)
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), 0)
            own = [event for event in events(sink) if event["session_id"].startswith("devices-")]
            self.assertEqual({event["device_id"] for event in own if event["event_type"] == "sample"}, {0, 1})
            self.assertEqual(analyze("validate", sink).returncode, 0)
        finally:
            subprocess.run(["rm", "-rf", folder])

    def test_a_segment_that_is_removed_ends_it_with_a_sentence(self):
        with Job("python3", e2e.SCRIPT, "alloc=9", "sleep=100") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            sink = os.path.join(job.run.folder, "sink")
            process = subprocess.Popen([e2e.ANALYZE, "track", "--interval", "0.1", "-o", sink, job.traces], stderr=subprocess.PIPE, text=True)
            while not os.path.exists(os.path.join(sink, "manifest.json")):
                time.sleep(0.02)
            os.unlink(os.path.join(sink, "segment-000001.jsonl"))
            self.assertEqual((process.communicate(timeout=60)[1], process.returncode), ("stormlog-analyze: %s, or a file of it, was removed meanwhile\n" % sink, 4))

    def test_a_folder_with_something_in_it_is_refused(self):
        with Job("python3", e2e.SCRIPT, "alloc=1") as job:
            job.process.wait()
            self.assertEqual(analyze("track", "-o", job.traces, job.traces).returncode, 2)
            self.assertEqual(analyze("track", job.traces).returncode, 2)


class Diagnose(unittest.TestCase):
    def bundle(self, job, *options):
        place = os.path.join(job.run.folder, "bundle")
        done = analyze("diagnose", "--output", place, *options, job.traces)
        manifest = load(place, "manifest.json")
        self.assertEqual(manifest["exit_code"], done.returncode)
        self.assertEqual(sorted(manifest["files"]), sorted(os.listdir(place)))
        return done, manifest, load(place, "diagnostic_summary.json"), load(place, "telemetry_timeline.json"), place

    def test_a_healthy_job_that_runs(self):
        with Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100", SIM_VRAM="2G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            done, manifest, summary, timeline, place = self.bundle(job, "--duration", "1", "--interval", "0.2")
            self.assertEqual((done.returncode, manifest["risk_detected"], manifest["session_status"]), (0, False, "running"))
            self.assertEqual((summary["allocated_bytes"], summary["total_bytes"], summary["num_ooms"]), (100 * MIB, 2048 * MIB, 0))
            self.assertAlmostEqual(summary["utilization_ratio"], 100 / 2048)
            self.assertGreaterEqual(len(timeline["timestamps"]), 3)
            self.assertEqual(set(timeline["allocated"]), {100 * MIB})
            self.assertEqual(analyze("validate", place).returncode, 0)

    def test_a_finished_job_that_ran_out_of_memory_and_was_fragmented(self):
        with Job("python3", e2e.SCRIPT, "tensor=50", "tensor=50", "drop", "try=3000", SIM_VRAM="2G") as job:
            job.process.wait()
            done, manifest, summary, timeline, place = self.bundle(job)
            self.assertEqual((done.returncode, manifest["risk_detected"], manifest["session_status"]), (2, True, "completed"))
            self.assertEqual(summary["risk_flags"], {"oom_occurred": True, "high_utilization": False, "fragmentation_warning": True})
            self.assertEqual(summary["num_ooms"], 1)
            self.assertTrue(any("more than the card has" in suggestion for suggestion in summary["suggestions"]), summary["suggestions"])
            self.assertEqual((summary["allocated_bytes"], summary["reserved_bytes"]), (50 * MIB, 256 * MIB))
            self.assertEqual(max(timeline["reserved"]), summary["peak_bytes"])
            self.assertEqual(timeline["timestamps"], sorted(timeline["timestamps"]))
            again = analyze("diagnose", "--output", os.path.dirname(place), job.traces)
            self.assertRegex(again.stdout, r"/stormlog-diagnose-\d{8}-\d{6}")

    def test_a_finished_job_is_told_as_it_was_at_its_peak_and_not_after_it_had_freed_all(self):
        with Job("python3", e2e.SCRIPT, "tensor=120", "tensor=120", "drop", "drop", SIM_VRAM="2G") as job:
            job.process.wait()
            done, _, summary, _, _ = self.bundle(job)
            self.assertEqual((done.returncode, summary["risk_flags"]["fragmentation_warning"]), (0, False))
            self.assertEqual((summary["allocated_bytes"], summary["reserved_bytes"]), (240 * MIB, 256 * MIB))

    def test_a_killed_job_was_interrupted(self):
        with Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100", SIM_VRAM="2G") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            job.process.kill()
            job.process.wait()
            _, manifest, summary, _, _ = self.bundle(job)
            self.assertEqual((manifest["session_status"], manifest["session"]["status"], summary["allocated_bytes"]),
                             ("interrupted", "interrupted", 100 * MIB))

    def test_nothing_recorded_is_a_failure(self):
        self.assertEqual(analyze("diagnose", "--duration", "0", "/tmp/none-such").returncode, 2)
        with Job("true") as job:
            job.process.wait()
            self.assertEqual(analyze("diagnose", "--duration", "0", "--output", os.path.join(job.run.folder, "b"), job.traces).returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
