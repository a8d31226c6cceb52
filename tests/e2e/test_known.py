#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is known is not recorded again: kernels whose function was asked for, the device that is set."""
import collections
import json
import os
import re
import subprocess
import unittest

import e2e
import stormlog_trace

MIB = 1 << 20
PROGRAM = """
import ctypes, sys
rt, cu = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")
library, kernel, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
def load():
    assert not cu.cuLibraryLoadData(ctypes.byref(library), b"code of no GPU" + bytes(64), None, None, 0, None, None, 0)
    assert not cu.cuLibraryGetKernel(ctypes.byref(kernel), library, b"kernel")
def ask(times):
    for _ in range(times):
        assert not cu.cuKernelGetFunction(ctypes.byref(function), kernel)
    return function.value
assert not rt.cudaSetDevice(0)
"""


# Each line is called TIMES times: what frameworks call again and again, with the same arguments.
AGAIN = """
TIMES = 1000
version, p, q, size, stream, event, primary = (ctypes.c_void_p() for _ in range(7))
at, bytes_ = ctypes.byref, ctypes.c_size_t
props = ctypes.create_string_buffer(8192)
load(); ask(1)
cu.cuLibraryGetModule(at(q), library); module = q
rt.cudaStreamCreate(at(stream)); rt.cudaEventCreate(at(event))
steps = {
 "cudaSetDevice": lambda: rt.cudaSetDevice(0),
 "cuKernelGetFunction": lambda: cu.cuKernelGetFunction(at(p), kernel),
 "cuModuleGetFunction": lambda: cu.cuModuleGetFunction(at(p), module, b"kernel"),
 "cuLibraryGetModule": lambda: cu.cuLibraryGetModule(at(p), library),
 "cuLibraryGetKernel": lambda: cu.cuLibraryGetKernel(at(p), library, b"kernel"),
 "cuModuleGetGlobal_v2": lambda: cu.cuModuleGetGlobal_v2(at(p), at(size), module, b"value"),
 "cuLibraryGetGlobal": lambda: cu.cuLibraryGetGlobal(at(p), at(size), library, b"value"),
 "cuLibraryGetManaged": lambda: cu.cuLibraryGetManaged(at(p), at(size), library, b"value"),
 "cuLaunchKernel": lambda: cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None),
 "cuLaunchKernelEx": lambda: cu.cuLaunchKernelEx(props, kernel, None, None),
 "cudaMalloc": lambda: rt.cudaMalloc(at(p), bytes_(512)) or rt.cudaFree(p),
 "cudaMallocAsync": lambda: rt.cudaMallocAsync(at(p), bytes_(512), stream) or rt.cudaFreeAsync(p, stream),
 "cudaMallocAsync, default stream": lambda: rt.cudaMallocAsync(at(p), bytes_(512), None) or rt.cudaFreeAsync(p, None),
 "cudaMallocHost": lambda: rt.cudaMallocHost(at(p), bytes_(512)) or rt.cudaFreeHost(p),
 "cudaEventCreate": lambda: rt.cudaEventCreate(at(p)) or rt.cudaEventDestroy(p),
 "cudaEventRecord": lambda: rt.cudaEventRecord(event, stream),
 "cudaEventQuery": lambda: rt.cudaEventQuery(event),
 "cudaEventSynchronize": lambda: rt.cudaEventSynchronize(event),
 "cudaStreamSynchronize": lambda: cu.cuStreamSynchronize(stream),
 "cuMemsetD8Async": lambda: cu.cuMemsetD8Async(None, 0, bytes_(0), stream),
 "cudaMemGetInfo": lambda: rt.cudaMemGetInfo(at(p), at(size)),
 "cudaGetDeviceProperties_v2": lambda: rt.cudaGetDeviceProperties_v2(props, 0),
}
for name in sys.argv[1:]:
    function = getattr(rt if name.startswith("cuda") else cu, name, None)
    if function and name not in steps:
        steps[name] = lambda function=function: function(*[None] * 14)
for name, step in steps.items():
    cu.cuDevicePrimaryCtxRetain(at(primary), 0), cu.cuCtxSetCurrent(primary)  # a step before may have ended the context
    step()
    cu.cuModuleGetLoadingMode(at(version))
    for _ in range(TIMES):
        step()
cu.cuModuleGetLoadingMode(at(version))
print("\\n".join(steps))
"""
# The simulator does not look whether these pointers are NULL.
NOT_NULL = {"cudaMallocPitch", "cudaMalloc3D", "cudaMallocAsync_ptsz", "cudaMallocMipmappedArray", "cudaGetDeviceProperties",
            "cudaGetDriverEntryPoint", "cudaGetDriverEntryPoint_ptsz", "cudaGetDriverEntryPointByVersion", "cudaGetDriverEntryPointByVersion_ptsz"}
