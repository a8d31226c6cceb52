#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""End to end: for each finding a run for which it is true, and a run like it for which it must not appear.

Longer than other files: there is a class for each finding, and both runs stand together.
"""
import contextlib
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
import unittest

import e2e
sys.path.append(os.path.join(e2e.HERE, "..", "snapshot"))
import made
from e2e import ANALYZE, APPS, Ranks, Recording, script

CTYPES = os.path.join(e2e.HERE, "..", "apps", "ctypes_alloc.py")
MIB = 1 << 20
BESIDE = {"CUDA context", "context, code", "rounding", "not ours", "free"}  # rows of a card that no call asked for


def app(name):
    return os.path.join(APPS, name)


def ids(report):
    return {finding["kind"] for finding in report["findings"]}


def summary(run, *options, columns=80, code=0):
    done = subprocess.run([ANALYZE, *options, run.traces], capture_output=True, timeout=600,
                          env=dict(os.environ, COLUMNS=str(columns), LC_ALL="C.UTF-8"))
    if done.returncode != code:
        raise AssertionError("exit %d\n%s" % (done.returncode, done.stderr.decode()))
    return done.stdout.decode()


def whole(run, *options):
    """Every verdict, row and note, as one line."""
    return " ".join(summary(run, "--all", *options).split())


def verdicts(report, *words):
    """The verdicts of these words, or all, worst first: that of the first screen comes first."""
    return [one for one in report["answer"]["verdicts"] if not words or one["word"] in words]


def said(verdict, *labels):
    """Its headline and labels as one text."""
    every = ("why", "fix", "tried", "need", "else", "open", "note", "less", "held")
    return " ".join([verdict["headline"], *(text.strip() for label in labels or every for text in verdict.get(label, ()))])


def rows(verdict):
    """{name: bytes} of its table, whose rows add up to the total."""
    table = verdict["table"] or {"rows": [], "total_bytes": 0}
    assert sum(row["bytes"] for row in table["rows"]) == table["total_bytes"], table
    return {row["name"]: row["bytes"] for row in table["rows"]}


def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.02)


class Answers(unittest.TestCase):
    """tests/house/test_findings.py looks for `found` and `absent`: each finding has a run where it is true and one where it must not appear."""

    def found(self, finding, report):
        findings = [one for one in report["findings"] if one["kind"] == finding]
        self.assertTrue(findings, "no %s in %s" % (finding, sorted(ids(report))))
        return findings

    def absent(self, finding, report):
        self.assertNotIn(finding, ids(report))

    @contextlib.contextmanager
    def made(self, how):
        """A made-up trace: growth is judged over stretches of time, and a real program's pace depends on the load of the machine."""
        with Recording("true", preload=False) as run:
            os.mkdir(run.traces)
            subprocess.run([os.path.join(e2e.BUILD, "tests", "e2e", "make_series"), run.traces, how], check=True)
            yield run

    def series(self, how):
        with self.made(how) as run:
            return run.report()


# Keeps blocks until there is no memory: 2 MiB at each of six lines, or by forty functions at one, or on device 1 and then asks device 0 for 1.2 GiB.
KEEPS = """
import ctypes, os, sys, time
cudart, kept = ctypes.CDLL('libcudart.so.13'), []
def take(mib):
    p = ctypes.c_void_p()
    if cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)):
        os._exit(1)
    return p
def round_of_six():
    kept.append(take(2))
    kept.append(take(2))
    kept.append(take(2))
    kept.append(take(2))
    kept.append(take(2))
    kept.append(take(2))
def keep():
    kept.append(take(2))
for i in range(40):
    exec('def caller_%d(): keep()' % i)
cudart.cudaSetDevice(int(sys.argv[1] == 'other'))
for i in range(2000):
    passing = take(8)
    round_of_six() if sys.argv[1] == 'six' else globals()['caller_%d' % (i % 40)]()
    time.sleep(0.001)
    cudart.cudaFree(passing)
    if sys.argv[1] == 'other' and i == 200:
        cudart.cudaSetDevice(0)
        take(1200)
"""


class OutOfMemory(Answers):
    def causes(self, report):
        return {i for i in ids(report) if i.startswith("oom.")}

    def test_each_of_two_errors_knows_what_was_free(self):
        with Recording(app("oom"), "retry") as run:
            ooms = run.report()["ooms"]
        self.assertEqual(len(ooms), 2)
        for oom in ooms:
            self.assertIsNotNone(oom["device_free_bytes"])
            self.assertLess(oom["device_free_bytes"], oom["requested_bytes"])

    def test_an_error_is_of_the_device_of_the_pool_or_the_stream(self):
        """What is free on the current device says nothing of it."""
        for how in ("pool", "default", "stream", "graph"):
            with self.subTest(how), Recording(app("oom"), "elsewhere", how, SIM_DEVICES="2") as run:
                report, text = run.report(), whole(run)
                (oom,), (verdict,) = report["ooms"], verdicts(report, "OUT OF MEMORY")
                self.assertEqual((oom["device"], oom["device_free_bytes"], verdict["device"]), (1, None, 1))
                self.assertIn("It was on device 1.", text)
        with Recording(app("oom"), "elsewhere", "host", SIM_DEVICES="2", SIM_FAIL="cuMemAllocFromPoolAsync:0:2") as run:
            (oom,), text = run.report()["ooms"], summary(run)
            self.assertEqual((oom["device"], oom["device_free_bytes"]), (None, None))
            self.assertNotRegex(text, "(were|are) free")

    def test_a_full_device_is_full_and_its_holder_named(self):
        with Recording(app("oom")) as run:
            report, text = run.report(), summary(run)
        self.found("oom.full", report)
        for other in ("oom.fragmented", "oom.driver", "oom.neighbour", "oom.too_large", "oom.host", "oom.address_space", "oom.injected"):
            self.assertNotIn(other, ids(report))
        self.absent("oom.driver", report)
        self.absent("oom.address_space", report)
        self.assertRegex(text, r"\nOUT OF MEMORY   oom.c:\d+ asks 512 MiB, \d+ MiB are free\n")
        (verdict,), oom = verdicts(report, "OUT OF MEMORY"), report["ooms"][-1]
        self.assertEqual(verdict["figures"], {"asked_bytes": oom["requested_bytes"], "free_bytes": oom["device_free_bytes"],
                                              "total_bytes": oom["device_total_bytes"]})
        self.assertEqual(rows(verdict)["oom"], oom["live_bytes"])

    def test_pytorchs_memory_in_pieces_is_fragmentation(self):
        halves = ["tensor=256"] * 7 + ["drop"] * 3 + ["tensor=128"] * 14  # two in each segment of 256 MiB, as PyTorch places them
        with script(*halves, "drop", "tensor=512", SIM_VRAM="2304M") as run:
            report, text = run.report(), summary(run)
        (finding,) = self.found("oom.fragmented", report)
        self.assertIn("896 MiB are unused, the largest piece 128 MiB", finding["description"])
        self.assertIn("expandable_segments", finding["recommendation"])
        self.assertIn("OUT OF MEMORY   896 MiB are unused, the largest piece 128 MiB\n", text)
        self.assertEqual(rows(verdicts(report)[0])["unused"], 896 * MIB)
        self.assertEqual(report["ooms"][0]["cached_bytes"], 896 * MIB)

    def test_pytorchs_memory_all_in_use_is_not(self):
        with script(*["tensor=128"] * 14, "tensor=512", SIM_VRAM="2304M") as run:
            report = run.report()
        self.absent("oom.fragmented", report)
        self.found("oom.full", report)

    def test_a_refusal_with_room_is_the_drivers(self):
        with script("alloc=10", "try=64", SIM_FAIL="cudaMalloc:2", SIM_VRAM="8G") as run:
            report = run.report()
        (finding,) = self.found("oom.driver", report)
        self.assertRegex(finding["description"], r"[67]\.\d+ GiB were free, but not in one piece of 64 MiB")
        self.absent("oom.full", report)

    def test_what_is_missing_counts_the_devices_units(self):
        kept = {}
        for total in (1024, 1029, 1030):
            with script("alloc=200", "sampled", *["try=9"] * 60, SIM_VRAM="%dM" % total) as run:
                report, (process,) = run.report(), run.truth()
            kept[total] = sum(api.calls - api.failures for name, api in process.apis.items() if name == "cudaMalloc")
            self.assertEqual({oom["requested_bytes"] for oom in report["ooms"]}, {9 * MIB})
            if total < 1030:
                self.assertEqual(self.causes(report), {"oom.full"})
                (finding,) = self.found("oom.full", report)
                self.assertRegex(finding["description"], r"\b%d MiB (were|are) free" % (total - 1020))
            table = verdicts(report, "OUT OF MEMORY")[0]["table"]
            (beside,) = [row["text"] for row in table["rows"] if row["name"] == "CUDA context"]
            context, rounding = re.search(r"^(0\.\d+) CUDA context, (0\.\d+) rounding", beside).groups()
            self.assertAlmostEqual(report["ooms"][-1]["hidden_bytes"] >> 20, 300 + kept[total] - 1, delta=1)
            self.assertAlmostEqual(float(context) + float(rounding), (300 + kept[total] - 1) / 1024, delta=0.011)  # a late sample counts some rounding as context
            self.assertGreater(float(rounding), 9 / 1024)
        self.assertEqual((kept[1029], kept[1030]), (kept[1024], kept[1024] + 1))  # 1 MiB less is not enough, the missing MiB are

    def test_addresses_are_not_memory(self):
        with script("alloc=10", "reserve=1024", SIM_FAIL="cuMemAddressReserve:1") as run:
            report = run.report()
        self.found("oom.address_space", report)
        self.assertEqual(self.causes(report), {"oom.address_space"})
        self.assertEqual([oom["scope"] for oom in report["ooms"]], ["address_space"])

    def test_a_neighbour_without_which_it_had_fitted(self):
        def steps(rank):
            there = ["device=0", "alloc=5000", "samples=2", "meet=there"] if rank == 0 else ["meet=there", "device=0", "try=4000"]
            return there + ["meet=done"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            report = ranks.report()
        self.found("oom.neighbour", report)
        self.absent("oom.full", report)
        self.assertEqual([other["rank"] for other in report["ooms"][0]["others"]], [0])

    def test_a_leak_is_weighed_with_its_context_as_neighbours_are_with_theirs(self):
        for mib, cause in ((20, "oom.full"), (200, "oom.neighbour")):  # the neighbour's MiB, beside a leak of 60; each has a context of 300
            def steps(rank):
                return ["meet=held", "grow=60", "try=30", "meet=failed"] if rank == 0 else ["alloc=%d" % mib, "meet=held", "meet=failed"]
            with Ranks(2, steps, devices=1, recorded=[0], SIM_VRAM="%dM" % (2 * 300 + mib + 60 + 20), STORMLOG_DEVICE_INTERVAL="10") as ranks:
                report = ranks.report()
            (finding,) = self.found(cause, report)
            self.assertRegex(finding["description"], "leaks|keeps|never gave it back" if cause == "oom.full" else "another process holds")
            self.assertEqual("the request would have passed" in finding["description"], cause == "oom.neighbour")

    def test_what_a_recorded_neighbours_blocks_and_code_take_is_the_neighbours(self):
        def steps(rank):
            if rank == 0:
                return ["device=0", "alloc=2", "samples=2", *["alloc=3"] * 100, "samples=2", "meet=there", "meet=tried"]
            return ["meet=there", "device=0", "alloc=1000", "samples=2", "try=4000", "meet=tried"]
        with Ranks(2, steps, devices=1, SIM_VRAM="4G") as ranks:
            (oom,) = ranks.report()["ooms"]
        (other,) = oom["others"]
        # 302 MiB in 101 blocks take 402 of the device; each context takes 300
        self.assertAlmostEqual(other["bytes"], 702 * MIB, delta=2 * MIB)
        self.assertAlmostEqual(oom["hidden_bytes"], 300 * MIB, delta=2 * MIB)

    def test_neighbours_hold_no_more_than_the_driver_says_and_are_one_line_where_they_are_alike(self):
        """The driver puts two blocks of 1 MiB into one unit of 2 MiB."""
        def steps(rank):
            if rank < 3:
                return ["device=0", *["alloc=1"] * 100, "samples=2", "meet=there", "meet=tried"]
            return ["meet=there", "device=0", "alloc=100", "samples=2", "try=4000", "meet=tried"]
        with Ranks(4, steps, devices=1, numbered=False, SIM_VRAM="4G") as ranks:
            report = ranks.report()
        (oom,), (verdict,) = report["ooms"], verdicts(report, "OUT OF MEMORY")
        for other in oom["others"]:
            self.assertAlmostEqual(other["bytes"], 400 * MIB, delta=2 * MIB)
        self.assertEqual({"process %d" % other["pid"]: other["bytes"] for other in oom["others"]},
                         {name: size for name, size in rows(verdict).items() if name.startswith("process ")})
        self.assertEqual(len(oom["others"]), 3)

    def test_requests_beyond_those_that_are_listed_are_counted(self):
        with script(*["try=1900", "try=1000", "free"] * 1100, SIM_VRAM="2G") as run:
            self.assertEqual(len(run.report()["ooms"]), 1024)
            self.assertIn("1100 requests failed", whole(run))

    def test_the_word_prints_only_what_ran_out(self):
        def said(run):
            return subprocess.run([ANALYZE, "oom", run.traces], capture_output=True, text=True, check=True).stdout
        with Recording(app("oom"), "retry") as run:
            self.assertEqual(said(run), "")
            self.assertRegex(whole(run), r"note 1 request failed, up to 512 MiB at oom\.c:\d+, and the program went on")
        with Ranks(2, lambda rank: ["device=0", "meet=both", "try=%d" % (9000 + rank)], devices=1, SIM_VRAM="8G") as ranks:
            self.assertRegex(said(ranks), r"(?s)^script.py  2 ranks .*\nOUT OF MEMORY   script.py:\d+ asks 8\.79 GiB, more than the card has\n")
        with script("alloc=1") as run:
            self.assertEqual(said(run), "")

    def test_growth_at_many_lines_or_stacks_is_told_with_all_of_it_and_that_of_another_device_is_not(self):
        for how, cause in (("six", r"keeps\.py:1\d keeps \d MiB of every pass until the card is full; 6 lines leak, (\S+) MiB together"),
                           ("forty", r"keeps\.py:17 keeps \d+ MiB of every pass until the card is full; \d+ of \d+ blocks that it made were still held, (\S+) MiB\."), ("other", None)):
            with self.subTest(how), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "keeps.py")
                with open(path, "w") as file:
                    file.write(KEEPS)
                with Recording("python3", path, how, code=1, SIM_VRAM="1200M") as run:
                    report, (truth,) = run.report(), run.truth()
                (finding,) = self.found("oom.full", report)
                grew = re.search(cause or "$", finding["description"])
                self.assertTrue(grew, finding["description"])
                self.assertEqual(" keeps " in finding["description"], cause is not None, finding["description"])
                if cause:
                    self.assertEqual(float(grew[1]), (truth.memory["device", 0].live_bytes >> 20) - 8)
                listed = sum(size for name, size in rows(verdicts(report)[0]).items() if name not in BESIDE)
                self.assertEqual(listed, sum(row.live_bytes for (_, device), row in truth.memory.items() if device == 0))

    def test_a_neighbour_that_had_made_no_difference_is_not_blamed(self):
        def steps(rank):
            there = ["device=0", "alloc=100", "samples=2", "meet=there"] if rank == 0 else ["meet=there", "device=0", "alloc=6000", "try=4000"]
            return there + ["meet=done"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            report = ranks.report()
        self.absent("oom.neighbour", report)
        self.found("oom.full", report)

    def test_more_than_there_is_and_the_host_are_causes_of_their_own(self):
        with script("alloc=1", "try=900000", "free") as run:
            report = run.report()
        self.found("oom.too_large", report)
        self.absent("oom.host", report)
        self.assertEqual(self.causes(report), {"oom.too_large"})
        with script("alloc=1", "pin=512", "free", SIM_PINNED="64M") as run:
            report = run.report()
        self.found("oom.host", report)
        self.absent("oom.too_large", report)
        self.assertEqual(self.causes(report), {"oom.host"})
        self.assertIsNone(report["ooms"][0]["device"])

    def test_a_stranger_on_the_device_is_named_and_alone_there_is_none(self):
        def steps(rank):
            there = ["device=0", "alloc=3000", "meet=there"] if rank else ["meet=there", "device=0", "alloc=10", "samples=4", "free"]
            return there + ["meet=done"]
        with Ranks(2, steps, devices=1, recorded=(0,), SIM_VRAM="8G") as ranks:
            (finding,) = self.found("device.neighbour", ranks.report())
            size = re.search(r"process \d+, which was not recorded, held (\S+ \w+) of device", finding["description"])[1]
            self.assertIn("1 other process held %s of device 0" % size, whole(ranks.run))
        with Ranks(3, steps, devices=1, recorded=(0,), SIM_VRAM="8G") as ranks:
            self.assertRegex(whole(ranks.run), r"2 other processes held \S+ GiB of device 0")
        with script("alloc=10", "samples=4", "free", SIM_VRAM="8G") as run:
            self.absent("device.neighbour", run.report())

    def test_a_failure_that_was_asked_for_and_never_came_is_said(self):
        for asked, came in (("2", True), ("99", False), ("1:cudaMallocPitch", False)):
            with script("try=5", "try=5", STORMLOG_INJECT_OOM=asked, SIM_VRAM="8G") as run:
                report = run.report()
            notes = [note for note in report["warnings"] if "--inject-oom %s failed no call" % asked in note]
            self.assertEqual((len(report["ooms"]), len(notes)), (1, 0) if came else (0, 1), report["warnings"])

    def test_a_rank_that_had_ended_is_no_stranger_that_held_the_device(self):
        """Rank 0 samples the device while rank 1 is there, and not again before it fails."""
        def steps(rank):
            if rank:
                return ["device=0", "alloc=3000", "meet=there", "meet=seen", "free"]
            return ["meet=there", "device=0", "alloc=10", "sampled", "meet=seen", "sleep=0.7", "alloc=4000", "try=4500"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G", STORMLOG_DEVICE_INTERVAL="5000") as ranks:
            report = ranks.report()
        oom, = report["ooms"]
        ended = [one for one in report["processes"] if one["rank"] == 1]
        self.assertEqual(oom["rank"], 0)
        self.assertNotIn(ended[0]["pid"], [one["pid"] for one in oom["others"]])
        self.assertLessEqual(oom["live_bytes"] + oom["hidden_bytes"] + sum(one["bytes"] for one in oom["others"]) + oom["device_free_bytes"],
                             oom["device_total_bytes"])

    def test_an_error_that_an_inner_call_hands_up_is_one(self):
        with script("try=10", SIM_FAIL="cuDevicePrimaryCtxRetain:0:2", SIM_VRAM="8G") as run:
            report = run.report()
            oom, = report["ooms"]
            self.assertEqual((oom["api"], oom["scope"], oom["requested_bytes"]), ("cudaMalloc", "context", 10 << 20))

    def test_a_launch_a_wait_and_a_copy_that_end_so_are_recorded_once_and_ask_for_nothing(self):
        calls = """
import ctypes
driver, runtime, address = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(8 << 20)) == 0
print(driver.cuLaunchKernel(*[None] * 11) == 2, runtime.cudaDeviceSynchronize() == 2,
      runtime.cudaMemcpy(address, bytes(64), ctypes.c_size_t(64), 1) == 2)
"""
        failures = {"cuLaunchKernel": (True, False, False), "cuCtxSynchronize": (False, True, False),
                    "cuMemcpy": (False, False, True)}
        for name, said in failures.items():
            with self.subTest(name), Recording("/usr/bin/python3", "-c", calls, SIM_FAIL=f"{name}:0:2") as run:
                report = run.report()
                self.assertEqual(tuple(word == "True" for word in run.done.stdout.decode().split()), said)
            oom, = report["ooms"]
            self.assertEqual((oom["api"], oom["device"], oom["requested_bytes"]), (name, 0, 0), oom)
            self.assertEqual(self.causes(report), {"oom.full"})
            self.assertIn("finds no room for memory of the call itself", json.dumps(report["findings"]))

    def test_a_line_that_many_threads_pass_is_one_owner(self):
        of_threads = """
import ctypes, threading
cuda, held = ctypes.CDLL("libcudart.so.13"), []
def work(mib):
    held.append(ctypes.c_void_p())
    return cuda.cudaMalloc(ctypes.byref(held[-1]), ctypes.c_size_t(mib << 20))
for i in range(48):
    thread = threading.Thread(target=work, args=(16,))
    thread.start()
    thread.join()
assert work(500) == 2
"""
        with Recording("/usr/bin/python3", "-c", of_threads, SIM_VRAM="1500M") as run:
            (verdict,) = verdicts(run.report(), "OUT OF MEMORY")
        owners = [(row["bytes"], row["text"]) for row in verdict["table"]["rows"] if row["name"] not in BESIDE]
        self.assertEqual(owners, [(768 * MIB, "<string>:6 work")])

    def test_padding_of_rows_is_part_of_what_a_request_takes(self):
        images = """
import ctypes
cuda, held = ctypes.CDLL("libcudart.so.13"), []
def image():
    held.append(ctypes.c_void_p())
    return cuda.cudaMallocPitch(ctypes.byref(held[-1]), ctypes.byref(ctypes.c_size_t()), ctypes.c_size_t(520), ctypes.c_size_t(40000))
while not image(): pass
"""
        with Recording("/usr/bin/python3", "-c", images, SIM_VRAM="1000M") as run:
            (finding,) = self.found("oom.full", run.report())
            truth, = run.truth()
        taken = [call.bytes for call in truth.calls if call.api == "cuMemAllocPitch_v2" and call.address]
        self.assertEqual(len(set(taken)), 1)
        self.assertRegex(finding["description"], "with its padding the request takes 40 MiB")

    def test_calls_of_hip_that_end_so_are_recorded_too_and_get_their_arguments(self):
        calls = """
import ctypes
hip, address = ctypes.CDLL("libamdhip64.so.6"), ctypes.c_void_p()
class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]
size = ctypes.c_size_t
assert hip.hipMalloc(ctypes.byref(address), size(8 << 20)) == 0
print(hip.hipLaunchKernel(None, Dim3(1, 2, 3), Dim3(4, 5, 6), None, size(7), None) == 2, hip.hipModuleLaunchKernel(*[None] * 11) == 2,
      hip.hipDeviceSynchronize() == 2, hip.hipStreamSynchronize(None) == 2, hip.hipMemcpy(address, bytes(64), size(64), 1) == 2,
      hip.hipMemcpyHtoD(address, bytes(64), size(64)) == 2, hip.hipMemset(address, 0x61, size(64)) == 2, hip.hipMemsetAsync(address, 0x61, size(64), None) == 2)
back = ctypes.create_string_buffer(64)
assert hip.hipMemcpy(back, address, size(64), 2) in (0, 2) and set(back.raw) <= set(b"a" + bytes(1)), back.raw
"""
        names = ("hipLaunchKernel", "hipModuleLaunchKernel", "hipDeviceSynchronize", "hipStreamSynchronize", "hipMemcpy", "hipMemcpyHtoD",
                 "hipMemset", "hipMemsetAsync")
        for name in names:
            with self.subTest(name), Recording("/usr/bin/python3", "-c", calls, SIM_FAIL=f"{name}:1:2") as run:
                report = run.report()
                self.assertEqual([word == "True" for word in run.done.stdout.decode().split()], [one == name for one in names])
                self.assertNotRegex(summary(run) + json.dumps(report["findings"]) + json.dumps(report["ooms"]), "(?i)cuda")
            oom, = report["ooms"]
            self.assertEqual((oom["api"], oom["device"], oom["requested_bytes"]), (name, 0, 0), oom)
        with Recording("/usr/bin/python3", "-c", calls) as run:
            self.assertEqual(run.report()["ooms"], [])

    def test_an_injected_error_is_called_that_and_blames_nobody(self):
        with Recording(app("oom"), launcher=("--inject-oom", "1"), code=None) as run:
            report = run.report()
        self.found("oom.injected", report)
        self.assertFalse({"oom.neighbour", "oom.fragmented"} & ids(report))
        with Recording(app("oom")) as run:
            self.absent("oom.injected", run.report())

    def test_a_runtime_that_refuses_everything_is_said_to(self):
        with script("try=1", "try=1", SIM_FAIL="cudaMalloc:0:1", SIM_VRAM="8G") as run:
            self.assertIn("every allocation failed", summary(run))
        with script("try=1", "alloc=1", "free", SIM_FAIL="cudaMalloc:1:1", SIM_VRAM="8G") as run:
            self.assertNotIn("every allocation failed", summary(run))

    def test_attempts_that_keep_what_they_got_are_one_error(self):
        with script(*["try=%d" % mib for mib in (3000, 3000, 3000, 1500, 1500, 300, 300)], SIM_VRAM="8G") as run:
            report = run.report()
            screen = summary(run)
        (finding,) = self.found("oom.full", report)
        self.assertRegex(finding["description"], r"script.py:\d+ keep what each of them had got; 5\.86 GiB were held at the first failed try, 7\.62 GiB at the last")
        self.assertEqual(len(report["ooms"]), 3)
        self.assertEqual(screen.count("OUT OF MEMORY"), 1)
        self.assertRegex(screen, r"OUT OF MEMORY   3 failed tries at script.py:\d+ keep what each of them had got\n")

    def test_an_error_that_was_got_over_is_no_finding(self):
        with script("alloc=10", "try=64", "try=64", SIM_FAIL="cudaMalloc:2", SIM_VRAM="8G") as run:
            report = run.report()
        self.assertEqual(self.causes(report), set())
        self.assertEqual([oom["recovered"] for oom in report["ooms"]], [True])

    def test_a_request_made_smaller_until_it_fits_is_got_over(self):
        for card in {"SIM_VRAM": "2G"}, {"SIM_VRAM": "8G", "STORMLOG_LIMIT": "2G"}:
            with script("alloc=600", *["try=%d" % mib for mib in (1900, 1600, 1500, 1300, 900)], "free", "alloc=5", **card) as run:
                report, screen = run.report(), summary(run)
                self.assertEqual(run.page()["devices"][0]["room_bytes"], 2 << 30)
            self.assertEqual(self.causes(report) - {"oom.full"}, set())
            self.assertNotIn("OUT OF MEMORY", screen)
            self.assertRegex(screen, r"note   4 requests failed, up to 1.86 GiB at script.py:")
            self.assertNotIn("no failed request", screen)
        with script(*["try=1900", "try=1000", "free"] * 3, SIM_VRAM="2G") as run:
            report, screen = run.report(), summary(run)
            self.assertEqual(subprocess.run([ANALYZE, "check", "--no-oom", run.traces], stdout=subprocess.DEVNULL).returncode, 0)
        self.assertEqual([oom["recovered"] for oom in report["ooms"]], [True] * 3)
        self.assertRegex(screen, r"note   3 requests failed, ")

    LINES = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.13")
def take(mib):
    block = ctypes.c_void_p()
    return None if rt.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mib << 20)) else block
