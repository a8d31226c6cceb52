#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Packages from PyPI, without a GPU: they behave the same with the agent, and every call that they look up is wrapped.

They run without a driver, and over the simulated driver with their own runtimes.  (NVIDIA's runtime refuses that driver after
its look-ups, and must do the same with us.)  Where they get further, report.json is compared with the simulator's journal.
The small set is always fetched; STORMLOG_REAL=1 fetches all sets (about 3 GB).
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import torch_venv  # noqa: E402
import real
from e2e import differences, rows_of
import stormlog_trace

PACKAGE = os.path.join(HERE, "..", "..", "python")
TORCH = torch_venv.find("torch")
ALL = os.environ.get("STORMLOG_REAL") == "1"
NOT_HAD = []  # environments that could not be made


class Programs(unittest.TestCase):
    maxDiff = 4000

    def python(self, name):
        if name in NOT_HAD or not real.python_of(name):
            NOT_HAD.append(name)
            self.skipTest("PyPI does not give the packages of the set " + name)
        return real.python_of(name)

    def same(self, python, program, *arguments, machine="none", **environment):
        """Runs it with and without the agent; returns the report and the journal of the run with it."""
        with real.recording(python, program, *arguments, machine=machine, agent=False, **environment) as plain, \
                real.recording(python, program, *arguments, machine=machine, **environment) as with_us:
            self.assertEqual(real.said(plain), real.said(with_us))
            self.assertIn(" -> ", plain.done.stdout.decode())
            report = with_us.report() if with_us.files() else None
            truth = with_us.truth()
            if not report:  # cuInit and questions leave no trace
                self.assertFalse([effect for process in truth for effect in process.effects])
            elif truth:
                self.assertEqual([p["pid"] for p in report["processes"]], [p.pid for p in truth])
                for mine, theirs in zip(report["processes"], truth):
                    self.assertEqual(differences(mine, theirs, rows_of(with_us.traces), threads=2), [])
                    self.assertEqual((mine["lost_events"], mine["damaged"], mine["status"]), (0, False, "completed"))
            return report, plain.done.stdout.decode()

    def look_ups(self, python, program, *arguments, machine="driver", at_least=(), **environment):
        """Checks that every memory function that the program looks up is handed out wrapped, in the variant that it gets without us."""
        with tempfile.TemporaryDirectory() as folder:
            logs = [os.path.join(folder, name) for name in ("before", "after")]
            with real.recording(python, program, *arguments, machine=machine, agent=False, watch=logs[0], **environment) as plain, \
                    real.recording(python, program, *arguments, machine=machine, watch=logs[1], **environment) as with_us:
                self.assertEqual(real.said(plain), real.said(with_us))
            wrong, wrapped = real.wrong_answers(*map(real.answers, logs))
            self.assertEqual(wrong, [])
            self.assertLessEqual(set(at_least), wrapped)
            print("%s, %s: %d functions handed out wrapped" % (program, machine, len(wrapped)), file=sys.stderr)

    def test_cuda_python(self):
        python = self.python("cuda13" if ALL else "small")
        self.same(python, "use_cuda_python.py")
        report, text = self.same(python, "use_cuda_python.py", machine="driver")
        self.assertIn("device memory -> (1024, 2)", text)
        kinds = {row["kind"] for row in report["processes"][0]["memory"]}
        self.assertLessEqual({"device", "managed", "host_pinned", "pool", "vmm", "array"}, kinds)
        self.look_ups(python, "use_cuda_python.py", at_least={"cuMemAlloc_v2", "cuMemCreate", "cuMemAllocAsync"})

    def test_numba(self):
        python = self.python("cuda13" if ALL else "small")
        self.same(python, "use_numba.py")
        report, text = self.same(python, "use_numba.py", machine="driver")
        self.assertIn("arrays -> [1048576", text)
        self.assertTrue(report["processes"][0]["memory"])
        self.look_ups(python, "use_numba.py", at_least={"cuMemAlloc_v2", "cuMemFree_v2"})

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches Lightning, transformers, Accelerate, Keras, JAX")
    def test_callbacks_name_the_steps_of_frameworks_loops(self):
        python, mib = self.python("loops"), 1 << 20
        phases = {"lightning": {"forward": 5, "backward": 5, "optimizer": 5, "validation_#": 5},
                  "transformers": {"forward and backward": 5, "optimizer": 5}, "accelerate": {}, "keras": {}, "jax": {}}
        for name, inside in phases.items():
            with self.subTest(name), real.recording(python, "use_callbacks.py", name, machine="all", PYTHONPATH=PACKAGE,
                                                    KERAS_BACKEND="jax", HOME="/tmp") as run:
                self.assertEqual(run.done.returncode, 0, run.done.stderr.decode()[-2000:])
                entries = [json.loads(line) for line in subprocess.run(
                    [real.e2e.ANALYZE, "table", "--entries", "*", "--json", run.traces], capture_output=True, text=True, check=True).stdout.splitlines()]
                steps = [entry for entry in entries if entry["label"] == "step_#"]
                self.assertEqual([entry["step"] for entry in steps], list(range(5)), entries)
                backward = name in ("lightning", "transformers", "accelerate")
                self.assertEqual([entry["peak_bytes"] for entry in steps],
                                 [(n + 1 + 16 * backward) * mib for n in range(5)])
                self.assertEqual([entry["after_bytes"] for entry in steps], [0] * 5)
                counts = {label: sum(entry["label"] == label for entry in entries) for label in inside}
                self.assertEqual(counts, inside)

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches CuPy")
    def test_cupy(self):
        python = self.python("cuda13")
        for machine in ("none", "driver"):
            self.same(python, "use_cupy.py", machine=machine)
        self.look_ups(python, "use_cupy.py", at_least={"cuMemAlloc_v2", "cuMemAllocAsync"})

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches PyTorch with NVIDIA's libraries, whose look-ups the dry run's stand-ins do not make")
    def test_torch_for_cuda(self):
        python = self.python("cuda13")
        for machine in ("none", "driver"):
            self.same(python, "use_torch.py", machine=machine)
        self.look_ups(python, "use_torch.py", at_least={"cuMemAlloc_v2"})

    @unittest.skipUnless(TORCH, "scripts/torch-venv fetches PyTorch")
    def test_torchs_own_allocator_over_the_simulated_runtime(self):
        links = self.enterContext(tempfile.TemporaryDirectory())  # cuBLAS and the others are the dry run's stand-ins
        torch_venv.stand_ins(real.e2e.BUILD, links)
        runtime = [os.path.join(real.e2e.SIM, "libcudart.so.13")]  # PyTorch's libraries load their runtime by path; a preloaded one comes first
        for settings in ("", "expandable_segments:True", "backend:cudaMallocAsync"):
            with self.subTest(settings):
                report, text = self.same(TORCH, "use_torch_allocator.py", machine="all", preload=runtime, PYTORCH_CUDA_ALLOC_CONF=settings,
                                         LD_LIBRARY_PATH=real.e2e.SIM + ":" + links)
                self.assertIn("train -> 'trained'", text)
                statistics = json.loads(re.search("^statistics (.*)", text, re.M).group(1))
                kind = {"": "device", "expandable_segments:True": "vmm"}.get(settings)
                if kind:  # PyTorch's reserved bytes are what it got from the driver
                    (row,) = [row for row in report["processes"][0]["memory"] if row["kind"] == kind]
                    # An expandable segment unmaps its new pages when the next page fails: PyTorch never counts them.
                    less = self.assertEqual if kind == "device" else self.assertLessEqual
                    less(statistics["reserved_bytes.all.peak"], row["peak_bytes"])
                    self.assertEqual(row["live_bytes"], 0)
                    (books,) = report["processes"][0]["pytorch"]
                    for ours, theirs in (("peak_allocated_bytes", "allocated_bytes.all.peak"), ("ooms", "num_ooms"),
                                         ("peak_reserved_bytes", "reserved_bytes.all.peak")):
                        self.assertEqual(books[ours], statistics[theirs], ours)
                self.assertTrue([oom for oom in report["ooms"] if not oom["recovered"]])

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches PyTorch")
    def test_torch_for_cpus(self):
        for machine in ("none", "driver"):
            self.assertIsNone(self.same(self.python("cpu"), "use_torch.py", machine=machine)[0])

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches Triton")
    def test_triton(self):
        python = self.python("cuda13")
        for machine in ("none", "driver"):
            self.same(python, "use_triton.py", machine=machine)
        self.look_ups(python, "use_triton.py")

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches JAX")
    def test_jax(self):
        python = self.python("cuda13")
        for machine in ("none", "driver"):
            self.same(python, "use_jax.py", machine=machine)
        self.look_ups(python, "use_jax.py")

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches NCCL and cuBLAS")
    def test_nccl_and_cublas_by_ctypes(self):
        python = self.python("cuda13")
        for machine in ("none", "driver"):
            self.same(python, "use_ctypes.py", machine=machine)
        self.look_ups(python, "use_ctypes.py", at_least={"cuMemAlloc_v2", "ncclMemAlloc"})

    def test_a_subscriber_of_cupti(self):
        """The simulated driver lacks the tables that CUPTI asks for.  CUPTI reports that with and without us; the program is recorded."""
        python = self.python("cupti")
        report, text = self.same(python, "use_cupti.py", machine="driver")
        row, = [row for row in report["processes"][0]["memory"] if row["kind"] == "device"]
        self.assertEqual((row["allocations"], row["failed_allocations"], row["frees"]), (2, 1, 1))
        self.assertIn("cuptiSubscribe -> (15, b'CUPTI_ERROR_NOT_INITIALIZED')", text)
        self.look_ups(python, "use_cupti.py")

    @unittest.skipUnless(ALL, "STORMLOG_REAL=1 fetches NCCL")
    def test_nccls_own_ranges_say_how_many_bytes(self):
        python = self.python("nccl")
        self.same(python, "use_nccl.py", machine="all")
        with real.recording(python, "use_nccl.py", machine="all") as run:
            self.assertIn("ncclAllReduce -> 4", run.done.stdout.decode())  # ncclInvalidArgument: no communicator
            (trace,) = stormlog_trace.open_folder(run.traces)
            events, verbs, texts = trace.events(), trace.verbs(), trace.texts()
            pushed = [(texts[int(label)], int(size)) for api, label, size in zip(events["api"], events["label"], events["bytes"])
                      if verbs[int(api)] == "RANGE_PUSH"]
        self.assertEqual(pushed, [("NCCL:ncclAllReduce", 4000), ("NCCL:ncclBroadcast", 8000), ("NCCL:ncclCommInitRank", 0)])

    @unittest.skipUnless(real.find_hip(), "no libamdhip64.so.5 here")
    def test_hip_without_a_device_says_so_and_each_failure_is_recorded(self):
        report, text = self.same("/usr/bin/python3", "use_hip.py")
        self.assertIn("hipGetDeviceCount -> (100", text)
        apis = {row["api"]: (row["calls"], row["failures"]) for row in report["processes"][0]["apis"]}
        for name in ("hipMalloc", "hipHostMalloc", "hipMallocManaged"):
            self.assertEqual(apis.get(name), (1, 1), name)


if __name__ == "__main__":
    result = unittest.main(verbosity=2, exit=False).result
    if NOT_HAD and result.wasSuccessful():
        print("skipped: PyPI does not give the packages of:", *sorted(set(NOT_HAD)))
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
