#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The launcher's --dry over programs in C and ctypes: what the job sees, what is left, and what is told."""
import base64
import glob
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import msgpack

from dry import ALLOCATE, ANALYZE, APPS, BUILD, FIRST, RUN, UNDER, Dry

GIB = 1 << 30
INIT = "import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); print(cuda.cuInit(0))"


def folders(ended=False):
    """Folders of dry runs; of those whose launcher has ended, or all."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("stormlog-dry-")
            and not (ended and os.path.exists("/proc/" + name.split("-")[2]))}


class Run(unittest.TestCase):
    def test_the_cards_of_the_list_run_and_are_what_the_job_sees(self):
        listed = subprocess.run([RUN, "--dry=list"], capture_output=True, text=True, check=True).stdout
        cards = re.findall(r"^(\S+) +(\S.*?)  +([\d.]+) GiB .*(?:not )?measured$", listed, re.M)
        self.assertEqual(len(cards), 14)
        for card, name, memory in cards:
            run = Dry("/usr/bin/python3", "-c", ALLOCATE % 64, card=card, analyze=False)
            code, total, free = map(int, run.out.split())
            self.assertEqual((run.status, code), (0, 0), run.err)
            self.assertAlmostEqual(total / GIB, float(memory), delta=0.06)
            self.assertLess(free, total - (99 << 20))

    def test_the_first_line_of_launcher_screen_and_report(self):
        run = Dry("/usr/bin/python3", "-c", ALLOCATE % 1024)
        self.assertEqual(run.err.splitlines()[0], FIRST % "H200")
        self.assertEqual(run.screen.splitlines()[1], UNDER % "H200")
        dry = run.report["run"]["dry"]
        self.assertEqual((dry["card"], dry["measured"], dry["job_bytes"]), ("H200", True, GIB))
        self.assertRegex(run.screen, r"FITS   \S+ needs 1\.60 to 1\.61 GiB of the H200's 140 GiB\n")
        self.assertRegex(run.screen, r"1\.60  GiB at most .*\n  1\.00  \S+ .*\n  0\.60  context, code +610 to 628 MiB, measured\n")
        self.assertNotIn("HIDDEN", run.screen)
        self.assertIn(UNDER % "H200", run.summary)

    def test_a_handle_of_cublas_that_finds_no_memory_is_refused(self):
        """CUBLAS_STATUS_ALLOC_FAILED, as cublasCreate says on a card."""
        program = "import ctypes\n" + ALLOCATE % 1 + "blas, handle = ctypes.CDLL('libcublas.so.13'), ctypes.c_void_p()\nprint(blas.cublasCreate_v2(ctypes.byref(handle)))\n"
        for limit, code, memory in ("700M", 0, 65), ("650M", 3, 1):
            run = Dry("/usr/bin/python3", "-c", program, options=("--limit", limit))
            self.assertEqual(int(run.out.split()[-1]), code, run.err)
            self.assertEqual(run.report["run"]["dry"]["job_bytes"] >> 20, memory)

    def test_what_is_destroyed_takes_no_host_memory(self):
        program = """if True:
            import ctypes, resource
            lt, handle = ctypes.CDLL("libcublasLt.so.13"), ctypes.c_void_p()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for i in range(10000):
                lt.cublasLtMatrixLayoutCreate(ctypes.byref(handle), 0, 1, 1, 1)
                lt.cublasLtMatrixLayoutDestroy(handle)
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"""
        self.assertLess(int(Dry("python3", "-c", program, analyze=False).out), 4096)

    def test_quiet_says_nothing(self):
        code = "open('model.pt', 'w').write('zeros'); import ctypes" + ALLOCATE % 64
        loud, quiet = (Dry("/usr/bin/python3", "-c", code, card="l4", options=options, analyze=False) for options in ([], ["-q"]))
        self.assertIn("this card was not measured", loud.err)
        self.assertIn("1 file that the job wrote is gone, as ", loud.err)
        self.assertEqual((quiet.status, quiet.err), (0, ""))

    def test_a_card_that_is_too_small_runs_out_of_memory(self):
        run = Dry("/usr/bin/python3", "-c", ALLOCATE % (16 << 10), card="t4")
        self.assertEqual(run.out.split()[0], "2")
        self.assertIn("DOES NOT FIT   <string>:6 asks 16 GiB, more than the card has", run.screen)
        self.assertIn("the card has 14.6 GiB in all", run.screen)
        between = Dry("/usr/bin/python3", "-c", ALLOCATE % (14 << 10), card="t4")
        self.assertEqual(between.out.split()[0], "0")
        self.assertRegex(between.screen, r"MAY FIT   \S+ needs 14\.\d+ to 14\.\d+ GiB of the T4's 14\.6 GiB")
        limited = Dry("/usr/bin/python3", "-c", ALLOCATE % (16 << 10), options=["--limit", "15G"])
        self.assertEqual(limited.out.split()[0], "2")
        self.assertIn("DOES NOT FIT   <string>:6 asks 16 GiB", limited.screen)

    def test_the_jump_before_an_error_has_no_time(self):
        code = ALLOCATE % 64 + """