def both(mib):
    batch = take(mib)
    mask = take(9)
    rt.cudaFree(mask)
    if not batch: sys.exit(1)
    rt.cudaFree(batch)
def instead(mib):
    batch = take(mib)
    if not batch: batch = take(mib // 2)
    rt.cudaFree(batch)
def other(mib):
    if not take(mib): log()
def log():
    rt.cudaFree(take(30))
def large(mib):
    return take(mib)
def small(mib):
    return take(mib // 2)
def either(mib):
    rt.cudaFree(large(mib) or small(mib))
def first():
    take(60)
def second():
    take(60)
"""

    def test_what_another_line_asks_for_anyway_is_no_smaller_request(self):
        for program, code, over in (("for mib in 30, 40, 60: both(mib)", 1, False), ("other(60); sys.exit(1)", 1, False),
                                    ("for mib in 40, 60, 40, 60: instead(mib)", 0, True)):
            with self.subTest(program), Recording("python3", "-c", self.LINES + program, code=code, SIM_VRAM="355M") as run:
                report, screen = run.report(), summary(run)
                self.assertEqual({oom["recovered"] is True for oom in report["ooms"]}, {over})
                (self.assertNotIn if over else self.assertIn)("OUT OF MEMORY", screen)

    def test_less_that_another_function_gets_counts_where_the_program_ends_well(self):
        for program, code in ("either(60)", 0), ("either(60); sys.exit(1)", 1):
            with self.subTest(program), Recording("python3", "-c", self.LINES + program, code=code, SIM_VRAM="355M") as run:
                self.assertEqual([oom["recovered"] is True for oom in run.report()["ooms"]], [not code])

    def test_memory_of_a_device_is_no_substitute_for_pinned_memory(self):
        """The program takes as much of the device next, which it would have taken anyway."""
        for call, after in (("cudaMallocHost", "cudaMalloc"), ("cudaMalloc", "cudaMallocHost")):
            program = """
import ctypes
rt, p = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
for call in "%s", "%s":
    getattr(rt, call)(ctypes.byref(p), ctypes.c_size_t(8 << 20))
""" % (call, after)
            with self.subTest(call), Recording("python3", "-c", program, SIM_FAIL=call + ":1") as run:
                self.assertEqual([oom["recovered"] for oom in run.report()["ooms"]], [True if call == "cudaMalloc" else None])

    FINDER = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.13")
def take(mib):
    block = ctypes.c_void_p()
    return None if rt.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mib << 20)) else block
def fits(mib):
    block = take(mib)
    return not rt.cudaFree(block) if block else False
def largest(mib):
    while fits(mib): mib *= 2
    return mib // 2
def warm(mib):
    for step in range(5): fits(mib)
def epoch(mib):
    for step in range(3): fits(mib)
def train(mib):
    epoch(mib)
def bisected(low, high):
    while high - low > 3:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
def save():
    rt.cudaFree(take(8))
"""

    def test_who_looks_for_the_most_that_fits_got_over_the_error_that_ends_the_search(self):
        for program, code, over in (("train(largest(2))", 0, True), ("train(bisected(1, 200))", 0, True), ("train(largest(2)); sys.exit(1)", 1, False),
                                    ("warm(20); fits(80); train(40)", 0, False), ("largest(2); save()", 0, True),
                                    ("kept = [[take(mib) for mib in (5, 10, 20, 30)] for _ in (1,)]; save()", 0, False)):
            with self.subTest(program), Recording("python3", "-c", self.FINDER + program, code=code, SIM_VRAM="360M") as run:
                report, screen = run.report(), summary(run)
                self.assertEqual({oom["recovered"] is True for oom in report["ooms"]}, {over})
                (self.assertNotIn if over else self.assertIn)("OUT OF MEMORY", screen)

    def test_a_heap_of_kernels_that_leaves_no_room_is_the_cause_and_is_named_where_it_was_raised(self):
        program = self.LINES + "def raised(mib):\n    rt.cudaDeviceSetLimit(2, ctypes.c_size_t(mib << 20))\n"
        for mib, named in (1200, True), (16, False):
            with self.subTest(mib), Recording("python3", "-c", program + "raised(%d)\nwhile take(100): pass\nimport time; time.sleep(.2); sys.exit(1)" % mib, code=1, SIM_VRAM="2G") as run:
                report, screen = run.report(), whole(run)
            line = 1 + program[:program.index("cudaDeviceSetLimit")].count("\n")
            self.assertEqual("a limit that <string>:%d raised takes 1.17 GiB" % line in report["ooms"][-1]["cause"], named)
            self.assertEqual("lower the limit at <string>:%d" % line in screen, named)
            parts = {part["what"]: part["bytes"] for device in report["run"]["devices"] for part in device["hidden"]}
            self.assertEqual((parts.get("limit"), "unexplained" in parts), ((mib - 8) * MIB, False))  # every context has 8 MiB of it
            self.assertIn("context at most 300 MiB, set aside by its limit " + ("1.16 GiB" if named else "8 MiB"),
                          ", ".join(sorted(re.search("device 0: .* hidden, highest own figure: (.*?) (?:note|report) ", screen)[1].split(", "))))
            self.assertEqual(named, any("1.16 set aside by a limit" in (row["text"] or "") for row in verdicts(report)[0]["table"]["rows"]))
            (self.found if named else self.absent)("hidden.place", report)

    def test_a_stack_for_each_thread_of_kernels_is_hidden_memory_with_a_line(self):
        for kib, told in (8, True), (1, False):
            with Recording("python3", "-c", self.LINES + "rt.cudaDeviceSetLimit(0, ctypes.c_size_t(%d << 10))\nfirst()\nimport time; time.sleep(.2)" % kib) as run:
                report, screen = run.report(), summary(run)
            (self.found if told else self.absent)("hidden.place", report)
            self.assertEqual([finding["description"] for finding in report["findings"] if "the context sets 8 KiB aside for each thread that the card can run"
                              in finding["description"]] != [], told)
            self.assertEqual(bool(re.search(r"HIDDEN cudaLimitStackSize of 8 KiB at <string>:\d+ takes at most 1\.\d+ GiB ", " ".join(screen.split()))), told)
            self.assertEqual("the context sets 8 KiB aside for each thread that the card can run, and 1 KiB by default." in " ".join(screen.split()), told)

    def test_what_a_stack_for_each_thread_may_take_beside_a_known_context_is_named(self):
        program = "first()\nimport time; time.sleep(.3)\nrt.cudaDeviceSetLimit(0, ctypes.c_size_t(8 << 10))\nfirst()\ntime.sleep(.3)"
        with Recording("python3", "-c", self.LINES + program) as run:
            self.assertRegex(whole(run), r"context at most 300 MiB, stacks of its kernels, or unexplained 1\.48 GiB")
            self.assertRegex(summary(run), r"HIDDEN   cudaLimitStackSize of 8 KiB at <string>:\d+ takes 1\.48 GiB\n")

    def test_requests_that_fail_for_one_leak_are_one_error(self):
        program = "import time\nkept = []\ndef step():\n    scratch = take(16)\n    kept.append(take(18))\n    time.sleep(.001)\n" \
                  "    return scratch and rt.cudaFree(scratch) == 0 and kept[-1]\nwhile step(): pass\nfor _ in range(3): step()\nsys.exit(1)"
        with Recording("python3", "-c", self.LINES + program, code=1, SIM_VRAM="2G") as run:
            report, screen = run.report(), summary(run)
        self.assertGreaterEqual(len(report["ooms"]), 4)
        self.assertEqual(screen.count("OUT OF MEMORY"), 1, screen)
        self.assertRegex(screen, r"note   \d+ more requests? failed for the same reason")

    def test_requests_of_two_functions_are_two_errors(self):
        with Recording("python3", "-c", self.LINES + "first(); second(); sys.exit(1)", code=1, SIM_VRAM="355M") as run:
            screen = summary(run)
        self.assertEqual(screen.count("OUT OF MEMORY"), 2)
        self.assertNotRegex(screen, "one after the other|tries")

    def test_of_two_attempts_the_last_is_told_with_what_was_held_then(self):
        with script("alloc=840", "try=1900", "free", "try=1900", SIM_VRAM="2G") as run:
            report, screen = run.report(), summary(run)
        (finding,) = self.found("oom.full", report)
        self.assertIn("asks 1.86 GiB, 1.71 GiB are free", finding["description"])
        self.assertRegex(screen, r"OUT OF MEMORY   script.py:\d+ asks 1\.86 GiB, 1\.71 GiB are free\n")
        self.assertEqual(verdicts(report)[0]["figures"], {"asked_bytes": 1900 * MIB, "free_bytes": 1748 * MIB, "total_bytes": 2048 * MIB})

    RETRIES = """
import ctypes, sys
rt = ctypes.CDLL("libcudart.so.13")
def take(mib):
    return rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20))
def load():
    return take(4000) and take(1)
for _ in range(1100):
    load()
sys.exit(take(3000))
"""

    def test_the_error_that_ends_a_program_is_told_after_a_thousand_that_did_not(self):
        with Recording("python3", "-c", self.RETRIES, code=2, SIM_VRAM="3G") as run:
            self.assertRegex(summary(run), r"\n(OUT OF MEMORY|also ) .* asks 2\.93 GiB")

    def test_a_recorded_neighbour_is_told_with_the_line_that_holds_most(self):
        def steps(rank):
            return (["device=0", "alloc=5000", "meet=there", "meet=done"] if rank == 0 else ["meet=there", "device=0", "try=4000", "meet=done"])
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            (finding,) = self.found("oom.neighbour", ranks.report())
        self.assertRegex(finding["description"], r"another process holds 5\.\d+ GiB of this card; .* would have passed\. Most of process \d+ is of script\.py:\d+")

    def test_neighbours_that_are_strays_are_sent_to_their_own_device(self):
        def steps(rank):
            return ["device=0", "alloc=700", "device=%d" % rank, "alloc=900", "meet=there", *["try=400"] * (rank == 0), "meet=done"]
        with Ranks(2, steps, devices=2, SIM_VRAM="3G") as ranks:
            (finding,) = self.found("oom.neighbour", ranks.report())
        self.assertIn("their own card", finding["recommendation"])

    def test_neighbours_that_have_contexts_alone_are_to_make_none(self):
        program = """
import ctypes, os, time
(ready, told), (stop, stopped) = os.pipe(), os.pipe()
for _ in range(4):
    if not os.fork():
        os.close(stopped)
        ctypes.CDLL("libcudart.so.13").cudaFree(None)
        os.write(told, b".")
        os.read(stop, 1)
        os._exit(0)
os.read(ready, 1), os.read(ready, 1), os.read(ready, 1), os.read(ready, 1)
at, runtime = ctypes.c_void_p(), ctypes.CDLL("libcudart.so.13")
assert runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 20)) == 0
while not ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked():
    time.sleep(0.01)
raise SystemExit(runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1000 << 20)))
"""
        with Recording("python3", "-c", program, code=2, SIM_VRAM="2400M") as run:
            (finding,) = self.found("oom.neighbour", run.report())
        self.assertRegex(finding["description"], r"mostly contexts, made at <string>:7\.")
        self.assertIn("make no context in those", finding["recommendation"])

    def test_what_a_neighbour_gave_back_after_the_error_was_not_free_and_its_context_takes_as_much_as_others(self):
        """Free memory is read after the error, and no sample shows how much the neighbour's context takes."""
        for how, free in ("neighbour", 592), ("neighbour-frees", 0):
            with self.subTest(how), self.made(how) as run:
                report = run.report()
            (finding,), (oom,) = self.found("oom.neighbour", report), report["ooms"]
            self.assertIn("another process holds 4.2 GiB of this card", finding["description"])
            self.assertEqual((oom["device_free_bytes"], oom["others"][0]["bytes"]), (free * MIB, 4300 * MIB))
            self.assertEqual(oom["hidden_bytes"], (300 + 592 - free) * MIB)

    def test_what_a_neighbour_that_was_killed_holds_where_a_sample_lists_it_is_not_hidden(self):
        with self.made("neighbour-killed") as run:
            (device,) = run.report()["run"]["devices"]
        self.assertEqual(device["hidden_peak_bytes"], 600 * MIB)

    def test_what_a_neighbour_took_between_the_last_sample_and_the_error_is_the_neighbours(self):
        report = self.series("neighbour-comes")
        (finding,) = self.found("oom.neighbour", report)
        self.assertIn("another process holds 4.2 GiB", finding["description"])
        self.assertEqual([other["bytes"] for other in report["ooms"][0]["others"]], [4300 * MIB])
        report = self.series("neighbour-goes-on")  # in the next sample the neighbour has more than was in use at the error
        self.assertEqual([other["bytes"] for other in report["ooms"][0]["others"]], [4600 * MIB])

    def test_what_a_neighbour_held_at_its_peak_alone_is_not_said_of_what_it_holds(self):
        def steps(rank):
            if rank == 0:
                return ["device=0", "pass=5000", "alloc=800", "samples=2", "meet=there", "meet=done"]
            return ["device=0", "alloc=10", "meet=there", "try=7000", "meet=done"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            (finding,) = self.found("oom.neighbour", ranks.report())
        self.assertIn("another process holds 1.07 GiB of this card", finding["description"])

    def test_processes_that_each_take_most_at_one_line_are_told_to_share_it(self):
        for own in ("alloc=3000", "losses=3000"):
            def steps(rank):
                return ["device=0", own if rank else "alloc=3000", "samples=2", "meet=there"] + (["try=3000"] if rank else []) + ["meet=done"]
            with self.subTest(own), Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
                (finding,) = self.found("oom.neighbour", ranks.report())
            for said, words in (("description", "and so is most of this one"), ("recommendation", "share one copy between these processes")):
                self.assertEqual(words in finding[said], own == "alloc=3000", finding)

    def test_a_neighbour_that_was_first_seen_after_the_error(self):
        def steps(rank):
            return (["device=0", "alloc=5000", "meet=there"] if rank == 0 else ["meet=there", "device=0", "try=4000", "samples=1"]) + ["meet=done"]
        with Ranks(2, steps, devices=1, recorded=(1,), SIM_VRAM="8G") as ranks:
            report = ranks.report()
        (finding,) = self.found("oom.neighbour", report)
        self.assertRegex(finding["description"], r"Without process \d+ the request would have passed")

    def test_contexts_made_where_none_is_current_are_no_unexplained_memory(self):
        """Without a current context no call can ask how much memory is free, so samples show what the first context takes."""
        program = "import ctypes, time\ncuda, old = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()\ncuda.cuInit(0)\n" \
                  "for _ in range(12):\n    assert not cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0)\n" \
                  "    p = ctypes.c_uint64(); cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(8 << 20)); time.sleep(0.1)\n" \
                  "    cuda.cuMemFree_v2(p); cuda.cuCtxPopCurrent_v2(ctypes.byref(old))"
        with Recording("python3", "-c", program) as run:
            report = run.report()
        (leak,) = self.found("leak.kept", report)
        self.assertEqual((leak["evidence"]["kept"], leak["bytes"]), (12, 12 * 300 * MIB))
        (device,) = report["run"]["devices"]
        self.assertEqual({name["what"] for name in device["hidden"]}, {"context"})
        self.assertLessEqual(sum(name["bytes"] for name in device["hidden"]), device["hidden_peak_bytes"])

    def test_a_context_that_does_not_fit_beside_the_programs_own_says_what_these_hold(self):
        program = "import ctypes, time\ncuda = ctypes.CDLL('libcuda.so.1')\ncuda.cuInit(0)\nwhile not cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0): time.sleep(0.2)"
        with Recording("python3", "-c", program, SIM_VRAM="1G") as run:
            (finding,) = self.found("oom.full", run.report())
        self.assertRegex(finding["description"], r"<string>:4 finds no room for a context; 124 MiB were free, .* keeps 3 contexts, which take (at most )?900 MiB")
        self.assertIn("destroy each context", finding["recommendation"])

    def test_contexts_of_unknown_size_that_left_no_room_are_told_with_their_line(self):
        program = "import ctypes\ncuda, old = ctypes.CDLL('libcuda.so.1'), ctypes.c_void_p()\ncuda.cuInit(0)\n" \
                  "while not cuda.cuCtxCreate_v2(ctypes.byref(ctypes.c_void_p()), 0, 0): cuda.cuCtxPopCurrent_v2(ctypes.byref(old))"
        with Recording("python3", "-c", program, SIM_VRAM="1G") as run:
            (finding,) = self.found("oom.full", run.report())
        self.assertRegex(finding["description"], r"<string>:4 finds no room for a context.* keeps 3 contexts")

    def test_a_neighbour_of_the_run_that_leaks_is_told_to_free(self):
        def steps(rank):
            if rank == 0:
                return ["device=0", "meet=begun"] + ["alloc=30", "sleep=0.005"] * 100 + ["meet=there", "meet=done"]
            return ["device=0", "meet=begun", "meet=there", "try=6000", "meet=done"]  # begun: else a slow start looks as if the growth had ended
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            (finding,) = self.found("oom.neighbour", ranks.report())
        self.assertIn(", which leaks.", finding["description"])
        self.assertIn("what is not needed any more", finding["recommendation"])

    def test_a_context_that_does_not_fit_has_its_device_and_the_contexts_that_do(self):
        def steps(rank):
            return (["device=0", "alloc=2", "samples=2", "meet=there"] if rank < 3 else ["meet=there", "try=2"]) + ["meet=done"]
        with Ranks(4, steps, devices=1, SIM_VRAM="1G") as ranks:
            report = ranks.report()
        (finding,) = self.found("oom.full", report)
        self.assertRegex(finding["description"], r"no room for a context; \S+ MiB were free, .* 3 contexts of others take 300 MiB each")
        self.assertEqual([(oom["device"], len(oom["others"])) for oom in report["ooms"]], [(0, 3)])


class Bundles(Answers):
    ERRORS = ["alloc=1", "try=900000", "alloc=1", "try=900001", "alloc=2", "try=900002"]

    def kept(self, run, *options):
        """(report.json, {name: the bundle's files})"""
        summary(run, *options)
        folder = os.path.join(run.traces, "analysis")
        with open(os.path.join(folder, "report.json")) as file:
            report = e2e.stacks.named(json.load(file))
        bundles, top = {}, os.path.join(folder, "oom")
        for name in os.listdir(top) if os.path.isdir(top) else []:
            bundles["oom/" + name] = {}
            for part in os.listdir(os.path.join(top, name)):
                with open(os.path.join(top, name, part)) as file:
                    bundles["oom/" + name][part] = json.load(file)
        return report, bundles

    def test_the_newest_are_kept_and_report_json_names_no_other(self):
        with script(*self.ERRORS) as run:
            report, bundles = self.kept(run, "--set", "oom-max-dumps=2")
        named = [oom["bundle"] for oom in report["ooms"]]
        self.assertIsNone(named[0])
        self.assertEqual(set(named[1:]), set(bundles))

    def test_the_newest_are_kept_within_their_size(self):
        many = sum([["alloc=1"] * 400 + ["try=%d" % (900000 + n)] for n in range(6)], [])
        with script(*many, SIM_VRAM="8G") as run:
            _, all_of_them = self.kept(run, "--set", "oom-buffer-size=2000")
            newest = max(all_of_them)  # names sort by time and number; a slow run has more samples, and larger bundles
            size = sum(os.path.getsize(os.path.join(run.traces, "analysis", newest, part)) for part in all_of_them[newest])
            report, bundles = self.kept(run, "--set", "oom-buffer-size=2000", "--set", "oom-max-total-mb=%d" % ((size >> 20) + 1))
        self.assertEqual(len(all_of_them), 6)
        self.assertTrue(1 <= len(bundles) < 6, len(bundles))
        self.assertEqual([oom["bundle"] for oom in report["ooms"]][-len(bundles):], sorted(bundles, key=lambda name: bundles[name]["metadata.json"]["custom_metadata"]["requested_bytes"]))
        self.assertEqual({oom["bundle"] for oom in report["ooms"]} - {None}, set(bundles))

    def test_the_last_events_before_the_error_and_no_more_than_asked(self):
        with script(*["alloc=1"] * 50, "try=900000", "alloc=1") as run:
            for asked, there in ((16, 16), (1000, None)):
                _, bundles = self.kept(run, "--set", "oom-buffer-size=%d" % asked)
                (bundle,) = bundles.values()
                events = bundle["events.json"]
                self.assertEqual(len(events), bundle["manifest.json"]["event_count"])
                self.assertEqual(len(events), there or len(events))
                self.assertGreaterEqual(len(events), there or 51)
                self.assertEqual(events[-1]["event_type"], "error")
                self.assertEqual(max(event["timestamp_ns"] for event in events), events[-1]["timestamp_ns"])
                self.assertEqual(events[-1]["allocator_reserved_bytes"] if "allocator_reserved_bytes" in events[-1] else
                                 events[-1]["memory_reserved"], 50 * MIB)

    def test_as_many_calls_before_the_error_as_are_asked_for(self):
        with script("calls=400", "alloc=3", "try=900000") as run:
            for asked in (100, 700):
                _, bundles = self.kept(run, "--set", "oom-buffer-size=%d" % asked)
                (bundle,) = bundles.values()
                got = [e["metadata"]["bytes"] for e in bundle["events.json"] if e["event_type"] == "allocation" and e["metadata"].get("api") == "cudaMalloc"]
                beside = sum(e["event_type"] not in ("allocation", "deallocation") for e in bundle["events.json"])  # a slow run has more samples
                self.assertEqual(len(bundle["events.json"]), asked)
                self.assertIn(2 * len(got) - (asked - beside), (0, 1))  # the rest are as many frees
                self.assertEqual(got, [*range(402 - len(got), 401), 3 * MIB])

    def test_what_it_says_of_itself(self):
        with script("alloc=7", "try=900000", STORMLOG_TAG="night", STORMLOG_META="model=a") as run:
            report, bundles = self.kept(run)
            with open(os.path.join(run.traces, "analysis", "stormlog_run.json")) as file:
                envelope = json.load(file)
        (bundle,) = bundles.values()
        metadata = bundle["metadata.json"]
        self.assertEqual(metadata["reason"], "message_pattern:out of memory")  # as upstream classifies the same error's text
        self.assertEqual((metadata["exception_type"], metadata["exception_module"]), (None, None))
        custom = metadata["custom_metadata"]
        self.assertEqual((custom["requested_bytes"], custom["tag"], custom["metadata"]), (900000 * MIB, "night", {"model": "a"}))
        self.assertIn("more than the card has", custom["cause"])
        self.assertEqual((envelope["title"], envelope["tags"], envelope["metadata"]), ("night", ["night"], {"model": "a"}))
        blocks = bundle["live_blocks.json"]
        self.assertIn("script.py", json.dumps(blocks))
        self.assertEqual(sum(owner["bytes"] for owner in blocks), 7 * MIB)

    def test_it_has_the_place_the_range_the_program_and_the_last_calls(self):
        with script("push=step_412", "push=forward", "alloc=7", "sleep=0.3", "alloc=3", "try=900000", "pop", "pop", SIM_VRAM="4G") as run:
            printed = summary(run)
            report, bundles = self.kept(run)
            (name, bundle), = bundles.items()
            again = subprocess.run([ANALYZE, os.path.join(run.traces, "analysis", name), "-o", os.path.join(run.folder, "again")], check=True,
                                   capture_output=True, text=True, env=dict(os.environ, LC_ALL="C.UTF-8")).stdout
            argv, cwd = run.done.args[1:], run.folder
        metadata, environment = bundle["metadata.json"], bundle["environment.json"]
        self.assertEqual(metadata["context"], "forward")
        self.assertEqual(metadata["custom_metadata"]["stack"], report["ooms"][0]["stack"])
        with open(e2e.SCRIPT) as file:
            lines = file.read().splitlines()
        place = next(frame for frame in metadata["custom_metadata"]["stack"] if frame["language"] == "python")
        self.assertIn("cudaMalloc(", lines[place["line"] - 1])
        self.assertEqual((environment["argv"][1:], os.path.realpath(environment["cwd"])), (argv, os.path.realpath(cwd)))
        self.assertEqual([device["total_bytes"] for device in environment["devices"]], [4 << 30])
        calls = [event["metadata"] for event in bundle["events.json"] if event["event_type"] == "allocation"]
        self.assertEqual([(call["api"], call["bytes"]) for call in calls], [("cudaMalloc", 7 * MIB), ("cudaMalloc", 3 * MIB)])
        for call in calls:
            self.assertIn("script.py:", call["where"])
        # the summary of the bundle says what that of the run says; widths differ
        account = printed[printed.index("OUT OF MEMORY"):printed.index("\nnext ")].split()
        account = [re.sub("█", "=", word) for word in account if not set(word) <= set("▏▎▍▌▋▊▉")]
        self.assertEqual(again[again.index("OUT OF MEMORY"):].split()[:len(account)], account)

    def test_pytorchs_error_is_named_as_pytorchs(self):
        with script("tensor=900000", SIM_VRAM="4G", LD_LIBRARY_PATH=e2e.SIM + ":" + APPS) as run:
            _, bundles = self.kept(run)
        (bundle,) = bundles.values()
        metadata = bundle["metadata.json"]
        self.assertEqual((metadata["exception_module"], metadata["exception_type"], metadata["reason"]),
                         ("torch", "OutOfMemoryError", "torch.cuda.OutOfMemoryError"))

    def test_a_run_without_errors_has_none(self):
        with script("alloc=7") as run:
            self.assertEqual(self.kept(run)[1], {})


# Touches every page of so many MiB and holds them long enough to be sampled; then so many more; then ends, or kills itself.
HOLDS = """
import os, resource, sys, time
first, then, end = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
held = [bytearray(first << 20)]
time.sleep(0.4)
held.append(bytearray(then << 20))
time.sleep(0.4)
open("most", "w").write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10))
if end == "kill":
    os.kill(os.getpid(), 9)
"""


class Host(Answers):
    def holds(self, first, then, end, code=0, before=()):
        run = Recording(*before, sys.executable, "-c", HOLDS, first, then, end, code=code, launcher=("--host",), STORMLOG_DEVICE_INTERVAL=20)
        self.addCleanup(run.__exit__)
        return run

    def test_what_was_killed_beside_a_device_has_its_resident_memory_on_the_screen(self):
        with script("alloc=5", "samples=1", "ready=there", "sleep=600", SIM_VRAM="8G", code=-9,
                    kill_when=lambda run: wait_for(os.path.join(run.folder, "there"))) as run:
            process, = run.report()["processes"]
            text = re.search(r"(?m)note   pid %d had ([\d.]+) MiB of the host resident at most$" % process["pid"], summary(run))
        self.assertAlmostEqual(float(text[1]), process["host_memory"]["rss_peak_bytes"] / MIB, delta=1)

    def test_a_program_without_a_gpu_has_its_resident_memory_in_every_output(self):
        run = self.holds(100, 200, "exit")
        printed = summary(run)
        with open(os.path.join(run.folder, "most")) as file:
            most = int(file.read())
        process, = run.report()["processes"]
        peak = process["host_memory"]["rss_peak_bytes"]
        self.assertTrue(0.95 * most <= peak <= 1.05 * most, (peak, most))
        events = run.sinks()
        self.assertEqual({event["collector"] for event in events}, {"stormlog.cpu_tracker"})
        self.assertEqual(max(event["allocator_allocated_bytes"] for event in events), peak)
        self.assertEqual(max(event["allocator_allocated_bytes"] for event in events if event["event_type"] == "peak"), peak)
        self.assertEqual({event["device_id"] for event in events}, {-1})
        self.assertGreater(sum(event["allocator_change_bytes"] > 90 * MIB or event["event_type"] == "allocation" for event in events), 1)
        size = re.search(r"note   pid \d+ had ([\d.]+ MiB) of the host resident at most", printed)[1]
        self.assertAlmostEqual(float(size.split()[0]), peak / MIB, delta=1)
        page = run.page()
        if page:
            self.assertEqual({line["max"].max() for line in page["lines"] if line["what"] == "rss"}, {peak})

    def test_what_the_kernel_kills_at_its_limit_is_said(self):
        version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        folder = ("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/memory") + "/stormlog-killed-%d" % os.getpid()
        try:
            os.mkdir(folder)
            self.addCleanup(os.rmdir, folder)
            with open(os.path.join(folder, "memory.max" if version2 else "memory.limit_in_bytes"), "w") as file:
                file.write(str(128 * MIB))
        except OSError as error:
            self.skipTest("no cgroup can be made here: %s" % error)
        inside = ("sh", "-c", 'echo $$ > %s/cgroup.procs; exec "$@"' % folder, "sh")
        run = self.holds(112, 400, "exit", code=-9, before=inside)
        finding, = self.found("host.killed", run.report())
        gate = subprocess.run([ANALYZE, "check", "--strict", "--no-oom", run.traces], capture_output=True, text=True)
        self.assertEqual((gate.returncode, "FAIL     no-oom " in gate.stdout), (1, True), gate)
        self.assertIn("128 MiB", finding["description"])
        self.assertEqual(finding["severity"], "critical")
        # far below the limit it is not known who killed the program
        self.absent("host.killed", self.holds(20, 20, "kill", code=-9, before=inside).report())
        # a worker is killed, and the program goes on
        with Recording(*inside, sys.executable, "-c", "import os, time\nx = os.fork() or bytearray(400 << 20)\nos.wait(), time.sleep(0.2)",
                       launcher=("--host",), STORMLOG_DEVICE_INTERVAL=20) as run:
            report = run.report()
        finding, = self.found("host.killed", report)
        self.assertEqual(finding["severity"], "warning")
        with open(folder + ("/memory.events" if version2 else "/memory.oom_control")) as file:
            self.assertEqual(max(process["host_memory"]["oom_kills"] for process in report["processes"]), int(re.search("oom_kill (.*)", file.read())[1]))

    def test_a_process_that_was_moved_has_the_figures_of_its_last_cgroup(self):
        version2 = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        folders = [("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/memory") + "/stormlog-moved-%d-%d" % (os.getpid(), n) for n in (1, 2)]
        for folder, mib in zip(folders, (900, 300)):
            try:
                os.mkdir(folder)
                self.addCleanup(os.rmdir, folder)
                with open(os.path.join(folder, "memory.max" if version2 else "memory.limit_in_bytes"), "w") as file:
                    file.write(str(mib * MIB))
            except OSError as error:
                self.skipTest("no cgroup can be made here: %s" % error)
        program = "import os, time\ndef move(folder):\n    open(folder + '/cgroup.procs', 'w').write(str(os.getpid()))\n" \
                  "move('%s')\nx = bytearray(400 << 20)\ntime.sleep(.3)\ndel x\nmove('%s')\nx = bytearray(40 << 20)\ntime.sleep(.4)" % tuple(folders)
        for gpu in (False, True):  # without a GPU call it is sampled from outside, with one by the process itself
            first = "import ctypes\nctypes.CDLL('libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 20))\n" if gpu else ""
            with self.subTest(gpu), Recording("/usr/bin/python3", "-c", first + program, launcher=("--host",), STORMLOG_DEVICE_INTERVAL=20) as run:
                memory = run.report()["processes"][0]["host_memory"]
                self.assertEqual(memory["cgroup_limit_bytes"], 300 * MIB)
                self.assertLess(memory["cgroup_peak_bytes"], 300 * MIB)
                self.assertGreater(memory["rss_peak_bytes"], 400 * MIB)

    def test_what_was_killed_without_a_limit_was_not_killed_by_it(self):
        self.absent("host.killed", self.holds(50, 50, "kill", code=-9).report())


class Leaks(Answers):
    def test_a_place_that_grows_all_the_time_is_found(self):
        self.found("leak.growing", self.series("kept"))

    def test_a_place_that_frees_everything_is_not(self):
        with script("alloc=30", "free") as run:
            report, text = run.report(), summary(run)
        self.absent("leak.growing", report)
        self.assertEqual(report["findings"], [])
        self.assertEqual(report["leaks"], [])
        self.assertIn("\nOK   no leak, no failed request\n", text)
        with script("alloc=30") as run:  # what is left alone is no verdict
            report, text = run.report(), summary(run)
        self.assertEqual([(leak["bytes"], leak["verdict"]) for leak in report["leaks"]], [(30 * MIB, "live_at_exit")])
        self.assertIn("\nOK   no leak, no failed request\n", text)

    def test_a_pause_does_not_hide_a_place_that_grows_with_each_step(self):
        (finding,) = self.found("leak.growing", self.series("pauses"))
        self.assertRegex(finding["description"], r"keeps 3\.\d\d MiB of every step; all 61 blocks that \S+ made were never freed, 200 MiB$")

    def test_what_the_first_steps_keep_does_not_grow_however_long_they_take(self):
        report = self.series("warms")
        self.absent("leak.growing", report)
        self.assertIn((7, "live_at_exit"), {(leak["blocks"], leak["verdict"]) for leak in report["leaks"]})

    def test_a_handle_that_holds_little_is_a_leak_beyond_a_thousand(self):
        program = ("import ctypes\ncudart = ctypes.CDLL('libcudart.so.13')\nkept, block = [], ctypes.c_void_p()\n"
                   "for step in range(%d):\n    cudart.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20))\n"
                   "    kept.append(ctypes.c_void_p())\n    cudart.%s(ctypes.byref(kept[-1]))\n    cudart.cudaFree(block)\n")
        for make, what in (("cudaEventCreate", "events"), ("cudaStreamCreate", "streams")):
            with self.subTest(what), Recording("python3", "-c", program % (600, make)) as run:
                (finding,) = self.found("memory.handles", run.report())
                self.assertEqual((finding["severity"], "all 600 %s that it made were" % what in finding["description"]), ("info", True))
                self.assertEqual([one["word"] for one in verdicts(run.report())], ["OK"])
            with self.subTest(what), Recording("python3", "-c", program % (1100, make)) as run:
                self.absent("memory.handles", run.report())
                text = " ".join(summary(run).split())
                self.assertRegex(text, "LEAK .* keeps an? %s of every pass .* all 1 100 %s that .* made were never freed" % (what[:-1], what))

    def test_what_is_set_up_in_a_handful_of_calls_is_no_leak(self):
        for how in "4-8", "5-1", "5-40":
            with self.subTest(how):
                report = self.series("sets-up-" + how)
                self.assertEqual([found["description"] for found in report["findings"] if found["severity"] != "info"], [])
        for how in "8-1", "10-4", "100-2", "7-1":
            with self.subTest(how):
                self.found("leak.growing", self.series("sets-up-" + how))

    def test_what_many_batches_keep_after_long_quiet_turns_is_a_leak(self):
        plain, labelled = ("5-2000-200", "4-2000-200", "3-300-20", "4-300-20", "5-500-30"), ("8-1000-20-labels", "9-1000-50-labels-only")
        for how in *plain, "4-2000-200-only", *labelled:
            with self.subTest(how):
                (finding,) = self.found("leak.growing", self.series("batches-" + how))
                self.assertEqual(finding["severity"], "critical")

    def test_suppressed_leaks_count_as_meant(self):
        with script("alloc=30") as run, tempfile.NamedTemporaryFile("w") as file:
            file.write("# meant\nleak:script.py\n")
            file.flush()
            self.assertEqual({leak["verdict"] for leak in run.report()["leaks"]}, {"live_at_exit"})
            self.assertEqual({leak["verdict"] for leak in run.report("--suppressions", file.name)["leaks"]}, {"workspace"})
            self.assertFalse([note for note in run.report("--suppressions", file.name)["warnings"] if "suppression" in note])
            file.write("leak:^no_such_function$\n")
            file.flush()
            note, = [note for note in run.report("--suppressions", file.name)["warnings"] if "suppression" in note]
            self.assertIn("leak:^no_such_function$", note)
            file.write("memory:x\n")
            file.flush()
            summary(run, "--suppressions", file.name, code=2)

    def test_a_suppressed_leak_that_is_freed_at_the_end_is_no_leak_either(self):
        program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def new(size):
    p = ctypes.c_void_p()
    return p if not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)) else None
def meant(): return new(1 << 20)
kept = []
for step in range(60):
    kept.append(meant())
    for scratch in range(3): cuda.cudaFree(new(4096))
for p in kept: cuda.cudaFree(p)
"""
        with e2e.Recording(sys.executable, "-c", program) as run, tempfile.NamedTemporaryFile("w") as file:
            file.write("leak:^meant$\n")
            file.flush()
            self.found("leak.kept", run.report())
            report = run.report("--suppressions", file.name)
            self.absent("leak.kept", report)
            self.assertEqual(report["warnings"], [])
            self.assertNotIn("LEAK", summary(run, "--suppressions", file.name))

    def test_one_step_of_many_layers_is_no_leak_and_many_steps_that_keep_are(self):
        """Killed in its first step, woken amid it, or folded: a line that ran 48 times inside one call made what this step needs."""
        program = """
import ctypes, os, sys, time
c10 = ctypes.CDLL(os.path.join(os.environ["APPS"], "libc10_cuda.so"))
c10.caching_new.restype = ctypes.c_void_p
new = lambda mib: c10.caching_new(ctypes.c_size_t(mib << 20))
free = lambda p: c10.caching_delete(ctypes.c_void_p(p))
where, steps = sys.argv[1], int(sys.argv[2])
def stop(name, i):
    if where == name + str(i):
        if "STORMLOG_ASLEEP" not in os.environ:
            os.kill(os.getpid(), 9)
        open("made", "w").close()
        while not os.path.exists("go"): time.sleep(0.01)
def forward():
    kept = [new(1)]
    for i in range(48):
        scratch = new(1)
        kept.append(new(3))
        free(scratch)
        time.sleep(0.001)
        stop("forward", i)
    return kept
class Adam:
    state = []
    def step(self):
        for i in range(0 if self.state else 48):
            self.state += new(4), new(4)
            free(new(4))
            stop("optimizer", i)
kept = []
for step in range(steps):
    for block in forward(): free(block)
    Adam().step()
    if where == "no": kept.append(new(2))
"""
        program, environment = (sys.executable, "-c", program), {"APPS": APPS, "LD_LIBRARY_PATH": e2e.SIM + ":" + APPS, "SIM_VRAM": "64G"}
        for where in "forward16", "forward47", "optimizer16":
            for keep in {}, {"STORMLOG_KEEP": "64K"}:
                with self.subTest(where, **keep), Recording(*program, where, 1, code=-9, **environment, **keep) as run:
                    self.absent("leak.growing", run.report())
                    self.assertNotIn("LEAK", summary(run))
        def wake(run):
            wait_for(os.path.join(run.folder, "made"))
            subprocess.run([e2e.ATTACH, run.traces], check=True, capture_output=True)
            open(os.path.join(run.folder, "go"), "w").close()
        with Recording(*program, "forward16", 1, STORMLOG_ASLEEP=1, during=wake, **environment) as run:
            self.assertNotIn("LEAK", summary(run))
        with Recording(*program, "no", 12, **environment) as run:
            (leak,) = verdicts(run.report(), "LEAK")
            self.assertRegex(said(leak), r"all 12 tensors that \S+ made were never freed, 24 MiB")
            self.assertEqual((leak["bytes"], rows(leak)["this leak"]), (24 * MIB, 24 * MIB))

    def test_what_leaks_after_the_last_step_has_a_rate_over_time_and_what_all_of_it_does_is_told_once(self):
        with self.made("after-steps") as run:
            report, text = run.report(), summary(run)
        leaks = verdicts(report, "LEAK")
        self.assertEqual([re.search(r" keeps (.*)", leak["headline"])[1] for leak in leaks], ["3 MiB every 5 ms", "1 MiB every 5 ms"])
        for leak in leaks:
            self.assertRegex(said(leak, "why"), r"all 6\d blocks that \S+ made were never freed")
        self.assertNotIn("step", text)
        # 79 GiB are free, and 4 MiB are kept every 5 ms
        self.assertEqual(re.findall(r"is full in .*", text), ["is full in 2 minutes at this rate, with what else leaks"])
        self.assertTrue(100 <= leaks[0]["figures"]["full_in_seconds"] < 110, leaks[0]["figures"])

    def test_what_each_entry_of_several_threads_keeps_is_no_more_than_that(self):
        for how, rate in (("threads", r"3 MiB of every step all 80"), ("threads-some", r"162 MiB of what it makes all 54")):
            with self.subTest(how), self.made(how) as run:
                (leak,) = verdicts(run.report(), "LEAK")
                self.assertRegex(said(leak), r"keeps %s blocks that" % rate)

    def test_what_is_kept_in_each_twentieth_step_is_kept_every_twenty(self):
        for how, blocks, rate in (("few-steps", 10, "3 MiB"), ("few-pairs", 20, "6 MiB")):
            with self.subTest(how), self.made(how) as run:
                (leak,) = verdicts(run.report(), "LEAK")
                self.assertRegex(said(leak), "keeps %s every 20 steps all %d blocks that .* made were never freed, %d MiB" % (rate, blocks, 3 * blocks))

    def test_a_rate_is_of_the_time_in_which_the_place_allocated(self):
        for how, rate in (("amid", r"3 MiB of every second pass all 40 blocks that \S+ made were never freed, 120 MiB"),
                          ("tenth", r"3 MiB every 10 passes 20 of the 200 blocks that \S+ made were never freed, 60 MiB"),
                          ("jump", r"600 MiB of what it makes all 60 blocks that \S+ made were never freed, 600 MiB")):
            with self.subTest(how), self.made(how) as run:
                (leak,) = verdicts(run.report(), "LEAK")
                self.assertRegex(said(leak), "keeps " + rate)

    def test_blocks_that_a_vector_keeps_as_it_grows_are_counted(self):
        with self.made("vector") as run:
            (leak,) = verdicts(run.report(), "LEAK")
        self.assertRegex(said(leak), r"keeps 1 MiB every 5 ms all 250 blocks that \S+ made were never freed, 250 MiB")

    def test_what_a_template_keeps_on_its_line_is_told_once(self):
        with self.made("one-line") as run:
            (leak,) = verdicts(run.report())
        self.assertRegex(said(leak), r"keeps 3 MiB of every pass all 120 blocks that")

    def test_what_is_kept_below_one_line_at_one_pace_is_told_at_that_line(self):
        with self.made("together") as run:
            together, alone = verdicts(run.report(), "LEAK")
        self.assertEqual(together["headline"], "3 lines of work.py:30 keep 9 MiB of every pass")
        self.assertRegex(said(together, "why"), r"all 180 blocks that they made were never freed, 540 MiB\. The lines are net\.py:12, net\.py:13, net\.py:11\.")
        self.assertEqual([line["line"] for line in together["lines"]][0], 30)
        self.assertEqual(alone["headline"], "net.py:21 keeps 2 MiB of every pass")
        self.assertRegex(said(alone, "why"), r"all 60 blocks that net\.py:21 made were never freed, 120 MiB")

    def test_how_long_a_device_lasts_counts_the_leaks_of_all_its_processes(self):
        """Each process keeps 3 MiB every 5 ms, each of which takes 4 of the 6144 MiB that are free."""
        for processes, seconds in (1, 7.7), (2, 3.8), (3, 2.6):
            with self.subTest(processes), self.made("leaking-%d" % processes) as run:
                (leak,) = verdicts(run.report(), "LEAK")
                self.assertAlmostEqual(leak["figures"]["full_in_seconds"], seconds, delta=0.05)
                self.assertIn("else   the card is full in %.0f seconds at this rate\n" % seconds, summary(run))

    def test_a_cache_that_lets_the_oldest_go_since_shortly_before_the_end_is_no_leak(self):
        report = self.series("bound")
        self.absent("leak.kept", report)
        self.absent("memory.filling", report)

    def test_a_place_that_keeps_is_named_although_the_program_frees_all_at_its_end(self):
        report = self.series("rises")
        (finding,) = self.found("leak.kept", report)
        self.assertRegex(finding["description"], r"work\.py:\d+ keeps .*; .* blocks that work\.py:\d+ made were freed only as the program ended, ")
        self.assertEqual([leak["verdict"] for leak in report["leaks"]], ["kept"])
        with script(*["alloc=3", "free"] * 30) as run:
            self.absent("leak.kept", run.report())

    def test_what_keeps_no_old_block_may_be_a_queue(self):
        for how, queue in ("backlog", True), ("kept", False):
            report = self.series(how)
            self.found("leak.growing", report)
            self.assertEqual("whether it is a queue that fills faster than it is emptied" in said(verdicts(report, "LEAK")[0], "open"), queue)

    def test_a_cache_that_fills_more_and_more_slowly_is_no_leak(self):
        report = self.series("fills")
        self.found("memory.filling", report)
        self.absent("leak.kept", report)
        for how in ("kept", "snapshots"):
            self.absent("memory.filling", self.series(how))

    def test_what_keeps_everything_since_a_moment_amid_the_run_leaks_since_then(self):
        report = self.series("late")
        (finding,) = self.found("leak.kept", report)
        self.assertRegex(finding["description"], r"keeps 3 MiB every 5 ms; 41 of the 61 blocks that \S+ made were .*, 140 MiB$")
        since = (finding["evidence"]["since_ns"] - finding["evidence"]["first_ns"]) / 5e6
        self.assertTrue(19 <= since <= 22, since)
        self.absent("memory.kept_late", report)
        report = self.series("late-few")
        (finding,) = self.found("memory.kept_late", report)
        self.assertRegex(finding["description"], r"keeps nearly all that it made since 2[23]\d ms; 16 of the 61 blocks that it made were .*, 65 MiB$")
        self.absent("leak.kept", report)

    def test_what_is_taken_in_one_go_before_the_program_ends_may_be_what_it_loads(self):
        report = self.series("loads")
        (finding,) = self.found("memory.only_taken", report)
        self.assertEqual(finding["severity"], "info")
        self.assertRegex(finding["description"], r"work\.py:\d+ .* keeps what it took: a leak, or what it loads; all 61 blocks that it made were .*, 200 MiB$")
        self.absent("leak.kept", report)
        self.assertEqual({leak["verdict"] for leak in report["leaks"]}, {"live_at_exit"})
        self.absent("memory.only_taken", self.series("kept"))

    def test_what_is_taken_before_the_program_works_with_it_is_what_it_loads(self):
        report = self.series("loads-and-works")
        self.absent("memory.only_taken", report)
        self.absent("leak.kept", report)
        self.absent("leak.growing", report)

    def test_what_one_loop_made_is_held_and_what_was_loaded_is_not(self):
        self.absent("memory.held", self.series("loads-and-works"))
        program = """
import ctypes
rt = ctypes.CDLL("libcudart.so.12")
def new(mib):
    p = ctypes.c_void_p()
    assert not rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))
    return p
