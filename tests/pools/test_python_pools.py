#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Blocks of CuPy and RMM and tags of vLLM by hooks in Python, over stand-ins with journals; PyTorch, NCCL and CuPy on one device."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
from pools import BUILD, Pools, e2e, real

PACKAGE = os.path.join(HERE, "..", "..", "python")
STAND_INS = os.path.join(HERE, "site-packages")  # in a folder of this name, since frames of installed packages are not the program's
MIB = 1 << 20
# As if pip had installed it: Python reads the .pth file at its start.
START = "import site; site.addsitedir(%r)\n" % os.path.abspath(PACKAGE)


def record(text, *arguments, **environment):
    environment = {"STORMLOG_PYTHON_POOLS": "1", "PYTHONPATH": STAND_INS, "SIM_DEVICES": 1, **environment}
    return Pools("/usr/bin/python3", "-c", START + text, *arguments, **environment)


def live(journal):
    """(bytes live at the end, live blocks, most bytes that were live) by the framework's own journal."""
    blocks, most = {}, 0
    for words in journal:
        if words[0] == "block":
            blocks[words[1]] = int(words[2])
        else:
            del blocks[words[1]]
        most = max(most, sum(blocks.values()))
    return sum(blocks.values()), len(blocks), most


def real_python(test):
    if os.environ.get("STORMLOG_REAL") != "1":
        test.skipTest("rmm-cu12 and cupy-cuda12x are of PyPI: STORMLOG_REAL=1")
    return real.python_of("rmm") or test.skipTest("PyPI does not give rmm-cu12 or cupy-cuda12x")


