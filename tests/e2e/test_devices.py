#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: the memory of whole devices, as NVML gives it, with several processes, containers with their own pids, MIG instances."""
import os
import subprocess
import unittest

import e2e
import stormlog_trace

MIB = 1 << 20
CONTEXT = 300 * MIB  # the simulator's default
HOST = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
CONTAINER = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


class Machine:
    """
    Processes of script.py that hold what they allocated until all have started; then they end one by one, the recorded ones first.
    Each takes a sample when it begins and one when it ends, never while another is ending.
    """

    def __init__(self, interval="3600000", **environment):
        self.run = e2e.Recording("true", preload=False)
        self.traces, self.environment, self.children = self.run.traces, environment, []
        self.interval = interval

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for _, child, _ in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        self.run.__exit__(*error)

    def path(self, name):
        return os.path.join(self.run.folder, name)

    def start(self, *steps, recorded=True, inside=(), **environment):
        name = "process%d" % len(self.children)
        env = {key: value for key, value in os.environ.items() if not e2e.SETTINGS.match(key)}
        env["SIM_VRAM"] = "8G"
        env.update(LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=self.path("sim"), STORMLOG_DIR=self.traces, STORMLOG_RUN_ID="devices",
                   STORMLOG_DEVICE_INTERVAL=self.interval, **self.environment, **environment)
        env.pop("STORMLOG_BUILD", None)
        if recorded:
            env["LD_PRELOAD"] = e2e.PRELOAD
        child = subprocess.Popen([*inside, "python3", e2e.SCRIPT, *steps, *["sampled"] * recorded, "ready=" + self.path(name),
                                  "wait=" + self.path(name + ".go")], env=env, stderr=subprocess.PIPE, text=True)
        self.children.append((name, child, recorded))
        while not os.path.exists(self.path(name)):
            try:
                child.wait(0.02)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError("exit %s: %s" % (child.returncode, child.stderr.read()))
        return child.pid

    def report(self):
        """End the processes and return the report.  The last sample of the first to end sees what all of them hold."""
        for recorded in (True, False):
            for name, child, is_recorded in self.children:
                if is_recorded == recorded:
                    open(self.path(name + ".go"), "w").close()
                    errors = child.communicate()[1]
                    if child.returncode:
                        raise AssertionError("exit %s: %s" % (child.returncode, errors))
        return e2e.Recording.report(self)


def hidden_by(device):
    return {(part["what"], part["pid"]): part["bytes"] for part in device["hidden"]}