features = []
for batch in range(60):
    scratch = new(3)
    features.append(new(1))
    rt.cudaFree(scratch)
for request in range(300):
    states = new(2)
    rt.cudaFree(states)
"""
        with Recording("python3", "-c", program) as run:
            (finding,) = self.found("memory.held", run.report())
        self.assertEqual((finding["class"], finding["severity"], finding["bytes"]), ("held", "info", 60 * MIB))

    def test_a_few_dozen_that_a_program_takes_in_one_burst_before_it_ends_may_be_what_it_loads(self):
        for births, told in (60, True), (12, False):
            with script(*["pin=1"] * births) as run:
                report = run.report()
            (self.found if told else self.absent)("memory.only_taken", report)
            self.absent("leak.kept", report)
            self.absent("leak.growing", report)

    def test_what_is_taken_a_thousand_times_at_one_line_is_not_what_a_program_loads(self):
        for births, told, quiet in (1020, "leak.growing", "memory.only_taken"), (600, "memory.only_taken", "leak.growing"):
            report = self.series("loads-%d" % births)
            self.found(told, report)
            self.absent(quiet, report)

    def test_what_is_taken_by_a_program_that_only_allocates_and_ends_at_once_is_no_leak_however_long_each_takes(self):
        report = self.series("loads-slowly")
        self.found("memory.only_taken", report)
        self.absent("leak.kept", report)
        self.absent("leak.growing", report)

    def test_a_queue_that_is_not_emptied_is_no_leak_once_nothing_is_put_into_it(self):
        self.assertEqual(self.series("queues")["findings"], [])

    def test_first_calls_without_a_stack_are_of_the_only_one_that_returns_there(self):
        report = self.series("starts")
        (leak,) = report["leaks"]
        self.assertEqual((leak["blocks"], leak["verdict"]), (61, "growing"))
        for finding in self.found("leak.growing", report):
            self.assertIn("made were never freed, 183 MiB", finding["description"])

    def test_a_few_blocks_of_which_each_is_larger_than_the_last_are_tables_and_no_leak(self):
        for sizes, verdict in ((3, 3, 3, 3, 3, 3), "growing"), ((1, 2, 3, 4, 5, 6), "live_at_exit"):
            with script("free", *sum([["sleep=0.1", "alloc=%d" % mib] for mib in sizes], [])) as run:
                self.assertEqual({leak["verdict"] for leak in run.report()["leaks"]}, {verdict})

    def test_memory_that_rises_all_the_time_is_said_where_nothing_else_names_it(self):
        report = self.series("scatters")
        (finding,) = self.found("memory.rising", report)
        self.assertRegex(finding["description"], r"rose in \d\d+% of 31 stretches of the run, from \S+ MiB to 1\d\d MiB")
        (row,) = report["processes"][0]["leak_heuristics"]
        patterns = {(pattern["analyzer"], pattern["type"]): pattern for pattern in row["patterns"]}
        self.assertIn(("tensorflow", "insufficient_cleanup"), patterns)
        self.assertEqual(patterns["tensorflow", "monotonic_increase"]["severity"], "high")
        self.assertGreater(patterns["jax", "leak"]["evidence"]["slope"], 1)
        report = self.series("kept")  # what one line keeps to the end is a leak, not rising memory
        self.found("leak.growing", report)
        self.absent("memory.rising", report)

    def test_requests_that_get_larger_are_named_where_they_are_made(self):
        program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def new(size):
    p = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(size)): raise SystemExit(0)
    return p
def weights(): return [new(1 << 20) for _ in range(8)]
def forward(length): return [new(length << 17) for _ in range(6)]
kept = weights()
for step in range(2000):
    for p in forward(64 + step): cuda.cudaFree(p)
"""
        with e2e.Recording(sys.executable, "-c", program, SIM_VRAM="1G") as run:
            report = run.report()
        self.assertRegex(report["ooms"][-1]["cause"], r"^requests of <string>:\d+ grow from [\d.]+ MiB to [\d.]+ MiB; ")
        self.absent("leak.kept", report)

    def test_requests_of_levels_are_a_curriculum_and_do_not_grow(self):
        program = """
import ctypes, sys
cuda = ctypes.CDLL("libcudart.so.13")
def forward(length):
    p = ctypes.c_void_p()
    assert not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(length << 17))
    cuda.cudaFree(p)
for step in range(400):
    forward(64 + (step if sys.argv[1] == "grows" else (0, 100, 80, 250, 400)[step // 80]))
"""
        for how in "grows", "levels":
            with self.subTest(how), e2e.Recording(sys.executable, "-c", program, how, SIM_VRAM="1G") as run:
                (self.found if how == "grows" else self.absent)("memory.rising", run.report())

    def test_what_several_lines_took_until_there_was_none_is_told_by_the_line_below_which_they_are(self):
        program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.13")
