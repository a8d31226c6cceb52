#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a server for language models asks of a dry run, in programs of a few lines that make the same calls."""
import os
import re
import subprocess
import tempfile
import unittest

from dry import ALLOCATE, ANALYZE, Dry

UP = "Application startup complete"
# A worker that is killed by nobody but us, and text that comes in two writes.
SERVER = "import os, sys, time\nif os.fork() == 0:\n" + ALLOCATE.replace("\n", "\n    ").replace("print(rt", "(rt") % 64 + """
    time.sleep(600)
""" + ALLOCATE % 128 + """
print("INFO:     Application start", end="")
time.sleep(0.2)
print("up complete.")
%s
time.sleep(600)
"""


def on(path, text):
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


class Calls(unittest.TestCase):
    def test_names_that_libraries_of_servers_import_are_there(self):
        names = {"libcublas.so.13": ["cublasHgemm"], "libcublasLt.so.13": ["cublasLtCreate", "cublasLtDestroy"]}
        run = Dry("/usr/bin/python3", "-c", "import ctypes\nfor library, names in %r.items():\n    for name in names: print(getattr(ctypes.CDLL(library), name)(ctypes.byref(ctypes.c_void_p())))" % names,
                  analyze=False)
        self.assertEqual((run.status, run.out.split()), (0, ["0"] * 3), run.err)

    def test_nvml_tells_the_cards_capability_and_what_it_has_not(self):
        code = """
import ctypes
nvml, handle, major, minor = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_int()
print(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)))
print(nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)), major.value, minor.value)
print(*[getattr(nvml, "nvmlDeviceGet" + name)(handle) for name in ("NumaNodeId", "CpuAffinity", "P2PStatus")])
"""
        run = Dry("/usr/bin/python3", "-c", code, card="4090", analyze=False)
        self.assertEqual(run.out.splitlines(), ["0 0", "0 8 9", "3 3 3"], run.err)

    def test_a_library_that_was_compiled_at_run_time_tells_its_kernel(self):
        code = """
import ctypes
from ctypes import byref
cuda, library, kernel, function, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
print(cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(byref(function), 0), cuda.cuCtxSetCurrent(function))
print(cuda.cuLibraryLoadData(byref(library), b"code", None, None, 0, None, None, 0), cuda.cuLibraryGetKernelCount(byref(count), library), count.value)
print(cuda.cuLibraryEnumerateKernels(byref(kernel), 1, library), cuda.cuKernelGetFunction(byref(function), kernel), bool(function))
"""
        run = Dry("/usr/bin/python3", "-c", code, analyze=False)
        self.assertEqual(run.out.splitlines(), ["0 0 0", "0 0 1", "0 0 True"], run.err)


class Until(unittest.TestCase):
    def test_a_server_that_is_up_is_ended_and_that_is_its_end(self):
        run = Dry("/usr/bin/python3", "-c", SERVER % "", options=["--until", UP])
        self.assertEqual((run.status, run.out.splitlines()[-1]), (0, "INFO:     Application startup complete."), run.err)
        self.assertIn('ended the command, which had printed "%s"' % UP, run.err)
        self.assertEqual([process["status"] for process in run.report["processes"]], ["completed"] * 2)
        self.assertNotIn("killed", run.screen)
        self.assertIn('ran    until it printed "%s"' % UP, run.screen)

    def test_a_server_that_dislikes_to_end_is_complete_too(self):
        code = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(3))\n" + SERVER % ""
        run = Dry("/usr/bin/python3", "-c", code, options=["--until", UP])
        self.assertEqual((run.status, [process["status"] for process in run.report["processes"]]), (0, ["completed"] * 2), run.screen)

    def test_a_command_that_ends_is_not_waited_for_because_of_what_it_left_running(self):
        run = Dry("/usr/bin/python3", "-c", "import os, time\nif os.fork() == 0: time.sleep(30)\nprint(os.getpid())", options=["--until", UP], analyze=False)
        self.assertEqual(run.status, 0)
        self.assertTrue(run.out.strip().isdigit())

    def test_known_servers_need_no_option(self):
        with tempfile.TemporaryDirectory() as folder:
            vllm = on(os.path.join(folder, "vllm"), "#!/usr/bin/python3\n" + SERVER % "")
            self.assertEqual(Dry(vllm, "serve", "model", analyze=False).status, 0)
            ends = on(os.path.join(folder, "vllm"), "#!/usr/bin/python3\nprint('%s')\nimport time; time.sleep(1)\nprint('ended by itself')" % UP)
            self.assertIn("ended by itself", Dry(ends, "serve", options=["--until", ""], analyze=False).out)
            self.assertIn("ended by itself", Dry(ends, "bench", analyze=False).out)

    def test_a_server_that_never_came_up_is_no_answer(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Dry("/usr/bin/python3", "-c", ALLOCATE % 64, options=["--until", UP], analyze=False, keep=os.path.join(folder, "traces"))
            self.assertIn('the command never printed "%s"' % UP, run.err)
            check = subprocess.run([ANALYZE, "check", "--dry", os.path.join(folder, "traces")], capture_output=True, text=True)
            self.assertEqual(check.returncode, 3, check.stdout + check.stderr)


ENGINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "engine")


