#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ten hard cases for an interposer, and the tests that cover them; this file has what no other test covers.

 1 three kinds of runtime in one process     test_journal: plugins; callers below
 2 cuGetProcAddress, every name and version  tests/agent/hooks/test_lookups.py
 3 dlsym fidelity                            tests/agent/hooks/test_lookups.py, test_invisible
 4 plugins of their own scope                test_lookups: plugins; holes in what we see below
 5 addresses given again at once             below
 6 virtual memory by its references          test_journal: virtual memory, tests/apps/vmm.c; the moment below
 7 stream-ordered and graph memory           test_journal: pools, graphs, capture
 8 out of memory everywhere                  below
 9 resets, and every way to end              test_journal: reset, every way to end; test_lifecycle
10 invisible elsewhere                       test_invisible, tests/real
"""
import os
import platform
import subprocess
import sys
import tempfile
import time
import unittest

import e2e
import stormlog_trace
from e2e import APPS, Recording

HOST = os.path.join(APPS, "plugin_host")
PLUGINS = [os.path.join(APPS, name) for name in ("plugin.so", "plugin11.so", "plugin13.so")]

# Expandable segments, and memory that another process shares; that import is mapped when memory runs out.
IMPORTED = """
import ctypes, os
runtime, driver, c10 = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
c10.caching_new(ctypes.c_size_t(5 << 20))
class Place(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]
class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", Place), ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]
handle, theirs, at, fd, size, no = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_int(), ctypes.c_size_t(64 << 20), ctypes.c_ulonglong(0)
assert not driver.cuMemCreate(ctypes.byref(handle), size, ctypes.byref(Properties(1, 1, Place(1, 0))), no)
assert not driver.cuMemExportToShareableHandle(ctypes.byref(fd), handle, 1, no)
assert not driver.cuMemImportFromShareableHandle(ctypes.byref(theirs), ctypes.c_void_p(fd.value), 1)
assert not driver.cuMemAddressReserve(ctypes.byref(at), size, ctypes.c_size_t(0), no, no)
assert not driver.cuMemMap(at, size, ctypes.c_size_t(0), theirs, no)
assert runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 40)) == 2
"""

# As UCX's "bistro" does: a jump is written over the first bytes of the function that dlsym finds.
PATCHER = r'''
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int cudaMalloc(void **, size_t), cudaFree(void *);
static int (*target)(uint64_t *, size_t), seen;
static unsigned char before[12], jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};

static void write_over(const unsigned char *bytes)
{
	uintptr_t page = (uintptr_t)target & ~4095ul;
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		perror("mprotect");
	memcpy((void *)target, bytes, 12);
}

static int hook(uint64_t *address, size_t bytes)
{
	int result;
	seen++;
	write_over(before);
	result = target(address, bytes);
	write_over(jump);
	return result;
}

int main(void)
{
	void *self = (void *)hook, *p[3];
	target = (int (*)(uint64_t *, size_t))dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
	memcpy(before, (void *)target, 12);
	memcpy(jump + 2, &self, 8);
	write_over(jump);
	for (int i = 0; i < 3; i++)
		printf("%d\n", cudaMalloc(&p[i], (i + 1) << 20));
	printf("%d seen %d\n", cudaFree(p[1]), seen);
	return 0;
}
'''


def only(run):
    trace, = stormlog_trace.open_folder(run.traces)
    return trace


def notes(run):
    return [note["text"] for note in only(run).defs.get("note", [])]


class HardCases(unittest.TestCase):
    def test_1_each_runtime_in_a_process_is_one_event_a_call_with_its_caller(self):
        with Recording(HOST, *PLUGINS, STORMLOG_STACKS="none") as run:
            trace = only(run)
            events, modules = trace.events(), trace.defs["module"]
            callers = set()
            for caller, bytes_ in zip(events["caller"].tolist(), events["bytes"].tolist()):
                if bytes_ >= 1 << 20:
                    callers |= {os.path.basename(m["path"]) for m in modules if m["base"] <= caller < m["end"]}
            self.assertEqual(callers, {"plugin_host", "plugin.so", "plugin11.so", "plugin13.so"})
            row, = [row for row in run.report()["processes"][0]["memory"] if row["kind"] == "device"]
            self.assertEqual(row["allocations"], 7)

    def test_a_file_without_a_build_id_that_changed_gives_no_names(self):
        text = "int cudaMalloc(void **, unsigned long);\n%s\nstatic void *p;\n__attribute__((noinline)) void keep(void) { cudaMalloc(&p, 3 << 20); }\n" \
            "int main(void) { keep(); return p == 0; }\n"
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "built")

            def screen(run):
                return subprocess.run([e2e.ANALYZE, "--all", run.traces], capture_output=True, text=True, check=True).stdout

            def build(more):
                subprocess.run(["cc", "-g", "-Wl,--build-id=none", "-x", "c", "-", "-o", program, "-L" + e2e.SIM, "-l:libcudart.so.13"], input=(text % more).encode(), check=True)
            build("")
            with Recording(program) as run:
                self.assertIn(" keep", screen(run))
                build("__attribute__((noinline)) void fresh(void *q) { cudaMalloc(q, 1); cudaMalloc(q, 2); cudaMalloc(q, 3); cudaMalloc(q, 4); }")
                os.utime(program, (time.time() + 60, time.time() + 60))
                said = " ".join(screen(run).split())
        self.assertNotRegex(said, r"fresh| keep|-:\d")
        self.assertIn("no names of functions in " + program + ": it has changed since it was recorded", said)

    @unittest.skipUnless(platform.machine() == "x86_64", "the patch is x86-64's")
    def test_a_library_that_writes_over_the_first_bytes_of_a_function_sees_every_call_and_so_do_we(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "patcher")
            subprocess.run(["cc", "-w", "-x", "c", "-", "-o", program, "-L" + e2e.SIM, "-l:libcudart.so.13", "-ldl"],
                           input=PATCHER.encode(), check=True)
            with Recording(program, preload=False) as plain, Recording(program) as run:
                self.assertEqual([run.done.stdout, run.done.stderr], [plain.done.stdout, plain.done.stderr])
                self.assertEqual(plain.done.stdout, b"0\n0\n0\n0 seen 3\n")
                row, = [row for row in run.report()["processes"][0]["memory"] if row["kind"] == "device"]
                self.assertEqual((row["allocations"], row["frees"], row["live_bytes"]), (3, 1, 4 << 20))

    def test_4_a_hole_in_what_we_see_is_said_in_the_trace(self):
        for mode, why in (("--deepbind", "RTLD_DEEPBIND"), ("--dlmopen", "namespace")):
            with self.subTest(mode), Recording(HOST, mode, *PLUGINS) as run:
                self.assertEqual(len([note for note in notes(run) if why in note]), 1, notes(run))
                checked = subprocess.run([e2e.ANALYZE, "check", "--strict", "--max-peak", "2G", run.traces], capture_output=True, text=True)
                self.assertEqual(checked.returncode, 1, checked.stdout)
                self.assertRegex(" ".join(checked.stdout.split()), r"FAIL incomplete \S+: a library was opened (?:with RTLD_DEEPBIND|in a namespace)")
                self.assertRegex(subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True).stdout, "(?m)^incomplete: ")
        with Recording(HOST, *PLUGINS) as run:
            self.assertEqual([note for note in notes(run) if "opened" in note], [])

    def test_keys_of_another_namespace_have_none_of_our_values(self):
        for mode in ("--dlmopen", "--deepbind"):
            with self.subTest(mode), Recording(HOST, mode, PLUGINS[0]):
                pass

    def test_5_replayed_in_order_no_two_live_blocks_overlap(self):
        """Sixteen threads over a driver that hands out a freed address again at once."""
        with Recording(os.path.join(APPS, "threads"), 16, 800, STORMLOG_STACKS="none") as run:
            trace = only(run)
            events = trace.events()
            names = [hook[0] for hook in trace.hooks]
            order = sorted(range(len(events["api"])), key=lambda i: (int(events["time_ns"][i])))
            live, wrong = {}, 0
            for i in order:
                name, address = names[int(events["api"][i]) - 1], int(events["address"][i])
                if name == "cudaMalloc":
                    wrong += address in live
                    live[address] = True
                elif name == "cudaFree":
                    wrong += live.pop(address, None) is None
            self.assertEqual(wrong, 0)
            real, = run.truth()
            self.assertEqual(len(live), sum(row.live_blocks for row in real.memory.values()))

    def test_memory_runs_out_while_an_import_is_mapped_beside_segments_of_pytorch(self):
        with Recording(sys.executable, "-c", IMPORTED, APPS=APPS) as recording:
            report = recording.report()
        self.assertEqual({row["kind"]: row["live_bytes"] for row in report["processes"][0]["memory"] if row["kind"] in ("vmm", "imported")},
                         {"vmm": 64 << 20, "imported": 64 << 20})
        self.assertIn("oom", {finding["class"] for finding in report["findings"]})

    def test_8_every_way_to_fail_leaves_result_and_outputs_as_they_are(self):
        """One call fails in the driver or the runtime.  Programs print all outputs, also the poison that the simulator puts into unset ones."""
        failures = ("cuMemAlloc_v2:1", "cudaMalloc:2", "cuMemAllocPitch_v2:1", "cuMemAllocManaged:1", "cuMemHostAlloc:1",
                    "cuMemHostRegister_v2:1", "cuArrayCreate_v2:1", "cuMemAllocAsync:1", "cuDevicePrimaryCtxRetain:1",
                    "cuMemCreate:1", "cuMemAddressReserve:1", "cuMemMap:1", "cuMemPoolCreate:1", "cuStreamCreate:1")
        seen = 0
        for failure in failures:
            for app in ("runtime13", "driver", "vmm", "pools"):
                runs = []
                for preload in (False, True):
                    with Recording(os.path.join(APPS, app), preload=preload, code=None, SIM_FAIL=failure) as run:
                        runs.append((run.done.returncode, run.done.stdout, run.done.stderr))
                        if preload and run.done.returncode:
                            apis = run.report()["processes"][0]["apis"]
                            seen += any(row["failures"] for row in apis)
                self.assertEqual(runs[0], runs[1], (failure, app))
        self.assertGreater(seen, 8, "the failures are in the reports")

    def test_questions_of_ours_that_the_driver_refuses_change_nothing(self):
        """HAMi-core #187, #188, #306: a question that an interposer asks of its own, as cuCtxGetDevice, fails; the program must not notice."""
        for failure in ("cuCtxGetDevice:0:201", "cuMemGetInfo_v2:0", "cuCtxGetCurrent:0:201", "cuPointerGetAttribute:0:1"):
            runs = []
            for preload in (False, True):
                with Recording(os.path.join(APPS, "driver"), preload=preload, code=None, SIM_FAIL=failure) as run:
                    runs.append((run.done.returncode, run.done.stdout, run.done.stderr))
            self.assertEqual(runs[0], runs[1], failure)


if __name__ == "__main__":
    unittest.main(verbosity=2)