def get(bytes):
    p = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(bytes)): raise MemoryError
    return p
class Block:
    def __init__(self):
        self.up = get(1 << 24)
        self.down = get(1 << 24)
class Model:
    def __init__(self):
        self.blocks = [get(1 << 20)]
        for i in range(100):
            self.blocks.append(Block())
def build():
    return Model()
build()
"""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "large.py")
            with open(path, "w") as file:
                file.write(program)
            with e2e.Recording(sys.executable, path, code=1, SIM_VRAM="1G") as run:
                report, screen = run.report(), summary(run)
        self.assertRegex(report["ooms"][-1]["cause"], r"large\.py:10 made \d+ MiB and never gave it back")
        self.assertEqual(len(self.found("memory.only_taken", report)), 2)
        self.assertNotIn("a cache without", screen)  # the block of the error names the place

    def test_what_a_place_kept_later_is_not_said_of_a_request_that_failed_before(self):
        report = self.series("fails")
        first, last = report["ooms"]
        self.assertRegex(first["cause"], r"^work\.py:\d+ keeps .*; it had kept 110 MiB by then, and 200 MiB in the end\.")
        self.assertRegex(last["cause"], r"^work\.py:\d+ keeps .*; 61 of 61 blocks that it made were still held, 200 MiB\.")
        self.assertEqual([oom["live_bytes"] for oom in (first, last)], [110 * MIB, 200 * MIB])

    def test_a_last_round_that_the_program_freed_itself_is_not_kept(self):
        program = """
