#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze check: a leak has the same size in all outputs, and the gate fails on no leak that the first screen does not show."""
import json
import os
import re
import subprocess
import sys
import unittest

import outside
from test_check import ANALYZE, HERE, Folder, Recording, check

MIB = 1 << 20

# Every second block is kept.  At the end all are freed, or none: then the last free is that of the last block that was not kept.
HALF = '''
import ctypes, os, signal, time
cudart, kept = ctypes.CDLL("libcudart.so.13"), []
def free(p):
    assert cudart.cudaFree(p) == 0
def remember():
    for i in range(80):
        p = ctypes.c_void_p()
        assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(3 << 20)) == 0
        time.sleep(0.003)
        kept.append(p) if i % 2 == {odd} else free(p)
remember()
if {free}:
    for p in kept:
        free(p)
{end}
'''


# Blocks of 3 and 5 MiB, of which 50 are kept until the end and do not become more; the device has units of 2 MiB.
UNITS = '''
import ctypes, time
cudart = ctypes.CDLL("libcudart.so.13")
def take(mib=3):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
kept = [take()]
time.sleep(0.3)
kept += [take(5 if i % 2 else 3) for i in range(49)]
for i in range(30):
    p = take()
    time.sleep(0.01)
    cudart.cudaFree(p)
time.sleep(0.1)
'''

# One line keeps all its blocks on device 1, but only the last ones on devices 0 and 2.
DEVICES = '''
import ctypes, time
cudart, held = ctypes.CDLL("libcudart.so.13"), {}
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
for i in range(30):
    device = i % 3
    cudart.cudaSetDevice(device)
    held[i] = take((device + 1) * 4)
    passing = take(1)
    cudart.cudaFree(passing)
    if i > 12 and device != 1:
        cudart.cudaFree(held.pop(i - 12 if i - 12 in held else i))
    time.sleep(0.008)
time.sleep(0.11)
'''
# Two processes hold 8 and 12 MiB at one line at the same time; one makes and frees 4 MiB later.
SHARED = '''
import ctypes, os
cudart, child = ctypes.CDLL("libcudart.so.13"), 0
readers, writers = zip(os.pipe(), os.pipe())
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
def work(mine, others, mib):
    p = take(mib)
    os.write(writers[mine], b"held")
    os.read(readers[others], 4)
    os.write(writers[mine], b"seen")
    os.read(readers[others], 4)
    cudart.cudaFree(take(4) if mine else None)
child = os.fork()
work(int(child == 0), int(child != 0), 8 if child else 12)
if child:
    os.waitpid(child, 0)
'''

# One line makes a block of 20 MiB and one of 3, and keeps the small one, in 41 steps.
BESIDE = '''
import ctypes, time
cudart, nvtx, kept = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnvToolsExt.so.1"), []
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
for i in range(41):
    nvtx.nvtxRangePushA(b"step_%d" % i)
    passing, small = [take(mib) for mib in (20, 3)]
    kept.append(small)
    time.sleep(0.005)
    cudart.cudaFree(passing)
    nvtx.nvtxRangePop()
'''

# One line makes a block of 200 MiB, which is freed, and one of 3, which is kept, until memory runs out or the program is killed.
ENDS = '''
import ctypes, os, signal, sys, time
cudart, kept = ctypes.CDLL("libcudart.so.13"), []
def take(mib):
    p = ctypes.c_void_p()
    if cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)):
        os._exit(1)
    return p
while True:
    passing, small = [take(mib) for mib in (200, 3)]
    kept.append(small)
    time.sleep(0.002)
    if sys.argv[1:] and len(kept) == 100:
        os.kill(os.getpid(), signal.SIGKILL)
    cudart.cudaFree(passing)
'''

# One line is reached from 61 others: 80 times from the first, 4 times from each of the rest.
REACHED = '''
import ctypes, time
cudart, kept = ctypes.CDLL("libcudart.so.13"), []
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
def store():
    passing = take(2)
    kept.append(take(1))
    time.sleep(0.0005)
    cudart.cudaFree(passing)
def enter():
    store()
exec("\\n".join("def by_%d():\\n    enter()" % i for i in range(61)))
for i in range(240):
    if i % 3 == 0:
        by_0()
    globals()["by_%d" % (1 + i % 60)]()
'''