for _ in range(20000):
    rt.cudaMalloc(ctypes.byref(free), ctypes.c_size_t(1 << 20)); rt.cudaFree(free)
while not rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(64 << 20)): pass
"""
        screen = Dry("/usr/bin/python3", "-c", code, options=["--limit", "2G"]).screen
        self.assertRegex(" ".join(screen.split()), r"DOES NOT FIT memory rises to \d+ times what it was, .* 6[45] MiB were held at most before, and [\d.]+ GiB with this request")
        self.assertNotRegex(screen, r"\d m?s\b")

    def test_a_pool_counts_what_is_in_use_as_the_h200_did(self):
        code = ALLOCATE.replace("%d << 20", "1 << 20") + """
pool, value, a = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
rt.cudaDeviceGetDefaultMemPool(ctypes.byref(pool), 0)
for number in range(3):
    rt.cudaMallocAsync(ctypes.byref(a), ctypes.c_size_t((5 << 20) + 4 * number), None)
    rt.cudaFreeAsync(a, None)
for which in (5, 6, 7, 8):  # reserved and in use: now, most
    rt.cudaMemPoolGetAttribute(pool, which, ctypes.byref(value))
    print(value.value)
"""
        out = Dry("/usr/bin/python3", "-c", code, analyze=False).out.split()
        self.assertEqual(list(map(int, out[3:])), [32 << 20, 32 << 20, 0, (5 << 20) + 8])

    def test_a_program_that_is_linked_with_the_runtime(self):
        run = Dry(os.path.join(APPS, "oom"))
        self.assertTrue(run.report["ooms"], run.err)

    def test_nothing_is_left_behind(self):
        Dry("/bin/true", analyze=False)
        self.assertEqual(folders(ended=True), set())
        killed = subprocess.Popen([RUN, "--dry", "-o", tempfile.mkdtemp(), "--", "sleep", "60"], stderr=subprocess.DEVNULL)
        while not any("-%d-" % killed.pid in name for name in folders()):
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        Dry("/bin/true", analyze=False)
        self.assertFalse(any("-%d-" % killed.pid in name for name in folders()))

    def test_a_folder_of_the_users_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "stormlog-dry-8notes"))
            Dry("/bin/true", analyze=False, TMPDIR=folder)
            self.assertEqual(os.listdir(folder), ["stormlog-dry-8notes"])

    def test_the_libraries_have_no_device_without_the_launcher(self):
        library = os.path.join(BUILD, "dry", "dry-cuda-1.so")
        answer = [sys.executable, "-c", INIT.replace("libcuda.so.1", library)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STORMLOG_")}
        for extra in ({}, {"STORMLOG_DRY": "/nowhere", "STORMLOG_DRY_CARD": "memory=1"}):
            done = subprocess.run(answer, env={**clean, **extra}, capture_output=True, text=True)
            self.assertEqual(done.stdout.strip(), "100", done.stderr)

    def test_no_file_has_a_name_of_nvidias(self):
        self.assertFalse([name for name in os.listdir(os.path.join(BUILD, "dry")) if re.match(r"lib(cu|nv|nccl)", name)])

    def test_a_card_of_ones_own(self):
        with tempfile.NamedTemporaryFile("w", suffix=".card") as file:
            file.write("like = l4\nname = NVIDIA Own\nmemory = 3GiB\n")
            file.flush()
            run = Dry("/usr/bin/python3", "-c", ALLOCATE % 64, card=file.name)
            self.assertEqual(int(run.out.split()[1]), 3 * GIB)
            self.assertEqual(run.screen.splitlines()[1], UNDER % "Own")
            file.write("colour = 3\n")
            file.flush()
            self.assertIn("colour = 3: wants `name = value`", Dry("true", card=file.name).err)
        self.assertIn("--dry=nosuch is no known card", Dry("true", card="nosuch").err)

    def test_a_runtime_inside_a_library_is_refused_by_name(self):
        code = INIT + "; cuda.cuGetExportTable(ctypes.byref(ctypes.c_void_p()), b'0123456789abcdef'); print('went on')"
        run = Dry(sys.executable, "-c", code)
        self.assertEqual((run.status, run.out.strip()), (124, "0"))
        self.assertRegex(run.err, r"DRY RUN ended: \S+ carries NVIDIA's CUDA runtime inside itself, which .*: run the job without it, or record it on a GPU\n")
        self.assertNotIn("used no GPU", run.err)

    def test_a_static_program_is_not_started(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "static.c"), os.path.join(folder, "static")
            with open(source, "w") as file:
                file.write('#include <stdio.h>\nint main(void) { puts("started"); return 0; }\n')
            if subprocess.run(["cc", "-static", "-o", program, source], capture_output=True).returncode:
                self.skipTest("no static C library")
            run = Dry(program, analyze=False)
            self.assertEqual((run.status, run.out), (125, ""))
            self.assertIn(program + " is statically linked", run.err)

    def test_jax_ends_where_it_asks_for_the_device_and_not_before(self):
        with tempfile.TemporaryDirectory() as folder:  # as jax 0.10 looks for its plugin
            for name, text in (("jax/__init__.py", "class config: jax_platforms = None"), ("jax_plugins/xla_cuda12/__init__.py", "initialize = lambda: print('started')")):
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            code = "import jax; jax.config.jax_platforms = %r; import jax_plugins.xla_cuda12 as plugin; print('loaded', flush=True); plugin.initialize()"
            run = Dry(sys.executable, "-c", code % None, analyze=False, PYTHONPATH=folder)
            self.assertEqual((run.status, run.out), (124, "loaded\n"))
            self.assertRegex(run.err, r"DRY RUN ended: JAX \(jax_plugins.xla_cuda12\) carries NVIDIA's CUDA runtime .*JAX_PLATFORMS=cpu")
            run = Dry(sys.executable, "-c", code % "cpu", analyze=False, PYTHONPATH=folder)
            self.assertEqual((run.status, run.out), (0, "loaded\nstarted\n"))

    def test_trackers_stay_offline_where_the_program_says_otherwise(self):
        with tempfile.TemporaryDirectory() as folder:  # as wandb 0.20 and mlflow 3 have them
            for name, text in (("wandb/sdk/wandb_init.py", "def init(project=None, mode=None): print(project, mode)"),
                               ("mlflow/tracking/_tracking_service/utils.py", "def set_tracking_uri(uri): print(uri)")):
                os.makedirs(os.path.dirname(os.path.join(folder, name)))
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            code = ("from wandb.sdk.wandb_init import init; init(project='mine', mode='online')\n"
                    "from mlflow.tracking._tracking_service.utils import set_tracking_uri; set_tracking_uri('http://localhost')")
            run = Dry(sys.executable, "-c", code, analyze=False, PYTHONPATH=folder)
        self.assertEqual((run.status, run.out), (0, "mine disabled\n"), run.err)

    def test_options_of_a_dry_run_want_one(self):
        for options in (["--steps", "3"], ["--keep-writes"], ["--allow-writes", "/"]):
            done = subprocess.run([RUN, *options, "--", "true"], capture_output=True, text=True)
            self.assertEqual((done.returncode, "go with --dry" in done.stderr), (125, True))
        done = subprocess.run([RUN, "--dry", "l4", "true"], capture_output=True, text=True)
        self.assertEqual((done.returncode, "--dry=l4" in done.stderr), (127, True))

    def test_a_dry_run_and_a_real_one_do_not_compare(self):
        with tempfile.TemporaryDirectory() as folder:
            sides = [os.path.join(folder, side) for side in ("dry", "real")]
            clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "LD_", "SIM_"))}
            subprocess.run([RUN, "--dry", "-q", "-o", sides[0], "--", os.path.join(APPS, "oom")], env=clean, capture_output=True)
            subprocess.run([RUN, "-q", "-o", sides[1], "--", os.path.join(APPS, "oom")], capture_output=True,
                           env=dict(clean, LD_LIBRARY_PATH=os.path.join(BUILD, "tests", "sim"), SIM_DIR=folder))
            done = subprocess.run([ANALYZE, "diff", *sides], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("a dry run and one on a device do not compare", done.stderr)
            self.assertEqual(subprocess.run([ANALYZE, "diff", sides[0], sides[0]], capture_output=True).returncode, 0)

    def test_nccl_copies_the_own_share_and_takes_buffers(self):
        code = """