# What the recorder may ask the driver at each call, by the call's verb: the context, a word of the thread.  All else asks nothing.
WHERE = {"cuCtxGetCurrent"}
FREE_MEMORY = WHERE | {"cuMemGetInfo_v2", "cuThreadExchangeStreamCaptureMode"}
MAY_ASK = dict.fromkeys(("POOL_CREATE", "LIMIT", "GRAPH_ALLOC", "GRAPH_INSTANTIATE", "GRAPH_TRIM", "STREAM_CREATE",
                         "EXTERNAL_IMPORT", "EVENT_CREATE", "MAP", "PRIMARY_RETAIN"), WHERE)
MAY_ASK |= {"ALLOC": WHERE, "DEVICE_RESET": WHERE | {"cuCtxGetDevice"}, "PRIMARY_RELEASE": {"cuDevicePrimaryCtxGetState"},
            "CONTEXT_CREATE": FREE_MEMORY | {"cuCtxGetDevice"}, "MODULE_LOAD": FREE_MEMORY}
FAILS = {"cuFuncLoad", "cuModuleGetGlobal"}  # code that the simulator never loads is never known


def run(*lines, argv=(), **environment):
    return e2e.Recording("python3", "-c", PROGRAM + "\n".join(lines), *argv, SIM_MODULE_BYTES="64M", **environment)


def calls_of(recording):
    (process,) = recording.report()["processes"]
    return {row["api"]: row["calls"] for row in process["apis"]}


def loads(recording):
    """The first loads of a kernel, in their order."""
    out = subprocess.run([e2e.ANALYZE, "dump", recording.traces], capture_output=True, check=True).stdout
    return [event for event in map(json.loads, out.splitlines()) if event.get("api") == "cuKernelGetFunction"]


def questions(recording):
    """{name: times} of the driver's functions that were called, by the program and by the recorder."""
    (process,) = recording.truth()
    return collections.Counter(call.api for call in process.calls if call.level == 0)


def rows():
    """{name: verb} of the runtime's and the driver's calls that the recorder wraps."""
    with run() as recording:
        (name,) = (name for name in recording.files() if name.endswith(".zst"))
        header = stormlog_trace.Trace(os.path.join(recording.traces, name)).header
    hooks = [hook for hook in reversed(header["hooks"]) if header["families"][hook[3]][0] in ("cuda_driver", "cuda_runtime")]
    return {hook[0]: header["verbs"][hook[1]][0] for hook in hooks if hook[0]}


def asked(names, preload):
    """{step: {driver's function: times}}, between the marks that the program makes."""
    with run(AGAIN, argv=names, preload=preload, SIM_JOURNAL_ALL="1") as recording:
        steps, (process,) = recording.done.stdout.decode().splitlines(), e2e.journal.load(recording.journals)
    counts, step = {name: collections.Counter() for name in steps}, -1
    for call in process.calls:
        step += call.api == "cuModuleGetLoadingMode"
        if call.level == 0 and 0 <= step < len(steps):
            counts[steps[step]][call.api] += 1
    return counts


