#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: programs that conflict with a recorder (tests/apps/foreign.c) end as they do without one."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import e2e
from e2e import Recording, differences, rows_of

FOREIGN = os.path.join(e2e.APPS, "foreign")
FAULTING = os.path.join(e2e.APPS, "faulting")
FORK = os.path.join(e2e.HERE, "..", "apps", "fork_alone.py")

OWN_EXITS = """
import ctypes
gpu, own, at = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL(None), ctypes.c_void_p()
for name in "_exit", "quick_exit", "unshare", "setns", "setgroups", "initgroups":
    call = getattr(own, name)
    call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 6
    gpu.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(4096))
    print(call(*(i << 33 for i in range(1, 7))), flush=True)
    gpu.cudaFree(at)
"""


def pythons():
    """The interpreters behind these names: some names are scripts that choose one."""
    for name in filter(shutil.which, ("python3", "python3.12", "python3.13", "python3.14")):
        done = subprocess.run([name, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if done.returncode == 0:
            yield done.stdout.strip()


class Foreign(unittest.TestCase):
    maxDiff = None

    def plain_and_recorded(self, *argv, program=FOREIGN, **environment):
        """Run a program without and with the agent: exit status and output must be equal.  Returns the recording."""
        with Recording(program, *argv, preload=False, code=None) as plain:
            run = Recording(program, *argv, code=None, **environment)
            self.addCleanup(run.__exit__)
            self.assertEqual((run.done.returncode, run.done.stdout, run.done.stderr),
                             (plain.done.returncode, plain.done.stdout, plain.done.stderr), argv)
        return run

    def device_rows(self, run):
        return [row for process in run.report()["processes"] for row in process["memory"] if row["kind"] == "device"]

    def device_row(self, run):
        row, = self.device_rows(run)
        return row

    def test_what_is_freed_after_our_end_on_a_small_stack_leaves_the_data_below_its_guard_page_alone(self):
        for stack in (16384, 20480, 24576, 28672, 32768):
            with self.subTest(stack=stack):
                run = self.plain_and_recorded("late", stack)
                self.assertEqual(run.done.returncode, 0)
                row = self.device_row(run)
                self.assertEqual((row["allocations"], row["frees"], row["live_blocks"]), (100, 100, 0))

    def test_the_process_ends_with_its_last_thread_after_pthread_exit_in_main(self):
        run = self.plain_and_recorded("pthread_exit", 1, timeout=120)
        self.assertEqual(run.done.returncode, 0)
        row = self.device_row(run)
        self.assertEqual((row["allocations"], row["live_blocks"]), (2, 2))
        self.assertEqual([process["status"] for process in run.report()["processes"]], ["completed"])
        self.assertEqual([name for name in run.files() if name.endswith(".ring")], [])

    def test_so_does_one_that_calls_no_gpu_with_host(self):
        self.plain_and_recorded("pthread_exit", 0, timeout=120, STORMLOG_HOST=1)

    def test_the_process_ends_with_its_last_thread_also_where_that_leaves_by_the_system_call(self):
        """No exit handler runs then, and the parent gets the status that the last thread gave."""
        for argv, code, blocks in ((("threads_leave_by_call", 0), 3, [(1, 1)]), (("threads_leave_by_call", 1), 3, [(2, 1)]), (("cloned", 0), 0, [(1, 1)])):
            with self.subTest(argv=argv):
                run = self.plain_and_recorded(*argv, timeout=60)
                self.assertEqual(run.done.returncode, code)
                self.assertEqual([(row["allocations"], row["frees"]) for row in self.device_rows(run)], blocks)
                self.assertEqual([(process["status"], process["exit_status"]) for process in run.report()["processes"]], [("failed", 3)])
                self.assertEqual([name for name in run.files() if name.endswith(".ring")], [])

    def test_so_does_a_bare_clone_of_a_recorded_process(self):
        """Its status is not compared: it cannot start a thread if the parent's writer held a lock, and then nothing records its end."""
        run = self.plain_and_recorded("cloned", 1, timeout=60)
        self.assertEqual(sorted((row["allocations"], row["failed_allocations"]) for row in self.device_rows(run)), [(0, 1), (1, 0)])

    def test_so_does_one_in_which_a_lock_of_the_loader_is_held_for_ever(self):
        self.plain_and_recorded("cloned", 2, timeout=60)

    def test_the_writer_has_a_stack_of_its_own_size(self):
        for stack in (16384, 24576, 36864):
            with self.subTest(stack=stack):
                run = self.plain_and_recorded("small_default_stack", stack)
                self.assertEqual(self.device_row(run)["allocations"], 20000)

    def test_the_kernel_grants_what_it_grants_a_process_of_one_thread(self):
        for gpu in (1, 0):
            with self.subTest(gpu=gpu):
                run = self.plain_and_recorded("unshare", gpu, STORMLOG_HOST=1)
                if run.done.stdout == b"unshare: Operation not permitted\n":
                    self.skipTest("here nobody may make a user namespace, as in a chroot: it is refused without us too")
                self.assertEqual(run.done.stdout, b"unshare: done\n")
                if gpu:
                    row = self.device_row(run)
                    self.assertEqual((row["allocations"], row["frees"]), (1, 1))

    @unittest.skipUnless(os.getuid() == 0 and shutil.which("setpriv"), "only root changes who it is, by setpriv")
    def test_who_a_process_is_changes_as_in_one_of_one_thread(self):
        """setpriv keeps capabilities of the calling thread alone when it becomes another user, and needs them afterwards."""
        with tempfile.TemporaryDirectory() as folder:  # the other user can read this folder, but perhaps not the checkout
            os.chmod(folder, 0o755)
            library = shutil.copy(e2e.PRELOAD, folder)
            for argv in (("--reuid=65533", "--clear-groups"), ("--reuid=65533", "--regid=65533", "--groups=65533")):
                run = self.plain_and_recorded(*argv, "id", program="setpriv", STORMLOG_HOST=1, LD_PRELOAD=library)
                self.assertEqual(run.done.returncode, 0)

    @unittest.skipUnless(os.getuid() == 0, "only root may become another user")
    def test_children_that_cannot_be_recorded_as_another_user_are_said_to_be_missing(self):
        run = self.plain_and_recorded("becomes_nobody")
        self.assertEqual(self.device_row(run)["allocations"], 1)
        text = " ".join(subprocess.run([e2e.ANALYZE, "--all", run.traces], capture_output=True, text=True, check=True).stdout.split())
        self.assertIn("it became a user who may not write in the trace's folder", text)

    def test_a_program_whose_only_thread_a_filter_kills_ends_by_that_signal(self):
        run = self.plain_and_recorded("killed_alone")
        self.assertEqual(run.done.returncode, -signal.SIGSYS)
        process, = run.report()["processes"]
        self.assertEqual((process["status"], process["apis"][0]["calls"]), ("interrupted", 1))

    def test_a_librarys_choice_before_the_agent_is_relocated(self):
        for late in ("", "1"):
            self.plain_and_recorded(program=os.path.join(e2e.APPS, "early"), EARLY_ASKS="", LD_BIND_NOW=late)

    def test_a_function_of_the_program_that_has_a_name_of_the_c_library_is_called_by_nobody_else(self):
        for host in (0, 1):
            run = self.plain_and_recorded(program=os.path.join(e2e.APPS, "own_names"), STORMLOG_HOST=host)
            self.assertEqual((run.done.returncode, run.done.stdout), (5, b""))
            self.assertEqual(self.device_row(run)["allocations"], 200)

    def test_so_is_one_of_a_library_and_has_its_arguments_and_what_it_returns(self):
        own = os.path.join(e2e.APPS, "own_exits.so")
        for library in (own, e2e.PRELOAD + ":" + own):
            with self.subTest(library=library), Recording("/usr/bin/python3", "-c", OWN_EXITS, preload=False, LD_PRELOAD=library) as run:
                self.assertEqual(run.done.stdout.decode().split(), [str(sum(i << 33 for i in range(1, 7)))] * 6)
                if library != own:
                    row = self.device_row(run)
                    self.assertEqual((row["allocations"], row["frees"]), (6, 6))

    @unittest.skipUnless(os.getuid() == 0, "only root may leave its root folder, or have a file system know it as another user")
    def test_a_forked_child_that_can_make_no_trace_is_said_to_be_missing_by_its_parent(self):
        for how in range(3):
            with self.subTest(("chroot", "setfsuid", "no descriptors")[how]):
                run = self.plain_and_recorded("child_without_files", how)
                self.assertEqual(self.device_row(run)["allocations"], 1)
                text = " ".join(subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True, check=True).stdout.split())
                self.assertIn("a forked child could not make a trace (errno", text)

    def test_python_warns_of_no_thread_of_ours_at_fork(self):
        for python in pythons():
            for gpu in (2, 1, 0):
                with self.subTest(python=python, gpu=gpu):
                    run = self.plain_and_recorded(FORK, gpu, program=python, STORMLOG_HOST=1)
                    self.assertEqual((run.done.returncode, run.done.stderr), (0, b""))
                    # before the fork, after it, and in its hook
                    made = sum(row["allocations"] for process in run.report()["processes"] for row in process["memory"])
                    self.assertEqual(made, (0, 2, 3)[gpu])

    def test_calls_of_any_number_of_threads_are_recorded(self):
        for threads in (255, 300, 1000):  # the trace is in memory, since a slow disk loses events, which tests/agent/test_disk.py tests
            with self.subTest(threads=threads), unittest.mock.patch("tempfile.tempdir", "/dev/shm"):
                run = self.plain_and_recorded("many_threads", threads)
                process, = run.report()["processes"]
                row = self.device_row(run)
                self.assertEqual((row["allocations"], row["frees"], process["lost_events"]), (6 * threads, 5 * threads, 0))
                self.assertEqual(differences(process, run.truth()[0], rows_of(run.traces), threads), [])

    def test_each_of_many_stacks_of_several_threads_is_kept(self):
        """Definitions of stacks fill segment after segment of the ring while all threads write them."""
        for _ in range(3):
            run = self.plain_and_recorded("many_stacks", 4000)
            dump = subprocess.run([e2e.ANALYZE, "dump", run.traces], capture_output=True, check=True).stdout
            calls = [call for call in map(json.loads, dump.splitlines()) if call["api"] == "cudaMalloc"]
            self.assertEqual((len(calls), len({tuple(call["stack"] or ()) for call in calls})), (32000, 32000))

    def test_what_threads_do_while_an_exec_fails_is_recorded_or_counted(self):
        run = self.plain_and_recorded("exec_fails", 200)
        process, = run.report()["processes"]
        truth, = run.truth()
        real = {name: truth.apis[name].calls for name in ("cudaMalloc", "cudaFree")}
        mine = {row["api"]: row["calls"] for row in process["apis"]}
        self.assertTrue(process["capabilities"]["exec_failed"])
        self.assertEqual(sum(mine[name] for name in real) + process["lost_events"], sum(real.values()))
        self.assertLess(process["lost_events"], sum(real.values()) / 100)

    def test_a_program_gets_the_descriptors_that_it_gets_without_us(self):
        for _ in range(5):
            self.plain_and_recorded("descriptors")

    def test_who_takes_the_numbers_of_our_descriptors_has_nothing_of_ours_in_its_file(self):
        run = self.plain_and_recorded("takes_descriptors", 300000)
        self.assertEqual((run.done.returncode, run.done.stdout), (0, b"0 bytes\n"))

    def test_what_the_writer_opens_never_takes_a_number_that_the_program_counts_on(self):
        for host in (0, 1):
            with self.subTest(host=host):
                # without the simulator's journal, which would open files
                run = self.plain_and_recorded("lowest_number", 16, SIM_JOURNAL="", STORMLOG_HOST=host)
                self.assertEqual((run.done.returncode, len(self.device_rows(run))), (0, 16))

    def test_calls_of_threads_that_ended_while_the_process_ends_are_in_the_trace(self):
        for _ in range(20):
            with Recording(FOREIGN, "ends_amid_threads", 20) as run:
                process, = run.truth()
                apis = {api["api"]: api["calls"] for api in run.report()["processes"][0]["apis"]}
                lost = sum(call.api in ("cudaMalloc", "cudaFree") for call in process.calls) - apis["cudaMalloc"] - apis["cudaFree"]
                self.assertLess(lost, 3)  # each of two threads may be in a call at the end

    def test_what_is_written_to_a_closed_standard_descriptor_never_gets_into_a_trace(self):
        for descriptors in (30, 60, 64, 87):
            with self.subTest(descriptors=descriptors):
                # without the simulator's journal, which would open files
                run = Recording(FOREIGN, "closed_standard", descriptors, SIM_JOURNAL="")
                self.addCleanup(run.__exit__)
                row = self.device_row(run)
                self.assertEqual((row["allocations"], row["frees"]), (50, 50))

    def test_a_program_may_have_a_variable_that_is_called_environ(self):
        run = self.plain_and_recorded(program=os.path.join(e2e.APPS, "own_environ"))
        row = self.device_row(run)
        self.assertEqual((run.done.returncode, row["allocations"], row["frees"]), (3, 1, 1))

    def test_calls_before_the_c_library_is_ready_have_the_settings_too(self):
        program = os.path.join(e2e.APPS, "preinit")
        row = self.device_row(self.plain_and_recorded(program=program))
        self.assertEqual((row["allocations"], row["frees"]), (2, 2))
        run = self.plain_and_recorded(program=program, STORMLOG_DISABLE=1)
        self.assertEqual(os.listdir(run.traces) if os.path.exists(run.traces) else [], [])

    def test_a_sandbox_that_allows_what_the_writer_is_said_to_do_does_not_kill(self):
        for interval in (0, 1000):
            with self.subTest(interval=interval):
                # without the simulator's journal, which would open files
                run = Recording(FOREIGN, "sandbox", code=7, STORMLOG_DEVICE_INTERVAL=interval, SIM_JOURNAL="")
                self.addCleanup(run.__exit__)
                row = self.device_row(run)
                self.assertEqual((row["allocations"], row["frees"]), (4002, 4001))
                self.assertEqual([process["status"] for process in run.report()["processes"]], ["failed"])

    def test_the_writer_asks_for_handlers_and_signals_by_calls_on_that_list_alone(self):
        """A filter may come between a look for one and the next call."""
        if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode:
            self.skipTest("strace cannot trace here")
        with Recording("strace", "-f", "-qq", "-o", "calls", "-e", "trace=rt_sigaction,rt_sigpending,pread64", "-E", "LD_PRELOAD=" + e2e.PRELOAD, "-E", "LD_LIBRARY_PATH=" + e2e.SIM,
                       sys.executable, e2e.SCRIPT, "alloc=1", "sleep=2", preload=False, STORMLOG_DEVICE_INTERVAL=0) as run:
            with open(os.path.join(run.folder, "calls")) as calls:
                lines = calls.read().splitlines()
        writers = [line for line in lines if line.split()[0] != lines[0].split()[0]]
        self.assertTrue([line for line in writers if "pread64" in line])
        self.assertEqual([line for line in writers if "rt_sig" in line], [])

    def test_a_program_handles_the_faults_of_its_threads_in_our_work_too(self):
        """A broker of a sandbox (openat, mincore, pipe2), from before the first call on."""
        for case, number in (("broker", 257), ("broker", 27), ("broker", 293)):
            with self.subTest(case=case, number=number):
                run = self.plain_and_recorded(case, number, program=FAULTING, timeout=60)
                if run.done.returncode == 77:
                    self.skipTest("the program's handlers are written for x86-64")
                row = self.device_row(run)
                self.assertEqual((run.done.returncode, row["allocations"], row["frees"]), (0, 10, 10))

    def test_a_function_that_a_signal_interrupts_at_its_first_instruction_has_its_own_name(self):
        run = self.plain_and_recorded("first_instruction", "", program=FAULTING, timeout=60)
        if run.done.returncode == 77:
            self.skipTest("the program's handlers are written for x86-64")
        leak, = run.report()["leaks"]
        named = [frame["function"] for frame in leak["stack"]]  # the frame that the kernel made for the handler may have a name
        self.assertEqual([named[0], *named[2:4]], ["allocate_and_go_on", "begins_by_a_fault", "first_instruction"])

    def test_a_program_that_stops_its_threads_by_a_signal_need_not_wait_for_ours(self):
        run = self.plain_and_recorded("stop_threads", "", program=FAULTING, timeout=60)
        row = self.device_row(run)
        self.assertEqual((run.done.returncode, row["allocations"], row["frees"]), (0, 31, 31))

    def test_signals_of_faults_that_all_threads_block_do_not_come_to_ours(self):
        run = self.plain_and_recorded("signal_file", "", program=FAULTING, timeout=60)
        self.assertEqual(run.done.returncode, 0)

    def test_a_first_call_while_libraries_are_closed_is_recorded(self):
        for round in range(40):
            with Recording(FAULTING, "closes", e2e.APPS) as run:
                self.assertEqual(self.device_row(run)["allocations"], 1, round)

    def test_address_space_is_taken_for_what_is_used_alone(self):
        run = self.plain_and_recorded("little_address_space", 600)
        self.assertEqual(run.done.stdout, b"malloc has it\n")

    def test_a_faked_clock_is_the_programs_own_business(self):
        fake = os.path.join(e2e.APPS, "fake_clock.so")
        for order in ((fake, e2e.PRELOAD), (e2e.PRELOAD, fake)):
            with self.subTest(order=order), Recording(FOREIGN, "small_default_stack", 65536, LD_PRELOAD=":".join(order)) as run:
                said = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True).stdout
                self.assertEqual(self.device_row(run)["allocations"], 20000)
                self.assertRegex(said.splitlines()[0], r"  [\d.]+ (ms|s)  completed   ")  # not the difference of two clocks, half a million hours

    def test_long_values_of_recorded_variables_are_cut_and_the_recording_goes_on(self):
        for values in (2, 20):
            settings = {"NCCL_LONG_%d" % i: "x" * 100000 for i in range(values)}
            with self.subTest(values=values), Recording(FOREIGN, "small_default_stack", 65536, **settings) as run:
                self.assertEqual(self.device_row(run)["allocations"], 20000)

    def test_on_an_old_kernel_a_child_begins_anew_and_takes_few_pages_for_that(self):
        with Recording(FOREIGN, "fork", LD_PRELOAD=os.path.join(e2e.APPS, "old_kernel.so") + ":" + e2e.PRELOAD) as run:
            self.assertEqual(run.done.stdout, b"few pages\n")
            rows = [row for process in run.report()["processes"] for row in process["memory"] if row["kind"] == "device"]
            self.assertEqual(sorted((row["allocations"], row["frees"]) for row in rows), [(1, 0), (1, 1)])

    def test_initgroups_of_a_thread_without_rights_is_refused(self):
        run = self.plain_and_recorded("initgroups_without_rights", timeout=120)
        self.assertEqual(run.done.returncode, 0)

    def test_every_thread_takes_part_in_setgid_after_a_fork(self):
        run = self.plain_and_recorded("setgid_after_fork", timeout=120)
        self.assertEqual(run.done.returncode, 0)

    def test_all_that_is_mapped_can_be_read(self):
        with Recording(FOREIGN, "read_all_memory") as run:
            self.assertEqual(run.done.stdout, b"read\n")


if __name__ == "__main__":
    e2e.side_by_side()
