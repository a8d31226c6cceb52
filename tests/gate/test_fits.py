#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--fits and fit --capacity for programs without PyTorch's allocator, compared with whether the program really runs on such a device."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from e2e import ANALYZE, Recording
import outside

MIB = 1 << 20
with open(os.path.join(HERE, "..", "..", "schemas", "fit.schema.json")) as schema:
    SCHEMA = json.load(schema)

# Holds blocks of these sizes in KiB; waits for a sample before and after, except where --device-interval 0 takes none.
HOLDS = '''
import ctypes, sys, time
cudart = ctypes.CDLL("libcudart.so.13")
asked = ctypes.CDLL("libnvidia-ml.so.1").sim_nvml_asked
def seen():
    until, end = asked() + 3, time.monotonic() + {wait}
    while asked() < until and time.monotonic() < end:
        time.sleep(0.005)
def take(kib):
    p = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(kib << 10)) == 0
for kib in {sizes}:
    take(kib)
seen()
'''
PLAIN = [4096] * 30			     # 120 MiB, beside a context of 300
ODD = [40 << 10] + [977, 293] * 6 + [1100] * 20  # takes more of the device than was asked for, in units of 2 MiB


class Fits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def record(self, sizes, vram, wait=60, **more):
        script = os.path.join(self.folder.name, "holds.py")
        with open(script, "w") as file:
            file.write(HOLDS.format(sizes=sizes, wait=wait))
        return Recording(sys.executable, script, SIM_VRAM=vram, code=None, **more)

    def gate(self, run, capacity, *options):
        """Exit status of check --fits, and its verdict."""
        said = [subprocess.run([ANALYZE, "check", "--config", "/dev/null", "--fits", capacity, *options, *form, run.traces],
                               capture_output=True, text=True) for form in ((), ("--json",))]
        outcome, = [o for o in json.loads(said[1].stdout)["outcomes"] if o["rule"] == "fits"]
        word, = re.findall(r"(?m)^(\w+) +fits ", said[0].stdout)
        if "--strict" not in options:
            self.assertEqual({"FAIL": "critical", "ok": "pass", "unknown": "unknown"}[word], outcome["level"], said[0].stdout)
        return said[0].returncode, word

    def fit(self, run, capacities, code):
        done = subprocess.run([ANALYZE, "fit", "--capacity", capacities, "--json", run.traces], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        said = json.loads(done.stdout)
        outside.validate(self, said, SCHEMA)
        text = subprocess.run([ANALYZE, "fit", "--capacity", capacities, run.traces], capture_output=True, text=True)
        self.assertEqual(text.returncode, code)
        self.assertEqual(re.findall(r"(?m)^ +[\d.]+ [MG]iB  (fits|no|unknown) ", text.stdout),
                         [{True: "fits", False: "no", None: "unknown"}[one["fits"]] for one in said["runs"]])
        return [one["fits"] for one in said["runs"]]

    def test_what_really_fails_is_never_passed_and_what_is_surely_enough_is(self):
        for sizes, capacities, enough in ((PLAIN, (100, 130, 300, 418, 420, 421), "421M"),
                                          (ODD, (40, 100, 300, 350, 370, 380), "500M")):
            with self.record(sizes, "8G") as run:
                self.assertEqual(run.done.returncode, 0)
                live = sum(sizes) << 10
                for capacity in capacities:
                    with self.subTest(capacity=capacity), self.record(sizes, f"{capacity}M") as really:
                        status, word = self.gate(run, f"{capacity}M")
                        self.assertEqual(status, int(word == "FAIL"))
                        self.assertEqual(word == "FAIL", live > capacity * MIB)
                        if really.done.returncode:
                            self.assertNotEqual(word, "ok")
                            self.assertEqual(self.gate(run, f"{capacity}M", "--strict")[0], 1)
                self.assertEqual(self.gate(run, enough), (0, "ok"))
                self.assertEqual(self.fit(run, f"30M,300M,{enough}", 1), [False, None, True])
                self.assertEqual(self.fit(run, f"300M,{enough}", 0), [None, True])

    def test_without_a_sample_nothing_is_passed(self):
        with self.record(PLAIN, "8G", wait=0, STORMLOG_DEVICE_INTERVAL=0) as run:
            self.assertEqual(self.gate(run, "8G"), (0, "unknown"))
            self.assertEqual(self.gate(run, "8G", "--strict")[0], 1)
            self.assertEqual(self.gate(run, "100M"), (1, "FAIL"))
            self.assertEqual(self.fit(run, "100M,8G", 1), [False, None])

    def test_past_an_out_of_memory_nothing_is_passed(self):
        for settings, capacity, said in (({"vram": "400M"}, "400M", (1, "FAIL")), ({"vram": "8G", "STORMLOG_LIMIT": "400M"}, "400M", (1, "FAIL")),
                                         ({"vram": "8G", "STORMLOG_INJECT_OOM": "9"}, "400M", (0, "unknown"))):
            with self.subTest(settings), self.record(PLAIN, **settings) as run:
                self.assertNotEqual(run.done.returncode, 0)
                self.assertEqual(self.gate(run, capacity), said)
                self.assertEqual(self.gate(run, "200M"), said)
                self.assertEqual(self.gate(run, "8G"), (0, "unknown"))
                self.assertEqual(self.gate(run, "8G", "--strict")[0], 1)
                self.assertEqual(self.fit(run, f"{capacity},8G", 1), [False if said[0] else None, None])


if __name__ == "__main__":
    unittest.main()
