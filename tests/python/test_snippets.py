#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the snippets of Python Stormlog's and recorder-viz's pages unchanged, except that the package is stormlog_native.

START has what they leave to the reader (a model, a batch); torch_stand_in takes the place of PyTorch."""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "..", "..", "python")
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), PACKAGE]
from e2e import ANALYZE, Recording

START = """import torch_stand_in; torch_stand_in.install()
import torch
def model(batch): return torch.randn(1 << 20, device="cuda")
criterion = lambda outputs, targets: torch.randn(1 << 18, device="cuda")
targets, large_batch = None, torch.randn(2 << 20, device="cuda")
"""

CONFIGURE = """
from stormlog_native.tracker import MemoryTracker
tracker = MemoryTracker(
    device=0,
    sampling_interval=0.1,
    enable_oom_flight_recorder=True,
    oom_dump_dir="oom_dumps",
    oom_buffer_size=10_000,
    oom_max_dumps=3,
    oom_max_total_mb=128,
)
"""

CAPTURE = """
tracker.start_tracking()
try:
    with tracker.capture_oom(
        context="training.forward_pass",
        metadata={"batch_size": 128, "model": "resnet50"}
    ):
        # Code that might OOM
        outputs = model(large_batch)
        loss = criterion(outputs, targets)
        loss.backward()
except RuntimeError as e:
    print(f"OOM occurred: {e}")
    print(f"Dump saved to: {tracker.last_oom_dump_path}")
finally:
    tracker.stop_tracking()
"""

CLASSIFY = """
from stormlog_native.oom_flight_recorder import classify_oom_exception
try:
    # Code that might fail
    tensor = torch.randn(1000000, 1000000, device="cuda")
except Exception as exc:
    classification = classify_oom_exception(exc)
    if classification.is_oom:
        print(f"OOM detected: {classification.reason}")
        # Dump was automatically captured
    else:
        print("Non-OOM error")
        raise
"""

SIMULATED = """
tracker.start_tracking()
try:
    with tracker.capture_oom(
        context="test.simulated_oom",
        metadata={"scenario_mode": "simulated"}
    ):
        # Simulate an OOM error
        raise RuntimeError("simulated out of memory for demo")
except RuntimeError as exc:
    print(f"Captured simulated OOM: {exc}")
finally:
    tracker.stop_tracking()
print(f"Dump path: {tracker.last_oom_dump_path}")
"""

STRESS = """
import torch
tracker.start_tracking()
tensors = []
device = torch.device("cuda")
try:
    with tracker.capture_oom(
        context="stress_test",
        metadata={
            "max_total_mb": 8192,
            "step_mb": 64,
        }
    ):
        # Allocate until OOM
        while True:
            elements = int(64 * 1024 * 1024 / 4)  # 64MB
            block = torch.randn(elements, device=device)
            tensors.append(block)
except RuntimeError as exc:
    print(f"OOM after {len(tensors)} allocations")
    print(f"Dump: {tracker.last_oom_dump_path}")
finally:
    tensors.clear()
    torch.cuda.empty_cache()
    tracker.stop_tracking()
"""

ANALYSE = """
import json
from pathlib import Path
def analyze_oom_dump(dump_path):
    dump_dir = Path(dump_path)
    # Load manifest
    with open(dump_dir / "manifest.json") as f:
        manifest = json.load(f)
    # Load events
    with open(dump_dir / "events.json") as f:
        events = json.load(f)
    # Load metadata
    with open(dump_dir / "metadata.json") as f:
        metadata = json.load(f)
    print(f"OOM occurred in: {metadata['context']}")
    print(f"Exception: {metadata['exception_type']}")
    print(f"Events captured: {len(events)}")
    # Analyze memory growth
    if events:
        first_allocated = events[0]["memory_allocated"]
        last_allocated = events[-1]["memory_allocated"]
        growth_mb = (last_allocated - first_allocated) / (1024**2)
        print(f"Memory growth: {growth_mb:.2f} MB")
    return manifest, events, metadata
