#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_exporter.py FOLLOWED EXPORTER PROBER: scrapes of jobs with known figures, read by a parser that shares no code with the
writer; and the files that are installed with the exporter."""
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

EXPORTER, PROBER = map(os.path.abspath, (sys.argv.pop(2), sys.argv.pop(2)))
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "follow"), str(HERE.parent)]
from test_follow import Job, e2e  # takes FOLLOWED, exits 77 where it cannot run
import journal
import landlock

MIB = 1 << 20
FOLDER = HERE.parents[1] / "tools" / "exporter"
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(r"(%s)(?:\{(.*)\})? (-?[0-9.e+-]+|[+-]Inf|NaN)" % NAME)


def parse(text):
    """{family: (type, [(sample's name, labels, value)])} of a text in OpenMetrics 1.0; any other text is an error."""
    lines = text.split("\n")
    if lines[-2:] != ["# EOF", ""]:
        raise AssertionError("no # EOF at the end")
    families, current, seen = {}, None, set()
    for line in lines[:-2]:
        if line.startswith("# "):
            word, name, rest = line[2:].split(" ", 2)
            if word == "HELP" or word == "TYPE" and name != current:
                if name in families:
                    raise AssertionError("%s comes twice" % name)
                families[name], current = [None, []], name
            if word == "TYPE":
                families[name][0] = rest
            if word == "UNIT" and not name.endswith("_" + rest):
                raise AssertionError("%s does not end in its unit %s" % (name, rest))
            continue
        match = SAMPLE.fullmatch(line)
        if not match:
            raise AssertionError("not a sample: %r" % line)
        labels, at = {}, 0
        body = match[2] or ""
        while at < len(body):
            label = LABEL.match(body, at)
            if not label or label[1] in labels:
                raise AssertionError("labels: %r" % body)
            labels[label[1]] = label[2].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
            at = label.end()
            if at < len(body):
                if body[at] != ",":
                    raise AssertionError("labels: %r" % body)
                at += 1
                if at == len(body) and not body.endswith(","):
                    raise AssertionError("labels: %r" % body)
        wanted = current + "_total" if families[current][0] == "counter" else current
        if match[1] != wanted:
            raise AssertionError("%s is in the family %s" % (match[1], current))
        key = (match[1], tuple(sorted(labels.items())))
        if key in seen:
            raise AssertionError("twice: %s" % line)
        seen.add(key)
        families[current][1].append((match[1], labels, float(match[3])))
    return families


class Exporter:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([EXPORTER, "--listen", "127.0.0.1:0", *map(str, arguments)], stderr=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stderr.readline())[0]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()

    def get(self, accept="application/openmetrics-text; version=1.0.0"):
        with urllib.request.urlopen(urllib.request.Request(self.url, headers={"Accept": accept}), timeout=120) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def wait_for(self, condition):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            families = parse(self.get()[1])
            if condition(families):
                return families
            time.sleep(0.2)
        raise AssertionError("never: %s" % families)


def values(families, name, *labels):
    return {tuple(sample[1].get(label) for label in labels): sample[2] for sample in families[name][1]}


def once(*arguments):
    return subprocess.run([EXPORTER, "--once", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def holding():
    return Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100")


class Scrapes(unittest.TestCase):
    def test_what_is_held_by_rank_and_device_is_the_journals(self):
        with Job("python3", e2e.SCRIPT, "alloc=300", "tensor=50", "device=1", "alloc=70", "sampled", "free", "alloc=9", "sleep=100", RANK="3",
                 LOCAL_RANK="3", WORLD_SIZE="4", SLURM_JOB_ID="4711", SIM_DEVICES="2", SIM_VRAM="2G") as job, Exporter(job.traces) as exporter:
            families = exporter.wait_for(lambda found: (str(job.process.pid), "1") in values(found, "stormlog_live_bytes", "pid", "ordinal") and
                                         values(found, "stormlog_live_bytes", "pid", "ordinal")[(str(job.process.pid), "1")] == 9 * MIB)
            job.stop()
            truth, = [process for process in journal.load(job.run.journals) if process.apis]
            held = {str(device): row.live_bytes for (kind, device), row in truth.memory.items() if kind == "device"}
            self.assertEqual({ordinal: value for (_, ordinal), value in values(families, "stormlog_live_bytes", "pid", "ordinal").items()},
                             {device: bytes for device, bytes in held.items()})
            for name in ("stormlog_live_bytes", "stormlog_peak_bytes"):
                for _, labels, _ in families[name][1]:
                    self.assertEqual((labels["run"], labels["rank"], labels["hpc_job"], labels["pid"]), ("follow", "3", "4711", str(job.process.pid)))
                    self.assertRegex(labels["UUID"], "^GPU-")
            self.assertEqual(values(families, "stormlog_pytorch_allocated_bytes", "ordinal"), {("0",): 50 * MIB})
            self.assertEqual(set(values(families, "stormlog_process_running", "pid").values()), {1})
            report, = job.report_of_a_copy()
            self.assertEqual(values(families, "stormlog_events", "pid"), {(str(job.process.pid),): report["events"]})
            self.assertEqual(set(values(families, "stormlog_device_total_bytes", "UUID").values()), {2048 * MIB})

    def test_libraries_add_up_to_what_is_held(self):
        with Job("python3", e2e.SCRIPT, "alloc=300", "alloc=20", "ready=a", "sleep=100") as job, Exporter(job.traces) as exporter:
            families = exporter.wait_for(lambda found: 320 * MIB in values(found, "stormlog_live_bytes", "pid").values())
            self.assertEqual(sum(values(families, "stormlog_library_live_bytes", "library").values()), 320 * MIB)

    def test_an_error_counts_and_a_process_that_was_killed_is_said(self):
        with Job("python3", e2e.SCRIPT, "alloc=1500", "try=1500", "sleep=100", SIM_VRAM="2G") as job, Exporter(job.traces) as exporter:
            exporter.wait_for(lambda found: 1 in values(found, "stormlog_out_of_memory", "pid").values())
            job.process.kill()
            job.process.wait()
            families = exporter.wait_for(lambda found: 0 in values(found, "stormlog_process_running", "pid").values())
            self.assertEqual(values(families, "stormlog_process_info", "status"), {("interrupted",): 1})

    def test_what_a_recording_lacks_is_a_number(self):
        with Job("python3", e2e.SCRIPT, *["alloc=1", "free"] * 100) as job:
            job.process.wait()
            name, = glob.glob(os.path.join(job.traces, "**", "*.msgpack.zst"), recursive=True)
            for cut, damaged in (0, 0), (600, 1):
                os.truncate(name, os.path.getsize(name) - cut)
                families = parse(once(job.traces))
                self.assertEqual(list(values(families, "stormlog_trace_damaged").values()), [damaged])
            report, = job.report_of_a_copy()
            self.assertEqual(list(values(families, "stormlog_lost_events").values()), [report["lost_events"]])
            self.assertGreater(report["lost_events"], 0)

    def test_all_recordings_of_the_node_are_found(self):
        with Job("python3", e2e.SCRIPT, "alloc=77", "sleep=100") as job, Exporter() as exporter:
            families = exporter.wait_for(lambda found: (str(job.process.pid),) in values(found, "stormlog_live_bytes", "pid"))
            self.assertEqual(values(families, "stormlog_live_bytes", "pid")[(str(job.process.pid),)], 77 * MIB)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can hand out capabilities")
    def test_the_user_of_the_unit_finds_recordings_of_others(self):
        unit = (FOLDER / "stormlog-exporter.service").read_text()
        rights = ["+" + word[4:].lower() for word in re.search("^AmbientCapabilities=(.*)$", unit, re.M)[1].split()]
        rights = ",".join(["-all", *rights])
        with Job("python3", e2e.SCRIPT, "alloc=77", "sleep=100") as job, tempfile.TemporaryDirectory() as folder:
            job.wait_for(lambda known: known and known[0]["memory"])
            os.chmod(folder, 0o755)
            program = shutil.copy(EXPORTER, folder)  # which this user can read
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=" + rights, "--ambient-caps=" + rights,
                                   program, "--once"], capture_output=True, text=True, check=True)
            self.assertEqual(values(parse(done.stdout), "stormlog_live_bytes", "pid").get((str(job.process.pid),)), 77 * MIB)

    def test_a_name_that_steers_is_one_label(self):
        name = 'x"} 1\n# EOF\\'
        with Job("python3", e2e.SCRIPT, "alloc=7", STORMLOG_META="pod=" + name.replace("\n", " ") + "\nnamespace=n\\") as job:
            job.process.wait()
            families = parse(once(job.traces))
            labels = families["stormlog_live_bytes"][1][0][1]
            self.assertEqual(labels["pod"], name.replace("\n", " "))
            self.assertEqual(labels["namespace"], "n\\")

    def test_pod_and_container_come_from_the_node_where_it_knows_them(self):
        with Job("python3", e2e.SCRIPT, "alloc=7", "sleep=100", STORMLOG_META="pod=told\nnamespace=told") as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            root = pathlib.Path(job.run.folder, "host")
            container = "0123456789abcdef" * 4
            (root / "proc" / str(job.process.pid)).mkdir(parents=True)
            (root / "proc" / str(job.process.pid) / "cgroup").write_text("0::/kubepods.slice/kubepods-pod1234_5678.slice/cri-containerd-%s.scope\n" % container)
            (root / "var/log/containers").mkdir(parents=True)
            (root / "var/log/containers" / ("train-0_research_main-gpu-%s.log" % container)).touch()
            information = root / "proc/driver/nvidia/gpus/0000:01:00.0/information"
            information.parent.mkdir(parents=True)
            information.write_text("Model: \t\t NVIDIA H100\nDevice Minor: \t 6\n")
            families = parse(once("--root", root, job.traces))
            labels = families["stormlog_live_bytes"][1][0][1]
            self.assertEqual((labels["pod"], labels["namespace"], labels["container"], labels["gpu"]), ("train-0", "research", "main-gpu", "6"))
            labels = parse(once(job.traces))["stormlog_live_bytes"][1][0][1]
            self.assertEqual((labels["pod"], labels["namespace"], labels.get("container")), ("told", "told", None))

    def test_an_instance_of_mig_has_its_own_uuid_and_profile(self):
        with Job("python3", e2e.SCRIPT, "alloc=7", SIM_MIG="1", SIM_DEVICES="2") as job:
            job.process.wait()
            labels = parse(once(job.traces))["stormlog_live_bytes"][1][0][1]
            self.assertRegex(labels["UUID"], "^MIG-")
            self.assertEqual(labels["GPU_I_PROFILE"], "1g.10gb")

    def test_a_device_without_memory_of_its_own_has_the_host_s_size_and_use(self):
        """NVML refuses both, as on GB10."""
        host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
        with Job("python3", e2e.SCRIPT, "alloc=100", "sleep=100", SIM_INTEGRATED="1", SIM_VRAM="") as job, Exporter(job.traces) as exporter:
            families = exporter.wait_for(lambda found: values(found, "stormlog_device_used_bytes"))
            self.assertEqual(set(values(families, "stormlog_device_total_bytes", "UUID").values()), {host})
            used, = values(families, "stormlog_device_used_bytes", "UUID").values()
            self.assertTrue(100 * MIB < used < host, used)
            self.assertEqual(set(values(families, "stormlog_live_bytes", "pid").values()), {100 * MIB})

    def test_no_more_series_than_were_asked_for(self):
        with Job(os.path.join(e2e.APPS, "fork_exec")) as job:
            job.process.wait()
            everything, one = parse(once(job.traces)), parse(once("--most", "1", job.traces))
            processes = len(everything["stormlog_events"][1])
            self.assertGreater(processes, 1)
            self.assertEqual(len(one["stormlog_events"][1]), 1)
            self.assertEqual(values(one, "stormlog_exporter_processes_left_out"), {(): processes - 1})
            for wrong in ("0", "-5", "99999999999", "1x", ""):
                done = subprocess.run([EXPORTER, "--once", "--most", wrong, job.traces], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("not what this option takes", done.stderr)

    def test_both_texts_and_promtool(self):
        with Job("python3", e2e.SCRIPT, "alloc=7", "sleep=100") as job, Exporter(job.traces) as exporter:
            exporter.wait_for(lambda found: found["stormlog_live_bytes"][1])
            kind, text = exporter.get()
            self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
            kind, plain = exporter.get("text/plain")
            self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
            self.assertNotIn("# EOF", plain)
            self.assertIn("# TYPE stormlog_events_total counter", plain)
            self.assertEqual(len([line for line in plain.split("\n") if line and line[0] != "#"]),
                             len([line for line in text.split("\n") if line and line[0] != "#"]))
            if shutil.which("promtool"):
                done = subprocess.run(["promtool", "check", "metrics"], input=plain, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr + plain)
            for url, code in ((exporter.url.replace("metrics", "nothing"), 404),):
                with self.assertRaises(urllib.error.HTTPError) as error:
                    urllib.request.urlopen(url, timeout=120)
                self.assertEqual(error.exception.code, code)

    def test_code_that_a_trace_made_run_stays_inside(self):
        if not landlock.is_here():
            self.skipTest("this kernel has no Landlock")
        home = tempfile.mkdtemp(prefix="stormlog-exporter-", dir="/var/tmp")  # not below TMPDIR, where the exporter may write
        self.addCleanup(shutil.rmtree, home)
        with open(os.path.join(home, "secret"), "w") as out:
            out.write("kept")
        env = dict(os.environ, LD_PRELOAD=PROBER, PROBE_FOLDER=home)
        with holding() as job:
            job.wait_for(lambda known: known and known[0]["memory"])
            for arguments in (job.traces,), ():
                with self.subTest(arguments):
                    done = subprocess.run([EXPORTER, "--once", *arguments], capture_output=True, text=True, env=env, timeout=120)
                    said = done.stderr.splitlines()
                    if arguments:
                        self.assertEqual(said, ["probe: done"])
                    self.assertIn("probe: done", said)
                    for way in ("execution", "TCP", "UDP", "a local socket", "netlink", "a signal", "reading another process",
                                "typing into the terminal"):
                        self.assertNotIn("probe: broke out by " + way, said)
                    if arguments:
                        self.assertEqual(os.listdir(home), ["secret"])

    def test_a_page_of_another_name_reads_nothing(self):
        """The name of an attacker's page may resolve to this machine (DNS rebinding)."""
        with tempfile.TemporaryDirectory() as folder, Exporter(folder, "--name", "metrics.example") as exporter:
            for host, status in (("evil.example", 421), ("127.0.0.1.evil.example:80", 421), ("localhost.evil.example", 421), ("metrics.example:9836", 200),
                                 ("localhost", 200), ("10.0.0.7:9836", 200), ("[::1]:9836", 200), (socket.gethostname().upper(), 200)):
                request = urllib.request.Request(exporter.url, headers={"Host": host})
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        self.assertEqual(answer.status, status, host)
                except urllib.error.HTTPError as error:
                    self.assertEqual((error.code, status), (421, 421), host)
                    self.assertNotIn(b"stormlog_", error.read())

    def test_it_ends_well_as_soon_as_it_has_said_its_address(self):
        for number in (signal.SIGTERM, signal.SIGINT) * 4:
            with Exporter(os.path.dirname(EXPORTER)) as exporter:
                exporter.process.send_signal(number)
                self.assertEqual(exporter.process.wait(60), 0, number)

    def test_it_listens_on_this_machine_alone_unless_told(self):
        text = subprocess.run([EXPORTER, "--help"], capture_output=True, text=True, check=True).stdout
        self.assertIn("default: 127.0.0.1:9836", text)
        for wrong in ("9836", "127.0.0.1:", "nowhere:1", "127.0.0.1:99999"):
            self.assertEqual(subprocess.run([EXPORTER, "--listen", wrong], capture_output=True, timeout=120).returncode, 2, wrong)

    def test_its_address_of_version_6_can_be_opened(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        exporter = subprocess.Popen([EXPORTER, "--listen", "[::1]:0", os.path.dirname(EXPORTER)], stderr=subprocess.PIPE, text=True)
        self.addCleanup(exporter.wait)
        self.addCleanup(exporter.stderr.close)
        self.addCleanup(exporter.kill)
        for line in exporter.stderr:
            found = re.search(r"http://\S+", line)
            if found:
                break
        with urllib.request.urlopen(found[0], timeout=60) as page:
            self.assertEqual(page.status, 200)


class Files(unittest.TestCase):
    def names(self):
        found = set()
        for path in FOLDER.glob("*.c"):
            found |= set(re.findall(r'"(stormlog_\w+)"', path.read_text()))
        counters = set(re.findall(r'\{"(stormlog_\w+)", \w+, "[^"]*", \w+, true', (FOLDER / "families.c").read_text()))
        self.assertTrue(counters)
        return {name + "_total" if name in counters else name for name in found}

    def test_the_dashboard_is_one_and_names_only_what_there_is(self):
        dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
        self.assertGreaterEqual(dashboard["schemaVersion"], 36)
        variables = {variable["name"] for variable in dashboard["templating"]["list"]}
        panels, taken = dashboard["panels"], set()
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        used = set()
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            self.assertEqual(len({target["refId"] for target in panel["targets"]}), len(panel["targets"]))
            for target in panel["targets"]:
                used |= set(re.findall(r"\bstormlog_\w+", target["expr"]))
                self.assertLessEqual(set(re.findall(r"\$(\w+)", target["expr"])), variables | {"__rate_interval"})
        self.assertTrue(used)
        self.assertLessEqual(used, self.names())
        self.assertEqual(self.names() - used, {"stormlog_exporter_processes", "stormlog_exporter_processes_left_out", "stormlog_process_info"})

    def test_alert_rules_name_only_what_there_is(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no python3-yaml")
        group, = yaml.safe_load((FOLDER / "prometheus-alerts.yml").read_text())["groups"]
        self.assertEqual(len({rule["alert"] for rule in group["rules"]}), len(group["rules"]))
        for rule in group["rules"]:
            names = set(re.findall(r"\bstormlog_\w+", rule["expr"]))
            self.assertTrue(names)
            self.assertLessEqual(names, self.names(), rule["alert"])
            self.assertEqual(set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) - {"gpu", "Hostname", "pid"}, set())
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "rules", FOLDER / "prometheus-alerts.yml"], check=True, stdout=subprocess.DEVNULL)

    def test_grafanas_own_types_hold_all_of_the_dashboard(self):
        try:
            from grafana_foundation_sdk.cog import encoder, plugins
            from grafana_foundation_sdk.models import dashboard as types
        except ImportError:
            self.skipTest("no grafana-foundation-sdk")
        plugins.register_default_plugins()
        dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
        held = json.loads(json.dumps(types.Dashboard.from_json(dashboard), cls=encoder.JSONEncoder))

        def lost(part, other, path=""):
            if isinstance(part, dict):
                return [one for key, value in part.items() for one in lost(value, other.get(key) if isinstance(other, dict) else None, path + "/" + key)]
            if isinstance(part, list):
                return [one for i, value in enumerate(part) for one in lost(value, other[i] if isinstance(other, list) and i < len(other) else None, path)]
            return [] if part == other else [path]
        self.assertEqual(lost(dashboard, held), [])

    def test_kubernetes_own_schema_takes_the_manifest(self):
        try:
            import kubernetes_validate
            import yaml
        except ImportError:
            self.skipTest("no kubernetes-validate")
        for document in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()):
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)

    def test_what_a_scrape_gives_is_what_is_named(self):
        with Job("python3", e2e.SCRIPT, "alloc=7") as job:
            job.process.wait()
            families = parse(once(job.traces))
            self.assertEqual({name + "_total" if kind == "counter" else name for name, (kind, _) in families.items()}, self.names())

    def test_the_manifest_is_yaml_with_what_reading_needs(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no python3-yaml")
        documents = {document["kind"]: document for document in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())}
        pod = documents["DaemonSet"]["spec"]["template"]["spec"]
        self.assertTrue(pod["hostPID"])
        container, = pod["containers"]
        self.assertEqual(set(container["securityContext"]["capabilities"]["add"]), {"SYS_PTRACE", "DAC_READ_SEARCH"})
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, {volume["name"] for volume in pod["volumes"]})
        train = documents["Pod"]["spec"]
        environment = {entry["name"]: entry.get("value") for entry in train["containers"][0]["env"]}
        mount = train["containers"][0]["volumeMounts"][0]["mountPath"]
        self.assertTrue(environment["LD_PRELOAD"].startswith(mount) and environment["STORMLOG_DIR"].startswith(mount))
        self.assertEqual(environment["STORMLOG_META"].split("\n")[0], "pod=$(STORMLOG_POD)")

    def test_systemd_takes_the_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze")
        done = subprocess.run(["systemd-analyze", "verify", str(FOLDER / "stormlog-exporter.service")], capture_output=True, text=True)
        self.assertNotRegex(done.stderr, r"stormlog-exporter.service:\d+: (?!.*not executable)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
