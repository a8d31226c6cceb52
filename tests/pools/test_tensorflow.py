#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Blocks of TensorFlow's allocator.  Compared with the journal of a stand-in (tests/pools/bfc.c), and with the real library."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from pools import BUILD, HERE, Pools, collapsed, real
import e2e

PROGRAM = os.path.join(BUILD, "tensorflow")
REGION = 64 << 20


def expected(journal):
    """The events of a journal's lines: block, address, bytes, the op's name; free, address."""
    return [("BLOCK_ALLOC", int(line[1], 16), int(line[2]), collapsed(line[3]) if len(line) > 3 else "") if line[0] == "block"
            else ("BLOCK_FREE", int(line[1], 16), 0, "") for line in journal]


class Tensorflow(unittest.TestCase):
    def test_blocks_are_in_the_trace_and_with_the_rest_they_are_the_region(self):
        with Pools(PROGRAM) as run:
            live, peak = {}, 0
            for what, address, *size in run.journal():
                if what == "block":
                    live[address] = int(size[0])
                else:
                    live.pop(address)
                peak = max(peak, sum(live.values()))
            self.assertEqual(run.blocks(), expected(run.journal()))
            device, = run.report()["processes"][0]["pytorch"]
            tree = subprocess.run([e2e.ANALYZE, "tree", "--at", "peak", run.traces], capture_output=True, check=True).stdout.decode()
        self.assertEqual(device["device"], 0)
        self.assertEqual((device["peak_allocated_bytes"], device["peak_reserved_bytes"]), (peak, REGION))
        self.assertEqual((device["allocated_bytes"], device["live_blocks"]), (sum(live.values()), 10))
        self.assertGreaterEqual(peak, 0.95 * REGION)
        self.assertIn("TensorFlow tensors", tree)

    def test_a_block_is_called_as_the_op_that_asked_in_both_layouts_of_the_annotation(self):
        for library in ("libbfc.so", "libbfc-old.so"):
            with self.subTest(library), self.of(library) as run:
                self.assertEqual(run.blocks(), expected(run.journal()))
                self.assertEqual({text for _, _, _, text in run.blocks()}, {"", "model/dense_#/MatMul output", "Tanh temp"})
                self.assertEqual(self.said(run), ([], []))

    def test_an_annotation_that_is_not_known_is_not_read_and_the_trace_says_so(self):
        for library, why in (("libbfc-astray.so", "the library's annotation has another layout"),
                             ("libbfc-lacks.so", "the library does not export what its annotation is checked by")):
            with self.subTest(library), self.of(library) as run:
                self.assertEqual([row[:3] for row in run.blocks()], [row[:3] for row in expected(run.journal())])
                self.assertEqual({text for _, _, _, text in run.blocks()}, {""})
                self.assertEqual(self.said(run), (["tensors are recorded without the op that asked: " + why], []))

    def test_an_allocator_that_is_not_known_is_left_alone_and_the_trace_says_so(self):
        for library in ("libbfc-renamed.so", "libbfc-alone.so"):
            with self.subTest(library), self.of(library) as run:
                self.assertEqual(run.blocks(), [])
                self.assertEqual(self.said(run), ([], ["TensorFlow's tensors are not recorded: its library does not export its allocator as we know it"]))

    def of(self, library):
        """The program with another stand-in; its own run path comes after LD_LIBRARY_PATH."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shutil.copy(os.path.join(BUILD, library), os.path.join(folder.name, "libbfc.so"))
        return Pools(PROGRAM, LD_LIBRARY_PATH=folder.name + ":" + e2e.SIM)

    def said(self, run):
        defs = run.trace().defs
        return ([row["value"] for row in defs["capability"] if row["name"] == "tensorflow"],
                [row["text"] for row in defs.get("note", []) if "TensorFlow" in row["text"]])

    def test_off_means_off(self):
        with Pools(PROGRAM, STORMLOG_TENSORS="off") as run:
            self.assertEqual(run.blocks(), [])


class Profiler(unittest.TestCase):
    """TFMemoryProfiler's figures are those of the blocks, not of the region that they lie in."""

    TEXT = """
import ctypes, json, os, sys
function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
class Table(ctypes.Structure):
    _fields_ = [("allocate", function), ("deallocate", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p))]
bfc = Table.in_dll(ctypes.CDLL(sys.argv[1]), "bfc_table")
def take(mib): return bfc.allocate(None, 256, mib << 20, None)
def give(block): bfc.deallocate(None, block)
import stormlog_native as sn
weights = take(8)
profiler = sn.TFMemoryProfiler(device="/GPU:0")
with profiler.profile_context("step"):
    activations = take(20)
    gradients = take(4)
    give(activations)
layer = sn.ProfiledLayer(lambda x: give(take(x)), "dense", profiler)
layer(6)
print(json.dumps(profiler.get_results(), default=str), flush=True)
os._exit(0)
"""

    def test_figures_are_of_the_pools_blocks(self):
        with Pools("/usr/bin/python3", "-c", self.TEXT, os.path.join(BUILD, "libbfc.so"), SIM_DEVICES=1, STORMLOG_BIN=os.path.dirname(e2e.ANALYZE),
                   PYTHONPATH=os.path.join(HERE, "..", "..", "python")) as run:
            found = json.loads(run.done.stdout)
        self.assertEqual([(call["name"], call["memory_start_mb"], call["memory_peak_mb"], call["memory_end_mb"]) for call in found["function_calls"]],
                         [("step", 8.0, 32.0, 12.0), ("dense", 12.0, 18.0, 12.0)])
        self.assertEqual((found["peak_memory_mb"], found["total_allocated_mb"], found["total_freed_mb"]), (32.0, 30.0, 26.0))