# Analyze the last dump
if tracker.last_oom_dump_path:
    analyze_oom_dump(tracker.last_oom_dump_path)
"""

BACKENDS = """
from stormlog_native import MemoryTracker
tracker = MemoryTracker(device=0, enable_oom_flight_recorder=True)
from stormlog_native import CPUMemoryTracker
tracker = CPUMemoryTracker(sampling_interval=0.1)
tracker = MemoryTracker(
    enable_oom_flight_recorder=True,
    oom_dump_dir="oom_dumps",
    oom_buffer_size=5000,
    oom_max_dumps=10,
    oom_max_total_mb=1024,
)
with tracker.capture_oom(context="train_loop"):
    # training code
    ...
"""

CONTEXTS = """
from stormlog_native import GPUMemoryProfiler, profile_context, profile_function
@profile_function
def my_function():
    pass
with profile_context("my_context"):
    pass
my_function()
profiler = GPUMemoryProfiler(device=None, track_tensors=True, track_cpu_memory=True, collect_stack_traces=False)
profiler.start_monitoring(interval=0.1)
result = profiler.profile_function(model, large_batch)
profiler.stop_monitoring()
from stormlog_native import get_global_profiler
print([r.function_name for r in get_global_profiler().get_results()], result.memory_peak.allocated_memory, sorted(profiler.get_summary())[:2])
profiler.clear_results()
print(profiler.get_results())
"""

TENSORFLOW = """
class model:
    fit = staticmethod(lambda x, y: torch.randn(3 << 18, device="cuda"))
x_train = y_train = None
from stormlog_native import TensorFlowProfiler

profiler = TensorFlowProfiler()
with profiler.profile_context("training"):
    model.fit(x_train, y_train)
print(json.dumps(profiler.get_results()["function_calls"]))
"""

VIZ = """
import stormlog_native as recorder_viz
from stormlog_native import RecorderReader

reader = RecorderReader("path/to/Recorder-traces-folder")
recorder_viz.generate_report(reader, "output.html")

for rank in range(reader.GM.total_ranks):
    LM = reader.LMs[rank]
    print("Rank: %d, Number of trace records: %d" %(rank, LM.total_records))
"""


# A program for Python Stormlog, in which only the import is changed.
MOVED = """
import json
from stormlog import GPUMemoryProfiler, profile_function, profile_context, get_global_profiler

@profile_function
def forward(batch):
    hidden = torch.randn(1 << 20, device="cuda")
    out = torch.randn(1 << 18, device="cuda")
    del hidden
    return out

profiler = GPUMemoryProfiler(device=0, track_tensors=True, track_cpu_memory=True)
profiler.start_monitoring(interval=0.1)
weights = torch.randn(4 << 20, device="cuda")
kept = [forward(step) for step in range(6)]
with profile_context("evaluation"):
    logits = torch.randn(2 << 20, device="cuda")
    del logits
profiler.stop_monitoring()
rows = [(r.function_name, r.memory_before.allocated_memory, r.memory_after.allocated_memory, r.memory_peak.allocated_memory, r.memory_allocated,
         r.memory_freed, r.tensors_created, r.tensors_deleted, r.call_count) for r in get_global_profiler().get_results()]