class CuPy(unittest.TestCase):
    TEXT = """
import cupy
kept = [cupy.empty(3 << 20) for _ in range(10)]
del kept[3:6]
kept.append(cupy.empty(3 << 20))
with cupy.cuda.using_allocator(cupy.cuda.MemoryPool().malloc):
    other = cupy.empty(1000)
import os; os._exit(0)
"""

    def test_blocks_are_those_of_the_journal(self):
        with record(self.TEXT) as run:
            held, blocks, most = live(run.journal())
            torch, = run.report()["processes"][0]["pytorch"]
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            page = run.page()
            names = {text for verb, _, _, text in run.blocks() if verb == "BLOCK_ALLOC"}
            tree = subprocess.run([e2e.ANALYZE, "tree", "--at", "peak", run.traces], capture_output=True, check=True).stdout.decode()
        self.assertEqual((torch["allocated_bytes"], torch["live_blocks"], torch["peak_allocated_bytes"]), (held, blocks, most))
        self.assertEqual(names, {"CuPy array"})
        self.assertEqual(torch["reserved_bytes"], 2 * 32 * MIB)
        self.assertIn("in pools, unnamed", tree)
        if page:
            self.assertEqual(page["rest"], "in pools, unnamed")

    def test_an_array_that_is_kept_in_each_step_is_a_leak_at_its_line(self):
        with record("import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')", os.path.join(HERE, "cupy_leaks.py"), SIM_VRAM="2G") as run:
            report = run.report()
            said = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, check=True).stdout.decode()
            next_step = re.search(r"^next +stormlog-analyze (tree --kind block) ", said, re.M).group(1)
            tree = subprocess.run([e2e.ANALYZE, *next_step.split(), run.traces], capture_output=True, check=True).stdout.decode()
        self.assertRegex(" ".join(tree.split()), r"^6[0-9]\.0 MiB pid \d+, at its peak .*cupy_leaks\.py:\d+ remember ")
        leak = next(row for row in report["findings"] if row["kind"] == "leak.kept")
        self.assertEqual((leak["bytes"], leak["place"]["function"]), (60 * MIB, "remember"), leak)
        said = " ".join(said.split())
        self.assertRegex(said, r"LEAK (cupy_leaks\.py:\d+) keeps 1 MiB of every (training )?step .*\1 remember (\S.* )?<- made here")
        self.assertRegex(said, r"all 60 tensors that cupy_leaks\.py:\d+ made were never freed, 60 MiB\. They are called CuPy array\.")

    def test_what_the_pool_keeps_when_the_device_runs_out_is_told_in_its_words(self):
        with record("""
import cupy
kept = [cupy.empty(200 << 20) for _ in range(8)]
del kept[:6]
try: cupy.empty(1 << 30)
except MemoryError: print("refused", flush=True)
import os; os._exit(0)
""", SIM_VRAM="2G") as run:
            self.assertEqual(run.done.stdout, b"refused\n")
            said = subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, check=True).stdout.decode()
            page = run.page()
        self.assertRegex(said, r"2\.00  GiB the card at the error\n  1\.17  in pools, unnamed .*\n  0\.39  tensors .*\n  0\.29  CUDA context\n  0\.15  free\n")
        if page:
            self.assertIn("in pools, unnamed", [row["name"] for row in page["answer"]["verdicts"][0]["table"]["rows"]])

    def test_nothing_is_changed_without_the_setting_or_without_the_agent(self):
        text = "import cupy, sys; a = cupy.empty(5); print(isinstance(a.data.mem, cupy.cuda.UnownedMemory), 'stormlog_native' in sys.modules)"
        for environment in ({"STORMLOG_PYTHON_POOLS": "0"}, {"preload": False}):
            with record(text, **environment) as run:
                self.assertTrue(run.done.stdout.startswith(b"False"), run.done.stdout)
        with record(text) as run:
            self.assertEqual(run.done.stdout, b"True True\n")

    def test_the_allocator_that_the_program_had_set_before_goes_on(self):
        with record("""
import cupy
pool = cupy.cuda.MemoryPool()
cupy.cuda.set_allocator(pool.malloc)
from stormlog_native import pools
pools.install()
kept = cupy.empty(1000)
print(kept.data.ptr < pool.end and kept.data.mem._owner.mem.pool is pool, flush=True)
import os; os._exit(0)
""", STORMLOG_PYTHON_POOLS="0") as run:
            self.assertEqual(run.done.stdout, b"True\n")
            self.assertEqual([(verb, size) for verb, _, size, _ in run.blocks()], [("BLOCK_ALLOC", 1024)])

    def test_a_release_of_another_form_is_left_alone_and_said(self):
        """For each package, a release with a changed form: the trace says why it is not recorded, and the package works as without us."""
        cupy = "import cupy as package; %s; works = lambda: package.empty(9)"
        rmm = "import rmm as package; %s; works = lambda: package.DeviceBuffer(512)"
        vllm = ("import vllm.device_allocator.cumem as package; %s; kind = package.CuMemAllocator\n"
                "def works():\n    with kind.get_instance().use_memory_pool(): kind.get_instance().take(2 << 20)")
        for name, program, change, why in (
                ("cupy", cupy, "del package.cuda.using_allocator", "AttributeError"),
                ("cupy", cupy, "package.cuda.MemoryPointer = lambda mem, offset: type('Pointer', (), dict(ptr=mem.ptr + 8, mem=mem, device_id=0))",
                 "TypeError: a block is not what it is made of"),
                ("cupy", cupy, "package.cuda.UnownedMemory = lambda ptr, size, owner: None", "TypeError"),
                ("rmm", rmm, "del package.mr.CallbackMemoryResource", "AttributeError"),
                ("rmm", rmm, "package.mr.CallbackMemoryResource = lambda allocate, deallocate: package.mr.get_current_device_resource()",
                 "TypeError: a resource does not call what it is made of"),
                ("vllm", vllm, "del package.CuMemAllocator.wake_up", "AttributeError"),
                ("vllm", vllm, "package.CuMemAllocator.use_memory_pool = lambda self: package.contextlib.nullcontext()",
                 "TypeError: its allocator has no tags")):
            with self.subTest(name=name, change=change), record(program % change + """
import stormlog_native.pools as pools, types
places = (package, getattr(package, "cuda", None), getattr(package, "mr", None), getattr(package, "CuMemAllocator", None))
works()
before = [dict(vars(place)) for place in places if place]
pools._try("%s", pools.hook_%s, package)
assert before == [dict(vars(place)) for place in places if place]
works()
import os; os._exit(0)
""" % (name, name), STORMLOG_PYTHON_POOLS="0") as run:
                self.assertEqual(run.blocks(), [])
                dump = subprocess.run([e2e.ANALYZE, "dump", run.traces], capture_output=True, check=True).stdout.decode()
                self.assertIn("blocks of %s are not recorded: %s" % (name, why), dump)

    def test_the_real_package_s_allocator(self):
        """The real CuPy's pool does not work without a device: an allocator over the simulated runtime takes its place."""
        with Pools(real_python(self), "-c", START + """
import ctypes, cupy
runtime, chunk = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
assert not runtime.cudaMalloc(ctypes.byref(chunk), ctypes.c_size_t(1 << 20))
def mine(size): return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(chunk.value, (size + 511) // 512 * 512, None, 0), 0)
assert hasattr(cupy.cuda.get_allocator(), "_stormlog_told")
with cupy.cuda.using_allocator(mine):
    first = cupy.cuda.alloc(1000)
    assert first.ptr == chunk.value
    del first
    second = cupy.cuda.alloc(3000)
import os; os._exit(0)
""", STORMLOG_PYTHON_POOLS="1", SIM_DEVICES=1) as run:
            self.assertEqual([(verb, size, text) for verb, _, size, text in run.blocks()],
                             [("BLOCK_ALLOC", 1024, "CuPy array"), ("BLOCK_FREE", 0, ""), ("BLOCK_ALLOC", 3072, "CuPy array")])