class Real(unittest.TestCase):
    def test_blocks_of_the_real_allocator_on_the_cpu(self):
        if os.environ.get("STORMLOG_REAL") != "1":
            self.skipTest("tensorflow-cpu is 250 MB: STORMLOG_REAL=1")
        python = real.python_of("tensorflow")
        if not python:
            self.skipTest("PyPI does not give tensorflow-cpu")
        with Pools(python, os.path.join(HERE, "use_tensorflow.py"), STORMLOG_TENSORS="cpu", STORMLOG_HOST="1",
                   TF_CPU_ALLOCATOR_USE_BFC="1", TF_CPP_MIN_LOG_LEVEL="3") as run:
            blocks = [(size, text) for verb, _, size, text in run.blocks() if verb == "BLOCK_ALLOC"]
        for line in run.done.stdout.decode().splitlines():
            size, op = line.split(None, 1)
            self.assertIn((int(size), op), [(size, text.replace("_Mkl", "")) for size, text in blocks])

    def test_blocks_of_the_real_allocator_of_a_gpu_are_what_it_says_is_in_use(self):
        """TensorFlow only has to find CUDA's libraries: empty ones take the place of those that would run kernels."""
        if os.environ.get("STORMLOG_REAL") != "1":
            self.skipTest("tensorflow is 2 GB: STORMLOG_REAL=1")
        python = real.python_of("tensorflow-gpu")
        if not python:
            self.skipTest("PyPI does not give tensorflow")
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcusolver.so.11", "libcusparse.so.12", "libcudnn.so.9"):
                subprocess.run(["cc", "-shared", "-nostdlib", "-o", os.path.join(folder, name), "-Wl,-soname," + name, "-xc", "/dev/null"], check=True)
            with Pools(python, os.path.join(HERE, "use_tensorflow_gpu.py"), LD_LIBRARY_PATH=folder + ":" + e2e.SIM, SIM_DEVICES=1,
                       LD_PRELOAD=e2e.PRELOAD + ":" + os.path.join(e2e.SIM, "libcudart.so.12"), TF_CPP_MIN_LOG_LEVEL="3") as run:
                said = json.loads(run.done.stdout)
                blocks, trace = run.blocks(), run.trace()
                device = next(row for row in run.report()["processes"][0]["pytorch"] if row["device"] == 0)
        self.assertIn("GPU:0", said["device"])
        events, verbs = trace.events(), trace.verbs()
        size, region = max((size, address) for api, address, size in zip(*(events[name].tolist() for name in ("api", "address", "bytes")))
                           if verbs[api] == "ALLOC")
        live = {}
        for verb, address, asked, _ in blocks:
            if region <= address < region + size:
                live[address] = asked if verb == "BLOCK_ALLOC" else 0
        self.assertEqual(sum(-(-asked // 256) * 256 for asked in live.values()), said["current"])
        self.assertEqual((device["allocated_bytes"], device["live_blocks"], device["reserved_bytes"]),
                         (sum(live.values()), sum(asked > 0 for asked in live.values()), size))
        self.assertIn((1 << 20, "Fill output"), [(size, text) for _, _, size, text in blocks])


if __name__ == "__main__":
    if sys.argv[1:] == ["cost"]:
        for agent in (False, True):
            with e2e.Recording(PROGRAM, "cost", preload=agent) as run:
                print("agent %s: ns a block and its end, with no op, \"MatMul output\" and one of 47 letters: %s" % (agent, run.done.stdout.decode().strip()))
        sys.exit()
    unittest.main()
