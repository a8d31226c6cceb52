#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Python Stormlog's own example scripts and usage page (release 0.4.3), with only the import changed, run under the recorder and print true figures.

scripts/hunt runs it; the sources come from PyPI.  Scripts that need PyTorch on a GPU run in the rig of scripts/torch-rig, if it
exists: PyTorch's real CUDA build on the simulated GPU.  Left out are the scripts for Apple's MLX and MPS, for Modal and W&B, for the
text interface, and for upstream's own commands."""
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
import real
e2e = real.e2e

TOP = os.path.dirname(os.path.dirname(HERE))
RIG = os.environ.get("TORCH_RIG", "/var/tmp/stormlog-torch-rig")
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
MIB = 1 << 20
# Uses the GPU before the script asks for one: without the files of a real driver only a recording tells that there is one.
START = """import ctypes, runpy, sys
sys.path[:0] = sys.argv[1:3]
if sys.argv[3] != "cpu":
    runtime, block = ctypes.CDLL(sys.argv[3]), ctypes.c_void_p()
    assert not runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1)) and not runtime.cudaFree(block)
sys.argv = sys.argv[4:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def fetch(folder):
    """Unpacks the example scripts below `folder` and changes their import; None: PyPI does not give them."""
    sources = os.path.join(real.VENVS, "stormlog-0.4.3.tar.gz")
    os.makedirs(real.VENVS, exist_ok=True)
    if not os.path.exists(sources) and subprocess.run(["python3", "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d",
                                                       real.VENVS, "stormlog==0.4.3"], capture_output=True, timeout=900).returncode:
        return None
    with tarfile.open(sources) as archive:
        archive.extractall(folder, [one for one in archive if "/examples/" in one.name or one.name.endswith("/docs/usage.md")])
    examples = os.path.join(folder, "stormlog-0.4.3")
    for place, _, names in os.walk(examples):
        for name in names:
            if name.endswith((".py", "usage.md")):
                path = os.path.join(place, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                with open(path, "w", encoding="utf-8") as file:
                    file.write(re.sub(r"\bfrom stormlog\b", "from stormlog_native", text))
    return examples


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-examples-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.examples = fetch(cls.folder)
        if not cls.examples:
            raise unittest.SkipTest("PyPI does not give stormlog's sources")
        tempfile.tempdir = cls.folder  # the rig sees this folder, so recordings must be in it
        cls.addClassCleanup(setattr, tempfile, "tempdir", None)
        # an empty matplotlib: the scripts' figures are not checked
        os.mkdir(os.path.join(cls.examples, "matplotlib"))
        for name, text in (("__init__", ""), ("pyplot", "def __getattr__(name): return lambda *args, **options: None\n")):
            with open(os.path.join(cls.examples, "matplotlib", name + ".py"), "w") as file:
                file.write(text)

    def script(self, module, *arguments, runtime="cpu"):
        return ["-c", START, os.path.join(TOP, "python"), self.examples, runtime, module, *arguments]

    def on_cpu(self, module, *arguments, python="/usr/bin/python3", **environment):
        return e2e.Recording(python, *self.script(module, *arguments), STORMLOG_HOST=1, PYTHONPATH=self.examples,
                             STORMLOG_BIN=os.path.dirname(e2e.ANALYZE), **environment)

    def bring_libraries(self):
        """Copies the libraries that stormlog-analyze needs and the rig lacks."""
        folder = os.path.join(self.folder, "lib")
        os.makedirs(folder, exist_ok=True)
        said = subprocess.run(["ldd", e2e.ANALYZE], capture_output=True, text=True).stdout
        for name, path in re.findall(r"(\S+) => (/\S+)", said):
            if not os.path.exists(RIG + "/root" + LIBRARIES + name):
                shutil.copy(os.path.realpath(path), os.path.join(folder, name))
        return folder

    def on_gpu(self, module, *arguments):
        """Runs a script in the rig, which sees this repository and the examples under the same paths."""
        root, stubs, enter = os.path.join(RIG, "root"), os.path.join(RIG, "stubs"), os.path.join(HERE, "..", "torch", "enter")
        if not os.path.exists(os.path.join(stubs, "made")):
            self.skipTest("no rig: scripts/torch-rig")
        libraries = self.bring_libraries()
        seen = (TOP, self.folder, stubs)
        for path in seen:
            os.makedirs(root + path, exist_ok=True)
        return e2e.Recording(enter, root, *seen, "--", "/usr/bin/python3.13", *self.script(module, *arguments, runtime="libcudart.so.12"),
                             SIM_DEVICES=1, LANG="C.UTF-8", HOME="/nonexistent", STORMLOG_BIN=os.path.dirname(os.path.abspath(e2e.ANALYZE)),
                             TMPDIR=self.folder,
                             LD_LIBRARY_PATH=":".join((e2e.SIM, stubs, LIBRARIES + "blas", LIBRARIES + "lapack", libraries)))

    def page(self, module, text, *marks):
        """Writes a module: `text`, filled with the first snippet of the usage page that contains each of `marks`."""
        with open(os.path.join(self.examples, "docs", "usage.md"), encoding="utf-8") as file:
            snippets = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        found = [next(snippet for snippet in snippets if mark in snippet) for mark in marks]
        with open(os.path.join(self.examples, module + ".py"), "w", encoding="utf-8") as file:
            file.write(text % tuple(found))
        return module

    def test_the_usage_page_on_a_gpu(self):
        module = self.page("usage_gpu", """%s
