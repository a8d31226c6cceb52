#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is known is not recorded again: kernels whose function was asked for, the device that is set."""
import collections
import json
import subprocess
import unittest

import e2e

MIB = 1 << 20
PROGRAM = """
import ctypes, sys
rt, cu = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")
library, kernel, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def load():
    assert not cu.cuLibraryLoadData(ctypes.byref(library), b"code of no GPU" + bytes(64), None, None, 0, None, None, 0)
    assert not cu.cuLibraryGetKernel(ctypes.byref(kernel), library, b"kernel")
def ask(times):
    for _ in range(times):
        assert not cu.cuKernelGetFunction(ctypes.byref(function), kernel)
    return function.value
assert not rt.cudaSetDevice(0)
"""


def run(*lines, **environment):
    return e2e.Recording("python3", "-c", PROGRAM + "\n".join(lines), SIM_MODULE_BYTES="64M", **environment)


def calls_of(recording):
    (process,) = recording.report()["processes"]
    return {row["api"]: row["calls"] for row in process["apis"]}


def loads(recording):
    """The first loads of a kernel, in their order."""
    out = subprocess.run([e2e.ANALYZE, "dump", recording.traces], capture_output=True, check=True).stdout
    return [event for event in map(json.loads, out.splitlines()) if event.get("api") == "cuKernelGetFunction"]


def questions(recording):
    """{name: times} of the driver's functions that were called, by the program and by the recorder."""
    (process,) = recording.truth()
    return collections.Counter(call.api for call in process.calls if call.level == 0)


class Known(unittest.TestCase):
    def test_a_kernel_is_asked_for_a_thousand_times(self):
        with run("load(); ask(1)", SIM_JOURNAL_ALL="1") as once, run("load(); ask(1000)", SIM_JOURNAL_ALL="1") as often:
            self.assertEqual([calls_of(once)["cuKernelGetFunction"], calls_of(often)["cuKernelGetFunction"]], [1, 1])
            more = questions(often) - questions(once)
            named = {name["what"]: name["bytes"] for name in often.report()["run"]["devices"][0]["hidden"]}
        self.assertEqual(more, {"cuKernelGetFunction": 999})
        self.assertEqual(named["code"], 64 * MIB)

    def test_another_device_is_another_load(self):
        with run("load(); a = ask(100); rt.cudaSetDevice(1); b = ask(100); rt.cudaSetDevice(0); assert a != b and ask(100) == a") as recording:
            self.assertEqual(calls_of(recording)["cuKernelGetFunction"], 2)
            seen = loads(recording)
            hidden = [{name["what"]: name["bytes"] for name in device["hidden"]} for device in recording.report()["run"]["devices"]]
        self.assertEqual([event["device"] for event in seen], [0, 1])
        self.assertNotEqual(*(event["address"] for event in seen))
        self.assertEqual([device["code"] for device in hidden], [64 * MIB] * 2)

    def test_a_context_that_no_setter_made_current_is_found_by_the_answer(self):
        with run("load(); a = ask(10); other = ctypes.c_void_p()",
                 "assert not cu.cuDevicePrimaryCtxRetain(ctypes.byref(other), 1) and not cu.cuCtxPushCurrent_v2(other)",
                 "b = ask(10); assert a != b") as recording:
            self.assertEqual([event["device"] for event in loads(recording)], [0, 1])

    def test_what_was_unloaded_is_loaded_again(self):
        for end in ("cu.cuLibraryUnload(library)", "rt.cudaDeviceReset()"):
            with run("for _ in range(3): load(); ask(10); assert not " + end) as recording:
                self.assertEqual(calls_of(recording)["cuKernelGetFunction"], 3, end)

    def test_a_failure_is_recorded_however_well_the_kernel_is_known(self):
        with run("load(); ask(5)", "answers = [cu.cuKernelGetFunction(ctypes.byref(function), kernel) for _ in range(5)]",
                 "assert answers == [0, 0, 2, 0, 0], answers", SIM_FAIL="cuKernelGetFunction:8") as recording:
            rows = recording.report()["processes"][0]["apis"]
        self.assertEqual([(row["calls"], row["failures"]) for row in rows if row["api"] == "cuKernelGetFunction"], [(2, 1)])

    def test_the_device_that_is_set_is_set_again(self):
        for lines, expected in ((["for _ in range(1000): assert not rt.cudaSetDevice(0)"], 1),
                                (["for i in range(10): assert not rt.cudaSetDevice(i % 2)"], 10),
                                (["rt.cudaDeviceReset(); assert not rt.cudaSetDevice(0)"] * 2, 3),
                                (["for _ in range(3): assert rt.cudaSetDevice(7) == 101"], 4),
                                (["import threading", "for _ in range(2):",
                                  " t = threading.Thread(target=lambda: [rt.cudaSetDevice(1) for _ in range(9)]); t.start(); t.join()"], 3)):
            with run(*lines) as recording:
                wrong, report = e2e.equal_to_journal(recording, threads=2)
                self.assertEqual(wrong, [])
                self.assertEqual(calls_of(recording)["cudaSetDevice"], expected, lines)


if __name__ == "__main__":
    unittest.main(verbosity=2)