class Devices(unittest.TestCase):
    def need_containers(self):
        try:
            done = subprocess.run([*CONTAINER, "true"], capture_output=True, text=True)
        except OSError as error:
            self.skipTest("no unshare here: %s" % error)
        if done.returncode:
            self.skipTest("no pid namespaces here: " + done.stderr.strip())

    def test_several_processes_on_a_device_of_which_one_is_not_recorded(self):
        with Machine() as machine:
            first, second = machine.start("alloc=100"), machine.start("alloc=300")
            stranger = machine.start("alloc=200", recorded=False)
            report = machine.report()
        device, = report["run"]["devices"]
        self.assertEqual(sorted(device["processes"]), sorted((first, second)))
        self.assertEqual((device["source"], device["total_bytes"]), ("nvml", 8192 * MIB))
        self.assertEqual(device["used_peak_bytes"], 600 * MIB + 3 * CONTEXT)
        self.assertEqual(device["known_peak_bytes"], 400 * MIB)
        self.assertEqual((device["hidden_peak_bytes"], device["hidden_figure"]), (2 * CONTEXT, "process"))
        self.assertEqual(hidden_by(device), {("context", first): CONTEXT, ("context", second): CONTEXT})
        self.assertEqual((device["others"], device["others_bytes"]), (1, 200 * MIB + CONTEXT))

    def test_what_another_recorded_process_holds_is_hidden_in_no_output(self):
        with Machine(interval="20") as machine:
            first = machine.start("alloc=100")
            machine.start("alloc=200", recorded=False)
            second = machine.start("alloc=300", "samples=3")
            report = machine.report()
            run = machine.run
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            hidden, most = CONTEXT, {}
            for event in run.sinks():
                gap = event["device_used_bytes"] - event["allocator_reserved_bytes"]
                most[event["pid"]] = max(most.get(event["pid"], 0), gap)
                if event["device_total_bytes"] is not None:
                    self.assertLessEqual(event["device_used_bytes"] + event["device_free_bytes"], event["device_total_bytes"])
            self.assertEqual(max(most.values()), hidden)
            gauges = subprocess.run([e2e.ANALYZE, "export", "prometheus", run.traces], check=True, capture_output=True, text=True).stdout
            page = run.page()
        values = [int(line.split()[-1]) for line in gauges.splitlines() if line.startswith("stormlog_device_hidden_peak_bytes{")]
        self.assertEqual(max(values), hidden)
        self.assertEqual(report["run"]["devices"][0]["hidden_peak_bytes"], 2 * hidden)
        if page:
            lines = {(line["what"], page["processes"][line["process"]]["pid"]): line["max"].max() for line in page["lines"]}
            self.assertEqual({p["hidden"] for p in page["processes"]} - set(values), set())
            self.assertEqual(max(lines["hidden", first], lines["hidden", second]), hidden)
            # what other processes held is drawn as theirs
            self.assertEqual(lines["others", first], 200 * MIB + 300 * MIB + 2 * CONTEXT)

    def test_what_another_process_held_for_a_while_is_subtracted_from_no_sample_of_another_time(self):
        """Each process samples the device when it begins and ends: the samples see one context, two, two, and one for the second, which ends alone."""
        with Machine() as machine:
            pids = machine.start("alloc=100"), machine.start("alloc=700", "free", "alloc=50")
            device, = machine.report()["run"]["devices"]
            run = machine.run
            printed = subprocess.run([e2e.ANALYZE, "--all", run.traces], check=True, capture_output=True, text=True).stdout
            verdicts = [subprocess.run([e2e.ANALYZE, "check", "--max-hidden", size, run.traces], capture_output=True).returncode for size in ("599M", "601M")]
            self.assertEqual(device["hidden_peak_bytes"], 2 * CONTEXT)
            self.assertRegex(printed, r"(?m)^note   device 0: (at most )?600 MiB hidden")
            self.assertEqual(verdicts, [1, 0])
            gaps = {pid: set() for pid in pids}
            for event in run.sinks():
                gap = event["device_used_bytes"] - event["allocator_reserved_bytes"]
                if event["device_total_bytes"] is not None:
                    gaps[event["pid"]].add(gap)
                if event["event_type"] == "stop" and event["device_total_bytes"] is not None:  # on a busy machine only the sample at the end is sure
                    left = {pids[0]: (CONTEXT, 8192 * MIB - 150 * MIB - 2 * CONTEXT), pids[1]: (CONTEXT, 8192 * MIB - 50 * MIB - CONTEXT)}
                    self.assertEqual((gap, event["device_free_bytes"]), left[event["pid"]], event)
        self.assertLessEqual(gaps[pids[0]] | gaps[pids[1]], {CONTEXT})

    def test_in_a_container_the_hosts_pids_are_nobodys_and_the_device_is_whole(self):
        self.need_containers()
        with Machine() as machine:
            machine.start("alloc=200", recorded=False)
            machine.start("alloc=100", inside=CONTAINER)
            report = machine.report()
        process, = report["processes"]
        device, = report["run"]["devices"]
        self.assertEqual(process["pid"], 1)
        self.assertEqual(device["used_peak_bytes"], 300 * MIB + 2 * CONTEXT)
        self.assertEqual(device["hidden_peak_bytes"], 200 * MIB + 2 * CONTEXT)
        # it cannot be known whose memory it is, and the report does not guess
        self.assertEqual(hidden_by(device), {("unexplained", None): 200 * MIB + 2 * CONTEXT})
        self.assertIn("namespace", " ".join(map(str, process["capabilities"].values())))

    def test_two_containers_whose_processes_have_the_same_pid(self):
        self.need_containers()
        with Machine() as machine:
            machine.start("alloc=50", recorded=False)  # outside the containers
            machine.start("alloc=100", inside=CONTAINER)
            machine.start("alloc=300", inside=CONTAINER)
            report = machine.report()
        device, = report["run"]["devices"]
        self.assertEqual([process["pid"] for process in report["processes"]], [1, 1])
        self.assertEqual(len({process["session_id"] for process in report["processes"]}), 2)
        self.assertEqual(device["processes"], [1, 1])
        self.assertEqual(device["used_peak_bytes"], 450 * MIB + 3 * CONTEXT)
        self.assertEqual(device["known_peak_bytes"], 400 * MIB)
        self.assertEqual(device["hidden_peak_bytes"], 50 * MIB + 3 * CONTEXT)

    def runs_of(self, *argv, **options):
        """The runs that the processes of a command belong to, by the names in their traces."""
        with e2e.Recording(*argv, **options) as run:
            return [trace.header["run_id"] for trace in stormlog_trace.open_folder(run.traces)]

    def test_programs_of_a_shell_are_runs_of_their_own_and_children_and_ranks_are_one(self):
        runtime, one = os.path.join(e2e.APPS, "runtime13"), 'LD_PRELOAD=%s "$0"; ' % e2e.PRELOAD
        parent = "import subprocess, sys; [subprocess.run(sys.argv[1:]) for _ in range(2)]"
        rank = 'RANK=%d WORLD_SIZE=2 LD_PRELOAD=' + e2e.PRELOAD
        for argv, recorded, count, runs in (
                (("sh", "-c", one * 5, runtime), False, 5, 5),
                (("sh", "-c", "export LD_PRELOAD=%s; " % e2e.PRELOAD + '"$0"; "$0"; true', runtime), False, 2, 2),
                (("sh", "-c", '"$0"; "$0"; true', runtime), True, 2, 1),  # the shell itself is recorded
                (("python3", "-c", parent, runtime), True, 2, 1),
                ((os.path.join(e2e.APPS, "fork_exec"),), True, 5, 1),
                (("setsid", "-w", "python3", "-c", parent, "setsid", "-w", runtime), True, 2, 1),
                (("sh", "-c", "%s $0; %s $0; true" % (rank % 0, rank % 1), runtime), False, 2, 1),
                (("sh", "-c", "RANK=0 WORLD_SIZE=2 sh -c '%s:; :' $0; RANK=1 WORLD_SIZE=2 setsid -w sh -c '%s:; :' $0; true" % (one, one), runtime), False, 2, 1),
                (("sh", "-c", "RANK=0 WORLD_SIZE=1 %sRANK=0 WORLD_SIZE=1 %s:" % (one, one), runtime), False, 2, 2)):
            with self.subTest(argv=argv):
                named = self.runs_of(*argv, preload=recorded)
                self.assertEqual((len(named), len(set(named))), (count, runs))

    def test_jobs_of_two_namespaces_are_two_runs_and_processes_of_one_are_one(self):
        self.need_containers()
        twice = ("sh", "-c", '"$0"; "$0"; true', os.path.join(e2e.APPS, "runtime13"))
        # with the outer /proc as with one of their own
        named = [self.runs_of(*argv) for argv in ([*CONTAINER, *twice], [*CONTAINER, *twice], [word for word in (*CONTAINER, *twice) if word != "--mount-proc"])]
        self.assertEqual([(len(names), len(set(names))) for names in named], [(2, 1)] * 3)
        self.assertEqual(len({names[0] for names in named}), 3)
        named = []
        for _ in range(2):  # the launcher has the same pid in both, maybe in the same second
            with e2e.Recording(*CONTAINER, e2e.RUN, "-q", "-o", ".", "--", *twice, preload=False) as run:
                named.append({trace.header["run_id"] for trace in stormlog_trace.open_folder(run.folder)})
        self.assertEqual(([len(names) for names in named], len(named[0] & named[1])), ([1, 1], 0))

    def test_in_a_container_where_pids_are_translated_processes_are_known(self):
        """No process outside the container uses the device, so NVML's pids are those of the container."""
        self.need_containers()
        with Machine() as machine:
            machine.start("alloc=100", inside=CONTAINER)
            device, = machine.report()["run"]["devices"]
        self.assertEqual(hidden_by(device), {("context", 1): CONTEXT})

    def test_a_mig_instance_is_a_device_and_its_neighbours_are_not_on_it(self):
        with Machine(SIM_MIG="1", SIM_DEVICES="2") as machine:
            mine = machine.start("alloc=100")
            machine.start("alloc=200", recorded=False, CUDA_VISIBLE_DEVICES="1")
            device, = machine.report()["run"]["devices"]
        self.assertRegex(device["uuid"], "^MIG-")
        self.assertEqual((device["source"], device["total_bytes"]), ("nvml", 8192 * MIB))
        self.assertEqual(device["used_peak_bytes"], 100 * MIB + CONTEXT)
        self.assertEqual(device["hidden_peak_bytes"], CONTEXT)
        self.assertEqual(hidden_by(device), {("context", mine): CONTEXT})

    def test_two_instances_of_a_gpu_are_two_devices_and_two_processes_of_one_instance_share_it(self):
        with Machine(SIM_MIG="1", SIM_DEVICES="2") as machine:
            first = machine.start("alloc=100")
            second = machine.start("alloc=200", CUDA_VISIBLE_DEVICES="1")
            third = machine.start("alloc=400", CUDA_VISIBLE_DEVICES="1")
            report = machine.report()
        by = {tuple(sorted(device["processes"])): device for device in report["run"]["devices"]}
        self.assertEqual(set(by), {(first,), tuple(sorted((second, third)))})
        self.assertEqual(by[(first,)]["used_peak_bytes"], 100 * MIB + CONTEXT)
        shared = by[tuple(sorted((second, third)))]
        self.assertNotEqual(shared["uuid"], by[(first,)]["uuid"])
        self.assertEqual(shared["used_peak_bytes"], 600 * MIB + 2 * CONTEXT)
        self.assertEqual(shared["known_peak_bytes"], 600 * MIB)
        self.assertEqual(shared["hidden_peak_bytes"], 2 * CONTEXT)

    def test_a_device_without_memory_of_its_own_has_the_host_s_size_and_use(self):
        """NVML refuses them, as on GB10, and lists the processes."""
        with Machine(SIM_INTEGRATED="1", SIM_VRAM="") as machine:
            mine = machine.start("alloc=100")
            device, = machine.report()["run"]["devices"]
            traces = machine.run.traces
            screen = subprocess.run([e2e.ANALYZE, "--all", traces], check=True, capture_output=True, text=True).stdout
            fits = subprocess.run([e2e.ANALYZE, "fit", "--capacity", "1G", traces], capture_output=True, text=True)
        self.assertEqual((device["source"], device["total_bytes"]), ("meminfo", HOST))
        self.assertTrue(0 < device["used_peak_bytes"] < HOST)
        self.assertEqual((hidden_by(device), device["hidden_figure"]), ({("context", mine): CONTEXT}, "process"))
        self.assertRegex(" ".join(screen.split()), r"note device 0: its \S+ \S+ are the host.s too, \S+ \S+ of them in use at most")
        self.assertEqual(fits.stderr, "")

    def test_what_programs_of_the_host_use_is_not_hidden_memory(self):
        """No process is listed, as on Jetson, so a process's own part of the host's memory is not known."""
        with Machine(SIM_INTEGRATED="1", SIM_VRAM="", SIM_PIDS="none") as machine:
            machine.start("alloc=100")
            device, = machine.report()["run"]["devices"]
        self.assertEqual((device["source"], device["hidden_peak_bytes"], device["hidden_figure"]), ("meminfo", None, None))
        self.assertEqual(device["known_peak_bytes"], 100 * MIB)

    def test_a_limit_on_such_a_device_counts_the_program_s_blocks_and_not_the_host_s_use(self):
        with Machine(SIM_INTEGRATED="1", SIM_VRAM="", SIM_PIDS="none", STORMLOG_LIMIT="1G") as machine:
            machine.start("alloc=600", "try=420", "try=600")
            oom, = machine.report()["ooms"]
        self.assertEqual((oom["requested_bytes"], oom["device_free_bytes"], oom["device_total_bytes"]), (600 * MIB, 4 * MIB, 1024 * MIB))

    def test_hip_s_integrated_device_is_the_host_s_memory_too(self):
        """The kernel's driver refuses the figures here, as it has no such device."""
        with e2e.Recording(os.path.join(e2e.APPS, "hip6"), SIM_INTEGRATED="1", SIM_VRAM="") as run:
            device, = run.report()["run"]["devices"]
        self.assertEqual((device["source"], device["total_bytes"]), ("meminfo", HOST))


if __name__ == "__main__":
    unittest.main(verbosity=2)
