#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_watch.py FOLLOWED: `stormlog-analyze watch` and `stormlog-run --watch`.  The jobs' arguments give the expected figures."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

for folder in "follow", "":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
try:
    import jsonschema
    import landlock
    from test_follow import Job, e2e  # takes FOLLOWED, exits 77 where it cannot run
except ImportError as error:
    print("skipped: python3-jsonschema is needed:", error)
    sys.exit(77)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "schemas", "alert.schema.json")) as schema:
    SCHEMA = json.load(schema)
MIB = 1 << 20


ALERT = re.compile(r"stormlog: (raised|cleared|ended with its process|no longer known) \((.*?)\): (?:(\S+) is (.*?), )?(?:rank (\d+) )?"
                   r"pid (\d+)(?: device (\d+))? of [^:]*(?:: (.*))?")


class Watcher:
    """stormlog-analyze watch.  said: the lines that it has printed; alerts: those that are alerts."""

    def __init__(self, path, *rules, options=(), cwd=None, environment=None):
        argv = [e2e.ANALYZE, "watch", "--interval", "0.1", *options]
        for rule in rules:
            argv += ["--rule", rule]
        self.process = subprocess.Popen(argv + ([str(path)] if path else []), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=cwd,
                                        env=dict(os.environ, **(environment or {})))
        self.said = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))

    @property
    def alerts(self):
        names = "state", "rule", "metric", "value", "rank", "pid", "device", "place"
        return [dict(zip(names, found.groups())) for found in map(ALERT.match, list(self.said)) if found]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        self.process.wait(60)
        self.reader.join(60)
        self.process.stderr.close()
        return self.process.returncode, "\n".join(self.said)