print(json.dumps([rows, get_global_profiler().get_summary()]))
"""


def program(*texts, **environment):
    return Recording("/usr/bin/python3", "-c", START + "".join(texts), PYTHONPATH=os.pathsep.join((PACKAGE, HERE)), SIM_DEVICES=1,
                     SIM_VRAM="1G", STORMLOG_BIN=os.path.dirname(ANALYZE), **environment)


class Snippets(unittest.TestCase):
    def said(self, *texts):
        with program(*texts) as run:
            return run.done.stdout.decode()

    def test_code_that_fits_makes_no_dump(self):
        self.assertEqual(self.said(CONFIGURE, CAPTURE, "print(tracker.last_oom_dump_path)"), "None\n")

    def test_code_that_does_not_fit_makes_one(self):
        said = self.said(CONFIGURE, 'model = lambda batch: torch.randn(1 << 30, device="cuda")', CAPTURE, ANALYSE)
        self.assertRegex(said, r"OOM occurred: CUDA out of memory.*\nDump saved to: \S*oom_dumps/oom_dump_\S+\n"
                               r"OOM occurred in: training.forward_pass\nException: OutOfMemoryError\nEvents captured: \d+\nMemory growth: ")

    def test_classification(self):
        self.assertEqual(self.said(CLASSIFY), "OOM detected: torch.cuda.OutOfMemoryError\n")

    def test_simulated(self):
        self.assertRegex(self.said(CONFIGURE, SIMULATED, ANALYSE), r"Captured simulated OOM: simulated out of memory for demo\n"
                         r"Dump path: \S+\nOOM occurred in: test.simulated_oom\nException: RuntimeError\n")

    def test_stress(self):
        # 1 GiB less a context of 300 MiB, a module of 4 and the batch of 8: eleven times 64 MiB
        self.assertRegex(self.said(CONFIGURE, STRESS), r"OOM after 11 allocations\nDump: \S+oom_dump_\S+\n")

    def test_trackers_of_other_backends(self):
        self.said(BACKENDS)

    def test_profilers(self):
        said = self.said(CONTEXTS)
        self.assertIn("['my_context', 'my_function'] %d" % (12 << 20), said)
        self.assertIn("\n[]\n", said)

    def test_tensorflow(self):
        call, = json.loads(self.said("import json", TENSORFLOW))
        self.assertEqual((call["name"], call["memory_start_mb"], call["memory_peak_mb"]), ("training", 8.0, 11.0))
        self.assertEqual(sorted(call), ["duration", "end_time", "memory_end_mb", "memory_peak_mb", "memory_start_mb", "name", "start_time"])

    def test_a_program_that_moved_over_finds_the_reports_figures(self):
        with program(MOVED.replace("from stormlog import", "from stormlog_native import")) as run:
            rows, summary = json.loads(run.done.stdout.splitlines()[-1])
            process, = run.report()["processes"]
        labels = {row["label"]: row for row in process["labels"]}
        mib = 1 << 20
        self.assertEqual([row[1:] for row in rows if row[0] == "forward"],  # worked out by hand: 8 MiB of START's batch and 16 of the weights come first
                         [[24 * mib + k * mib, 25 * mib + k * mib, 29 * mib + k * mib, 5 * mib, 4 * mib, 2, 1, k + 1] for k in range(6)])
        for name in ("forward", "evaluation"):
            mine, report = [row for row in rows if row[0] == name], labels[name + "_#"]
            self.assertEqual((mine[0][1], mine[-1][2], max(row[3] for row in mine), sum(row[4] for row in mine), sum(row[5] for row in mine),
                              sum(row[6] for row in mine), sum(row[7] for row in mine), len(mine)),
                             tuple(report[field] for field in ("before_bytes", "after_bytes", "peak_bytes", "allocated_bytes", "freed_bytes",
                                                               "blocks_created", "blocks_freed", "entries")))
            told = summary["function_summaries"][name]
            self.assertEqual((told["call_count"], told["total_memory_allocated"], told["total_memory_freed"], told["peak_memory"]),
                             tuple(report[field] for field in ("entries", "allocated_bytes", "freed_bytes", "peak_bytes")))
        self.assertEqual(summary["peak_memory_usage"], next(row["peak_bytes"] for row in process["memory"] if row["kind"] == "device"))

    def test_recorder_viz(self):
        with program("") as run:
            with Recording("/usr/bin/python3", "-c", VIZ.replace("path/to/Recorder-traces-folder", run.traces), preload=False,
                           PYTHONPATH=PACKAGE, STORMLOG_BIN=os.path.dirname(ANALYZE)) as reader:
                self.assertRegex(reader.done.stdout.decode(), r"^Rank: 0, Number of trace records: [1-9]")
                self.assertGreater(os.path.getsize(os.path.join(reader.folder, "output.html")), 1000)


if __name__ == "__main__":
    unittest.main()