print(torch.cuda.max_memory_allocated(), summary["peak_memory_usage"], profile.memory_peak.allocated_memory)
%s
print(torch.cuda.max_memory_allocated(), *(result.memory_peak.allocated_memory for result in profiler.get_results()))
""", "def train_step", 'profile_context("forward_pass")')
        with self.on_gpu(module) as run:
            lines = run.done.stdout.decode().splitlines()
            labels = {row["label"]: row["peak_bytes"] for row in run.report()["processes"][0]["labels"]}
        self.assertEqual(lines[2].split(), 3 * [str(labels["train_step_#"])])
        self.assertEqual(lines[3].split(), 2 * [str(labels["forward_pass_#"])])

    def test_the_usage_page_on_the_cpu(self):
        module = self.page("usage_cpu", "%s", 'stats["final_retained_files"]')
        with self.on_cpu(module) as run:
            self.assertRegex(run.done.stdout.decode(), r"^\d+\n0\n0\n$")

    def test_phase_tracking_demo(self):
        with self.on_cpu("examples.advanced.phase_tracking_demo") as run:
            said = run.done.stdout.decode()
        self.assertIn("Structured phase boundaries: 8", said)
        self.assertIn("- phase_exit: train / backward attrs={'microbatch': '4'}", said)

    def test_cpu_telemetry_scenario(self):
        with self.on_cpu("examples.scenarios.cpu_telemetry_scenario", "--output-dir", os.path.join(self.folder, "cpu")):
            pass
        with open(os.path.join(self.folder, "cpu", "cpu_profiler_summary.json")) as file:
            summary = json.load(file)
        self.assertGreater(summary["profile_duration_s"], 1.5)  # the script works for that long
        self.assertGreater(summary["exported_event_count"], 0)
        self.assertGreater(summary["profile_peak_rss_bytes"], 9 * MIB)  # the chunks it keeps

    def test_tensorflow_demo(self):
        python = real.python_of("tensorflow")
        if not python:
            self.skipTest("PyPI does not give tensorflow-cpu")
        with self.on_cpu("examples.basic.tensorflow_demo", python=python, TF_CPP_MIN_LOG_LEVEL=3, CUDA_VISIBLE_DEVICES="") as run:
            self.assertRegex(run.done.stdout.decode(), r"Peak memory \(MB\): 0\.00\n.*\nSnapshots captured: 12")  # it counts GPU memory, of which there is none

    def test_pytorch_demo(self):
        with self.on_gpu("examples.basic.pytorch_demo") as run:
            said = run.done.stdout.decode()
            labels = {row["label"]: row for row in run.report()["processes"][0]["labels"]}
        for size in 32, 64, 96:  # torch.randn of so many MiB, as the script says
            self.assertRegex(said, r"tensor_alloc_%dmb:\n.*\n.*\n  Avg memory: %d\.00 MB\n  Peak memory: %d\.00 MB" % (size, size, size))
        for epoch in 1, 2:
            peak = re.search(r"epoch_%d:\n.*\n.*\n.*\n  Peak memory: (\S+) MB" % epoch, said)[1]
            self.assertLessEqual(float(peak), labels["epoch_#_#"]["peak_bytes"] / MIB + 0.005)
        self.assertIn("Peak memory usage: %.2f MB" % (max(row["peak_bytes"] for row in labels.values()) / MIB), said)

    def test_tracking_demo(self):
        with self.on_gpu("examples.advanced.tracking_demo") as run:
            said = run.done.stdout.decode()
            torch, = run.report()["processes"][0]["pytorch"]
        self.assertIn("Peak memory (GB): %.2f" % (torch["peak_allocated_bytes"] / (1 << 30)), said)
        self.assertRegex(said, r"Allocated \(GB\): 0\.1[123]\nReserved \(GB\): 0\.1\d\nDelta")  # five tensors of 16, 24 and 32 MiB in turn

    def test_oom_flight_recorder_scenario(self):
        for mode, kind in (("simulated", "RuntimeError"), ("stress", "OutOfMemoryError")):
            out = os.path.join(self.folder, mode)
            with self.subTest(mode), self.on_gpu("examples.scenarios.oom_flight_recorder_scenario", "--mode", mode, "--output-dir", out,
                                                 "--stress-max-mb", 20000, "--stress-step-mb", 512):
                with open(os.path.join(out, "oom_scenario_summary.json")) as file:
                    summary = json.load(file)
                self.assertEqual((summary["status"], summary["exception_type"]), ("PASS", kind), summary)
                with open(os.path.join(summary["oom_dump_path"], "metadata.json")) as file:
                    self.assertEqual(json.load(file)["exception_message"], summary["exception_message"])


if __name__ == "__main__":
    unittest.main()