import ctypes
cuda = ctypes.CDLL("libcudart.so.12")
def take():
    p = ctypes.c_void_p()
    assert not cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 16))
    return p
for round in range(20):
    blocks = [take() for _ in range(50)]
    for p in blocks[1:]: cuda.cudaFree(p)
"""
        with e2e.Recording(sys.executable, "-c", program) as run:
            report = run.report()
        kept = re.findall(r"(\d+) of the 1 000 blocks", " ".join(one["description"] for one in report["findings"]))
        self.assertEqual(set(kept), {"20"}, report["findings"])

    def test_what_only_takes_memory_until_there_is_none_is_a_leak_or_a_model_that_is_too_large(self):
        report = self.series("only-fails")
        self.assertRegex(report["ooms"][-1]["cause"], r"work\.py:\d+ made 200 MiB and never gave it back")
        self.assertNotIn("enough", report["findings"][0]["recommendation"])
        self.assertEqual({one["severity"] for one in self.found("memory.only_taken", report)}, {"info"})
        self.absent("leak.growing", report)
        self.absent("leak.kept", report)

    def test_what_the_program_freed_before_its_last_work_was_collected(self):
        report = self.series("collects")
        (finding,) = self.found("memory.collected", report)
        self.assertEqual(finding["severity"], "info")
        self.assertRegex(finding["description"], r"^work\.py:10 .* collected .*, up to 6\d blocks, and the program freed them")
        self.absent("leak.kept", report)
        self.absent("memory.collected", self.series("rises"))

    def test_a_queue_that_is_emptied_one_by_one_after_the_last_allocation_was_collected(self):
        report = self.series("drains")
        (finding,) = self.found("memory.collected", report)
        self.assertRegex(finding["description"], r"^work\.py:10 .* collected .*, up to 24\d blocks, and the program freed them")
        self.absent("leak.kept", report)
        report = self.series("drains-at-once")
        self.found("leak.kept", report)
        self.absent("memory.collected", report)

    def test_who_leaks_is_not_told_to_send_a_small_neighbour_away(self):
        """Without the neighbour there would have been room for this request, but for no more than one."""
        report = self.series("beside-few")
        self.absent("oom.neighbour", report)
        self.assertRegex(report["ooms"][-1]["cause"], r"^work\.py:\d+ keeps .* until the card is full")
        self.found("oom.neighbour", self.series("beside-many"))

    def test_memory_that_comes_and_goes_does_not_rise(self):
        for how in ("level", "turns"):
            report = self.series(how)
            self.absent("memory.rising", report)
            self.assertEqual(report["processes"][0]["leak_heuristics"][0]["patterns"], [])

    def test_what_libraries_keep_is_no_leak_and_what_others_keep_is(self):
        for library, verdict in (("libcublas.so.13", "workspace"), ("libcudnn_ops.so.9", "workspace"), ("libnccl.so.2", "workspace"),
                                 ("libmine.so", "live_at_exit")):
            with library_of(library) as path, script("library=" + path, "arena=20", "arena=20", "sleep=0.05") as run:
                report = run.report()
                (leak,) = report["leaks"]
                self.assertEqual((leak["library"], leak["verdict"], leak["bytes"]), (library, verdict, 40 * MIB))
                check = subprocess.run([ANALYZE, "check", "--max-leak", "10M", run.traces], capture_output=True).returncode
                self.assertEqual(check, 1 if verdict == "live_at_exit" else 0, library)

    def test_segments_of_a_caching_allocator_are_its_cache(self):
        with script("tensor=100", "tensor=100") as run:
            leaks = run.report()["leaks"]
        self.assertEqual({(leak["verdict"], leak["bytes"]) for leak in leaks}, {("cache", 256 * MIB)})


class Steps(Answers):
    def test_tensors_that_are_kept_without_any_range_are_a_leak_with_their_line(self):
        with script(*["tensor=1", "alloc=2", "free"] * 40) as run:  # in segments that PyTorch keeps
            (finding,) = self.found("leak.kept", run.report())
        self.assertRegex(finding["description"], r"script.py:\d+ keeps 1 MiB .* all 40 tensors that \S+ made were .*, 40 MiB$")

    def test_what_was_given_back_before_the_request_that_failed_is_no_leak(self):
        program = os.path.join(e2e.HERE, "..", "diagnosis", "later", "lengths_fragment.py")
        libraries = os.path.join(e2e.BUILD, "tests", "diagnosis", "later")
        with Recording("/usr/bin/python3", program, code=1, CORPUS_LIB=libraries, SIM_VRAM="8G") as run:
            leaks = self.found("memory.only_taken", run.report())
        with open(program) as lines:
            kept = next(number for number, line in enumerate(lines, 1) if "memory.append" in line)
        self.assertEqual([re.search(r"fragment\.py:(\d+)", leak["description"]).group(1) for leak in leaks], [str(kept)])

    def test_a_step_that_takes_more_than_all_others_is_told_with_its_line(self):
        steps = sum([["alloc=10", "try=%d" % (90 if n == 13 else 5), "free"] for n in range(30)], [])
        with script(*steps) as run:
            report, text = run.report(), summary(run, columns=110)
        (finding,) = self.found("memory.spike", report)
        self.assertEqual(finding["severity"], "info")
        self.assertIn("script.py", finding["description"])
        self.assertIn("times as high as any other", text)

    def test_a_place_that_leaks_is_one_block_of_the_screen(self):
        with script("alloc=64", *["tensor=3", "losses=1", "drop"] * 60) as run:
            report, text = run.report(), summary(run, "--all")
        (leak,) = verdicts(report)
        self.assertRegex(said(leak), r"keeps 1 MiB of every pass all 60 blocks that")
        self.assertEqual(len(re.findall("^LEAK", text, re.M)), 1, text)
        self.assertEqual(sorted(one["bytes"] >> 20 for one in report["leaks"] if one["verdict"] != "cache"), [60, 64])

    def test_what_is_left_is_named_by_its_kind(self):
        with script("alloc=1", "pin=24", "pin=24") as run:
            self.assertIn(("host_pinned", 48 * MIB), {(leak["kind"], leak["bytes"]) for leak in run.report()["leaks"]})

    def test_a_leak_is_told_since_a_moment_of_the_run_and_not_of_its_own_process(self):
        def steps(rank):
            return (["alloc=5"] if rank == 0 else ["sleep=1.5", *["tensor=3", "losses=1", "drop"] * 60]) + ["meet=done"]
        with Ranks(2, steps, SIM_VRAM="8G") as ranks:
            report = ranks.report()
        (finding,) = [one for one in report["findings"] if one["kind"] in ("leak.kept", "leak.growing")]  # which of the two depends on how long the leak lasted
        since = (finding["evidence"]["since_ns"] - report["run"]["started_at_ns"]) / 1e9
        self.assertGreater(since, 1)
        (leak,) = verdicts(report, "LEAK")
        self.assertIn("It is in rank 1.", said(leak))

    PIECES = """
import ctypes
rt = ctypes.CDLL("libcudart.so.12")
def take(mib):
    block = ctypes.c_void_p()
    assert not rt.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(mib << 20))
    return block
def step(count):
    for _ in range(count):
        rt.cudaFree(take(5))
"""

    def test_what_stays_high_once_it_has_risen_is_no_spike(self):
        program = "step(12)\nwhole = take(90)\nstep(40)\n" \
                  "import time\ntime.sleep(.4)\nstep(40)\nrt.cudaFree(whole)\nstep(12)"
        with Recording("python3", "-c", self.PIECES + program) as run:
            self.absent("memory.spike", run.report())

    def test_a_small_rise_amid_the_fall_from_a_spike_is_not_what_others_reach(self):
        program = "full, kept = [take(100) for _ in range(20)], []\nfor one in full:\n    kept.append(take(25)); rt.cudaFree(one)\n" \
                  "import time\nfor _ in range(30):\n    step(2); time.sleep(0.01)"
        with Recording("python3", "-c", self.PIECES + program) as run:
            (finding,) = self.found("memory.spike", run.report())
        self.assertRegex(finding["description"], r"4\.0 times as high as any other: 1\.98 GiB instead of 505 MiB")

    def test_a_spike_of_tensors_is_told_though_pytorch_keeps_its_memory(self):
        report = self.series("spike-of-tensors")
        (finding,) = self.found("memory.spike", report)
        self.assertRegex(finding["description"], r"4\.4 times as high as any other: 110 MiB instead of 25 MiB, with 110 MiB at work\.py:10 ")

    ROUNDS = """
def made(n):
    return [take(8) for _ in range(n)]
def drop(blocks):
    for block in blocks:
        rt.cudaFree(block)
net = made(4)
"""

    def test_a_round_that_is_freed_after_the_next_is_made_is_told(self):
        program = self.ROUNDS + "before = []\nfor _ in range(10):\n    now = made(6)\n    drop(before)\n    before = now\ndrop(before + net)\n"
        with Recording("python3", "-c", self.PIECES + program) as run:
            (finding,) = self.found("memory.overlap", run.report())
        self.assertEqual(finding["bytes"], 48 << 20)
        self.assertRegex(finding["description"], r"^<string>:\d+ take < <string>:\d+ made.* frees what it made only after it has made as much again \(7 times\): 48 MiB of the peak were of the pass before$")
        self.assertRegex(finding["recommendation"], r"the peak would be 80 MiB$")

    def test_a_note_that_several_processes_share_is_told_once(self):
        program = self.PIECES + self.ROUNDS + "import subprocess, sys\nbefore = []\nfor _ in range(10):\n    now = made(6)\n    drop(before)\n    before = now\n" \
            "drop(before + net)\nif len(sys.argv) == 1:\n    for _ in range(3): subprocess.run([sys.executable, __file__, 'other'], check=True)\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "twice.py")
            with open(path, "w") as file:
                file.write(program)
            with Recording("python3", path) as run:
                report, screen = run.report(), summary(run)
        self.assertEqual(len(self.found("memory.overlap", report)), 4)
        self.assertEqual(" ".join(screen.split()).count("of the pass before"), 1, screen)
        self.assertIn("note 4 processes: twice.py:", " ".join(screen.split()))

    def test_what_is_freed_before_or_one_by_one_or_grows_is_no_round_of_its_own(self):
        loops = {"freed before": "drop(before)\n    before = made(6)",
                 "one by one": "before = [(rt.cudaFree(old), take(8))[1] for old in before]",
                 "one by one, afterwards": "before = [(take(8), rt.cudaFree(old))[0] for old in before]",
                 "a queue": "before += made(1)\n    drop([before.pop(0)])",
                 "a vector that doubles": "now = made(2 * len(before))\n    drop(before)\n    before = now"}
        for what, loop in loops.items():
            times = 5 if "doubles" in what else 9
            program = self.ROUNDS + "before = made(6)\nfor _ in range(%d):\n    %s\ndrop(before + net)\n" % (times, loop)
            with self.subTest(what), Recording("python3", "-c", self.PIECES + program) as run:
                self.absent("memory.overlap", run.report())

    def test_a_loop_of_the_set_up_is_no_period_of_the_program(self):
        program = "\nmodel = []\nfor _ in range(12):\n    model.append(take(3))\n    model.append(take(1))\n" \
                  "for _ in range(60):\n    step(7)\n    model.append(take(1))\nimport time\ntime.sleep(0.2)"  # a busy machine ends late
        with Recording("python3", "-c", self.PIECES + program) as run:
            report = run.report()
        (leak,) = verdicts(report, "LEAK")
        self.assertRegex(said(leak), r"all 60 blocks that \S+ made were never freed, 60 MiB")
        self.assertEqual((leak["bytes"], rows(leak)["this leak"]), (60 * MIB, 60 * MIB))
        self.assertNotIn("pass", leak["headline"])

    def test_a_burst_of_one_caller_is_not_the_rate_of_the_line(self):
        with self.made("burst") as run:
            report = run.report()
        (leak,), (verdict,) = self.found("leak.kept", report), verdicts(report, "LEAK")
        span = (299 * 5e6 + 44 * 2e4) / 1e9
        self.assertLess(abs(leak["evidence"]["per_second"] / (344 * (2 << 20) / span) - 1), 0.1)
        self.assertRegex(said(verdict), r"keeps 2 MiB every 4 ms all 344 blocks that")

    def test_a_pool_that_is_full_does_not_hold_what_others_do(self):
        program = """
