#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: for each way a program reaches the GPU, report.json equals the simulator's journal."""
import os
import signal
import unittest

import e2e
import kills
from e2e import APPS, Recording, differences, rows_of


def app(name):
    return os.path.join(APPS, name)


class Journal(unittest.TestCase):
    maxDiff = None

    def assert_equal_to_journal(self, run, processes=1, threads=1, **expected):
        report = run.report()
        truth = run.truth()
        self.assertEqual(len(report["processes"]), processes, [p["command"] for p in report["processes"]])
        self.assertEqual(len(truth), processes)
        rows = rows_of(run.traces)
        left = sorted(report["processes"], key=lambda p: (len(p["trace"]), p["trace"]))  # an image that exec made has "-2" in its name
        for real in truth:
            mine = next((p for p in left if p["pid"] == real.pid), None)
            self.assertIsNotNone(mine, "process %d is not in the report" % real.pid)
            left.remove(mine)
            self.assertEqual(differences(mine, real, rows, threads), [], mine["command"])
            self.assertEqual(mine["lost_events"], 0)
            self.assertFalse(mine["damaged"])
            for name, value in expected.items():
                self.assertEqual(mine[name], value, name)
        return report

    def check(self, *argv, threads=1, processes=1, status="completed", **environment):
        with Recording(*argv, **environment) as run:
            return self.assert_equal_to_journal(run, processes, threads, status=status)

    def test_shared_runtimes(self):
        for version in ("11", "12", "13"):
            with self.subTest(version):
                self.check(app("runtime" + version), 3)

    def test_static_runtime(self):
        report = self.check(app("runtime_static"), 3)
        self.assertIn("cuMemAlloc", [row["api"] for row in report["processes"][0]["apis"]])

    def test_plugins_with_runtimes_of_their_own(self):
        self.check(app("plugin_host"), app("plugin.so"), app("plugin11.so"), app("plugin13.so"))

    def test_direct_driver_calls(self):
        self.check(app("driver"))

    def test_calls_found_by_dlopen_and_dlsym(self):
        self.check(app("lookup"))

    def test_a_driver_that_is_unloaded_and_comes_back_at_another_place(self):
        with Recording(app("reload")) as run:
            report = run.report()
            calls = {row["api"]: row["calls"] for row in report["processes"][0]["apis"]}
            self.assertEqual((calls["cuMemAlloc"], calls["cuMemFree"]), (3, 3))
            self.assertEqual((report["processes"][0]["status"], report["processes"][0]["unknown_frees"]), ("completed", 0))

    def test_python_ctypes(self):
        self.check("python3", os.path.join(e2e.HERE, "..", "apps", "ctypes_alloc.py"))

    def test_eight_threads_that_free_each_others_blocks(self):
        self.check(app("threads"), threads=8)

    def test_hip(self):
        for version in ("5", "6", "7"):
            with self.subTest(version):
                self.check(app("hip" + version))

    def test_fork_and_exec(self):
        with Recording(app("fork_exec")) as run:
            self.assert_equal_to_journal(run, processes=len(run.truth()))
            self.assertGreater(len(run.truth()), 1)

    def test_two_devices(self):
        self.check(app("two_devices"))

    def test_out_of_memory(self):
        for mode in ("", "retry"):
            with self.subTest(mode):
                with Recording(app("oom"), *([mode] if mode else []), code=None) as run:
                    report = self.assert_equal_to_journal(run)
                    self.assertTrue(report["ooms"])
                    self.assertEqual(report["ooms"][0]["scope"], "vram")
                    self.assertEqual([oom["recovered"] for oom in report["ooms"]].count(True), 1 if mode else 0)
                    self.assertIsNotNone(report["ooms"][0]["device_free_bytes"])

    def test_device_reset(self):
        self.check(app("reset"))

    def test_virtual_memory(self):
        self.check(app("vmm"))

    def test_external_memory_shared_pools_and_multicast(self):
        self.check(app("imports"))

    def test_graphics_resources_are_imported_while_they_are_mapped(self):
        for library in (("cu", "libcuda.so.1"), ("cuda", "libcudart.so.12"), ("hip", "libamdhip64.so.6")):
            with self.subTest(library):
                report = self.check(app("graphics"), *library)
                row, = [row for row in report["processes"][0]["memory"] if row["kind"] == "imported"]
                # three rounds of four buffers whose address was asked for, one alone, two left mapped: one unregistered, one gone with its context
                self.assertEqual((row["allocations"], row["frees"], row["implicit_frees"]), (15, 14, 1))
                self.assertEqual(row["peak_bytes"], 4 << 20)
                self.assertEqual(report["processes"][0]["unknown_frees"], 0)
                calls = {api["api"]: api["calls"] for api in report["processes"][0]["apis"]}
                self.assertEqual(calls[library[0] + "GraphicsUnmapResources"], 7)

    def test_contexts_and_the_primary_one(self):
        self.check(app("contexts"))

    def test_hip_in_depth(self):
        self.check(app("hip_deep6"))

    def test_hsa_alone_is_counted_and_below_hip_is_part_of_hips_call(self):
        report = self.check(app("hsa"))
        self.assertEqual({row["api"]: row["calls"] for row in report["processes"][0]["apis"] if "vmem" not in row["api"]},
                         {"hipMalloc": 1, "hipFree": 1, "hsa_amd_memory_pool_allocate": 5, "hsa_amd_memory_pool_free": 2,
                          "hsa_memory_allocate": 1, "hsa_memory_free": 1})
        self.assertEqual({(row["kind"], row["device"]): row["live_bytes"] for row in report["processes"][0]["memory"]},
                         {("device", 0): 3 << 20, ("device", 1): 5 << 20, ("vmm", 0): 6 << 20, ("vmm", 1): 0, ("imported", 1): 0,
                          ("host_pinned", None): 0})
        self.assertEqual([(oom["api"], oom["device"]) for oom in report["ooms"]], [("hsa_amd_memory_pool_allocate", 1)])

    def test_hsa_begun_anew_has_its_pools_elsewhere(self):
        report = self.check(app("hsa"), "again")
        self.assertEqual({(row["kind"], row["device"]): row["live_bytes"] for row in report["processes"][0]["memory"]},
                         {("device", 0): 0, ("device", 1): 3 << 20})

    def test_hsas_memory_of_another_process_is_on_that_ones_device(self):
        report = self.check(app("hsa_ipc"), processes=2)
        self.assertEqual([(row["device"], row["allocations"], row["frees"]) for process in report["processes"]
                          for row in process["memory"] if row["kind"] == "imported"], [(1, 1, 1)])

    def test_hsa_counts_devices_as_hip_shows_them(self):
        """The list reorders HIP's devices and not HSA's, so memory of HSA's first device may be HIP's second.  The simulator ignores the list."""
        for shown, expected in (("1,0", {0: 5, 1: 3}), ("1", {0: 5, None: 3}), ("GPU-0123456789abcdef", {None: 8})):
            with self.subTest(shown), Recording(app("hsa"), HIP_VISIBLE_DEVICES=shown) as run:
                process, = run.report()["processes"]
                live = {row["device"]: row["live_bytes"] >> 20 for row in process["memory"] if row["kind"] == "device"}
                self.assertEqual({device: bytes for device, bytes in live.items() if bytes}, expected)

    def test_pools(self):
        self.check(app("pools"))

    def test_graphs(self):
        self.check(app("graphs"))

    def test_stream_capture(self):
        self.check(app("capture"))

    def test_arrays(self):
        self.check(app("arrays"))

    def test_ipc_between_two_processes(self):
        with Recording(app("ipc")) as run:
            self.assert_equal_to_journal(run, processes=len(run.truth()))

    def test_every_way_to_end(self):
        for how, code, status in (("exit", 3, "failed"), ("_exit", 4, "failed"), ("quick_exit", 5, "failed"),
                                  ("return", 0, "completed"), ("abort", -signal.SIGABRT, "interrupted"),
                                  ("segv", -signal.SIGSEGV, "interrupted"), ("kill", -signal.SIGKILL, "interrupted")):
            with self.subTest(how):
                with Recording(app("ending"), how, code=code) as run:
                    self.assert_equal_to_journal(run, status=status)

    def test_kills_at_random_moments(self):
        """The trace has every call that returned before the kill, once and with its values, and says which calls were in flight."""
        for how in kills.ENDS:
            for _ in range(int(os.environ.get("STORMLOG_KILLS", "4"))):
                what, _, wrong = kills.kill(how)
                self.assertEqual(wrong, [], what)


if __name__ == "__main__":
    unittest.main(verbosity=2)