class Engine(unittest.TestCase):
    """engine/ has vLLM's names. Of 23.5 GiB, 0.9 less weights and activations leave 6.67 GiB, of which a card may take 500 MiB more: 50 608 to 54 608 tokens, in blocks of 16."""

    def serve(self, *arguments, card="4090"):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.traces = os.path.join(folder.name, "traces")
        return Dry("/usr/bin/python3", os.path.join(ENGINE, "serve.py"), *arguments, card=card, keep=self.traces)

    def check(self, *options):
        done = subprocess.run([ANALYZE, "check", *options, self.traces], cwd=os.path.dirname(self.traces), capture_output=True, text=True)
        return done.returncode, " ".join(done.stdout.split())

    def test_one_that_starts_tells_tokens_as_a_span(self):
        run = self.serve("32768")
        self.assertEqual(run.status, 0, run.err)
        said = " ".join(run.screen.split())
        self.assertIn("FITS vLLM 9.9 starts on the RTX 4090 with 6.18 to 6.67 GiB of cache", said)
        self.assertIn("fits 50 608 to 54 608 tokens of cache: 1.5 to 1.7 sequences of 32 768 tokens", said)
        self.assertIn("next stormlog-run --dry=a10 -- COMMAND another card", said)
        self.assertRegex(said, r"6\.7 KV cache")
        self.assertEqual(self.check("--dry")[0], 0)
        self.assertIn("run it dry on that card", self.check("--fits", "80G")[1])

    def test_layers_with_a_window_are_counted_as_the_engine_counts_them(self):
        # 6.67 GiB are 6827 blocks of 1 MiB, and 500 MiB less 6327, one of them the engine's. A sequence takes one for 16 tokens, and one more for each of the first 4096
        self.assertIn("fits 89 984 to 97 095 tokens of cache: 2.7 to 3.0 sequences of 32 768 tokens", " ".join(self.serve("32768", "window").screen.split()))
        said = " ".join(self.serve("131072", "window").screen.split())
        self.assertIn("fix --max-model-len 97120", said)
        self.assertIn("for 4 at once it is --max-model-len 21200", said)
        self.assertIn("FITS   vLLM", self.serve("97120", "window").screen)
        self.assertIn("MAY FIT   vLLM", self.serve("97121", "window").screen)

    def test_without_graphs_the_span_is_narrower(self):
        self.assertIn("6.47 to 6.67 GiB of cache", self.serve("32768", "eager").screen)

    def test_workers_of_one_server_have_less_by_what_they_tell_each_other(self):
        for words, card, span in ((["eager", "fused"], "4090", "6.42 to 6.67"), (["eager"], "h100", "56.3 to 56.8"), ([], "4090", "6.13 to 6.67"), (["fused"], "4090", "5.63 to 6.29"),
                                  (["eager", "old"], "4090", "4.47 to 6.67")):
            said = " ".join(self.serve("32768", "two", *words, card=card).screen.split())
            self.assertIn(span + " GiB of cache", said)
            self.assertIn("each of 2 cards has this memory", said)
            wide = {"5.63 to 6.29": "676 MiB", "4.47 to 6.67": "2.2 GiB"}.get(span)
            self.assertEqual(re.findall("the span is (.*?) wide, since", said), [wide] if wide else [], said)

    def test_an_engine_that_was_up_and_is_killed_by_its_own_program_is_whole(self):
        self.assertIn("FITS   vLLM", self.serve("32768", "worker").screen)
        self.assertEqual(self.check("--dry")[0], 0)

    def test_one_that_is_killed_before_it_is_up_is_not_known_to_fail(self):
        self.assertIn("MAY FIT   vLLM 9.9 was killed before it was up", self.serve("32768", "early").screen)
        for expected, options in (1, ["--dry"]), (0, ["--fits", "80G"]):  # it did not come to its end; whether it fits is unknown
            status, said = self.check(*options)
            self.assertEqual((status, "vLLM 9.9 was killed before it was up on RTX 4090: run it again to its end" in said), (expected, True), said)
            self.assertNotIn("does not start", said)

    def test_one_that_does_not_start_names_the_options_that_would(self):
        run = self.serve("131072")
        self.assertEqual(run.status, 1)
        said = " ".join(run.screen.split())
        self.assertIn("DOES NOT START a sequence of 131 072 tokens needs 16 GiB of cache, 6.67 GiB are left", said)
        self.assertIn("fix --max-model-len 50592, or a card with more memory", said)
        self.assertIn("next stormlog-run --dry=a100-40 -- COMMAND another card", said)
        self.assertIn("up to --max-model-len 54592 may start", said)
        self.assertNotRegex(said, "(?i)may fit")
        for options in ("--dry",), ("--fits", "80G"):
            status, said = self.check(*options)
            self.assertEqual((status, "vLLM 9.9 does not start on RTX 4090: a sequence of 131 072 tokens needs 16.0 GiB" in said, "may fit" in said), (1, True, False), said)

    def test_the_options_that_it_names_do_start(self):
        self.assertIn("FITS   vLLM", self.serve("50592").screen)
        between = self.serve("54000").screen
        self.assertIn("MAY FIT   vLLM", between)
        self.assertIn("or --gpu-memory-utilization 0.92", between)

    def ask(self, code):
        return Dry("/usr/bin/python3", "-c", "import sys; sys.path.insert(0, %r)\n" % ENGINE + code, analyze=False)

    def test_a_folder_that_has_a_configuration_alone_is_told_which_options_to_add(self):
        code = "from vllm.engine.arg_utils import EngineArgs; EngineArgs(%r, %s).create_model_config()"
        with tempfile.TemporaryDirectory() as folder:
            on(os.path.join(folder, "config.json"), "{}")
            self.assertIn("no weights and no tokenizer: add --load-format dummy --skip-tokenizer-init\n", self.ask(code % (folder, "")).err)
            self.assertNotIn("add", self.ask(code % (folder, "'dummy', skip_tokenizer_init=True")).err)
            on(os.path.join(folder, "tokenizer.json"), "{}")
            self.assertIn("no weights: add --load-format dummy\n", self.ask(code % (folder, "")).err)
            on(os.path.join(folder, "model.safetensors"), "")
            self.assertNotIn("add", self.ask(code % (folder, "")).err)
        self.assertNotIn("add", self.ask(code % ("Qwen/Qwen3-8B", "")).err)

    def test_of_tensor_parallel_workers_the_first_runs(self):
        code = "from vllm.config.parallel import ParallelConfig; ParallelConfig(%s)"
        run = self.ask(code % "2")
        self.assertEqual((run.status, run.out), (0, "0 0 2\n"), run.err)
        self.assertIn("of 2 workers the first runs", run.err)
        self.assertEqual(self.ask(code % "1").out, "None None None\n")
        run = self.ask(code % "2, 2")
        self.assertEqual(run.status, 124)
        self.assertIn("take --tensor-parallel-size alone", run.err)


if __name__ == "__main__":
    unittest.main()