import struct
stream, pool = ctypes.c_void_p(), ctypes.c_void_p()
def of(pool, mib):
    return rt.cudaMallocFromPoolAsync(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20), pool, None)
assert not rt.cudaMemPoolCreate(ctypes.byref(pool), struct.pack("4iPQ56x", 1, 0, 1, 0, 0, 64 << 20))
assert not of(pool, 60)
%s
raise SystemExit(of(pool, 10))
"""
        other = "assert not rt.cudaMallocAsync(ctypes.byref(stream), ctypes.c_size_t(50 << 20), None)"
        for more, said in (("", "is 64 MiB, of which 60 MiB were held"), (other, "is 64 MiB. The card had")):
            with self.subTest(more), Recording("python3", "-c", self.PIECES + program % more, code=2) as run:
                (error,) = self.found("oom.driver", run.report())
            self.assertIn("the pool of <string>:16 has no room for 10 MiB; its limit (maxSize) " + said, error["description"])

    def test_managed_memory_has_a_peak(self):
        take = "p = ctypes.c_void_p()\nassert not rt.cudaMallocManaged(ctypes.byref(p), ctypes.c_size_t(40 << 20), 1)\n"
        for also, shown in ("", ""), ("whole = take(1)", r" 1\.00 MiB held, at the peak"):
            with Recording("python3", "-c", self.PIECES + take + also) as run:
                self.assertRegex(whole(run), r"OK no leak, no failed request .*pid \d+ held 40 MiB of managed memory at most, on a device or the host" + shown)

    def test_pinned_memory_that_leaks_until_its_limit_is_no_reason_for_a_higher_one(self):
        program = """
import ctypes, time
rt = ctypes.CDLL("libcudart.so.12")
kept = []
def pin(mib):
    block = ctypes.c_void_p()
    if rt.cudaHostAlloc(ctypes.byref(block), ctypes.c_size_t(mib << 20), 0):
        raise SystemExit(1)
    return block
while True:
    kept.append(pin(2))
    rt.cudaFreeHost(pin(1))
    time.sleep(0.005)  # longer than a thread usually waits for the processor
"""
        with Recording("python3", "-c", program, code=1, SIM_PINNED="100M") as run:
            (finding,) = self.found("oom.host", run.report())
        self.assertRegex(finding["description"], r"100 MiB of it are kept by <string>:\d+, which leaks")
        self.assertNotIn("raise the limit", finding["recommendation"])
        late = program[:program.index("while")] + """
for n in range(2000):
    block = pin(1)
    kept.append(block) if n > 900 else rt.cudaFreeHost(block)
    time.sleep(0.0005)
"""
        with Recording("python3", "-c", late, code=1, SIM_PINNED="240M") as run:
            (finding,) = self.found("oom.host", run.report())
        self.assertRegex(finding["description"], r"\d+ MiB of it are kept by <string>:\d+, which leaks")

    # retry: an exception handler still holds the blocks of the first try.  more: a step holds 32 blocks where it held one.
    STEPS = """
import ctypes, sys, time
rt = ctypes.CDLL("libcudart.so.12")
class Block:
    def __init__(self, mib):
        self.at = ctypes.c_void_p()
        if rt.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(mib << 20)):
            raise MemoryError
    def __del__(self):
        rt.cudaFree(self.at)
def step(blocks, mib, together):
    held = []
    for i in range(blocks):
        held = held + [Block(mib)] if together else [Block(mib)]
def retry():
    for n in range(20):
        try:
            step(10, 40 if n < 19 else 120, True)
        except MemoryError as error:
            last = error
            step(10, 25, True)
def more():
    for n in range(120):
        step(32, 20 if n < 97 else 22 + n - 97, n > 94)
        time.sleep(0.005)
globals()[sys.argv[1]]()
"""

    def test_what_a_failed_try_took_and_what_is_held_at_once_is_told(self):
        told = {"retry": r"the failed try at steps.py:18 still holds 8\d\d MiB",
                "more": r"memory rises to \d\d times what it was"}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "steps.py")
            with open(path, "w") as file:
                file.write(self.STEPS)
            for how, sentence in told.items():
                with self.subTest(how), Recording("python3", path, how, code=1, SIM_VRAM="1200M") as run:
                    self.assertRegex("\n".join(one["description"] for one in self.found("oom.full", run.report())), sentence)

    def test_steps_that_take_turns_are_no_spike(self):
        with script(*sum([["alloc=%d" % (90 if n % 5 == 0 else 10), "free"] for n in range(30)], [])) as run:
            self.absent("memory.spike", run.report())

    def test_a_step_that_fails_is_told_beside_those_before_it(self):
        steps = sum([["alloc=100", "alloc=100", "free"] for n in range(20)], [])
        with script(*steps, *["alloc=100"] * 30, "try=3000", SIM_VRAM="4G") as run:
            (finding,) = self.found("oom.full", run.report())
        self.assertRegex(finding["description"], r"rises to \d+ times its highest before; .* in 2\d rises before")

    def test_the_launcher_tells_a_failed_command_where_it_ran_out_of_memory(self):
        program = ("import ctypes, sys", "rt = ctypes.CDLL('libcudart.so.12')", "def load(mib):",
                   "    return rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20))",
                   "sys.exit(7 if load(int(sys.argv[1])) else 0)")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "loads.py")
            with open(path, "w") as file:
                file.write("\n".join(program) + "\n")
            for mib, code, times in (("9000000", 7, 1), ("1", 0, 0)):
                with Recording("python3", path, mib, launcher=["-o", "traces"], code=code) as run:
                    said = run.done.stderr.decode()
                told = re.findall(r"\nOUT OF MEMORY   loads.py:4 asks 8\.58 TiB, more than the card has\n", said)
                self.assertEqual((len(told), said.count("OUT OF MEMORY")), (times, times), said)

    def test_what_a_line_kept_is_told_where_nothing_else_is(self):
        for pause in 0, 0.5:  # seconds: the program's own, or as a busy machine makes them
            with self.subTest(pause), script("try=600", "sleep=%g" % pause, *["try=600"] * 7, SIM_VRAM="4G") as run:
                report = run.report()
            (finding,) = [one for one in self.found("oom.full", report)][:1]
            self.assertRegex(finding["description"], r"script.py:\d+ made \S+ GiB in [3-6] blocks and never gave one back")

    def test_hidden_code_has_its_line_and_little_code_has_not(self):
        with script("alloc=1", "module", "samples=2", SIM_MODULE_BYTES="400M", CUDA_MODULE_LOADING="EAGER") as run:
            (finding,) = self.found("hidden.place", run.report())
        self.assertRegex(finding["description"], r"^script.py:\d+ .* loads \S+ MiB of code, ")
        with script("alloc=1", "samples=2") as run:
            self.absent("hidden.place", run.report())

    def test_code_that_was_unloaded_is_not_counted(self):
        with script("alloc=1", *["module", "samples=1", "unload"] * 5, "module", "module", "samples=2", SIM_MODULE_BYTES="40M",
                    CUDA_MODULE_LOADING="EAGER") as run:
            report = run.report()
        by = {name["what"]: name["bytes"] for name in report["run"]["devices"][0]["hidden"]}
        self.assertEqual(by["code"], 80 * MIB)
        self.assertNotIn("unexplained", by)


class Growth(Answers):
    def test_a_growing_label_and_the_line_that_grows(self):
        steps = sum([["push=step %d" % n, "push=work", "alloc=2", "pop", "tensor=3", "losses=1", "drop", "drop", "pop"] for n in range(20)], [])
        with script("alloc=64", *steps) as run:
            report, text = run.report(), summary(run, "--all")
        (process,) = report["processes"]
        labels = {label["label"]: label for label in process["labels"]}
        held = [(one["bytes_per_entry"], {frame["function"] for frame in one["stack"]}) for one in labels["step #"]["held_by"]]
        self.assertEqual([size for size, _ in held], [2 * MIB, MIB])
        self.assertNotIn("keep_loss", held[0][1])
        self.assertIn("keep_loss", held[1][1])
        self.assertEqual(labels["work"]["verdict"], "growing")
        (finding,) = self.found("label.growing", report)  # for the outermost range alone
        self.assertRegex(finding["description"], r"^each step adds 3 MiB that stays; .* script.py:\d+ adds 2 MiB\. script.py:\d+ adds 1 MiB$")
        self.assertEqual([one["word"] for one in verdicts(report)], ["LEAK", "LEAK"])  # both lines have a verdict, so the label has none
        self.assertRegex(said(verdicts(report)[1]), r"keeps 1 MiB of every step all 20 blocks")
        self.assertNotIn("GROWS", text)

    def test_the_largest_of_many_lines_that_hold_little_each_are_named(self):
        program = ("import ctypes", "cudart, nvtx = ctypes.CDLL('libcudart.so.13'), ctypes.CDLL('libnvToolsExt.so.1')", "def take(mib):",
                   "    p = ctypes.c_void_p()", "    cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))", "for step in range(30):",
                   "    nvtx.nvtxRangePushA(b'step_%d' % step)", *["    take(%d)" % (1 + line % 2) for line in range(20)], "    nvtx.nvtxRangePop()")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "many.py")
            with open(path, "w") as file:
                file.write("\n".join(program) + "\n")
            with Recording("python3", path) as run:
                (process,) = run.report()["processes"]
        (step,) = [label for label in process["labels"] if label["label"] == "step_#"]
        self.assertEqual([one["bytes_per_entry"] for one in step["held_by"]], [2 * MIB] * 3)  # of 30 MiB

    def test_growth_of_a_label_inside_itself_is_said_to_be_of_the_outermost(self):
        program = ("import ctypes, time", "cudart, nvtx, number = ctypes.CDLL('libcudart.so.13'), ctypes.CDLL('libnvToolsExt.so.1'), 0",
                   "def take(mib):", "    p = ctypes.c_void_p()", "    cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20))", "    return p",
                   "def node(below):", "    global number", "    number += 1", "    nvtx.nvtxRangePushA(b'node_%d' % number)", "    passing = take(2)", "    take(1)",
                   "    if below:", "        node(below - 1)", "    time.sleep(0.002)", "    cudart.cudaFree(passing)", "    nvtx.nvtxRangePop()",
                   "for i in range(40):", "    node(2)")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nodes.py")
            with open(path, "w") as file:
                file.write("\n".join(program) + "\n")
            with Recording("python3", path) as run:
                report, (process,) = run.report(), run.truth()
        (finding,), (leak,) = self.found("label.growing", report), verdicts(report)  # the leak has the label's only line
        self.assertEqual(process.memory["device", 0].live_bytes, 120 * MIB)
        self.assertRegex(said(leak), r"^nodes\.py:12 keeps 1 MiB of every node all 120 blocks that nodes\.py:12 made were never freed, 120 MiB")
        self.assertIn("each outermost node adds 3 MiB that stays", finding["description"])

    def test_a_steady_label_is_not(self):
        steps = sum([["push=step %d" % n, "alloc=2", "tensor=8", "free", "drop", "pop"] for n in range(20)], [])
        with script(*steps) as run:
            report = run.report()
        self.absent("label.growing", report)
        self.assertEqual([label["held_by"] for label in report["processes"][0]["labels"]], [[]])


@contextlib.contextmanager
def library_of(name):
    """Builds a library of this name, whose function arena(MIB) allocates."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-"], check=True, input=b"""
            int cudaMalloc(void **p, unsigned long size);
            int arena(unsigned long mib) { void *p; return cudaMalloc(&p, mib << 20); }""")
        yield path


class Arenas(Answers):
    """An allocator that takes most of the device in one block hides who uses the memory in it."""

    def report(self, library, mib):
        with library_of(library) as path, script("library=" + path, "arena=%d" % mib, SIM_VRAM="8G") as run:
            return run.report()

    def test_jax_and_tensorflow_are_said_with_the_setting_that_opens_them(self):
        (jax,) = self.found("allocator.arena", self.report("xla_cuda_plugin.so", 6000))
        self.assertIn("XLA_PYTHON_CLIENT_PREALLOCATE", jax["recommendation"])
        (tensorflow,) = self.found("allocator.arena", self.report("libtensorflow_cc.so.2", 6000))
        self.assertIn("TF_FORCE_GPU_ALLOW_GROWTH", tensorflow["recommendation"])

    def test_where_nothing_else_is_wrong_it_is_a_note(self):
        with library_of("xla_cuda_plugin.so") as path, script("library=" + path, "arena=6000", SIM_VRAM="8G") as run:
            text = summary(run, "--all")
        self.assertRegex(text, r"\nOK   no leak, no failed request\n(?s:.*)\n  note   JAX took")

    def test_small_blocks_and_other_libraries_are_not(self):
        self.absent("allocator.arena", self.report("xla_cuda_plugin.so", 60))
        self.absent("allocator.arena", self.report("libmine.so", 6000))

    def test_an_error_beside_an_arena_has_its_cause_and_the_arena(self):
        with library_of("xla_cuda_plugin.so") as path, script("library=" + path, "arena=6000", "try=4000", SIM_VRAM="8G") as run:
            report, text = run.report(), whole(run)
        self.found("allocator.arena", report)
        self.found("oom.full", report)
        self.assertRegex(text, r"JAX took 5\.86 GiB in one block")

TWO_OF_HIP = '''
import os, subprocess, sys
program = """
import ctypes, sys
hip, address = ctypes.CDLL("libamdhip64.so.6"), ctypes.c_void_p()
assert hip.hipMalloc(ctypes.byref(address), ctypes.c_size_t(700 << 20)) == 0
print(flush=True), sys.stdin.read()
"""
ranks = [subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")) for rank in range(2)]
for rank in ranks:
    rank.stdout.readline()
for rank in ranks:
    rank.communicate()
'''


