#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Blocks of TensorFlow's allocator: a stand-in and its journal (tests/pools/bfc.c), and the symbols of the real library."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    from pools import BUILD, HERE, Pools, real
    import e2e
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)

PROGRAM = os.path.join(BUILD, "tensorflow")
REGION = 64 << 20


class Tensorflow(unittest.TestCase):
    def test_blocks_are_in_the_trace_and_with_the_rest_they_are_the_region(self):
        with Pools(PROGRAM) as run:
            live, peak, expected = {}, 0, []
            for what, address, *size in run.journal():
                if what == "block":
                    live[address] = int(size[0])
                    expected.append(("BLOCK_ALLOC", int(address, 16), int(size[0]), ""))
                else:
                    live.pop(address)
                    expected.append(("BLOCK_FREE", int(address, 16), 0, ""))
                peak = max(peak, sum(live.values()))
            self.assertEqual(run.blocks(), expected)
            device, = run.report()["processes"][0]["pytorch"]
            tree = subprocess.run([e2e.ANALYZE, "tree", "--at", "peak", run.traces], capture_output=True, check=True).stdout.decode()
        self.assertEqual(device["device"], 0)
        self.assertEqual((device["peak_allocated_bytes"], device["peak_reserved_bytes"]), (peak, REGION))
        self.assertEqual((device["allocated_bytes"], device["live_blocks"]), (sum(live.values()), 10))
        self.assertGreaterEqual(peak, 0.95 * REGION)
        self.assertIn("TensorFlow tensors", tree)

    def test_off_means_off(self):
        with Pools(PROGRAM, STORMLOG_TENSORS="off") as run:
            self.assertEqual(run.blocks(), [])


class Real(unittest.TestCase):
    def test_blocks_of_the_real_allocator_on_the_cpu(self):
        if os.environ.get("STORMLOG_REAL") != "1":
            self.skipTest("tensorflow-cpu is 250 MB: STORMLOG_REAL=1")
        python = real.python_of("tensorflow")
        if not python:
            self.skipTest("PyPI does not give tensorflow-cpu")
        with Pools(python, os.path.join(HERE, "use_tensorflow.py"), STORMLOG_TENSORS="cpu", STORMLOG_HOST="1",
                   TF_CPU_ALLOCATOR_USE_BFC="1", TF_CPP_MIN_LOG_LEVEL="3") as run:
            sizes = [size for verb, _, size, _ in run.blocks() if verb == "BLOCK_ALLOC"]
        for size in map(int, run.done.stdout.split()):
            self.assertIn(size, sizes)


if __name__ == "__main__":
    unittest.main()