# One line keeps 2 MiB on device 0 in each of 60 steps, and 6 MiB on device 1 in every second step.
TWICE = '''
import ctypes, time
cudart = ctypes.CDLL("libcudart.so.13")
for i in range(60):
    for device, mib in ((0, 2), (1, 6))[:1 + i % 2]:
        cudart.cudaSetDevice(device)
        assert cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(mib << 20)) == 0
    time.sleep(0.005)
time.sleep(0.1)
'''

# Keeps a block of 3 MiB every 20 ms, which takes 4 MiB of the device.
GROWS = '''
import ctypes, time
cudart = ctypes.CDLL("libcudart.so.13")
for i in range(60):
    assert cudart.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(3 << 20)) == 0
    time.sleep(0.02)
'''

# Also allocates 20 GiB and frees them at once.
PASSES = '''    passing = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(passing), ctypes.c_size_t(20 << 30)) == 0
    assert cudart.cudaFree(passing) == 0
    time'''

# In every 20th turn six blocks are kept at once; each turn makes and frees another block.
BURSTS = '''
import ctypes, time
cudart, kept = ctypes.CDLL("libcudart.so.13"), []
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
for i in range(120):
    passing = take(1)
    if i % 20 == 5:
        for k in range(6):
            kept.append(take(2))
    time.sleep(0.002)
    cudart.cudaFree(passing)
'''

# Four threads allocate at one line; one of them frees nothing.
THREADS = '''
import ctypes, threading, time
cudart = ctypes.CDLL("libcudart.so.13")
def work(frees):
    for i in range(60):
        p = ctypes.c_void_p()
        assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(1 << 20)) == 0
        time.sleep(0.002)
        cudart.cudaFree(p) if frees else kept.append(p)
kept = []
threads = [threading.Thread(target=work, args=(i != 2,)) for i in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
'''


def screen_of(run):
    """Every verdict, row and note, as one line."""
    return " ".join(subprocess.run([ANALYZE, "--all", run.traces], capture_output=True, text=True, check=True).stdout.split())


def leaks_of(report):
    """{device: [headline, kept bytes, why]} of the verdicts that are leaks, each device once."""
    verdicts = [one for one in report["answer"]["verdicts"] if one["word"] == "LEAK"]
    found = {one["device"]: [one["headline"], int(one["figures"]["kept_bytes"]), " ".join(one["why"])] for one in verdicts}
    assert len(found) == len(verdicts), verdicts
    return found


class Healthy(Folder):
    def test_what_the_first_screen_does_not_warn_of_fails_no_gate(self):
        with Recording(sys.executable, self.path("units.py", UNITS), SIM_VRAM="2G", STORMLOG_DEVICE_INTERVAL=10) as run:
            report = run.report()
            self.assertEqual([f["id"] for f in report["findings"] if f["severity"] != "info"], [])
            hidden = {part["what"]: part["bytes"] for part in report["run"]["devices"][0]["hidden"]}
            # the first sample shows the context, and the rounding of the blocks that there are by then
            self.assertEqual(set(hidden), {"context", "rounding"})
            self.assertEqual(sum(hidden.values()), (300 + 50 + 1) << 20)
            screen = screen_of(run)
            self.assertRegex(screen, r"about [\d.]+ MiB rounding to 2 MiB")
            self.assertNotIn("LEAK", screen)
            out = check("--fail-on", "warning", "--fail-on-gaps", run.traces).stdout
            self.assertRegex(out, r"(?m)^also +left +195 MiB still held at the end, at units.py:\d+ ")
            self.assertNotRegex(out, r"transient_spike|persistent_drift")