class RankComparison(Answers):
    def test_ranks_that_do_the_same_have_no_finding(self):
        with Ranks(4, lambda rank: ["device=%d" % rank, "alloc=100", "free"]) as ranks:
            report = ranks.report()
        self.assertEqual([one["word"] for one in verdicts(report)], ["OK"])
        self.absent("ranks.outlier", report)
        self.absent("ranks.stray_context", report)
        self.absent("ranks.first", report)

    def test_an_outlier_is_told_by_what_it_holds_beyond_a_typical_rank(self):
        with Ranks(5, lambda rank: ["device=%d" % rank, "alloc=100", "alloc=%d" % (900 if rank == 3 else 100), "free"]) as ranks:
            report = ranks.report()
            found, (verdict,) = self.found("ranks.outlier", report), verdicts(report, "UNEVEN")
            self.assertIn("note 4 ranks do the same, 200 MiB at the peak: 0-2, 4 ", whole(ranks))
        self.assertEqual(verdict["headline"], "rank 3 is an outlier")
        self.assertEqual([finding["rank"] for finding in found], [3])
        self.assertRegex(found[0]["description"], r"an outlier; it peaked at 0\.98 GiB, 800 MiB more .*: 800 MiB more at script.py:\d+ allocate")

    def test_a_rank_is_not_blamed_for_its_duty_or_one_large_step_or_a_smaller_share(self):
        duty, work = ["evaluate=60"] * 4, ["pass=10"] * 40
        for rank, its, severity, advice in ((0, duty, None, None), (3, duty, "info", "no other rank asks for memory there"),
                                            (3, ["try=60"], "warning", "no other rank asks for memory there"),
                                            (3, ["pass=60"], "info", "one of its steps was larger"), (3, None, None, None)):
            def steps(mine):
                return ["device=%d" % mine, "losses=%d" % (92 if mine == rank and its is None else 100), *work, *(its or [] if mine == rank else []), "calls=1"]
            with self.subTest(rank=rank, its=its), Ranks(4, steps) as ranks:
                report = ranks.report()
                if not severity:
                    self.absent("ranks.outlier", report)
                    continue
                (found,) = self.found("ranks.outlier", report)
                self.assertEqual((found["rank"], found["severity"]), (rank, severity))
                self.assertIn(advice, found["recommendation"])

    def test_a_rank_that_keeps_what_others_free_is_told_as_growing(self):
        def steps(rank):
            step = ["tensor=10", "alloc=2"] + ([] if rank == 2 else ["free"]) + ["drop"]
            return ["device=%d" % rank, "alloc=100"] + 40 * step + ["quit"]
        with Ranks(4, steps) as ranks:
            (found,) = self.found("ranks.outlier", ranks.report())
        self.assertEqual(found["rank"], 2)
        self.assertRegex(found["description"], r"\d+(\.\d+)? MiB more at script.py:\d+ allocate[^;]*, which grows(;|$)")

    def test_a_rank_that_leaks_more_than_the_others_leak_is_not_told_that_they_free_it(self):
        with Ranks(4, lambda rank: ["device=%d" % rank, *["calls=2", "losses=%d" % (3 if rank == 1 else 1)] * 60, "quit"]) as ranks:
            (found,) = self.found("ranks.outlier", ranks.report())
        self.assertEqual((found["rank"], found["recommendation"]), (1, "free there what is not needed any more: the other ranks keep less of it"))

    def test_ranks_that_differ_alike_since_their_start_are_a_group(self):
        """The two ends of a pipeline hold more; in the run that must not show it they ask for as much at the same line, but late."""
        for late in False, True:
            def steps(rank):
                more = ["alloc=250"] * (rank in (0, 7))
                return ["device=%d" % rank, "alloc=100", *([] if late else more), "sleep=1", *(more if late else []), "calls=4"]
            with self.subTest(late), Ranks(8, steps) as ranks:
                report, text = ranks.report(), whole(ranks)
                if late:
                    self.assertEqual(sorted(finding["rank"] for finding in self.found("ranks.outlier", report)), [0, 7])
                    self.absent("ranks.role", report)
                    continue
                self.absent("ranks.outlier", report)
                self.found("ranks.role", report)
            self.assertIn("note 6 ranks do the same, 100 MiB at the peak: 1-6 note 2 ranks do the same, 350 MiB at the peak: 0, 7 ", text)
            self.assertRegex(text, r"note 2 of 8 ranks each hold since their start 250 MiB more at script\.py:\d+")
            self.assertEqual([one["word"] for one in verdicts(report)], ["OK"])

    def test_a_rank_that_leaks_is_compared_with_those_of_its_role(self):
        def steps(rank):
            steps = ["calls=2", *["losses=1"] * (rank == 7)] * 60
            return ["device=%d" % rank, "alloc=100", *["alloc=250"] * (rank in (0, 7)), "sleep=1", *steps, "quit"]
        with Ranks(8, steps) as ranks:
            (found,) = self.found("ranks.outlier", ranks.report())
        self.assertEqual(found["rank"], 7)
        self.assertRegex(found["description"], r"60 MiB more than rank 0, one of 2 ranks that do the same: 60 MiB more at script\.py:\d+ [^;]*, which grows$")

    def test_an_outlier_that_grows_is_told_by_that_first_and_the_parts_add_up(self):
        def steps(rank):
            if rank == 2:
                return ["device=2", "alloc=300", *["calls=2", "losses=1"] * 60, "quit"]
            return ["device=%d" % rank, "alloc=100", "try=80", *["calls=2"] * 60]
        with Ranks(4, steps) as ranks:
            (found,) = self.found("ranks.outlier", ranks.report())
        self.assertEqual(found["rank"], 2)
        self.assertRegex(found["description"], r": 60 MiB more at [^;]*, which grows; 200 MiB more at [^;]*; 80 MiB less elsewhere, most at script\.py")
        parts = re.findall(r"(\S+) MiB (more|less)", found["description"])
        all_of_it, *parts = (float(mib) * (1 if sign == "more" else -1) for mib, sign in parts)
        self.assertAlmostEqual(sum(parts), all_of_it, delta=1)

    def test_a_rank_that_ran_out_is_no_outlier_and_strays_on_its_device_are_named(self):
        def steps(rank):
            if rank == 0:
                return ["device=0", "alloc=1000", "meet=there", "samples=2", "try=500", "meet=done"]
            return ["device=0", "module", "device=%d" % rank, "alloc=1000", "alloc=500", "meet=there", "meet=done"]
        with Ranks(4, steps, SIM_VRAM="2500M") as ranks:
            report = ranks.report()
        self.absent("ranks.outlier", report)
        self.found("ranks.stray_context", report)
        self.assertEqual(sorted(other["rank"] for other in report["ooms"][0]["others"]), [1, 2, 3])
        (error,), (stray,) = verdicts(report, "OUT OF MEMORY"), verdicts(report, "UNEVEN")
        self.assertEqual(sorted(re.findall(r"rank (\d) of this run, a stray context", json.dumps(error["table"]))), ["1", "2", "3"])
        self.assertEqual([line["mark"] for line in stray["lines"] if line["file"] == "script.py"][-1], "stray context")

    def test_ranks_that_ran_out_alike_are_one_block(self):
        def steps(rank):
            return ["device=%d" % rank, "alloc=%d" % (700 + rank) if rank < 3 else "grow=700", "meet=there", "try=1000"]
        with Ranks(4, steps, SIM_VRAM="1500M") as ranks:
            report = ranks.report()
        errors = verdicts(report, "OUT OF MEMORY")  # rank 3 has its own, since it held most at another line
        self.assertEqual(sorted("3 processes failed there" in error.get("note", []) for error in errors), [False, True])
        with Ranks(3, lambda rank: ["device=%d" % rank, "alloc=700", "meet=there", "try=1000"], SIM_VRAM="1500M") as ranks:
            report = ranks.report()
        (error,) = verdicts(report, "OUT OF MEMORY")
        self.assertRegex(said(error, "note"), r"was first; 2 others ran out too")

    def test_ranks_on_one_device_beside_an_empty_one_are_told_with_the_first_allocation(self):
        def on(*devices, **environment):
            with Ranks(len(devices), lambda rank: ["device=%d" % devices[rank], "alloc=700", "meet=there", "try=100"], devices=2,
                       SIM_VRAM="2150M", **environment) as ranks:
                return ranks.report(), whole(ranks)
        report, text = on(0, 0)
        (finding,) = self.found("ranks.share_device", report)
        self.assertRegex(finding["description"], r"2 ranks share device 0, and this run leaves 1 device that they see unused; "
                                                 r"first allocation at script\.py:\d+")
        self.assertEqual(finding["severity"], "info")
        self.assertIn("note 2 ranks share device 0,", text)
        with Recording("/usr/bin/python3", "-c", TWO_OF_HIP, SIM_DEVICES="2") as run:
            (finding,) = self.found("ranks.share_device", run.report())
        self.assertRegex(finding["recommendation"], "hipSetDevice.LOCAL_RANK., or HIP_VISIBLE_DEVICES$")
        for devices, environment in ((0, 1), {}), ((0, 0), {"CUDA_VISIBLE_DEVICES": "0"}), ((0, 0), {"numbered": False}), ((0, 1, 1), {}):
            with self.subTest(devices, **environment):
                self.absent("ranks.share_device", on(*devices, **environment)[0])

    def test_processes_that_hold_hardly_more_than_a_context_are_noted_with_their_first_call(self):
        def beside(own, **environment):
            with Ranks(3, lambda rank: ["device=0", "alloc=%d" % (own if rank else 150), "meet=there", "samples=2", "meet=done"],
                       SIM_VRAM="141G", **environment) as ranks:
                return ranks.report(), summary(ranks)
        report, text = beside(1, numbered=False)
        (finding,) = self.found("processes.idle_contexts", report)
        self.assertRegex(finding["description"], r"^2 processes make a CUDA context each and nothing else; the contexts take 60\d MiB of device 0$")
        self.assertRegex(finding["recommendation"], r"^make no GPU call at script\.py:\d+ in these")
        self.assertEqual((finding["severity"], finding["bytes"] // (100 << 20)), ("info", 6))
        self.assertRegex(text, r"HIDDEN   2 processes make a CUDA context each and nothing else\n(?s:.*)<- first call\n")
        for own, environment in ((400, {"numbered": False}), (1, {})):
            with self.subTest(own, **environment):
                self.absent("processes.idle_contexts", beside(own, **environment)[0])

    def test_results_for_which_a_pool_of_jax_had_no_room_are_found_where_the_program_failed_then(self):
        def of(*path):
            with tempfile.TemporaryDirectory() as out:
                subprocess.run([ANALYZE, "-q", "-o", out + "/out", os.path.join(e2e.HERE, "..", *path)], check=True)
                with open(out + "/out/report.json") as file:
                    return json.load(file)
        (finding,) = self.found("memory.no_room", of("real-gpu", "cases", "jax_dense_fit", "alone"))
        self.assertEqual(finding["bytes"], 8 * 201326592)  # eight of the nine large results
        there = os.path.join(e2e.HERE, "..", "real-gpu", "cases", "jax_dense_fit", "alone")
        for asked, status, told in ((["--no-oom"], 1, "FAIL     no-oom "), (["--fits", "24G"], 0, "unknown  fits ")):
            done = subprocess.run([ANALYZE, "check", "--config", os.devnull, *asked, there], capture_output=True, text=True)
            self.assertEqual((done.returncode, told in done.stdout), (status, True), done.stdout)
        self.absent("memory.no_room", of("golden", "gpu", "jax-growing"))

    def test_a_table_of_ranks_holds_what_each_asked_for(self):
        with Ranks(3, lambda rank: ["device=%d" % rank, "alloc=%d" % (100 + 50 * rank)]) as ranks:
            said = summary(ranks, "table", "--by", "rank")
        self.assertEqual(re.findall(r"(\d+) MiB +[\d.]+% .* (rank \d)", said), [("200", "rank 2"), ("150", "rank 1"), ("100", "rank 0")])

    def test_a_table_of_places_names_who_asked_a_helper(self):
        program = ("import ctypes", "rt = ctypes.CDLL('libcudart.so.12')", "def ask(mib):",
                   "    rt.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20))",
                   "def train():", "    ask(300)", "    ask(100)", "train()")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "asks.py")
            with open(path, "w") as file:
                file.write("\n".join(program) + "\n")
            with Recording("python3", path) as run:
                said = summary(run, "table", "--by", "place", columns=200)
        self.assertEqual(re.findall(r"(\d+) MiB +[\d.]+% .* (asks.py:\d+ \w+)", said), [("300", "asks.py:6 train"), ("100", "asks.py:7 train")])

    def test_stages_that_differ_by_design_are_groups_of_their_own(self):
        """Four ranks hold a little at one line, four hold much at another: none of them is an outlier."""
        def steps(rank):
            return ["device=%d" % rank] + (["alloc=100"] * 3 if rank < 4 else ["losses=900"] * 3)
        with Ranks(8, steps) as ranks:
            self.absent("ranks.outlier", ranks.report())
            self.assertIn("note 4 ranks do the same, 300 MiB at the peak: 0-3 note 4 ranks do the same, 2.64 GiB at the peak: 4-7 ", whole(ranks))

    def test_an_outlier_is_one_of_its_own_stage(self):
        def steps(rank):
            return ["device=%d" % rank] + (["alloc=100"] * 3 if rank < 4 else ["losses=900"] * (4 if rank == 6 else 3))
        with Ranks(8, steps) as ranks:
            found = self.found("ranks.outlier", ranks.report())
        self.assertEqual([finding["rank"] for finding in found], [6])
        self.assertIn("more than the median of 4 ranks that do the same", found[0]["description"])

    def test_a_context_on_anothers_device(self):
        def steps(rank):
            return (["device=0", "alloc=8", "device=1", "alloc=500"] if rank else ["device=0", "alloc=500"]) + ["samples=4", "meet=done"]
        with Ranks(2, steps) as ranks:
            found = self.found("ranks.stray_context", ranks.report())
        self.assertEqual([(finding["rank"], finding["device"]) for finding in found], [(1, 0)])
        self.assertIn("before the first GPU call", found[0]["recommendation"])

    def test_who_turns_to_anothers_device_later_is_not_told_to_choose_its_own_first(self):
        def steps(rank):
            return (["device=1", "alloc=500", "device=0", "alloc=8"] if rank else ["device=0", "alloc=500"]) + ["samples=4", "meet=done"]
        with Ranks(2, steps) as ranks:
            (finding,) = self.found("ranks.stray_context", ranks.report())
        self.assertIn("name the process's own device in that line", finding["recommendation"])

    def test_contexts_on_all_devices_of_all_ranks_are_one_finding(self):
        def steps(rank):
            return ["device=0", "device=1", "device=2", "device=%d" % rank, "alloc=100", "meet=done"]
        with Ranks(3, steps) as ranks:
            (finding,) = self.found("ranks.stray_context", ranks.report())
        self.assertRegex(finding["description"], r"rank 0, rank 1, rank 2 use devices that are other ranks'; 6 stray contexts there, first at script.py:\d+")

    def test_workers_without_ranks_that_use_the_first_device_before_their_own(self):
        """Workers are processes, as multiprocessing makes them; in the run that must not show it they use the first device after their own."""
        for order, told in (("device=0 alloc=8 device=%d alloc=500", True), ("device=%d alloc=500 device=0 alloc=8", False)):
            with Ranks(3, lambda rank: (order % rank).split() + ["samples=4", "meet=done"], numbered=False) as run:
                if told:
                    (finding,) = self.found("ranks.stray_context", run.report())
                    self.assertRegex(finding["description"], r"^pid \d+, pid \d+ use device 0, which is pid \d+'s; 2 stray contexts and 16 MiB there, first at script.py")
                else:
                    self.absent("ranks.stray_context", run.report())

    def test_workers_one_after_the_other_that_each_keep_their_results_fill_no_device(self):
        """Each begins anew; one that works alone is forecast."""
        worker = """
import ctypes, sys, time
rt = ctypes.CDLL("libcudart.so.13")
kept = []
for step in range(20):
    block, spare = ctypes.c_void_p(), ctypes.c_void_p()
    rt.cudaMalloc(ctypes.byref(spare), ctypes.c_size_t(8 << 20))
    rt.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(3 << 20))
    kept.append(block)
    time.sleep(0.005)
    rt.cudaFree(spare)
for block in kept:
    rt.cudaFree(block)
"""
        for workers in 1, 3:
            start = "import subprocess, sys\nfor _ in range(%d): subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)" % workers
            with self.subTest(workers), Recording("/usr/bin/python3", "-c", start, worker) as run:
                text = " ".join(summary(run).split())
                self.assertIn("LEAK", text)
                self.assertEqual("is full in" in text, workers == 1)
                self.assertIn("freed only as " + ("the program ended" if workers == 1 else "each process ended"), text)
        with tempfile.TemporaryDirectory() as folder:  # each is a program of its own
            for name in "first.py", "second.py":
                with open(os.path.join(folder, name), "w") as file:
                    file.write(worker)
            start = "import subprocess, sys\nfor path in sys.argv[1:]: subprocess.run([sys.executable, path], check=True)"
            with Recording("/usr/bin/python3", "-c", start, *(os.path.join(folder, name) for name in ("first.py", "second.py"))) as run:
                text = " ".join(summary(run).split())
        self.assertIn("freed only as the program ended", text)
        self.assertNotIn("as each process ended", text)

    def test_frees_that_fail_are_told_with_their_line(self):
        with script(*["alloc=2"] * 12, "beside", "free") as run:
            (finding,) = self.found("leak.failed_free", run.report())
            shown = whole(run)
        self.assertRegex(finding["description"], r"^cudaFree failed 12 times, first with error 1, and freed no block: script\.py:\d+ free_beside")
        self.assertEqual(finding["severity"], "info")
        self.assertRegex(shown, r" note cudaFree failed 12 times")
        with script("alloc=2", "beside", "free") as run:
            (finding,) = self.found("leak.failed_free", run.report())
        self.assertRegex(finding["description"], "^cudaFree failed with error 1 and freed no block: ")
        freed = 'import ctypes; ctypes.CDLL("libamdhip64.so.6").hipFree(ctypes.c_void_p(4096))'
        with Recording("/usr/bin/python3", "-c", freed) as run:
            (finding,) = self.found("leak.failed_free", run.report())
        self.assertRegex(finding["description"], "^hipFree failed with error 1 and freed no block: ")
        self.assertRegex(finding["recommendation"], "(?i)^(?!.*cuda).*hipFree for hipMalloc, hipHostFree for hipHostMalloc")
        for quiet in ["alloc=2"] * 12 + ["free"], ["alloc=2", "try=900000", "beside", "free"]:  # frees that succeed; a free after a request that failed
            with script(*quiet) as run:
                self.absent("leak.failed_free", run.report())

    def test_threads_that_all_work_on_the_first_device_are_told_where_another_was_set_and_there_is_one_for_each(self):
        program = """
import ctypes, threading
rt = ctypes.CDLL("libcudart.so.13")
def serve():
    for i in range(20):
        p = ctypes.c_void_p()
        rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20))
        rt.cudaFree(p)
threads = [threading.Thread(target=serve) for n in range(4)]
for n, thread in enumerate(threads):
    %s
    thread.start()
for thread in threads:
    thread.join()
"""
        for then, devices, told in ("rt.cudaSetDevice(n)", 4, True), ("pass", 4, False), ("rt.cudaSetDevice(n % 3)", 3, False):
            with self.subTest(then), Recording("python3", "-c", program % then, SIM_DEVICES=str(devices)) as run:
                report = run.report()
            if not told:  # as in a server whose pool happens to have as many threads as there are devices
                self.absent("stray.threads", report)
                continue
            (finding,) = self.found("stray.threads", report)
            self.assertEqual((finding["severity"], finding["device"]), ("info", 0))
            self.assertRegex(finding["description"], r"^4 threads stray to device 0 and use no other, although there is a device for each; \S")

    def test_two_ranks_that_share_a_device_are_no_strays(self):
        with Ranks(2, lambda rank: ["device=0", "alloc=500", "samples=4", "meet=done"], devices=1) as ranks:
            self.absent("ranks.stray_context", ranks.report())

    def test_who_ran_out_first_by_the_clock(self):
        def steps(rank):
            return ["device=%d" % rank, "alloc=10"] + (["try=900000", "meet=first"] if rank == 1 else ["meet=first", "try=900000"])
        with Ranks(3, steps) as ranks:
            found = self.found("ranks.first", ranks.report())
        self.assertEqual([finding["rank"] for finding in found], [1])

    def test_one_session_of_all_ranks(self):
        with Ranks(3, lambda rank: ["device=%d" % rank, "alloc=100"]) as ranks:
            report = ranks.report()
            self.assertIsNotNone(report["cross_rank"])
            sink = os.path.join(ranks.run.folder, "merged")
            subprocess.run([ANALYZE, "merge", ranks.traces, "-o", sink], check=True, timeout=600)
            with open(os.path.join(sink, "manifest.json")) as file:
                manifest = json.load(file)
        self.assertEqual(len(manifest["sessions"]), 1)


class Hidden(Answers):
    def test_contexts_and_code_by_name(self):
        with script("module", "module", "alloc=10", "samples=3", SIM_MODULE_BYTES="64M", CUDA_MODULE_LOADING="EAGER") as run:
            hidden = run.report()["run"]["devices"][0]["hidden"]
        by = {(name["what"]): name for name in hidden}
        self.assertEqual(by["code"]["bytes"], 128 * MIB)
        self.assertIn("context", by)
        self.assertEqual(by["code"]["library"], "script.py")

    def test_code_that_is_loaded_lazily_is_named_with_its_line(self):
        for steps, calls in ((["module", "function"], {"cuModuleGetFunction": 1}), (["kernel", "launch=50"], {"cuLaunchKernel": 1})):
            with script(*steps, "alloc=10", "samples=3", SIM_MODULE_BYTES="400M", SIM_VRAM="4G") as run:
                report, text = run.report(), whole(run)
            by = {name["what"]: name for name in report["run"]["devices"][0]["hidden"]}
            self.assertEqual((by["code"]["bytes"], by["code"]["library"]), (400 * MIB, "script.py"))
            self.assertNotIn("unexplained", by)
            self.assertIn("code of script.py 400 MiB", text)
            (finding,) = self.found("hidden.place", report)
            where = {"function": "get_function", "launch=50": "launch"}[steps[1]]
            self.assertRegex(finding["description"], r"script.py:\d+ " + where + ".* loads 400 MiB of code, ")
            apis = {api["api"]: api["calls"] for api in report["processes"][0]["apis"]}
            self.assertLessEqual(calls.items(), apis.items())  # only the first of the fifty launches is an event

    def test_a_launch_that_finds_no_room_for_its_code_says_so(self):
        with script("kernel", "alloc=10", "push=step 3", "launch=2", "pop", SIM_MODULE_BYTES="4G", SIM_VRAM="2G") as run:
            report = run.report()
        first, again = report["ooms"]
        self.assertEqual([(oom["api"], oom["scope"]) for oom in (first, again)], [("cuLaunchKernel", "code")] * 2)
        self.assertIn("launch", [frame["function"] for frame in first["stack"]])

    def test_neighbours_that_come_and_go_change_no_figure_of_the_process(self):
        """On a real H200 what ten neighbours took between two readings of the device was told as this process's code: 987 MiB, truth 0."""
        steps = ["alloc=10", "samples=3", *["kernel", "launch=50", "samples=2"] * 4, "alloc=20", "samples=3"]
        shown = []
        for others in (dict(), dict(SIM_NEIGHBOURS=10, SIM_NEIGHBOUR_BYTES="400M")):
            with script(*steps, SIM_MODULE_BYTES="24M", SIM_VRAM="16G", **others) as run:
                (device,) = run.report()["run"]["devices"]
                text = whole(run)
            shown.append({"peak": device["hidden_peak_bytes"], "figure": device["hidden_figure"],
                          **{name["what"]: name["bytes"] for name in device["hidden"]}})
            self.assertEqual(bool(others), "other processes held" in text)
            self.assertEqual(bool(others), device["others"] > 1)
        self.assertEqual(shown[0], {"peak": 396 * MIB, "figure": "process", "context": 300 * MIB, "code": 96 * MIB})
        self.assertEqual({name: shown[1].get(name) for name in ("peak", "figure", "context")}, {name: shown[0][name] for name in ("peak", "figure", "context")})
        self.assertLessEqual(shown[1].get("code", 0), shown[0]["code"])  # what was freed meanwhile may hide some of it

    def test_code_beside_neighbours_is_one_figure(self):
        """What neighbours take between two readings is no code: 3.2 GiB were told of 30 modules, truth 120 MiB, and a third in another place."""
        with script("alloc=10", "samples=3", *["module", "function"] * 30, "samples=3", SIM_NEIGHBOURS=3, CUDA_MODULE_LOADING="EAGER", SIM_MODULE_BYTES="4M",
                    SIM_VRAM="16G") as run:
            report = run.report()
        (device,) = report["run"]["devices"]
        (place,) = (one["bytes"] for one in report["findings"] if one["id"] == "hidden.place")
        (code,) = (name["bytes"] for name in device["hidden"] if name["what"] == "code")
        modules = [verdict["bytes"] for verdict in report["answer"]["verdicts"] if verdict["word"] == "LEAK"]
        for said in (place, code, *modules):
            self.assertAlmostEqual(said, 120 * MIB, delta=6 * MIB)
        self.assertEqual(len(modules), 1)

    def test_the_report_names_the_figure_it_used(self):
        """A container that lists no process, one that lists strange numbers, and HIP without the kernel's list of processes."""
        steps = ["alloc=100", "samples=4"]
        for pids, figure in (("host", "process"), ("none", "device"), ("others", "device")):
            with self.subTest(pids), script(*steps, SIM_PIDS=pids, SIM_NEIGHBOURS=3, SIM_NEIGHBOUR_BYTES="100M") as run:
                (device,) = run.report()["run"]["devices"]
                words, (drawn,) = whole(run), run.page()["devices"]
                said = [subprocess.run([e2e.ANALYZE, "check", "--max-hidden", limit, run.traces], capture_output=True, text=True).stdout
                        for limit in ("100M", "2G")]
            self.assertRegex(said[0], "(?m)^FAIL +max-hidden +hidden 300 MiB" if pids == "host" else "(?m)^unknown +max-hidden .* at most \\d+ MiB,\\s+what other")
            self.assertRegex(said[1], "(?m)^ok +max-hidden +hidden %s" % ("300" if pids == "host" else "at most"))
            self.assertEqual((device["hidden_figure"], drawn["hidden_figure"]), (figure, figure))
            self.assertIn("highest own figure" if pids == "host" else "the device's highest sample", words)
            if pids != "host":  # a bound: neighbours are part of it
                self.assertGreaterEqual(device["hidden_peak_bytes"], 300 * MIB)
        with script("alloc=100", "samples=4", SIM_MIG=1, SIM_NEIGHBOURS=3) as run:
            self.assertEqual([(device["hidden_peak_bytes"], device["hidden_figure"]) for device in run.report()["run"]["devices"]], [(300 * MIB, "process")])

    def test_without_code_there_is_no_code(self):
        with script("alloc=10", "samples=3") as run:
            hidden = run.report()["run"]["devices"][0]["hidden"]
        self.assertNotIn("code", {name["what"] for name in hidden})


    def test_each_with_the_step_in_which_it_appeared(self):
        steps = ["alloc=10", "samples=2", *sum([["push=step %d" % n] + ["module"] * (n == 3) + ["sleep=0.05", "pop"] for n in range(6)], []), "samples=2"]
        with script(*steps, SIM_MODULE_BYTES="64M", CUDA_MODULE_LOADING="EAGER") as run:
            report, text = run.report(), whole(run)
        by = {name["what"]: name for name in report["run"]["devices"][0]["hidden"]}
        self.assertEqual((by["code"]["bytes"], by["code"]["label"], by["code"]["step"]), (64 * MIB, "step #", 3))
        self.assertEqual((by["context"]["bytes"], by["context"]["label"], by["context"]["step"]), (300 * MIB, None, None))
        self.assertLess(by["context"]["first_ns"], by["code"]["first_ns"])
        self.assertIn("code of script.py 64 MiB (step 3)", text)

    def test_of_a_device_over_all_processes_that_were_recorded_on_it(self):
        def steps(rank):
            return ["device=0", "alloc=%d" % (100 + 100 * rank), "meet=there", "samples=4", "meet=done"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G") as ranks:
            report = ranks.report()
        (device,) = report["run"]["devices"]
        contexts = [name for name in device["hidden"] if name["what"] == "context"]
        self.assertEqual({name["pid"] for name in contexts}, {process["pid"] for process in report["processes"]})
        self.assertEqual([name["bytes"] for name in contexts], [300 * MIB] * 2)
        self.assertEqual(device["hidden_peak_bytes"], 600 * MIB)
        self.assertNotIn("process", {name["what"] for name in device["hidden"]})  # no unknown process, since both were recorded

    def test_of_a_process_whose_context_another_sees_before_the_call_that_makes_it_is_over(self):
        def steps(rank):
            first = ["samples=3", "meet=first"]
            return ["device=0", *first[1:] * rank, "alloc=100", *first * (1 - rank), "samples=9", "meet=done"]
        with Ranks(2, steps, devices=1, SIM_VRAM="8G", SIM_LATENCY="cuDevicePrimaryCtxRetain:1000000000") as ranks:
            report = ranks.report()
        (device,) = report["run"]["devices"]
        self.assertEqual({(name["what"], name["pid"]) for name in device["hidden"]},
                         {("context", process["pid"]) for process in report["processes"]})

    def test_what_a_pool_keeps_is_no_context(self):
        with Recording(os.path.join(e2e.BUILD, "doc", "examples", "solver"), SIM_VRAM="8G", SIM_DEVICES="1") as run:
            hidden = run.report()["run"]["devices"][0]["hidden"]
        self.assertLessEqual(sum(name["bytes"] for name in hidden if name["what"] == "context"), 300 * MIB)


class Telemetry(Answers):
    def samples(self, run, *options):
        summary(run, *options)
        folder = os.path.join(run.traces, "analysis", "telemetry")
        events = []
        for root, _, files in os.walk(folder):
            for name in files:
                if name.startswith("segment-"):
                    with open(os.path.join(root, name)) as file:
                        events += [json.loads(line) for line in file]
        return events

    def test_no_more_samples_than_asked_and_the_peak_is_among_them(self):
        with script("grow=100", "free") as run:
            events = self.samples(run, "--telemetry-samples", "16")
            peak = run.report()["processes"][0]["memory"][0]["peak_bytes"]
        samples = [event for event in events if event["event_type"] == "sample"]
        self.assertLessEqual(len(samples), 16)
        self.assertEqual(max(event["allocator_reserved_bytes"] for event in samples), peak)
        for event in events:
            self.assertGreaterEqual(event["device_used_bytes"], event["allocator_reserved_bytes"])

    def test_pytorchs_blocks_are_active_and_what_it_keeps_is_not(self):
        with script(*["tensor=128"] * 4, "samples=2", "drop", "samples=3") as run:
            events = self.samples(run)
        last = [event for event in events if event["event_type"] == "sample"][-1]
        self.assertEqual([last["allocator_%s_bytes" % name] for name in ("reserved", "allocated", "active", "inactive")],
                         [512 * MIB, 256 * MIB, 256 * MIB, 256 * MIB])
        with script("alloc=100", "samples=2") as run:
            events = self.samples(run)
        self.assertEqual({(event["allocator_active_bytes"], event["allocator_inactive_bytes"]) for event in events}, {(None, None)})
        self.assertEqual(max(event["allocator_allocated_bytes"] for event in events), 100 * MIB)

    def test_ranges_of_every_depth_are_phases(self):
        with script("alloc=1", *sum([["push=step %d" % n, "push=forward", "alloc=10", "pop", "free", "pop"] for n in range(5)], [])) as run:
            (session,) = run.report()["telemetry"]["per_session"].values()
        table = session["phase_spans"]
        spans = [dict(zip(table["columns"], row)) for row in table["rows"]]
        self.assertEqual([table["paths"][span["path"]] for span in spans],
                         [path for n in range(5) for path in (["step %d" % n], ["step %d" % n, "forward"])])
        for span in spans:
            self.assertLess(span["start_ns"], span["end_ns"])
        self.assertFalse([span for span in spans if span["synthetic_end"]])

    def collectives(self, *inside):
        """Two ranks whose hidden memory rises at the same moment near the end, in a step, after the calls of `inside`."""
        def steps(rank):
            closing = ["pop" for step in inside if step.startswith("push")]
            return ["device=%d" % rank, "alloc=100", "samples=70", "meet=there", "push=step 1", *inside, "module", "samples=6", *closing, "pop"]
        with Ranks(2, steps, SIM_VRAM="8G", SIM_MODULE_BYTES="512M", CUDA_MODULE_LOADING="EAGER", STORMLOG_DEVICE_INTERVAL="20") as ranks:
            report = ranks.report("--telemetry-samples", "40")
        reasons = [reason for preset in report["telemetry"]["per_session"].values() for found in preset["collective_attribution"]["high"]
                   for reason in found["reason_codes"]]
        return report, set(reasons)

    def test_ranges_of_nccl_are_markers_of_collectives(self):
        report, reasons = self.collectives("push=NCCL:ncclAllReduce")
        self.assertIn("marker_collective_token", reasons)
        self.assertIn("cross_rank_synchrony", reasons)

    def test_other_ranges_are_not(self):
        _, reasons = self.collectives("push=backward")
        self.assertNotIn("marker_collective_token", reasons)

    def test_thresholds_of_gaps_and_states_of_issues_are_options(self):
        growing = ["alloc=100", *["module", "samples=1"] * 8]
        with script(*growing, "try=900000", SIM_VRAM="8G", SIM_MODULE_BYTES="128M", CUDA_MODULE_LOADING="EAGER") as run, \
                tempfile.NamedTemporaryFile("w") as states:
            report = run.report()
            self.assertIn("persistent_drift", {finding["classification"] for finding in report["gap_findings"]})
            self.assertEqual(run.report("--set", "gap-ratio=0.9")["gap_findings"], [])
            (issue,) = [issue for issue in report["telemetry"]["issues"] if issue["kind"] == "oom"]
            self.assertEqual(issue["state"], "open")
            json.dump({issue["fingerprint_id"]: "ignored"}, states)
            states.flush()
            issues = run.report("--issue-states", states.name)["telemetry"]["issues"]
            self.assertEqual([one["state"] for one in issues if one["kind"] == "oom"], ["ignored"])
            summary(run, "--issue-states", "/nowhere", code=2)
            for text in "[]", "null", '{"a": "open",\n"b": "bogus"}', '{"a": 1}':
                states.seek(0)
                states.truncate()
                states.write(text)
                states.flush()
                done = subprocess.run([ANALYZE, "--json", "--issue-states", states.name, run.traces], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (2, ""), text)
                self.assertRegex(done.stderr, "^%s:%d: .* open, resolved, ignored or regressed\n$" % (states.name, 1 + text.count("\n")))

    def test_an_alert_where_the_device_was_nearly_full_and_none_elsewhere(self):
        with script("alloc=7000", "samples=3", SIM_VRAM="8G") as run:
            self.assertIn("warning", {event["event_type"] for event in self.samples(run)})
        with script("alloc=50", "samples=3", SIM_VRAM="8G") as run:
            self.assertFalse({"warning", "critical"} & {event["event_type"] for event in self.samples(run)})


class Retried(Answers):
    def test_a_snapshot_s_request_that_found_no_memory_at_first(self):
        with tempfile.TemporaryDirectory() as folder:
            for retried in (True, False):
                allocator = made.Allocator()
                allocator.free(allocator.alloc(90 << 20))
                stack = made.frames("train.py:70 main", native=("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(signed char)",) if retried else ())
                allocator.empty_cache(stack if retried else None)
                for size in [400 << 20] + 10 * [1000]:
                    allocator.alloc(size, stack)
                path = os.path.join(folder, "s.pickle")
                with open(path, "wb") as file:
                    pickle.dump(made.snapshot(allocator)[0], file)
                report = json.loads(subprocess.run([ANALYZE, "report", "--json", path], capture_output=True, check=True).stdout)
                if retried:
                    self.assertEqual(self.found("memory.retried", report)[0]["severity"], "warning")
                else:
                    self.absent("memory.retried", report)
                done = subprocess.run([ANALYZE, "check", "--fail-on", "warning", path], capture_output=True, text=True)
                self.assertEqual((done.returncode, "asks 400 MiB and finds no memory at first" in " ".join(done.stdout.split())), (retried, retried), done.stdout)


class Page(unittest.TestCase):
    def test_no_line_is_wider_than_the_terminal_and_none_ends_in_a_word(self):
        with Recording(app("oom"), "retry") as run, Recording("python3", CTYPES) as other:
            for one in (run, other):
                wide = summary(one, columns=120).split()
                for columns in (60, 80, 100):
                    text = summary(one, columns=columns)
                    for line in text.splitlines():
                        if not line.startswith("report "):
                            self.assertLessEqual(len(line), columns, line)
                    cut = {word for word in text.split() if word == "\\" or word.endswith("…") or set(word) <= set("▁▂▃▄▅▆▇█▏▎▍▌▋▊▉")}
                    self.assertLessEqual(set(text.split()) - cut, set(wide))

    def test_the_script_owns_what_it_asks_through_ctypes(self):
        with Recording("python3", CTYPES) as run:
            report, text = run.report(), summary(run)
        self.assertEqual({row["library"] for row in report["processes"][0]["libraries"]}, {"ctypes_alloc.py"})
        for name in ("libpython", "libffi", "_ctypes"):
            self.assertNotIn(name, text)

    def test_the_line_that_calls_into_a_package_of_the_programs_own_stands_behind_its_frames(self):
        """The three frames shown are the package's, so the line of its user is added: the innermost one in the folder where the program begins."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "nano"))
            for name, lines in {"nano/__init__.py": ["import ctypes", "cuda = ctypes.CDLL('libcudart.so.12')", "from .layer import forward"],
                                "nano/tensor.py": ["import ctypes, nano", "def empty():", "    p = ctypes.c_void_p()",
                                                   "    assert not nano.cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20))", "    return p"],
                                "nano/layer.py": ["from . import tensor", "def unary(): return tensor.empty()", "def relu(): return unary()",
                                                  "def layer(): return relu()", "def forward(): return layer()"],
                                "steps.py": ["import nano, time", "def step():", "    time.sleep(0.002)", "    return nano.forward()"],
                                "train.py": ["import steps", "outputs = []", "for i in range(200):", "    outputs.append(steps.step())"]}.items():
                with open(os.path.join(folder, name), "w") as file:
                    file.write("\n".join(lines) + "\n")
            with Recording("python3", "train.py", cwd=folder) as run:
                leak, = (one for one in run.report()["findings"] if one["kind"] == "leak.growing")
                text = " ".join(summary(run, columns=100).split())
        self.assertRegex(leak["description"], r"^tensor.py:4 keeps ")
        self.assertRegex(text, r"LEAK .* steps.py:4 .*<- ")

    def test_a_quiet_run_is_quiet(self):
        with script("alloc=30", "free") as run:
            text = summary(run)
        self.assertIn("\nOK   no leak, no failed request\n", text)
        self.assertLessEqual(len(text.splitlines()), 9, text)


if __name__ == "__main__":
    unittest.main()