class RMM(unittest.TestCase):
    def test_blocks_of_the_pool_that_is_the_current_resource(self):
        with record("""
import rmm
rmm.reinitialize(pool_allocator=True, initial_pool_size=64 << 20)
kept = [rmm.DeviceBuffer(size=5 << 20) for _ in range(12)]
del kept[2:4]
assert rmm.mr.get_current_device_resource().pool_size() == 64 << 20
import os; os._exit(0)
""") as run:
            held, blocks, most = live(run.journal())
            torch, = run.report()["processes"][0]["pytorch"]
        self.assertEqual((torch["allocated_bytes"], torch["live_blocks"], torch["peak_allocated_bytes"]), (held, blocks, most))
        self.assertEqual(torch["reserved_bytes"], 64 * MIB)

    def test_a_resource_that_asks_the_driver_each_time_is_left_alone(self):
        with record("import rmm; rmm.mr.set_current_device_resource(rmm.mr.CudaMemoryResource()); kept = rmm.DeviceBuffer(size=4096)") as run:
            self.assertEqual(run.blocks(), [])
            self.assertEqual(run.report()["processes"][0]["memory"][0]["allocations"], 1)

    def test_the_real_package_s_resources(self):
        """Without a device the real RMM can make no pool: its CallbackMemoryResource over the simulated runtime takes its place."""
        python = real_python(self)
        with Pools(python, "-c", START + """
import ctypes, rmm
from stormlog_native import pools
runtime, chunk = ctypes.CDLL("libcudart.so.13"), ctypes.c_void_p()
assert not runtime.cudaMalloc(ctypes.byref(chunk), ctypes.c_size_t(1 << 20))
mr = pools.told_rmm(rmm.mr, rmm.mr.CallbackMemoryResource(lambda size, stream: chunk.value + 4096, lambda address, size, stream: None))
first = mr.allocate(5000)
assert first == chunk.value + 4096
mr.deallocate(first, 5000)
mr.allocate(7000)
import os; os._exit(0)
""", STORMLOG_PYTHON_POOLS="1", SIM_DEVICES=1) as run:
            self.assertEqual([(verb, size, text) for verb, _, size, text in run.blocks()],
                             [("BLOCK_ALLOC", 5000, "RMM buffer"), ("BLOCK_FREE", 0, ""), ("BLOCK_ALLOC", 7000, "RMM buffer")])