class Leaks(Folder):
    def test_a_leak_has_one_size_everywhere_whether_or_not_the_program_frees_it_as_it_ends(self):
        with open(os.path.join(HERE, "..", "..", "schemas", "report.schema.json")) as file:
            schema = json.load(file)
        for free, verdict in ((False, "growing"), (True, "kept")):
            script = self.path("half%d.py" % free, HALF.format(free=free, odd=int(free), end="os._exit(0)"))
            with self.subTest(free=free), Recording(sys.executable, script, SIM_VRAM="8G") as run:
                report, size = run.report(), 120 << 20
                [leak] = report["leaks"]
                self.assertEqual((leak["verdict"], leak["bytes"], leak["blocks"]), (verdict, size, 40))
                outside.validate(self, json.loads(subprocess.check_output([ANALYZE, "--json", run.traces])), schema)
                self.assertRegex(screen_of(run), r" LEAK half\d.py:\d+ keeps 3 MiB every .* 40 of the 80 blocks that \S+ made were .*, 120 MiB\. ")
                [(_, kept, _)] = leaks_of(report).values()
                self.assertEqual(kept, size)
                check("--max-leak", "120M", run.traces)
                out = check("--max-leak", "119M", run.traces, code=1).stdout
                self.assertRegex(out, r"FAIL +max-leak +left at the end 120 MiB, limit 119 MiB; most of it 120 MiB at half\d.py:\d+ remember")
                runs = subprocess.run([ANALYZE, "runs", run.traces], capture_output=True, text=True).stdout
                self.assertRegex(runs, r"120 MiB")
                page = run.page()
                if page:
                    self.assertEqual(([verdict["bytes"] for verdict in page["answer"]["verdicts"]], page["processes"][0]["leaks"]), ([size], size))
                    [view] = [moment for moment in page["moments"] if moment["kind"] == "leaks"]
                    self.assertEqual(sum(view["bytes"]), size)

    def test_a_line_that_makes_a_passing_block_too_leaks_what_it_keeps_at_one_rate(self):
        with Recording(sys.executable, self.path("beside.py", BESIDE), SIM_VRAM="8G") as run:
            report = run.report()
            [leak], [found] = report["leaks"], [one for one in report["findings"] if one["kind"] == "leak.growing"]
            self.assertIn("keeps 3 MiB of every step; 41 of the 82 blocks that ", found["description"])
            self.assertEqual(leak["growth_bytes_per_second"], found["evidence"]["per_second"])

    def test_the_evidence_of_a_leak_is_of_its_own_device(self):
        with Recording(sys.executable, self.path("twice.py", TWICE), SIM_VRAM="8G") as run:
            found = {one["device"]: one for one in run.report()["findings"] if one["kind"] == "leak.growing"}
            self.assertEqual({device: (one["bytes"] >> 20, one["evidence"]["kept"]) for device, one in found.items()}, {0: (120, 60), 1: (180, 30)})

    def test_what_a_place_keeps_is_what_was_live_when_the_program_ended(self):
        for how, code in ([], 1), (["killed"], -9):
            with self.subTest(code=code), Recording(sys.executable, self.path("ends.py", ENDS), *how, code=code, SIM_VRAM="1G") as run:
                report, [truth] = run.report(), run.truth()
                screen = screen_of(run)
            row = truth.memory["device", 0]
            self.assertRegex(screen, "%d of (the )?%d blocks that .* were (never freed|still held), %d MiB" % (row.live_blocks, row.allocations, row.live_bytes / MIB))
            [finding] = [one for one in report["findings"] if one["id"] == "leak.growing"]
            self.assertEqual(finding["bytes"], row.live_bytes)
            if code == 1:
                self.assertEqual({leak["verdict"]: leak["bytes"] for leak in report["leaks"]}, {"growing": row.live_bytes})

    def test_of_a_line_that_many_stacks_reach_all_blocks_are_kept(self):
        with Recording(sys.executable, self.path("reached.py", REACHED)) as run:
            row = run.truth()[0].memory["device", 0]
            self.assertEqual((row.live_blocks, row.live_bytes), (320, 320 * MIB))
            [verdict], [found] = leaks_of(run.report()).values(), [one for one in run.report()["findings"] if one["kind"] == "leak.growing"]
            self.assertRegex(verdict[0], r"^reached.py:\d+ keeps 4 MiB of every pass$")
            self.assertRegex(screen_of(run), r" LEAK reached.py:\d+ keeps .* all 320 blocks that reached.py:\d+ made were never freed, 320 MiB\. ")
            self.assertRegex(found["description"], r"^reached.py:\d+ keeps 4 MiB of every pass; all 320 blocks that .* were never freed, 320 MiB$")
            self.assertEqual((found["bytes"], found["evidence"]["kept"]), (row.live_bytes, row.live_blocks))
            self.assertEqual({leak["verdict"] for leak in run.report()["leaks"]}, {"growing"})
            folder = self.path("run.summary")
            subprocess.run([ANALYZE, "summarize", "-o", folder, run.traces], check=True)
            self.assertRegex(" ".join(subprocess.run([ANALYZE, folder], capture_output=True, text=True).stdout.split()),
                             r" LEAK reached.py:\d+ keeps .* all 320 blocks that reached.py:\d+ made were never freed, 320 MiB\. ")

    def test_the_gate_says_of_a_line_that_many_functions_reach_what_the_screen_says(self):
        own = re.sub(r"(?m)^exec.*", "\n".join("def by_%d():\n    enter()" % i for i in range(61)), REACHED)
        for name, program in ("reached.py", REACHED), ("named.py", own):
            with self.subTest(name), Recording(sys.executable, self.path(name, program)) as run:
                self.assertRegex(screen_of(run), r" LEAK %s:\d+ keeps .* all 320 blocks that \S+ made were never freed, 320 MiB\. " % name)
                out = check("--fail-on", "critical", run.traces, code=1).stdout
                self.assertRegex(out, r"(?m)^FAIL +leak +LEAK: %s:\d+ keeps 4 MiB of every pass; why: .* 320 MiB" % name)
                self.assertEqual(len(re.findall(r"(?m)^\w+ +leak ", out)), 1, out)

    def test_what_a_stack_that_does_not_leak_leaves_at_the_line_of_a_leak_does_not_grow(self):
        """One caller of enter() keeps 1 MiB in each round; the other keeps only three of its 80 blocks of 7 MiB."""
        program = """
import ctypes, time
cudart = ctypes.CDLL("libcudart.so.13")
def take(mib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(mib << 20)) == 0
    return p
def store(mib):
    passing = take(2)
    kept = take(mib)
    cudart.cudaFree(passing)
    return kept
def enter(mib):
    return store(mib)
def leaks(): return enter(1)
def meant(): return enter(7)
for i in range(80):
    leaks()
    p = meant()
    if i not in (9, 20, 50):
        cudart.cudaFree(p)
    time.sleep(0.001)
"""
        with Recording(sys.executable, self.path("meant.py", program)) as run:
            self.assertRegex(screen_of(run), r" LEAK meant.py:10 keeps 1 MiB of every pass .* all 80 blocks that meant.py:10 made were never freed, 80 MiB\. ")
            self.assertEqual({(leak["verdict"], leak["bytes"] >> 20) for leak in run.report()["leaks"]}, {("growing", 80), ("live_at_exit", 21)})
            self.assertRegex(check("--fail-on", "critical", run.traces, code=1).stdout, r"(?m)^FAIL +leak +LEAK: meant.py:10 keeps 1 MiB of every pass; why: .* 80 MiB")

    def test_each_device_that_one_line_fills_has_its_forecast(self):
        with Recording(sys.executable, self.path("twice.py", TWICE), SIM_VRAM="8G") as run:
            [faster, slower] = [one for one in run.report()["answer"]["verdicts"] if one["word"] == "LEAK"]
            self.assertEqual((faster["device"], slower["device"]), (1, 0))
            self.assertAlmostEqual(faster["figures"]["full_in_seconds"] / slower["figures"]["full_in_seconds"], 2 / 3, delta=0.1)
            self.assertEqual(len(re.findall(r"the card is full in \d+ seconds at this rate", screen_of(run))), 2)

    def test_blocks_that_are_kept_at_once_have_one_rate(self):
        with Recording("python3", "-c", BURSTS) as run:
            report, screen = run.report(), screen_of(run)
        [found] = [one for one in report["findings"] if one["kind"] == "leak.growing"]
        self.assertRegex(found["description"], r" keeps 12 MiB every [\d.]+ ms; all 36 blocks that <string>:6 made were never freed, 72 MiB$")
        self.assertRegex(screen, r" LEAK <string>:6 keeps 12 MiB every \d+ ms .* all 36 blocks that <string>:6 made were never freed, 72 MiB\. ")

    def test_the_thread_that_keeps_what_others_free_is_named(self):
        for end, ever in (("", "never freed"), ("for p in kept: cudart.cudaFree(p)\n", "freed only as the program ended")):
            with self.subTest(ever), Recording("python3", "-c", THREADS + end) as run:
                screen = screen_of(run)
            self.assertRegex(screen, ever + r", 6\d MiB\. They are (all|nearly all) by thread \d+, which allocated 60 of the 240\. ")
            self.assertTrue(end or re.search(r" 60 of the 240 blocks that \S+ made were never freed, 60 MiB\. ", screen), screen)  # if all are freed at the end, the figure may differ by two

    def test_what_grew_until_a_process_was_killed_counts(self):
        script = HALF.format(free=False, odd=0, end="os.kill(os.getpid(), signal.SIGKILL)")
        with Recording(sys.executable, self.path("half.py", script), code=-9, SIM_VRAM="8G") as run:
            check("--max-leak", "119M", run.traces, code=1)
            self.assertRegex(check("--max-leak", "121M", run.traces).stdout, r"unknown +max-leak +left at the end 120 MiB and more")

    def test_what_one_line_leaves_on_other_devices_than_it_leaks_on_does_not_grow_and_is_told(self):
        with Recording(sys.executable, self.path("devices.py", DEVICES), SIM_DEVICES="3", SIM_VRAM="8G") as run:
            self.assertEqual({(leak["device"], leak["verdict"], leak["bytes"] >> 20) for leak in run.report()["leaks"]},
                             {(1, "growing", 80), (2, "live_at_exit", 48), (0, "live_at_exit", 20)})
            out = check("--fail-on", "critical", run.traces, code=1).stdout
            self.assertRegex(out, r"FAIL +leak +LEAK: devices.py:\d+ keeps 8 MiB of every pass; why: .* 80 MiB")
            self.assertRegex(screen_of(run), r" LEAK devices.py:\d+ keeps 8 MiB of .* all 10 blocks that \S+ made were never freed, 80 MiB\. It is on device 1\. ")
            self.assertEqual({device: kept >> 20 for device, (_, kept, _) in leaks_of(run.report()).items()}, {1: 80})

    def test_what_several_processes_hold_and_leave_is_told_once_with_a_name_for_each_figure(self):
        with Recording(sys.executable, self.path("shared.py", SHARED), SIM_VRAM="8G") as run:
            self.assertEqual(run.report()["run"]["devices"][0]["known_peak_bytes"], 24 << 20)
            words, screen = (run.traces, "--catalogue", self.path("catalogue.sqlite")), screen_of(run)
            self.assertRegex(screen, r"^shared.py pid \d+ of 2 .* 16.0 MiB held, at the peak .* note device 0: 2 processes held 24 MiB together at most ")
            self.assertEqual(sorted(one["memory"][0]["peak_bytes"] >> 20 for one in run.report()["processes"]), [8, 16])
            self.assertEqual(sorted((one["blocks"], one["bytes"] >> 20) for one in run.report()["leaks"]), [(1, 8), (1, 12)])
            wide = dict(os.environ, COLUMNS="200")
            said = subprocess.run([ANALYZE, "runs", "-q", *words], env=wide, capture_output=True, text=True).stdout.splitlines()
            row = dict(zip(said[0].split(), re.split("  +", said[1])))
            self.assertEqual((row["PEAK"], row["LEFT"]), ("24.0 MiB", "12.0 MiB"))
            said = subprocess.run([ANALYZE, "diff", "--all", run.traces, run.traces], env=wide, capture_output=True, text=True).stdout
            self.assertRegex(said, r"(?s) peak +24.0 MiB -> 24.0 MiB.*\nLEFT at the end\n.* shared.py:\d+ work.*  12.0 MiB -> 12.0 MiB")
            said = subprocess.run([ANALYZE, "diff", "--help"], capture_output=True, text=True).stdout
            self.assertRegex(" ".join(said.split()), r"Peak and hidden are of the device with most, .* together; every other number is of the process with most\.")

    def test_when_a_device_is_full_counts_what_the_kept_blocks_take_of_it(self):
        with Recording(sys.executable, self.path("grows.py", GROWS), SIM_VRAM="64G", STORMLOG_DEVICE_INTERVAL=10) as run:
            [device], [leak] = run.report()["run"]["devices"], run.report()["leaks"]
            [verdict] = [one for one in run.report()["answer"]["verdicts"] if one["word"] == "LEAK"]
            self.assertIn("the card is full in %.0f minutes at this rate" % (verdict["figures"]["full_in_seconds"] / 60), screen_of(run))
            room = device["total_bytes"] - device["used_peak_bytes"]
            self.assertAlmostEqual(verdict["figures"]["full_in_seconds"] * leak["growth_bytes_per_second"] / room, 3 / 4, delta=0.04)

    def test_when_a_device_is_full_counts_blocks_that_no_sample_saw(self):
        with Recording(sys.executable, self.path("passes.py", GROWS.replace("    time", PASSES)), SIM_VRAM="64G", STORMLOG_DEVICE_INTERVAL=10) as run:
            [device], [leak], [truth] = run.report()["run"]["devices"], run.report()["leaks"], run.truth()
            [verdict] = [one for one in run.report()["answer"]["verdicts"] if one["word"] == "LEAK"]
        room = device["total_bytes"] - 300 * MIB - 60 * 4 * MIB - (truth.memory["device", 0].peak_bytes - 60 * 3 * MIB)
        self.assertAlmostEqual(verdict["figures"]["full_in_seconds"] * leak["growth_bytes_per_second"] * 4 / 3 / room, 1, delta=0.05)


if __name__ == "__main__":
    unittest.main()