import ctypes
rt, nccl = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("libnccl.so.2")
class Id(ctypes.Structure): _fields_ = [("bytes", ctypes.c_char * 128)]
size, pointer = ctypes.c_size_t, ctypes.c_void_p
at, comm, free, total = pointer(), pointer(), size(), size()
rt.cudaMalloc(ctypes.byref(at), size(64))
rt.cudaMemcpy(at, b"mine", size(4), 1)
nccl.ncclCommInitRank.argtypes = [pointer, ctypes.c_int, Id, ctypes.c_int]
def left():
    rt.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total))
    return free.value
nccl.ncclCommInitAll(ctypes.byref(comm), 1, None)
one = -left()
nccl.ncclCommDestroy(comm)
whole = left()
one += whole
nccl.ncclCommInitRank(ctypes.byref(comm), 8, Id(), 3)
before = left()
for _ in range(2):
    nccl.ncclAllGather(at, pointer(at.value + 8), size(4), 0, comm, None)
taken = before - left()
nccl.ncclGroupStart()
nccl.ncclRecv(pointer(at.value + 8), size(4), 0, 5, comm, None); nccl.ncclRecv(pointer(at.value + 12), size(4), 0, 6, comm, None)
nccl.ncclSend(at, size(4), 0, 5, comm, None)
nccl.ncclGroupEnd()
back = ctypes.create_string_buffer(40)
rt.cudaMemcpy(back, at, size(40), 2)
nccl.ncclCommDestroy(comm)
print(one, taken >> 20, back.raw[8:16], back.raw[36:40].decode(), whole - left())
"""
        run = Dry(sys.executable, "-c", code, analyze=False)
        of_h200 = 413138944 - (6 << 20)  # tests/golden/gpu/libraries: what NCCL held, without its ncclMemAlloc of 6 MiB
        self.assertEqual(run.out.split(), [str(of_h200), "288", r"b'mine\x00\x00\x00\x00'", "mine", "0"], run.err)

    def test_a_pytorch_that_needs_what_the_tables_lack_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "torch"))
            library = os.path.join(folder, "torch", "libtorch_cuda.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", library], input="void cublasOfTomorrow(void); void call(void) { cublasOfTomorrow(); }",
                           text=True, check=True)
            for path, name in ((library, "cublasOfTomorrow"), ("libcuofyesterday.so.2", "libcuofyesterday.so.2")):
                with open(os.path.join(folder, "torch", "__init__.py"), "w") as file:
                    file.write("import ctypes; ctypes.CDLL(%r)\n" % path)
                run = Dry(sys.executable, "-c", "import torch", analyze=False, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1")
                self.assertEqual(run.status, 124, run.err)
                self.assertIn("DRY RUN ended: this PyTorch needs %s, which" % name, run.err)

    def test_nvidias_own_runtime_inside_a_library_is_refused_at_its_first_call(self):
        nvcc = shutil.which("nvcc")
        if not nvcc:
            self.skipTest("no nvcc")
        with tempfile.TemporaryDirectory() as folder:
            source, library = os.path.join(folder, "kernels.cu"), os.path.join(folder, "libkernels.so")
            with open(source, "w") as file:
                file.write('__global__ void one(float *at) { *at = 1; }\n'
                           'extern "C" int call(void) { float *at; if (cudaMalloc(&at, 4)) return 1; one<<<1, 1>>>(at); return cudaDeviceSynchronize(); }\n')
            subprocess.run([nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", "static", "-o", library, source], check=True, capture_output=True)
            run = Dry(sys.executable, "-c", "import ctypes; kernels = ctypes.CDLL(%r); print('loaded', flush=True); kernels.call()" % library, analyze=False)
        self.assertEqual((run.status, run.out), (124, "loaded\n"))
        self.assertIn("DRY RUN ended: %s carries NVIDIA's CUDA runtime inside itself" % library, run.err)

    def test_a_folder_that_is_gone(self):
        folder = tempfile.mkdtemp()
        run = subprocess.run(["sh", "-c", 'cd %s && rmdir %s && "$0" --dry -o /tmp/none -- true' % (folder, folder), RUN], capture_output=True, text=True)
        self.assertIn("this folder is gone", run.stderr)
        self.assertNotEqual(run.returncode, 0)

    def test_the_programs_own_sitecustomize_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
                file.write("print('mine')\n")
            self.assertEqual(Dry(sys.executable, "-c", "print('then')", analyze=False, PYTHONPATH=folder).out.split(), ["mine", "then"])

    def test_small_copies_are_kept_and_kernels_leave_zeros(self):
        code = """