class VLLM(unittest.TestCase):
    MADE = [("vLLM weights", 8 * MIB), ("vLLM kv_cache", 16 * MIB), ("vLLM kv_cache", 4 * MIB), ("vLLM cudagraph", 2 * MIB)]

    def hold_the_tags(self, run):
        dump = [json.loads(line) for line in subprocess.run([e2e.ANALYZE, "dump", run.traces], capture_output=True, check=True).stdout.splitlines()]
        device, = [row for row in run.report()["processes"][0]["memory"] if row["kind"] == "vmm"]
        self.assertEqual([(row["label"], row["bytes"]) for row in dump if row["api"] == "cuMemCreate"], self.MADE + [self.MADE[0], self.MADE[3]])
        self.assertEqual([row["label"] for row in dump if row["verb"] == "MARK"], ["vLLM discard", "vLLM sleep", "vLLM wake_up"])
        self.assertEqual((device["live_bytes"], device["peak_bytes"]), (10 * MIB, 30 * MIB))

    def test_memory_of_the_sleep_mode_is_labelled_by_its_tag(self):
        with record("""
from vllm.device_allocator.cumem import CuMemAllocator
allocator = CuMemAllocator.get_instance()
with allocator.use_memory_pool(tag="weights"):
    allocator.take(8 << 20)
with allocator.use_memory_pool(tag="kv_cache"):
    allocator.take(16 << 20); allocator.take(4 << 20)
with allocator.cudagraph_pool() as pool:
    assert pool == (0, 1)
    allocator.take(2 << 20)
allocator.discard(("cudagraph",))
allocator.sleep()
allocator.wake_up(tags=["weights"])
import os; os._exit(0)
""") as run:
            self.hold_the_tags(run)

    def real_vllm(self):
        if os.environ.get("STORMLOG_REAL") != "1":
            self.skipTest("vllm is 340 MB: STORMLOG_REAL=1")
        return real.python_of("vllm") or self.skipTest("PyPI does not give vllm")

    def test_vllm_s_own_allocator_is_labelled_so(self):
        """Its C part links PyTorch's libraries and calls nothing in them: empty libraries take their place."""
        python = self.real_vllm()
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so", "libnvrtc.so.13"):
                subprocess.run(["cc", "-shared", "-nostdlib", "-o", os.path.join(folder, name), "-Wl,-soname," + name, "-xc", "/dev/null"], check=True)
            with Pools(python, "-c", START + "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
                       os.path.join(HERE, "use_vllm.py"), LD_LIBRARY_PATH=folder + ":" + e2e.SIM, STORMLOG_PYTHON_POOLS="1", SIM_DEVICES=1) as run:
                self.assertEqual(run.done.stdout, b"%d\n" % (30 * MIB))
                self.hold_the_tags(run)

    def stream(self):
        """Batches as vLLM encodes them: as maps, and as arrays, as older releases do."""
        import msgpack
        one = {"ts": 1.5, "events": [{"type": "BlockStored", "block_hashes": [b"a", b"b"], "parent_block_hash": None, "token_ids": [1] * 32,
                                      "block_size": 16, "lora_id": None, "medium": "GPU", "lora_name": None}], "data_parallel_rank": 0}
        two = [2.5, [["BlockStored", [7, 8, 9], None, [1] * 48, 16, None, "GPU"], ["BlockRemoved", [b"a"], "GPU"], ["BlockStored", [1], None, [], 16, None, "CPU"]]]
        three = {"ts": 3.5, "events": [{"type": "BlockRemoved", "block_hashes": [b"a", 8], "medium": "GPU"}], "data_parallel_rank": 0}
        other = {"ts": 3.75, "events": [{"type": "BlockStored", "block_hashes": [5], "block_size": 32}], "data_parallel_rank": 1}
        clear = {"ts": 4.0, "events": [{"type": "AllBlocksCleared"}], "data_parallel_rank": 0}
        return [msgpack.packb(batch) for batch in (one, two, three, other, clear)]

    EXPECTED = [(1500000000, 0, 2, 32, 2000), (2500000000, 0, 4, 64, 4000), (3500000000, 0, 3, 48, 3000), (3750000000, 1, 1, 32, 1000),
                (4000000000, 0, 0, 0, 0)]

    def test_blocks_in_use_follow_the_event_stream(self):
        sys.path.insert(0, PACKAGE)
        from stormlog_native import vllm
        lines = list(vllm.occupancy(self.stream(), 1000))
        self.assertEqual([tuple(line.values()) for line in lines], self.EXPECTED)
        self.assertIsNone(next(iter(vllm.occupancy(self.stream())))["bytes"])

    def test_a_stream_of_another_form_ends_it_with_a_sentence(self):
        import msgpack
        sys.path.insert(0, PACKAGE)
        from stormlog_native import vllm
        for batch, why in ((7, "a batch without time and events"), ({"time": 1.5, "events": []}, "a batch without time and events"),
                           ([1.5, [7]], "an event that is neither"), ([1.5, [["BlockMoved", [1]]]], "an event BlockMoved"),
                           ([1.5, [["BlockStored", [1]]]], "BlockStored without block_size"),
                           ({"ts": 1.5, "events": [{"type": "BlockRemoved", "hashes": [1]}]}, "BlockRemoved without block_hashes")):
            with self.subTest(batch=batch), self.assertRaisesRegex(vllm.UnknownForm, why):
                list(vllm.occupancy([self.stream()[0], msgpack.packb(batch)]))

    def test_a_block_of_two_groups_is_two_in_arrays_too(self):
        import msgpack
        sys.path.insert(0, PACKAGE)
        from stormlog_native import vllm
        stored = [["BlockStored", [1, 2], None, [], 16, None, "GPU", None, None, group] for group in (0, 1)]
        lines = vllm.occupancy([msgpack.packb([1.0, stored]), msgpack.packb([2.0, [["BlockRemoved", [1], "GPU", 1]]])])
        self.assertEqual([line["blocks"] for line in lines], [4, 3])

    def write(self, folder, subscriber, *arguments):
        """A stream's reader that writes into `folder`, with this text in place of pyzmq."""
        with open(os.path.join(folder, "zmq.py"), "w") as file:
            file.write(subscriber)
        return subprocess.Popen([sys.executable, "-m", "stormlog_native.vllm", *arguments], cwd=folder, env=dict(os.environ, PYTHONPATH=folder + ":" + PACKAGE),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    # Publishes the stream, and then waits for the end of its input.
    PUBLISHER = """
import sys
SUB = SUBSCRIBE = 0
class ZMQError(Exception): pass
class Context:
    instance = classmethod(lambda self: self())
    socket = lambda self, kind: Socket()
class Socket:
    stream = enumerate(%r)
    setsockopt_string = lambda *_: None
    def connect(self, endpoint):
        if endpoint == "nowhere": raise ZMQError("no such place")
    def recv_multipart(self):
        for number, payload in self.stream: return b"", number.to_bytes(8, "big"), payload
        sys.exit(bool(sys.stdin.read()))
"""

    def test_the_lines_replace_no_link_and_no_recording(self):
        publisher = self.PUBLISHER % self.stream()
        with tempfile.TemporaryDirectory() as folder:
            def of(name, *text):
                with open(os.path.join(folder, name), *["w"] * len(text)) as file:
                    return file.write(*text) if text else file.read()
            for name in "mine", "rank-00000-1.msgpack.zst", "empty.msgpack.zst":
                of(name, "" if name[0] == "e" else "thesis")
            os.symlink("mine", os.path.join(folder, "link"))
            os.symlink("nothing", os.path.join(folder, "leads nowhere"))
            for subscriber, words, why in (("raise ImportError('no zmq')", ["-o", "mine"], "no zmq: pip install"), (publisher, ["nowhere", "-o", "mine"], "nowhere: no such place"),
                                           (publisher, ["-o", "link"], "is a link"), (publisher, ["-o", "leads nowhere"], "is a link"),
                                           (publisher, ["-o", "rank-00000-1.msgpack.zst"], "is a recording"), (publisher, ["-o", "empty.msgpack.zst"], "is a recording")):
                with self.subTest(why=why, words=words):
                    process = self.write(folder, subscriber, *words)
                    said = process.communicate(timeout=60)[1]
                    self.assertEqual((process.returncode, said.count("\n"), of("mine"), of("rank-00000-1.msgpack.zst")), (2, 1, "thesis", "thesis"), said)
                    self.assertIn(why, said)
            for _ in "new", "former":
                with self.write(folder, publisher, "-o", "lines", "--bytes-per-block", "1000") as process:
                    deadline = time.monotonic() + 120
                    while time.monotonic() < deadline and not (os.path.exists(os.path.join(folder, "lines")) and of("lines").count("\n") == 5):
                        time.sleep(0.02)
                    self.assertIsNone(process.poll(), "the lines are there while the stream goes on")
                    process.stdin.close()
                    self.assertEqual(process.wait(60), 0)
                self.assertEqual([tuple(json.loads(line).values()) for line in of("lines").splitlines()], self.EXPECTED)
            self.assertEqual(sorted(name for name in os.listdir(folder) if name.startswith(".") or "nothing" in name), [])

    def test_the_subscriber_reads_what_is_published(self):
        try:
            import zmq
        except ImportError:
            self.skipTest("no pyzmq")
        publisher = zmq.Context.instance().socket(zmq.XPUB)
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        with subprocess.Popen([sys.executable, "-m", "stormlog_native.vllm", "tcp://127.0.0.1:%d" % port, "--bytes-per-block", "1000",
                               "--batches", "5"], env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE) as process:
            publisher.recv()  # it has subscribed
            for number, payload in enumerate(self.stream()):
                publisher.send_multipart((b"", number.to_bytes(8, "big"), payload))
            said = process.communicate(timeout=60)[0]
        self.assertEqual([tuple(json.loads(line).values()) for line in said.splitlines()], self.EXPECTED)

    def test_what_vllm_s_own_publisher_sends_is_read(self):
        with socket.socket() as free:
            free.bind(("", 0))
            port = free.getsockname()[1]
        python = self.real_vllm()
        with subprocess.Popen([python, os.path.join(HERE, "use_vllm.py"), str(port)]) as publisher, \
                subprocess.Popen([python, "-m", "stormlog_native.vllm", "tcp://127.0.0.1:%d" % port, "--bytes-per-block", "1000", "--batches", "4"],
                                 env=dict(os.environ, PYTHONPATH=PACKAGE), stdout=subprocess.PIPE) as reader:
            try:
                said = reader.communicate(timeout=60)[0]
            finally:
                reader.kill()
                publisher.kill()
        self.assertEqual([tuple(json.loads(line).values())[2:] for line in said.splitlines()], [(2, 32, 2000), (3, 48, 3000), (2, 32, 2000), (0, 0, 0)])


class Mixture(unittest.TestCase):
    def test_nearly_all_of_the_peak_is_named_by_who_holds_it(self):
        with Pools("/usr/bin/python3", "-c", START + "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
                   os.path.join(HERE, "mixture.py"), os.path.join(e2e.APPS, "libc10_cuda.so"), os.path.join(BUILD, "libnccl.so.2"),
                   STORMLOG_PYTHON_POOLS="1", PYTHONPATH=STAND_INS, SIM_DEVICES=1) as run:
            self.assertEqual(run.done.stdout.split(), [b"16777216", b"1", b"4194304"])
            _, _, cupy = live(run.journal())
            report = run.report()
            process = report["processes"][0]
            torch, = process["pytorch"]
            dump = subprocess.run([e2e.ANALYZE, "dump", run.traces], capture_output=True, check=True).stdout.decode()
        peak = report["run"]["devices"][0]["known_peak_bytes"]
        nccl = 16 * MIB
        self.assertEqual(peak, torch["peak_reserved_bytes"] + nccl)
        self.assertEqual(torch["peak_allocated_bytes"], cupy + 248 * MIB)
        self.assertGreaterEqual(torch["peak_allocated_bytes"] + nccl, 0.95 * peak)
        libraries = {row["library"]: row for row in process["libraries"]}
        self.assertEqual(libraries["libnccl.so.2"]["peak_bytes"], nccl)
        calls = [line for line in dump.splitlines() if "ncclComm" in line]
        for name in "ncclCommInitRank", "ncclCommMemStats", "ncclCommSuspend", "ncclCommResume":
            self.assertTrue(any('"%s"' % name in line for line in calls), name)


if __name__ == "__main__":
    unittest.main()