def wait_until(condition, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("never")


def job(*steps, **environment):
    return Job("python3", e2e.SCRIPT, *steps, SIM_VRAM="2G", **environment)


class Watch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Starts a job that grows for half a minute and three readers of its trace; they run beside the other tests."""
        cls.growing = job("grow=1700", "sleep=1000")
        cls.addClassCleanup(cls.growing.__exit__)
        cls.alerts = os.path.join(cls.growing.run.folder, "alerts")
        cls.growing.wait_for(lambda known: known and known[0]["memory"])
        cls.watcher = Watcher(cls.growing.traces, "full-in < 10min")
        cls.readers = []
        for form in "ndjson", "table":
            argv = e2e.ANALYZE, "monitor", "--interval", "0.5", "--format", form, "--output", cls.alerts + form, cls.growing.traces
            cls.readers.append(subprocess.Popen(argv))

    def test_when_the_device_is_full_is_told_by_all_readers(self):
        wait_until(lambda: self.watcher.alerts, 150)
        for form, pattern in ("ndjson", r'"full_in_seconds":\d'), ("table", r" \+[\d.]+ [KM]iB/s, full in [\d.]+ m?s "):
            def told():
                with open(self.alerts + form) as file:
                    return re.search(pattern, " ".join(file.read().split()) + " ")
            wait_until(told, 150)
        for reader in self.readers:
            reader.terminate()
            reader.communicate()
        with open(self.alerts + "ndjson") as file:
            rows = list(map(json.loads, file))
        self.assertIsNone(rows[0]["full_in_seconds"])
        told = next(row for row in rows if row["full_in_seconds"] is not None)
        self.assertLess(told["device_used_bytes"], told["device_total_bytes"])
        self.watcher.end()
        self.assertIn("script.py", self.watcher.alerts[0]["place"])

    def test_an_alert_stays_with_its_device_when_one_of_a_smaller_number_is_used_later(self):
        with job("device=1", "alloc=500", "ready=a", "wait=b", "device=0", "alloc=10", "ready=c", "wait=d", SIM_DEVICES="2") as run:
            watcher = Watcher(run.traces, "live > 400MiB", "live > 5MiB")
            for then, count in ("b", 2), ("d", 3):  # both rules of device 1, then one of device 0
                wait_until(lambda: len(watcher.alerts) >= count)
                open(os.path.join(run.run.folder, then), "w").close()
            watcher.wait()
            ended = "ended with its process"
            self.assertEqual(sorted((alert["rule"], alert["device"], alert["state"]) for alert in watcher.alerts),
                             [("live > 400MiB", "1", ended), ("live > 400MiB", "1", "raised"), ("live > 5MiB", "0", ended), ("live > 5MiB", "0", "raised"),
                              ("live > 5MiB", "1", ended), ("live > 5MiB", "1", "raised")])

    def test_an_alert_is_raised_once_and_cleared(self):
        with job("alloc=100", "ready=a", "wait=b", "alloc=400", "ready=c", "wait=d", "free", "ready=e", "wait=f") as run:
            watcher = Watcher(run.traces, "live > 400MiB", "live > 90%")
            for at, then, count in (("a", "b", 0), ("c", "d", 1), ("e", "f", 2)):
                wait_until(lambda: os.path.exists(os.path.join(run.run.folder, at)))
                wait_until(lambda: len(watcher.alerts) == count)
                time.sleep(0.5)  # the alert is not sent again
                self.assertEqual(len(watcher.alerts), count)
                open(os.path.join(run.run.folder, then), "w").close()
            status, _ = watcher.wait()
            raised, cleared = watcher.alerts
            self.assertEqual([raised[name] for name in ("state", "metric", "value", "pid", "device")], ["raised", "live", "500 MiB", str(run.process.pid), "0"])
            self.assertEqual((cleared["state"], cleared["value"]), ("cleared", "0 B"))
            self.assertRegex(raised["place"], r"script\.py:\d+ allocate")
            self.assertEqual(status, 1)

    def test_an_alert_of_a_job_that_freed_all_and_ended_has_ended_and_is_not_cleared(self):
        with job("alloc=500", "wait=b", "free") as run:
            run.wait_for(lambda known: known and known[0]["memory"])
            watcher = Watcher(run.traces, "live > 400MiB", options=("--interval", "3600"))  # the second look is the last
            wait_until(lambda: watcher.alerts)
            open(os.path.join(run.run.folder, "b"), "w").close()
            run.process.wait()
            watcher.end()
            self.assertEqual([(alert["state"], alert["value"]) for alert in watcher.alerts], [("raised", "500 MiB"), ("ended with its process", None)])

    def test_an_alert_of_a_job_whose_recording_was_removed_is_unknown(self):
        with job("alloc=500", "sleep=100") as run:
            run.wait_for(lambda known: known and known[0]["memory"])
            watcher = Watcher(run.traces, "live > 400MiB")
            wait_until(lambda: watcher.alerts)
            shutil.rmtree(run.traces)
            watcher.wait()
            self.assertEqual([(alert["state"], alert["value"]) for alert in watcher.alerts], [("raised", "500 MiB"), ("no longer known", None)])
            self.assertIsNone(run.process.poll())

    def test_hysteresis_a_value_that_stays_near_the_limit_is_one_alert(self):
        with job(*["alloc=95", "sleep=0.3", *["alloc=8", "sleep=0.4"] * 1, "free", "alloc=95", "sleep=0.4", "alloc=8", "sleep=0.4"]) as run:
            # free and alloc=95 follow at once: a look between them would rightly clear the alert
            watcher = Watcher(run.traces, "live > 100MiB", "live > 100MiB for 1h")
            watcher.wait()
            states = [alert["state"] for alert in watcher.alerts]
            self.assertEqual(states[:1] + states[-1:], ["raised", "ended with its process"])
            self.assertLessEqual(len(states), 4)
            self.assertEqual({alert["rule"] for alert in watcher.alerts}, {"live > 100MiB"})

    def test_a_rule_that_holds_for_a_time_is_told_after_it(self):
        with job("alloc=100", "sleep=100") as run:
            begun = time.monotonic()
            watcher = Watcher(run.traces, "live >= 100MiB for 2s")
            wait_until(lambda: watcher.alerts)
            self.assertGreaterEqual(time.monotonic() - begun, 2)
            watcher.end()

    def test_ooms_and_calls_in_flight_and_the_share_of_the_device(self):
        with job("alloc=1500", "try=1500", "sleep=100") as run:
            watcher = Watcher(run.traces, "ooms > 0", "used > 80%", "free < 100%", "used > 99%", "full-in < 1h", "call-age > 1h", "unlike > 1")
            wait_until(lambda: len(watcher.alerts) >= 3)
            status, _ = watcher.end()
            told = {alert["metric"]: alert["value"] for alert in watcher.alerts}
            self.assertEqual(told["ooms"], "1")
            self.assertGreater(float(told["used"].rstrip("%")), 100 * 1500 / 2048)  # from a sample, which counts the context too
            self.assertEqual(set(told), {"ooms", "used", "free"})
            self.assertEqual(status, 1)

    def test_what_no_sample_told_of_a_device_is_unknown(self):
        with job("alloc=300", "sleep=100", STORMLOG_DEVICE_INTERVAL="0") as run:
            watcher = Watcher(run.traces, "used > 1%", "used < 99%", "free > 1%", "free < 99%", "hidden < 99%", "live > 1%")
            wait_until(lambda: watcher.alerts)
            watcher.end()
            self.assertEqual({alert["metric"] for alert in watcher.alerts}, {"live"})

    def test_every_amount_and_operator_at_its_limit(self):
        """The job holds 300 MiB and a PyTorch segment of 256 MiB; the context takes 300 MiB more. The device has 2 GiB."""
        holds = ("live >= 556MiB", "live <= 556MiB", "live > 555MiB", "live < 557MiB", "live > 27%", "reserved >= 256MiB", "reserved <= 12.5%", "hidden >= 300MiB",
                 "hidden < 15%", "used >= 856MiB", "used <= 856MiB", "free >= 1192MiB", "free <= 1192MiB", "free > 58%")
        fails = ("live > 556MiB", "live < 556MiB", "live > 28%", "reserved > 256MiB", "reserved < 12.5%", "hidden > 300MiB", "hidden > 15%", "used > 856MiB",
                 "used < 856MiB", "free > 1192MiB", "free < 1192MiB", "free > 59%")
        with job("alloc=300", "tensor=50", "sampled", "sleep=100") as run:
            run.wait_for(lambda known: known and known[0]["memory"] and known[0]["memory"][0]["live_bytes"] == 556 * MIB)
            watcher = Watcher(run.traces, *(rule + " for 1s" for rule in holds + fails))
            wait_until(lambda: len(watcher.alerts) >= len(holds))
            watcher.end()
            self.assertEqual(sorted(alert["rule"].split(" for")[0] for alert in watcher.alerts), sorted(holds))

    def test_growth_names_the_place(self):
        with job("alloc=100", "grow=1200") as run:
            run.wait_for(lambda known: known and known[0]["memory"])  # memory held at the first look does not count as growth
            watcher = Watcher(run.traces, "growth > 1GiB/hour")
            wait_until(lambda: watcher.alerts)
            watcher.end()
            self.assertRegex(watcher.alerts[0]["value"], r"MiB/s")  # 1 MiB each 20 ms and more
            with open(e2e.SCRIPT) as file:
                line = next(number for number, text in enumerate(file, 1) if "grow(int(value))" in text)
            self.assertIn("script.py:%d " % line, watcher.alerts[0]["place"])

    def test_growth_by_the_step_whatever_a_step_lasts(self):
        steps = [word for step in range(60) for word in ("push=step_%d" % step, "alloc=3", "sleep=%.2f" % (0.05 + step % 3 * 0.05), "pop")]
        with job(*steps, "sleep=100") as run:
            watcher = Watcher(run.traces, "growth > 2MiB/step", "growth > 4MiB/step")
            wait_until(lambda: watcher.alerts)
            watcher.end()
            self.assertEqual({alert["rule"] for alert in watcher.alerts}, {"growth > 2MiB/step"})
            self.assertAlmostEqual(float(watcher.alerts[0]["value"].split()[0]), 3, delta=0.5)

    def test_a_call_that_does_not_return(self):
        with job("alloc=1", "try=7", SIM_LATENCY="cuMemAlloc_v2:6000000000") as run:  # 6 s each
            watcher = Watcher(run.traces, "call-age > 1s")
            wait_until(lambda: watcher.alerts)
            watcher.end()
            self.assertEqual([watcher.alerts[0][name] for name in ("state", "metric", "device")], ["raised", "call-age", None])

    def test_a_rank_unlike_the_others(self):
        folder, jobs = None, []
        try:
            for rank in range(5):
                jobs.append(job("alloc=%d" % (900 if rank == 0 else 300), "sleep=100", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="5",
                                SIM_DEVICES="5"))
                folder = folder or jobs[0].traces
            for other in jobs[1:]:
                other.wait_for(lambda known: known and known[0]["memory"])
            for other in jobs[1:]:
                for name in os.listdir(other.traces):
                    os.symlink(os.path.join(other.traces, name), os.path.join(folder, name))
            watcher = Watcher(folder, "unlike > 3.5")
            wait_until(lambda: watcher.alerts)
            for other in jobs[3:]:
                other.process.kill()
                time.sleep(1)  # so that a look sees each end while enough others are left to compare
            wait_until(lambda: len(watcher.alerts) > 1)  # three ranks are too few to compare
            watcher.end()
            self.assertEqual([(alert["state"], alert["rank"]) for alert in watcher.alerts], [("raised", "0"), ("no longer known", "0")])
        finally:
            for one in jobs:
                one.__exit__()

    def test_the_command_of_a_rule_has_the_alert_and_a_failing_one_delays_nothing(self):
        with job("alloc=100", "sleep=100", RANK="0", WORLD_SIZE="1", TORCHELASTIC_RUN_ID="../team/exp1") as run:
            folder = run.run.folder
            watcher = Watcher(run.traces, "live > 1MiB => command exit 7", "live > 2MiB => message",
                              "live > 1MiB => command env | grep ^STORMLOG_ALERT > %s/env; cat > %s/json" % (folder, folder), "live > 1MiB => command sleep 100")
            wait_until(lambda: os.path.exists(folder + "/json") and os.path.getsize(folder + "/json"))
            with open(folder + "/env") as file:
                settings = dict(line.rstrip("\n").split("=", 1) for line in file)
            with open(folder + "/json") as file:
                alert = json.load(file)
            jsonschema.validate(alert, SCHEMA)
            self.assertEqual((alert["value"], alert["place"].split(":")[0]), (100 * MIB, "script.py"))
            self.assertEqual(json.loads(settings.pop("STORMLOG_ALERT_JSON")), alert)
            self.assertEqual([settings["STORMLOG_ALERT_" + name] for name in ("STATE", "METRIC", "PID", "RANK", "DEVICE")],
                             ["raised", "live", str(run.process.pid), "0", "0"])
            status, said = watcher.end()
            self.assertIn("command exit 7: exit status 7", said)
            self.assertIn("command sleep 100: not done in time, ended", said)
            self.assertIn("raised (live > 2MiB)", said)

    def test_a_runner_that_is_held_up_delays_nothing(self):
        """While it is stopped it gets more commands than its socket holds: all alerts are told, and lost commands are reported."""
        with job("wait=go", "alloc=100", "sleep=100") as run:
            acted, rules = os.path.join(run.run.folder, "acted"), 300
            watcher = Watcher(run.traces, *("live > %dB => command echo >> %s" % (number, acted) for number in range(rules)))
            self.addCleanup(watcher.process.kill)
            children = pathlib.Path("/proc/%d/task/%d/children" % (watcher.process.pid, watcher.process.pid))
            wait_until(children.read_text)
            runner = int(children.read_text().split()[0])  # it is the first child
            os.kill(runner, signal.SIGSTOP)
            pathlib.Path(run.run.folder, "go").touch()
            try:
                wait_until(lambda: len(watcher.alerts) == rules)
            finally:
                os.kill(runner, signal.SIGCONT)
            left = sum("left out: Resource temporarily unavailable" in line for line in watcher.said)
            self.assertGreater(left, 0)

            def lines():
                with open(acted) as file:
                    return len(file.readlines())
            wait_until(lambda: os.path.exists(acted) and lines() == rules - left)
            watcher.end()

    def test_who_reads_traces_starts_nothing_and_writes_nothing_itself(self):
        """A library that runs its own code at the first unpacking cannot leave the sandbox; the rule's command still runs."""
        prober = os.path.join(os.path.dirname(os.path.dirname(e2e.ANALYZE)), "tests", "hostile", "prober.so")
        with job("alloc=100", "sleep=100") as run, tempfile.TemporaryDirectory(dir="/var/tmp") as home:
            with open(os.path.join(home, "secret"), "w") as out:
                out.write("kept")
            acted = os.path.join(run.run.folder, "acted")
            run.wait_for(lambda known: known and known[0]["memory"])
            watcher = Watcher(run.traces, "live > 1MiB => command env > " + acted,
                              environment={"LD_PRELOAD": prober, "PROBE_FOLDER": home, "ASAN_OPTIONS": "verify_asan_link_order=0"})
            wait_until(lambda: os.path.exists(acted) and os.path.getsize(acted))
            said = watcher.end()[1]
            if not landlock.is_here():
                self.skipTest("this kernel has no Landlock")
            self.assertEqual([line for line in said.splitlines() if line.startswith("probe: ")], ["probe: done"])
            self.assertEqual(os.listdir(home), ["secret"])
            with open(acted) as file:
                self.assertIn("STORMLOG_ALERT_METRIC=live", file.read())

    def test_the_launcher_watches_beside_the_command(self):
        run = e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "sleep=3", launcher=["--watch", "live > 200MiB => command echo told > told"], SIM_VRAM="2G")
        with run:
            self.assertIn(b"raised (live > 200MiB)", run.done.stderr)
            self.assertTrue(os.path.exists(os.path.join(run.folder, "told")))

    def test_the_launcher_tells_of_an_error_that_ends_the_command(self):
        run = e2e.Recording("sh", "-c", "echo began", launcher=["--watch", "share > 5 => message"], code=125)
        with run:  # the error comes before the command begins
            self.assertEqual(run.done.stdout, b"")
            self.assertIn(b"names no figure: used", run.done.stderr)
        run = e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "try=3000", launcher=["--watch", "default"], SIM_VRAM="2G")
        with run:
            self.assertIn(b"raised (ooms > 0)", run.done.stderr)

    def test_rules_of_the_file_and_which_of_them_may_act(self):
        with job("alloc=100", "sleep=100") as run:
            ini = os.path.join(run.run.folder, ".stormlog.ini")
            with open(ini, "w") as file:
                file.write("max-peak = 1GiB\n[watch]\nrule = live > 1MiB => message\n")
            watcher = Watcher(run.traces, cwd=run.run.folder)
            run.wait_for(lambda known: known and known[0]["memory"])
            time.sleep(1)
            self.assertIn("raised (live > 1MiB)", watcher.end()[1])
            with open(ini, "a") as file:
                file.write("rule = live > 1MiB => command touch acted\n")
            status, said = Watcher(run.traces, cwd=run.run.folder).wait()
            self.assertEqual(status, 2)
            self.assertIn("--config", said)
            watcher = Watcher(run.traces, options=("--config", ini), cwd=run.run.folder)
            wait_until(lambda: os.path.exists(os.path.join(run.run.folder, "acted")))
            watcher.end()

    def test_what_is_no_rule_is_refused_in_words(self):
        for rule, words in (("lives > 1", "names no figure"), ("live", "NAME > VALUE"), ("live > much", "no value"), ("live > 1B => shout", "wants message or command"),
                            ("live > 1B => command", "wants a line"), ("live > 1B for ever", "no time"),
                            ("growth > 1MiB", "no value"), ("ooms > 50%", "no value"), ("full-in < 10 lightyears", "no time"),
                            ("used > 95", "value with a unit"), ("used > 200%", "value with a unit"), ("full-in < 10", "value with a unit"), ("live > 1B for 5", "no time"),
                            ("used > 46% for 555555555d", "no time")):
            status, said = Watcher("/tmp", rule).wait()
            self.assertEqual(status, 2, rule)
            self.assertRegex(said, words if rule != "full-in < 10 lightyears" else ".")


if __name__ == "__main__":
    unittest.main(verbosity=2)