import ctypes
rt = ctypes.CDLL("libcudart.so.13")
at, back = ctypes.c_void_p(), ctypes.create_string_buffer(8)
rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 33))
rt.cudaMemcpy(back, at, ctypes.c_size_t(8), 2); print(back.raw == bytes(8))
rt.cudaMemcpy(at, b"position", ctypes.c_size_t(8), 1); rt.cudaMemcpy(back, at, ctypes.c_size_t(8), 2); print(back.raw.decode())
"""
        self.assertEqual(Dry(sys.executable, "-c", code, analyze=False).out.split(), ["True", "position"])

# Tells the trace what dry/python/stormlog_dry_end.py does with PyTorch: that the dry run ended the job.
SAY = ALLOCATE % 64 + """
at = ctypes.addressof(ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stormlog_api_v1"))
say = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)(ctypes.cast(at, ctypes.POINTER(ctypes.c_void_p))[6])
"""
ENDED = SAY + 'say(b"dry.steps", b"20"); say(b"dry.end", b"the first 20 steps fit; evaluation did not run")\n'


class Page(unittest.TestCase):
    def test_all_reads_are_on_the_page_and_the_screens_sentences(self):
        say = SAY + 'say(b"dry.steps", b"20")\n' + "".join('say(b"dry.read./job/train.py:%d", b"item of float32")\n' % line for line in range(101, 161))
        say += 'say(b"dry.read./job/train.py:161", b"mask of 0 of 9 elements")\n'
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "LD_", "SIM_"))}
        with tempfile.TemporaryDirectory() as folder:
            for command, earlier in ((say, False), ("", True)):
                subprocess.run([RUN, "--dry", "-q", "-o", folder, "--", sys.executable, "-c", command], capture_output=True, env=clean)
                screen = subprocess.run([ANALYZE, folder], capture_output=True, text=True, env=clean).stdout
                with open(os.path.join(folder, "analysis", "report.html")) as file:
                    packed = gzip.decompress(base64.b64decode(re.search(r'type="text/plain">([^<]+)<', file.read())[1]))
                data, verdict = packed.decode(errors="replace"), msgpack.unpackb(packed)["answer"]["verdicts"][0]
                for line in range(101, 162):
                    self.assertIn("/job/train.py:%d" % line, data)
                said = " ".join(screen.split())
                self.assertIn("open train.py:161 read a value that was not computed (mask of 0 of 9 elements) train.py:101 read a value", said)
                self.assertIn("train.py:102 read a value that was not computed (item of float32) 58 more lines did ", said)
                self.assertEqual(["It is an earlier one: the last one here" in one for one in (data, said)], [earlier] * 2)
                self.assertIn("20 optimizer steps ran", data)
                word, headline = re.search(r"(?m)^(MAY FIT) +(\S+ needs \d+ to \d+ MiB .*)$", screen).groups()
                self.assertEqual((verdict["word"], verdict["headline"].startswith(headline)), (word, True))


class Gate(unittest.TestCase):
    """check, diff, history and runs of dry runs; real: a recording of a device."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-dry-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.clean = {name: value for name, value in os.environ.items() if not name.startswith(("STORMLOG_", "LD_", "SIM_"))}
        self.clean["XDG_STATE_HOME"] = self.folder
        self.real = os.path.join(self.folder, "real")
        shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "traces", "completed"), self.real)

    def record(self, name, code, *options):
        traces = os.path.join(self.folder, name)
        subprocess.run([RUN, "--dry", "-q", *options, "-o", traces, "--", sys.executable, "-c", code], env=self.clean, capture_output=True)
        return traces

    def ask(self, *command, status=0):
        done = subprocess.run([ANALYZE, *command], env={"COLUMNS": "200", **self.clean}, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_check_wants_a_run_that_came_to_its_end(self):
        whole = self.record("whole", ALLOCATE % 64)
        self.assertIn("ok       dry", self.ask("check", "--dry", whole))
        self.assertEqual(self.ask("check", "--dry", "--max-peak", "1G", whole).splitlines()[0], FIRST % "H200")
        self.assertIn("status other than 0", self.ask("check", "--dry", self.record("failed", ALLOCATE % 64 + "sys.exit(3)"), status=1))
        self.assertIn("run it again with --steps 20", self.ask("check", "--dry", self.record("settled", ENDED), status=1))
        self.assertIn("ok       dry              on H200 the first 20 steps fit; evaluation did not run\n",
                      self.ask("check", "--dry", self.record("asked", ENDED, "--steps", "20")))
        fewer = SAY + 'say(b"dry.steps", b"5")\nsay(b"dry.read./job/train.py:9", b"item of float32")\nsay(b"dry.late", b"4 train.py:9")\n'
        self.assertIn("unknown  dry              the job ended before step 20 of an optimizer, and train.py:9 read",
                      self.ask("check", "--dry", self.record("fewer", fewer, "--steps", "20")))
        self.assertIn("ok       dry", self.ask("check", "--dry", self.record("five", fewer, "--steps", "5")))
        self.assertIn("was recorded on a device", self.ask("check", "--dry", self.real, status=2))
        self.assertIn("unknown  dry", self.ask("check", "--max-peak", "1G", whole))
        self.assertIn("FAIL     dry", self.ask("check", "--max-peak", "1G", "--strict", whole, status=1))
        self.assertIn("FAIL     max-peak", self.ask("check", "--dry", "--max-peak", "1M", whole, status=1))

    def test_a_worker_that_its_parent_ends_does_not_end_the_run(self):
        waits = ALLOCATE % 64 + "sys.stdout.flush(); import time; time.sleep(600)"
        pool = "import subprocess, sys\nworker = subprocess.Popen([sys.executable, '-c', %r], stdout=-1)\nworker.stdout.readline()\nworker.kill()\nworker.wait()\n" % waits
        self.assertIn("ok       dry", self.ask("check", "--dry", self.record("pool", pool + ALLOCATE % 64)))
        self.assertIn("did not come to its end: it was killed",
                      self.ask("check", "--dry", self.record("killed", ALLOCATE % 64 + "import os; os.kill(os.getpid(), 9)"), status=1))

    def test_a_value_that_may_have_ended_the_job_is_told(self):
        for said, late in (("4 train.py:9", True), ("3 train.py:9", False)):
            traces = self.record("ended" + said[0], SAY + 'say(b"dry.steps", b"5"); say(b"dry.late", b"%s")\n' % said)
            ran = "5 optimizer steps ran" + "; a value that was not computed may have ended it (train.py:9)" * late
            self.assertIn("ok       dry              the dry run on H200 came to its end: %s\n" % ran, self.ask("check", "--dry", traces))
            self.assertIn("--steps N decides otherwise" if late else "ok       dry", self.ask("check", "--dry", "--strict", traces, status=int(late)))
            self.assertIn(ran, " ".join(self.ask("report", traces).split()))
            with open(os.path.join(traces, "analysis", "report.json")) as file:
                dry = json.load(file)["run"]["dry"]
            self.assertEqual((dry["steps"], dry["steps_asked"], dry["may_be_ended_by"]), (5, None, "train.py:9" if late else None))

    def test_what_a_job_got_over_is_one_thing_for_all_verdicts(self):
        traces = self.record("over", ALLOCATE % 64 + """
for i in range(40):
    if i % 13 == 0:
        rt.cudaMalloc(ctypes.byref(free), ctypes.c_size_t(200 << 30))
    rt.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1 << 20))
""")
        said = self.ask("check", "--dry", "--no-oom", "--fits", "100G", traces)
        self.assertEqual(re.findall(r"(?m)^(\w+) +(fits|dry|no-oom) ", said), [("unknown", "fits"), ("ok", "dry"), ("ok", "no-oom")], said)
        self.assertIn("no sample after the peak", said)
        self.assertRegex(self.ask("fit", "--capacity", "100G", traces, status=1), "100 GiB +unknown +no sample after the peak")
        self.assertRegex(self.ask("report", traces), r"FITS   \S+ needs \d+ to \d+ MiB of the H200's 140 GiB")

    def test_a_write_that_was_refused_is_the_reason(self):
        traces = self.record("refused", SAY + 'say(b"dry.refused", b"/ckpt/best.pt")\nsys.exit(1)')
        why = "it must not write /ckpt/best.pt: --allow-writes DIR opens a folder"
        self.assertIn("FAIL     dry              the dry run did not come to its end: " + why, self.ask("check", "--dry", traces, status=1))
        said = " ".join(self.ask("report", traces).split())
        self.assertIn("MAY FIT so far ", said)
        self.assertIn("ran " + why, said)

    def test_a_job_that_used_no_gpu_has_no_answer(self):
        traces = os.path.join(self.folder, "none")
        for gate, status in ((), 0), (("--gate",), 3):
            done = subprocess.run([RUN, "--dry", *gate, "-o", traces, "--", "true"], env=self.clean, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn("DRY RUN without an answer: this job used no GPU", done.stderr)
        self.assertIn("none", self.ask("check", "--dry", traces, status=2))
        whole = self.record("whole", ALLOCATE % 64)
        self.record("whole", "print(1)")
        self.assertIn("did not start, used no GPU, or its command failed", self.ask("check", "--dry", whole, status=3))
        self.assertIn(UNDER % "H200" + ". It is an earlier one: ", " ".join(self.ask("report", whole).split()))
        self.record("whole", ALLOCATE % 64)
        self.assertIn("ok       dry", self.ask("check", "--dry", whole))
        self.assertEqual(self.ask("report", whole).splitlines()[1], UNDER % "H200")

    def test_a_runtime_that_a_dry_run_does_not_have_is_named(self):
        for name in "libcudart.so.11.0", "libcudart-d0da41ae.so.11.0", "libamdhip64.so.6":
            code = "import ctypes\ntry: ctypes.CDLL(%r)\nexcept OSError: pass" % name
            done = subprocess.run([RUN, "--dry", "-o", os.path.join(self.folder, "none"), "--", sys.executable, "-c", code], env=self.clean, cwd=self.folder, capture_output=True, text=True)
            self.assertIn("without an answer: this job asked for %s, and a dry run has CUDA 12 and 13." % name, done.stderr)

        for name in "libcudart.faf08d9a.so.13", "libcudart-c64a25f3.so.12.3.101":  # a wheel's own, of a release that a dry run has
            done = subprocess.run([RUN, "--dry", "-o", os.path.join(self.folder, "none"), "--", sys.executable, "-c", code.replace("libamdhip64.so.6", name)], env=self.clean, cwd=self.folder, capture_output=True, text=True)
            self.assertIn("without an answer: this job used no GPU", done.stderr)

    def test_a_library_that_comes_late_has_room_for_its_static_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            late = os.path.join(folder, "late.so")
            subprocess.run(["cc", "-shared", "-fPIC", "-ftls-model=initial-exec", "-x", "c", "-", "-o", late], check=True, text=True,
                           input="static _Thread_local volatile char room[1024];\nint touch(void) { return room[7]; }\n")
            program = INIT + "; print(ctypes.CDLL(%r).touch())" % late
            run = Dry("/usr/bin/python3", "-c", program, analyze=False, GLIBC_TUNABLES="glibc.malloc.check=0")
            self.assertEqual((run.status, run.out.split()), (0, ["0", "0"]), run.err)

    def test_an_earlier_run_in_a_folder_with_placeholders_is_no_answer_either(self):
        record = lambda code: self.record("many/%h-%p", code)
        record(ALLOCATE % 64)
        folder, = glob.glob(os.path.join(self.folder, "many", "*"))
        self.assertIn("ok       dry", self.ask("check", "--dry", os.path.dirname(folder)))
        record("print(1)")
        for path in os.path.dirname(folder), folder:
            self.assertIn("did not start, used no GPU, or its command failed", self.ask("check", "--dry", path, status=3))
        record(ALLOCATE % 64)
        self.assertIn("ok       dry", self.ask("check", "--dry", os.path.dirname(folder)))
        for name in "model.pt", "a-model.pt":  # beside the folders of traces, and as if it were one
            path = os.path.join(self.folder, "many", name)
            open(path, "w").close()
            done = subprocess.run([RUN, "--dry", "-o", os.path.dirname(path) + "/%h-%p", "--", "true"], env=self.clean, capture_output=True, text=True)
            self.assertEqual((done.returncode, "job's files here, as " + name in done.stderr), (125, True), done.stderr)
            os.unlink(path)

    def test_an_earlier_run_is_no_answer_of_one_that_failed(self):
        whole = self.record("whole", ALLOCATE % 64)
        refused, failed = ["--allow-writes", "/absent"], "import subprocess; subprocess.run([sys.executable, '-c', %r]); sys.exit(4)" % (ALLOCATE % 64)
        for code, options in (("", refused), ("import sys; " + failed, ())):
            self.assertIn("ok       dry", self.ask("check", "--dry", self.record("whole", ALLOCATE % 64)))
            self.record("whole", code, *options)
            self.ask("check", "--dry", whole, status=3)

    def test_an_error_that_was_caught_is_told_as_such(self):
        traces = self.record("caught", ALLOCATE % (200 << 10))
        said = self.ask("check", "--dry", "--no-oom", traces, status=1)
        self.assertRegex(self.ask("fit", "--capacity", "100G", traces, status=1), "100 GiB +no +it ran out of memory on a device of 140 GiB")
        self.assertIn("FAIL     dry              the job does not fit H200: it ran out of memory, and caught the error\n", said)
        self.assertRegex(said, r"\nFAIL     no-oom           DOES NOT FIT: <string>:\d+ asks 200 GiB, more than the card has; why: ")

    def test_a_masked_pack_has_the_same_answer(self):
        say = SAY + 'say(b"dry.steps", b"5")\nsay(b"dry.read./job/secret.py:9", b"numpy of float32")\n'
        pack = os.path.join(self.folder, "masked.stormlog")
        traces = self.record("masked", say)
        self.ask("pack", "--redact", "-o", pack, traces)
        said = [re.sub(r" at \S+:6 ", " at the line ", self.ask("check", "--dry", *strict, path, status=len(strict)))
                for strict in ((), ("--strict",)) for path in (traces, pack)]
        self.assertEqual(said[0], said[1])
        self.assertNotIn("incomplete", said[1])
        self.assertIn("went to the host, where they may have chosen sizes", said[2])
        self.assertEqual(said[2], said[3])
        needs = [re.search(r"FITS .*needs (.*)", self.ask(path))[1] for path in (traces, pack)]
        self.assertEqual(*needs)

    def test_a_snapshot_of_a_dry_run_says_so_and_fits_nothing(self):
        snapshot, again = (os.path.join(self.folder, name) for name in ("dry.pickle", "again.pickle"))
        self.ask("export", "pytorch-snapshot", "-o", snapshot, self.record("exported", SAY))
        self.ask("export", "pytorch-snapshot", "-o", again, snapshot)
        for path in (snapshot, again):
            said = self.ask(path)
            self.assertIn("DRY RUN as H200", said)
            self.assertNotIn("FITS", said)
            self.ask("check", "--dry", path, status=2)

    def test_the_limit_that_was_hit_is_named(self):
        limited = self.ask("check", "--dry", self.record("limited", ALLOCATE % (16 << 10), "--limit", "15G"), status=1)
        self.assertIn("the job does not fit 15.0 GiB of H200 (--limit): it ran out of memory", limited)
        injected = self.record("injected", ALLOCATE % 64, "--inject-oom", "1")
        self.assertRegex(self.ask("check", "--dry", injected), "unknown  dry .*--inject-oom made a call fail, and the card had room")
        self.assertNotIn("DOES NOT FIT", self.ask(injected))

    def test_the_launchers_check_is_of_the_dry_run(self):
        said = subprocess.run([RUN, "--dry=l4", "--check", "--", "true"], env=self.clean, cwd=self.folder, capture_output=True, text=True).stderr
        self.assertRegex(said, "(?m)^not seen .*(env -i)")
        self.assertRegex(said, "dry run +l4: no GPU is used")
        self.assertNotIn("CUDA driver", said)

    def test_the_launchers_gate_is_of_dry_runs(self):
        with open(os.path.join(self.folder, ".stormlog.ini"), "w") as file:
            file.write("[check]\nmax-peak = 1GiB\n")
        for code, status in ((ALLOCATE % 64, 0), (ENDED, 1)):
            done = subprocess.run([RUN, "--dry", "--gate", "-o", tempfile.mkdtemp(dir=self.folder), "--", sys.executable, "-c", code],
                                  env=self.clean, cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)

    def test_dry_runs_and_others_do_not_mix(self):
        dry = self.record("whole", ALLOCATE % 64)
        for name, of, other in (("dry.json", dry, self.real), ("real.json", self.real, dry)):
            self.ask("check", "--baseline", name, "--update-baseline", of)
            self.ask("check", "--baseline", name, of)
            self.assertIn("keep a file for each", self.ask("check", "--baseline", name, other, status=2))
            with open(os.path.join(self.folder, name)) as file:
                before = file.read()
            self.assertIn("keep a file for each", self.ask("check", "--baseline", name, "--update-baseline", other, status=2))
            with open(os.path.join(self.folder, name)) as file:
                self.assertEqual(file.read(), before)
        self.assertIn("do not compare", self.ask("diff", dry, self.real, status=2))
        self.assertEqual(self.ask("diff", dry, dry).splitlines()[0], FIRST % "H200")
        self.assertIn("completed, dry H200", self.ask("runs", dry, self.real))
        self.assertIn("do not compare", self.ask("diff", "not dry=?", "dry=?", status=2))
        self.assertEqual(self.ask("report", dry).splitlines()[1], UNDER % "H200")
        self.assertEqual(self.ask("oom", dry), "")  # no memory ran out
        for verb in "tree", "table", "fit", "monitor":
            self.assertEqual(self.ask(verb, dry).splitlines()[0], FIRST % "H200", verb)
        for verb in "tree", "fit":
            self.assertEqual(json.loads(self.ask(verb, "--json", dry))["dry"], "H200")
        points = lambda *query: {point["value"] for point in json.loads(self.ask("history", "--json", "peak", *query).split("stormlog-analyze:")[0])["points"]}
        self.assertNotIn(64 << 20, points())
        self.assertEqual(points("dry:h200"), {64 << 20})


if __name__ == "__main__":
    unittest.main(verbosity=2)
