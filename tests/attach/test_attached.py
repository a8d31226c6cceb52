#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-attach on running processes without a recorder: traces against the simulator's journal.  Skipped where the kernel forbids it.
Longer than other files: all its tests attach to running programs, which is tried once."""
import concurrent.futures
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import e2e
import stormlog_trace
import attachments
from test_asleep import exists, touch, wait_until
why_not = attachments.permitted()
if why_not:
    print("skipped:", why_not)
    sys.exit(77)

KILL_ME = os.path.join(e2e.APPS, "kill_me")


class Attached(unittest.TestCase):
    maxDiff = None

    def test_the_program_holds_the_probes_that_were_compiled_last(self):
        with open(os.path.join(os.path.dirname(e2e.ATTACH), "seen.bpf"), "rb") as file, open(e2e.ATTACH, "rb") as program:
            self.assertIn(file.read(), program.read())

    def test_from_the_attachment_on_calls_of_every_program_are_the_journals(self):
        for what, calls, wrong in attachments.each(random.randrange(1 << 30)):
            with self.subTest(what):
                self.assertEqual(wrong, [])
                self.assertGreater(calls, 0)

    def test_a_library_that_comes_while_it_begins_or_later_is_watched(self):
        """The library is loaded at different moments of the attachment's first tenth of a second."""
        program = ("import ctypes, sys, time; ctypes.CDLL('libcudart.so.12'); print('go', flush=True); time.sleep(int(sys.argv[1]) / 1000)\n"
                   "cu, p = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()\n"
                   "assert not cu.cuInit(0) and not cu.cuDevicePrimaryCtxRetain(ctypes.byref(p), 0) and not cu.cuCtxSetCurrent(p)\n"
                   "while True: time.sleep(0.01 + cu.cuMemAlloc_v2(ctypes.byref(p), 4096))")

        def seen(run):
            return any(trace.hooks[api - 1][0] == "cuMemAlloc_v2" for trace in stormlog_trace.open_folder(run.traces) if trace.events()
                       for api in trace.events()["api"].tolist())

        def watch(ms):
            def during(run):
                self.addCleanup(run.process.kill)
                run.process.stdout.readline()
                attached = attachments.Attached(run)
                try:
                    wait_until(lambda: seen(run))
                finally:
                    run.process.kill()
                self.assertEqual(attached.end(), 0)
            with e2e.Recording("python3", "-c", program, str(ms), preload=False, code=-9, during=during):
                pass
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            list(pool.map(watch, range(0, 100, 15)))

    def test_it_comes_and_goes_under_load_and_the_program_does_not_notice(self):
        def during(run):
            self.addCleanup(run.process.kill)
            run.process.stdout.readline()
            for i in range(10):
                done = subprocess.run([e2e.ATTACH, "--duration", "0.1", "-o", run.traces, str(run.process.pid)], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, "detached after" in done.stderr), (0, True), done.stderr)
            self.assertIsNone(run.process.poll())
            run.process.kill()
        with e2e.Recording(KILL_ME, 2, preload=False, SIM_LATENCY=50000, code=-9, during=during) as run:
            traces = stormlog_trace.open_folder(run.traces)
            self.assertEqual((len(traces), run.done.stderr), (10, b""))
            for trace in traces:
                self.assertEqual((trace.damage, trace.defs.get("gap", [])), ([], []))
                self.assertGreater(len(trace.events()["api"]), 10)
            self.assertEqual({process["status"] for process in run.report()["processes"]}, {"unknown"})
            self.assertEqual(run.report()["leaks"], [])

    def test_what_it_held_before_is_nvmls_figure(self):
        """Compares two totals that are 70 MiB apart, since both include the simulator's context and other costs."""
        def during(run):
            self.addCleanup(run.process.kill)
            for made, go in (("made", "go"), ("again", "end")):
                wait_until(lambda: exists(run, made))
                attached = attachments.Attached(run, "--duration", "0.2", LD_LIBRARY_PATH=e2e.SIM, SIM_DIR=os.path.join(run.folder, "sim"), SIM_DEVICES="2")
                self.assertEqual(attached.end(), 0)
                touch(run, go)
        with e2e.Recording("python3", e2e.SCRIPT, "alloc=300", "ready=made", "wait=go", "alloc=70", "ready=again", "wait=end", preload=False,
                           APPS=e2e.APPS, during=during) as run:
            held = sorted(int(capability["value"]) for trace in stormlog_trace.open_folder(run.traces)
                          for capability in trace.defs["capability"] if capability["name"] == "before_attach_bytes")
            self.assertEqual([held[1] - held[0], held[0] >= 300 << 20], [70 << 20, True])
            self.assertRegex(" ".join(run.report()["warnings"]), r"before attach: 600 MiB held")

    def test_its_header_says_of_the_process_what_the_agent_in_it_would_have_said(self):
        """Compares ranks and runs of launchers, masked secrets and the machine with the header of the same program under the agent."""
        for environment in ({}, {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_SIZE": "8", "PMIX_NAMESPACE": "n1"},
                            {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "2", "SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_RESTART_COUNT": "1"}):
            with self.subTest(environment):
                headers = []
                for preload in (False, True):
                    def during(run):
                        run.process.stdout.readline()
                        if not preload:
                            attached = attachments.Attached(run)
                            attached.process.send_signal(signal.SIGINT)
                            attached.end()
                        run.process.kill()
                    with e2e.Recording("sh", "-c", 'exec "$@"', "sh", KILL_ME, "1", "--api-key=xyzzy", preload=preload, SIM_LATENCY=1000000, code=-9, during=during,
                                       **environment) as run:
                        trace, = stormlog_trace.open_folder(run.traces)
                        headers.append({key: value for key, value in trace.header.items() if key in (*([] if environment else ["pid", "process_start"]),
                            "format", "version", "host", "ppid", "boot_id", "run_id", "job_id", "rank", "local_rank", "world_size", "restart", "argv", "exe", "system")})
                if not environment:  # a process without a launcher is the root of its run
                    for header in headers:
                        self.assertEqual(header.pop("run_id").split("-")[-2:], [str(header.pop("pid")), str(header.pop("process_start"))])
                self.assertEqual(*headers)
                self.assertNotIn("xyzzy", " ".join(headers[0]["argv"]))
                self.assertEqual(headers[0]["rank"], {"n1": 3}.get(environment.get("PMIX_NAMESPACE"), 1 if environment else None))

    def test_a_process_whose_main_thread_has_ended_is_watched_to_its_end(self):
        code = """if True:
            import ctypes, os, threading, time
            cuda = ctypes.CDLL("libcudart.so.12")
            def work():
                while not os.path.exists("go"): time.sleep(0.01)
                time.sleep(2.5)  # longer than between two looks for its end
                for i in range(50):
                    assert not cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 4096 + i)
                os._exit(0)
            cuda.cudaFree(None)
            threading.Thread(target=work).start()
            open("made", "w").close()
            while not os.path.exists("go"): time.sleep(0.01)
            ctypes.CDLL(None).pthread_exit(None)"""

        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            touch(run, "go")
            self.assertEqual(attached.end(), 0)
            self.assertIn("it has ended after", attached.said[-1])
        with e2e.Recording("python3", "-c", code, preload=False, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            verbs, events = trace.verbs(), trace.events()
            sizes = [size for api, size in zip(*(events[name].tolist() for name in ("api", "bytes"))) if verbs[api] == "ALLOC" and 4096 <= size < 5000]
            self.assertEqual(sizes, [4096 + i for i in range(50)])

    def test_a_program_that_executes_itself_keeps_its_names(self):
        """After each exec the same libraries lie elsewhere, and the memory map is as long as before."""
        def lives(run):
            return {module["base"] for module in stormlog_trace.open_folder(run.traces)[0].defs.get("module", ()) if module["path"].endswith("/again")}

        def during(run):
            self.addCleanup(run.process.kill)
            run.process.stdout.readline()
            attached = attachments.Attached(run)
            wait_until(lambda: len(lives(run)) > 3)
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0)
            run.process.kill()
        with e2e.Recording(os.path.join(e2e.APPS, "again"), preload=False, SIM_LATENCY=1000000, code=-9, during=during) as run:
            collapsed = subprocess.run([e2e.ANALYZE, "export", "collapsed", "--weigh", "total", run.traces], capture_output=True, text=True).stdout
            self.assertIn("again.c:14 main", collapsed)
            self.assertNotIn(";0x", collapsed)

    def test_attributes_of_pools_have_their_values(self):
        code = """if True:
            import ctypes, os, time
            cuda, p = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p
            pool, device = p(), ctypes.c_int()
            assert not cuda.cuInit(0) and not cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0)
            open("made", "w").close()
            while not os.path.exists("go"): time.sleep(0.01)
            for attribute, value in ((4, ctypes.c_uint64(0x123456789abc)), (1, ctypes.c_int(1)), (1, ctypes.c_int(0)), (4, ctypes.c_uint64(7))):
                assert not cuda.cuMemPoolSetAttribute(pool, attribute, ctypes.byref(value))
            open("done", "w").close()
            while not os.path.exists("end"): time.sleep(0.01)"""

        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            touch(run, "go")
            wait_until(lambda: exists(run, "done"))
            touch(run, "end")
            self.assertEqual(attached.end(), 0)
        with e2e.Recording("python3", "-c", code, preload=False, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            events = trace.events()
            values = [(which, value) for api, which, value in zip(*(events[name].tolist() for name in ("api", "extra", "extra2")))
                      if trace.hooks[api - 1][0] == "cuMemPoolSetAttribute"]
            self.assertEqual(values, [(4, 0x123456789abc), (1, 1), (1, 0), (4, 7)])

    def watch(self, run):
        """Attach from when the program is ready until its calls are done.  The program lives on until stormlog-attach has read its names."""
        self.addCleanup(run.process.kill)
        wait_until(lambda: exists(run, "made"))
        attached = attachments.Attached(run)
        touch(run, "go")
        wait_until(lambda: exists(run, "done"), 600)
        attached.process.send_signal(signal.SIGINT)
        self.assertEqual(attached.end(), 0)
        touch(run, "end")

    def test_python_stacks_are_what_every_cpython_at_hand_says(self):
        """Stacks are compared whole, call by call.  Code that was freed before it was read must have no name rather than a wrong one."""
        calls, threads = int(os.environ.get("STORMLOG_ATTACHED_STACKS", "300")), 3

        for python in attachments.pythons():
            with self.subTest(python), e2e.Recording(python, attachments.STANDS, calls, threads, preload=False, SIM_LATENCY=500000, during=self.watch) as run:
                trace, = stormlog_trace.open_folder(run.traces)
                compared, unnamed, wrong = attachments.stands(trace, run.folder)
                self.assertEqual((wrong, trace.defs.get("gap", [])), ([], []))
                self.assertGreaterEqual(compared, calls * threads)
                self.assertLess(unnamed, compared / 100)

    def stood(self, own, *argv):
        """Counts of the trace's stacks beside those that the program wrote down; none of them may be wrong."""
        with e2e.Recording(*argv, preload=False, SIM_LATENCY=500000, during=self.watch) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            counts, wrong = attachments.stood(trace, run.folder, own)
            self.assertEqual((wrong, trace.defs.get("gap", [])), ([], []))
            return counts

    STOOD = int(os.environ.get("STORMLOG_ATTACHED_STOOD", "300"))

    def test_native_stacks_are_glibcs(self):
        """Code without frame pointers: frames of a size known at run time, frames found by a DWARF expression, frames of libc and of a signal."""
        counts = self.stood(1, os.path.join(e2e.APPS, "stood"), self.STOOD)
        self.assertGreater(counts["whole"], self.STOOD)
        self.assertLess(counts["cut"], counts["whole"] / 4)  # stacks deeper than the copied part
        self.assertEqual(counts["missing"], 0)

    def test_without_libdw_there_are_no_native_stacks_and_it_says_so(self):
        def during(run):
            self.addCleanup(run.process.kill)
            run.process.stdout.readline()
            open(os.path.join(run.folder, "libdw.so.1"), "w").close()
            attached = attachments.Attached(run, "--duration", "0.3", LD_LIBRARY_PATH=run.folder)
            self.assertEqual(attached.end(), 0)
            self.assertIn("no native stacks: libdw.so.1 is not installed", "".join(attached.said))
            run.process.kill()
        with e2e.Recording(KILL_ME, 1, preload=False, SIM_LATENCY=1000000, code=-9, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertNotIn("native_stack", trace.defs)
            self.assertGreater(len(trace.events()["api"]), 10)
            self.assertIn("no native stacks: libdw.so.1 is not installed", run.report()["processes"][0]["capabilities"]["notes"])

    def test_native_stacks_are_of_the_libraries_of_their_moment(self):
        """Two libraries with different frames are loaded at one place by turns.  A stack is missing if the next one is loaded before it is unwound."""
        counts = self.stood(1, os.path.join(e2e.APPS, "stood"), 1, *(os.path.join(e2e.APPS, "stood_plugin%d.so" % i) for i in (1, 2)))
        self.assertGreater(counts["whole"], 60)
        self.assertLess(counts["missing"], counts["whole"])

    def test_native_stacks_of_every_cpython_at_hand_are_glibcs(self):
        """They also have a frame of the evaluation loop for each run of Python frames, by which the report merges the two."""
        for python in attachments.pythons():
            with self.subTest(python):
                counts = self.stood(0, python, attachments.STOOD, self.STOOD)
                self.assertGreater(counts["whole"], self.STOOD)
                self.assertEqual([counts["cut"], counts["missing"], counts["apart"]], [0, 0, 0])

    def test_native_stacks_of_programs_are_those_of_the_agent(self):
        """Each program is recorded by the agent, then from outside: every stack seen from outside is one of the agent's, for the same call."""
        compared = 0
        for name, arguments, _ in random.sample(attachments.PROGRAMS, min(len(attachments.PROGRAMS), int(os.environ.get("STORMLOG_ATTACHMENTS", "2")))):
            arguments = [argument.format(apps=e2e.APPS) for argument in arguments]
            with self.subTest(name), e2e.Recording(os.path.join(e2e.APPS, name), *arguments) as run:
                trace, = stormlog_trace.open_folder(run.traces)
                agents = attachments.places(trace)
                trace = attachments.beside(name, arguments)
                ours = attachments.places(trace) if trace else {}
                self.assertEqual({stack: count for stack, count in ours.items() if count > agents[stack]}, {})
                compared += sum(ours.values())
        self.assertGreater(compared, 0)

    def test_a_python_that_no_table_fits_has_no_stacks(self):
        """The interpreter's version cannot be read, and its file is named as another version."""
        code = """if True:
            import ctypes, os, time
            cuda = ctypes.CDLL("libcudart.so.12")
            open("made", "w").close()
            while not os.path.exists("end"):
                cuda.cudaMalloc(ctypes.byref(ctypes.c_void_p()), 512)
                time.sleep(0.01)"""

        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            wait_until(lambda: calls_in(stormlog_trace.open_folder(run.traces)[0]) > 10)
            touch(run, "end")
            self.assertEqual(attached.end(), 0)
        with tempfile.TemporaryDirectory() as folder, open("/usr/bin/python3", "rb") as file:
            program = file.read()
            for minor in (8, 9, 10):
                fake = os.path.join(folder, "python3.%d" % minor)
                with open(fake, "wb") as file:
                    file.write(program.replace(b"\0Py_Version\0", b"\0Py_Xersion\0"))
                os.chmod(fake, 0o755)
                with self.subTest(minor), e2e.Recording(fake, "-c", code, preload=False, during=during) as run:
                    trace, = stormlog_trace.open_folder(run.traces)
                    self.assertNotIn("python_stack", trace.defs)
                    if minor == 8:
                        self.assertIn("no Python stacks: its version is not known", " ".join(note["text"] for note in trace.defs["note"]))

    def test_a_leak_of_a_python_job_is_named_by_its_line(self):
        code = """if True:
            import ctypes, os, time
            cuda, cache = ctypes.CDLL("libcudart.so.12"), []
            def allocate():
                block = ctypes.c_void_p()
                cuda.cudaMalloc(ctypes.byref(block), 1 << 20)
                return block
            def keep():
                cache.append(allocate())
            def work():
                cuda.cudaFree(allocate())
            open("made", "w").close()
            while not os.path.exists("end"):
                keep()
                work()
                time.sleep(0.005)"""

        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            wait_until(lambda: calls_in(stormlog_trace.open_folder(run.traces)[0]) > 1000)
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0)
            touch(run, "end")
        with e2e.Recording("python3", "-c", code, preload=False, during=during) as run:
            leak, = (finding for finding in run.report()["findings"] if finding["class"] == "leak")
            self.assertEqual([(frame["function"], frame["line"]) for frame in leak["stack"] if frame["language"] == "python"],
                             [("allocate", 6), ("keep", 9), ("<module>", 14)])

    def test_one_step_or_two_leak_nothing_however_often_a_line_ran_and_twelve_tell_what_they_keep(self):
        code = """if True:
            import ctypes, os, sys, time
            cuda, steps, state, cache = ctypes.CDLL("libcudart.so.12"), int(sys.argv[1]), [], []
            def new(mib):
                block = ctypes.c_void_p()
                cuda.cudaMalloc(ctypes.byref(block), mib << 20)
                return block
            def stop(name, until):
                open(name, "w").close()
                while not os.path.exists(until): time.sleep(0.01)
            def forward(step):
                kept = []
                for layer in range(48):
                    scratch = new(1)
                    kept.append(new(3))
                    cuda.cudaFree(scratch)
                    if (step, layer) == (0, 16): stop("made", "go")
                return kept
            for step in range(steps):
                blocks = forward(step)
                if not state: state = [(new(4), time.sleep(0.002)) for _ in range(96)]
                if steps == 12: cache.append(new(2))
                if step == steps - 1: stop("done", "end")
                for block in blocks: cuda.cudaFree(block)
                time.sleep(0.01)"""

        def during(run):
            self.addCleanup(run.process.kill)
            wait_until(lambda: exists(run, "made"))
            attached = attachments.Attached(run)
            touch(run, "go")
            wait_until(lambda: exists(run, "done"))
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0)
            touch(run, "end")
        for steps, told in (1, []), (2, []), (12, [22]):
            with self.subTest(steps), e2e.Recording("python3", "-c", code, steps, preload=False, during=during) as run:
                stacks = [finding["stack"] for finding in run.report()["findings"] if finding["class"] == "leak"]
                self.assertEqual([[frame["line"] for frame in stack if frame["language"] == "python"][-1] for stack in stacks], told)

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
            said = {capability["name"]: capability["value"] for capability in trace.defs["capability"]}
            self.assertEqual(said["recorded"], "attached by BPF while it ran")
            self.assertGreater(said["watcher_cpu_ns"], 0)
            stacks, verbs = attachments.native_stacks(trace), trace.verbs()
            self.assertEqual({verbs[api]: native in stacks for api, native in zip(*(trace.events()[name].tolist() for name in ("api", "native")))},
                             {"ALLOC": True, "FREE": False})
            # a library without its build id gives no names
            notes = subprocess.run(["readelf", "-n", KILL_ME], capture_output=True, text=True).stdout
            ids = {os.path.basename(module["path"]): module.get("build_id") for module in trace.defs["module"]}
            self.assertEqual(ids["kill_me"], re.search(r"Build ID: (\w+)", notes).group(1))
            self.assertIn("kill_me.c:18", subprocess.run([e2e.ANALYZE, "export", "collapsed", "--weigh", "total", run.traces],
                                                         capture_output=True, text=True).stdout)
            self.assertIn("watched from outside for", " ".join(run.report()["warnings"]))

    def children(self, run, count, *prefix, **options):
        environment = dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_LATENCY="1000000", SIM_DIR=run.folder)
        return [subprocess.Popen([*prefix, KILL_ME, "1"], env=environment, stdout=subprocess.DEVNULL, **options) for _ in range(count)]

    def watched_pids(self, run, group, begin, *prefix):
        """Traces of the processes that begin() starts while stormlog-attach watches their group, which is empty at first."""
        watcher = subprocess.Popen([*prefix, e2e.ATTACH, *group, "-o", run.traces], stderr=subprocess.PIPE, text=True)
        self.addCleanup(watcher.kill)
        said = [watcher.stderr.readline()]
        while said[-1] and said[-1] != "ready\n":
            said.append(watcher.stderr.readline())
        children = begin()
        for child in children:
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
        wait_until(lambda: len(run.files()) >= len(children) and min(map(calls_in, stormlog_trace.open_folder(run.traces))) > 10)
        for child in children:
            child.kill()
            child.wait()
        watcher.send_signal(signal.SIGINT)
        said += watcher.stderr.readlines()
        watcher.stderr.close()
        self.assertEqual(watcher.wait(), 0, said)
        traces = stormlog_trace.open_folder(run.traces)
        for trace in traces:
            self.assertEqual(trace.damage, [])
            self.assertGreater(len(trace.events()["api"]), 10)
        self.groups = [capability["value"].split() for trace in traces for capability in trace.defs["capability"] if capability["name"] == "cgroups"]
        return sorted(trace.header["pid"] for trace in traces)

    def test_a_group_is_all_of_its_processes_and_those_to_come(self):
        """The group is named by its path, by its folder in the hierarchy, and by the container id in its name."""
        group, path = attachments.make_group("docker-0123456789abcdef-%d.scope" % os.getpid())
        if not group:
            self.skipTest("no cgroup can be made here")
        self.addCleanup(os.rmdir, group)
        for chosen in (["--cgroup", group], ["--cgroup", path], ["--container", "abcdef-%d" % os.getpid()]):
            with self.subTest(chosen), e2e.Recording("true", preload=False) as run:
                children = []

                def join():
                    with open(os.path.join(group, "cgroup.procs"), "w") as file:
                        file.write("0")
                self.assertEqual(self.watched_pids(run, chosen, lambda: children.extend(self.children(run, 2, preexec_fn=join)) or children),
                                 sorted(child.pid for child in children))
                self.assertEqual([path in groups for groups in self.groups], [True, True])

    def test_a_process_that_is_moved_to_another_cgroup_says_so(self):
        group, path = attachments.make_group("stormlog-moved-%d" % os.getpid())
        if not group:
            self.skipTest("no cgroup can be made here")
        self.addCleanup(os.rmdir, group)

        def during(run):
            self.addCleanup(run.process.wait)
            self.addCleanup(run.process.kill)
            run.process.stdout.readline()
            attached = attachments.Attached(run)
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(run.process.pid))
            wait_until(lambda: any(path in capability["value"] for capability in stormlog_trace.open_folder(run.traces)[0].defs.get("capability", ())
                                   if capability["name"] == "cgroups"))
            attached.process.send_signal(signal.SIGINT)
            self.assertEqual(attached.end(), 0)
            run.process.kill()
            run.process.wait()
        with e2e.Recording(KILL_ME, 1, preload=False, SIM_LATENCY=1000000, code=-9, during=during) as run:
            trace, = stormlog_trace.open_folder(run.traces)
            self.assertEqual(sum("it has moved to cgroups" in note["text"] and path in note["text"] for note in trace.defs["note"]), 1)
            self.assertIn(path, run.report()["processes"][0]["capabilities"]["cgroups"])

    def test_all_is_every_process_that_it_sees(self):
        """Runs in a pid namespace of its own, so that no other process of this machine is watched."""
        prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            self.skipTest("no namespace of processes can be made here")
        with e2e.Recording("true", preload=False) as run:
            shell = "%s --all --yes -o %s --duration 6 & sleep 1; for i in 1 2 3; do %s 1 _exit 3000000 >/dev/null & done; wait" % (e2e.ATTACH, run.traces, KILL_ME)
            done = subprocess.run([*prefix, "sh", "-c", shell], capture_output=True, text=True, timeout=120,
                                  env=dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_LATENCY="1000000", SIM_DIR=run.folder))
            traces = stormlog_trace.open_folder(run.traces)
            self.assertEqual(len(traces), 3, done.stderr)
            self.assertTrue(all(len(trace.events()["api"]) > 10 for trace in traces))
            self.assertTrue(all(trace.header["pid"] < 100 for trace in traces))

    def test_all_lets_go_of_those_that_have_ended(self):
        """Eight processes come three times, with the same pids, while the limit on open files has room for about ten of them; then for none."""
        prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        if subprocess.run([*prefix, "true"], capture_output=True).returncode:
            self.skipTest("no namespace of processes can be made here")
        for files, status, count in ((90, 0, 3), (26, 4, 0)):
            with self.subTest(files), e2e.Recording("true", preload=False) as run:
                shell = ("(ulimit -n %d; exec %s --all --yes -o %s --duration %d) & a=$!; sleep 1; for w in 1 2 3; do echo 300 >/proc/sys/kernel/ns_last_pid; p=;"
                         "for i in 1 2 3 4 5 6 7 8; do %s 1 _exit 4000000 >/dev/null & p=\"$p $!\"; done; wait $p; sleep 1; [ %d = 3 ] || break; done; kill -INT $a; wait $a" % (
                             files, e2e.ATTACH, run.traces, 100 if count else 4, KILL_ME, count))
                done = subprocess.run([*prefix, "sh", "-c", shell], capture_output=True, text=True, timeout=120,
                                      env=dict(os.environ, LD_LIBRARY_PATH=e2e.SIM, SIM_LATENCY="1000000", SIM_DIR=run.folder))
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual("too many files are open" in done.stderr, status != 0, done.stderr)
                if count:
                    lives = [(trace.header["pid"], trace.header["process_start"]) for trace in stormlog_trace.open_folder(run.traces)]
                    self.assertEqual(sorted(pid for pid, _ in lives), sorted([*range(301, 309)] * count), done.stderr)
                    self.assertEqual(len(set(lives)), 8 * count)

    def test_containers_of_podman_with_the_drivers_folder_mounted(self):
        """Three containers, named by the ids that podman prints; each process has its own root, namespace and cgroup."""
        names = ["stormlog-test-%d-%d" % (os.getpid(), i) for i in range(3)]
        why_not = podman_refuses(names[0])
        if why_not:
            self.skipTest("podman does not run here: " + why_not)
        with e2e.Recording("true", preload=False) as run:
            options = ["-v", e2e.SIM + ":/gpu:ro", "-e", "LD_LIBRARY_PATH=/gpu", "-e", "SIM_LATENCY=1000000", "-e", "SIM_DIR=/dev/shm"]
            containers = [podman(name, *options, command=[KILL_ME, "1"]) for name in names]
            for container in containers:
                container.stdout.readline()  # it has made its first calls
            ids = [podman_id(name) for name in names]
            watched = [subprocess.Popen([e2e.ATTACH, "--container", id, "-o", os.path.join(run.traces, id), "--duration", "3"],
                                        stderr=subprocess.PIPE, text=True) for id in ids[:2]]
            for watcher in watched:
                said = watcher.communicate(timeout=60)[1]
                self.assertEqual((watcher.returncode, "calls of" in said), (0, True), said)
            for container in containers:
                subprocess.run(["podman", "rm", "-f", "-t", "0", container.name], capture_output=True, timeout=60)
                container.kill()
                container.communicate()
            pids = set()
            for id in ids[:2]:
                trace, = stormlog_trace.open_folder(os.path.join(run.traces, id))
                self.assertGreater(len(trace.events()["api"]), 10)
                pids.add(trace.header["pid"])
            self.assertEqual(len(pids), 2)
            self.assertFalse(os.path.exists(os.path.join(run.traces, ids[2])))


def calls_in(trace):
    return len((trace.events() or {"api": ()})["api"])


ONLY_SECOND = "mount --make-rprivate / && umount -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup; exec \"$@\""  # cgroup v2 alone: crun supports no hybrid mode


def podman(name, *options, command):
    """A container whose root is this machine's, so that no image is needed."""
    limits = [option for limit in ("nofile", "nproc") for option in ("--ulimit", limit + "=1024:1024")]
    child = subprocess.Popen(["unshare", "-m", "sh", "-c", ONLY_SECOND, "sh", "podman", "--cgroup-manager", "cgroupfs", "run", "--rm", "--name", name,
                              "--privileged", "--pids-limit", "-1", *limits, "--network", "none", *options, "--rootfs", "/:O", *command],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.name = name
    return child


def podman_refuses(name):
    """Why podman cannot be used here, or None."""
    if not shutil.which("podman") or os.geteuid():
        return "it is not installed, or we are not root"
    child = podman(name, command=["true"])
    said = child.communicate(timeout=120)[1]
    return said.strip() if child.returncode else None


def podman_id(name):
    return subprocess.run(["podman", "inspect", "--format", "{{.Id}}", name], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    unittest.main(verbosity=2)