class Known(unittest.TestCase):
    def test_a_kernel_is_asked_for_a_thousand_times(self):
        with run("load(); ask(1)", SIM_JOURNAL_ALL="1") as once, run("load(); ask(1000)", SIM_JOURNAL_ALL="1") as often:
            self.assertEqual([calls_of(once)["cuKernelGetFunction"], calls_of(often)["cuKernelGetFunction"]], [1, 1])
            more = questions(often) - questions(once)
            named = {name["what"]: name["bytes"] for name in often.report()["run"]["devices"][0]["hidden"]}
        self.assertEqual(more, {"cuKernelGetFunction": 999})
        self.assertEqual(named["code"], 64 * MIB)

    def test_no_frequent_call_asks_the_driver(self):
        verbs = rows()
        names = [name for name in verbs if name not in NOT_NULL and "BeginCapture" not in name]  # streams are asked from the first capture on
        recorded, plain = asked(names, True), asked(names, False)
        self.assertGreater(len(recorded), 280)
        for step, calls in recorded.items():
            often = {name for name, times in (calls - plain[step]).items() if times > 50}
            self.assertLessEqual(often, FREE_MEMORY if step in FAILS else MAY_ASK.get(verbs.get(step.split(",")[0]), set()), step)

    def test_another_device_is_another_load(self):
        with run("load(); a = ask(100); rt.cudaSetDevice(1); b = ask(100); rt.cudaSetDevice(0); assert a != b and ask(100) == a") as recording:
            self.assertEqual(calls_of(recording)["cuKernelGetFunction"], 2)
            seen = loads(recording)
            hidden = [{name["what"]: name["bytes"] for name in device["hidden"]} for device in recording.report()["run"]["devices"]]
        self.assertEqual([event["device"] for event in seen], [0, 1])
        self.assertNotEqual(*(event["address"] for event in seen))
        self.assertEqual([device["code"] for device in hidden], [64 * MIB] * 2)

    def test_a_context_that_no_setter_made_current_is_found_by_the_answer(self):
        with run("load(); a = ask(10); other = ctypes.c_void_p()",
                 "assert not cu.cuDevicePrimaryCtxRetain(ctypes.byref(other), 1) and not cu.cuCtxPushCurrent_v2(other)",
                 "b = ask(10); assert a != b") as recording:
            self.assertEqual([event["device"] for event in loads(recording)], [0, 1])

    def test_what_was_unloaded_is_loaded_again(self):
        for end in ("cu.cuLibraryUnload(library)", "rt.cudaDeviceReset()"):
            with run("for _ in range(3): load(); ask(10); assert not " + end) as recording:
                self.assertEqual(calls_of(recording)["cuKernelGetFunction"], 3, end)

    def test_a_failure_is_recorded_however_well_the_kernel_is_known(self):
        with run("load(); ask(5)", "answers = [cu.cuKernelGetFunction(ctypes.byref(function), kernel) for _ in range(5)]",
                 "assert answers == [0, 0, 2, 0, 0], answers", SIM_FAIL="cuKernelGetFunction:8") as recording:
            rows = recording.report()["processes"][0]["apis"]
        self.assertEqual([(row["calls"], row["failures"]) for row in rows if row["api"] == "cuKernelGetFunction"], [(2, 1)])

    def test_the_device_that_is_set_is_set_again(self):
        for lines, expected in ((["for _ in range(1000): assert not rt.cudaSetDevice(0)"], 1),
                                (["for i in range(10): assert not rt.cudaSetDevice(i % 2)"], 10),
                                (["rt.cudaDeviceReset(); assert not rt.cudaSetDevice(0)"] * 2, 3),
                                (["for _ in range(3): assert rt.cudaSetDevice(7) == 101"], 4),
                                (["import threading", "for _ in range(2):",
                                  " t = threading.Thread(target=lambda: [rt.cudaSetDevice(1) for _ in range(9)]); t.start(); t.join()"], 3)):
            with run(*lines) as recording:
                wrong, report = e2e.equal_to_journal(recording, threads=2)
                self.assertEqual(wrong, [])
                self.assertEqual(calls_of(recording)["cudaSetDevice"], expected, lines)

    def test_blocks_of_functions_that_come_and_go_have_their_own_names(self):
        """Code objects take each other's place, and a forked child begins with its parent's stacks."""
        lines = ("import os", "lib = ctypes.CDLL(os.path.join(os.environ['APPS'], 'libc10_cuda.so'))", "lib.caching_new.restype = ctypes.c_void_p",
                 "def make(name):", " made = {'lib': lib, 'c': ctypes}",
                 " exec('def %s(depth):\\n if depth: return %s(depth - 1)\\n return lib.caching_new(c.c_size_t(4096))' % (name, name), made)",
                 " for depth in (0, 2, 0, 2, 2): lib.caching_delete(ctypes.c_void_p(made[name](depth)))",
                 "for i in range(300): make('mine%d' % i)", "child = os.fork()", "for i in range(300): make(('hers%d' if child else 'its%d') % i)",
                 "if child: os.waitpid(child, 0)")
        with run(*lines, APPS=e2e.APPS) as recording:
            out = subprocess.run([e2e.ANALYZE, "dump", recording.traces], capture_output=True, check=True).stdout
        blocks = [event for event in map(json.loads, out.splitlines()) if event["kind"] == "block" and event["verb"] == "BLOCK_ALLOC"]
        seen = collections.Counter()
        for event in blocks:
            names = re.findall(r":\d+ ((?:mine|hers|its)\d+)", " ".join(event["stack"] or ()))
            self.assertEqual(len(set(names)), 1, event["stack"])
            seen[names[0], len(names)] += 1
        expected = {("%s%d" % (who, i), depth): times for who in ("mine", "hers", "its") for i in range(300) for depth, times in ((1, 2), (3, 3))}
        self.assertEqual(seen, expected)


if __name__ == "__main__":
    unittest.main(verbosity=2)
