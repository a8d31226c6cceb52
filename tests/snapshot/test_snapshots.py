#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""test_snapshots.py ANALYZE: snapshots of PyTorch's, each shape of them, read as what they are.

The truth is the journal of the allocator in made.py, which wrote them.  ../shared/snapshots has 25 that people really have, with their figures; where it is absent that
test is skipped.
"""
import bz2
import gzip
import json
import lzma
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import zipfile

import made

try:
    import zstandard
except ImportError:
    zstandard = None

ANALYZE = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
# What the capacities of the recorded run of golden/streams-2.6.pickle.zst were, which PyTorch 2.6 wrote of tests/fit/programs.py `streams`.
ALWAYS_FROM = {"": 371195904, "expandable_segments:True": 398458880, "max_split_size_mb:128": 371195904,
               "roundup_power2_divisions:4": 394264576, "expandable_segments:True,roundup_power2_divisions:4": 398458880}
# Where the streams' handles, which are addresses of memory, come in the other order: seen in one of four processes of the same program.
STREAMS_REVERSED = {"": 383778816, "max_split_size_mb:128": 383778816}
# tests/fit/programs.py `graphs` and `pools`, written by wheels over the dry device: release, settings, and the capacity from which the program really ran to its end.
PRIVATE_POOLS = {"graphs-2.11": ("2.11", "", 332 << 20, True), "pools-2.14": ("2.14", "", 232 << 20, False)}
SHARED = os.path.join(HERE, "..", "..", "..", "shared", "snapshots")


class Snapshots(unittest.TestCase):
    def setUp(self):
        self.at = tempfile.TemporaryDirectory()
        self.addCleanup(self.at.cleanup)

    def path(self, whole, name="s.pickle", protocol=4, pack=None):
        path = os.path.join(self.at.name, name)
        data = pickle.dumps(whole, protocol)
        with open(path, "wb") as file:
            file.write(pack(data) if pack else data)
        return path

    def run_on(self, *arguments, code=0):
        done = subprocess.run([ANALYZE, *arguments], capture_output=True, text=True, cwd=self.at.name, env={**os.environ, "TMPDIR": self.at.name, "COLUMNS": "200"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotRegex(done.stdout, r"\)  +\n|\d\n +\d{3} events")
        return done

    def report(self, *paths):
        return json.loads(self.run_on("report", "--json", *paths).stdout)

    def rows(self, *paths):
        """{name: (bytes, text)} of the rows of the first verdict."""
        return {row["name"]: (row["bytes"], row["text"]) for row in self.report(*paths)["answer"]["verdicts"][0]["table"]["rows"]}

    def figures(self, report, device=0, process=0):
        of = report["processes"][process]
        one = next(d for d in of["snapshot"]["devices"] if d["device"] == device)
        torch = next(d for d in of["pytorch"] if d["device"] == device)
        return (one["reserved_before_bytes"], one["requested_before_bytes"], torch["peak_reserved_bytes"], one["requested_peak_bytes"], torch["reserved_bytes"])

    def truth(self, journal):
        return (*journal[0], max(r for r, _ in journal), max(a for _, a in journal), journal[-1][0])

    def check(self, whole, journals, exact=True, **how):
        report = self.report(self.path(whole, **how))
        for device, journal in enumerate(journals):
            self.assertEqual(self.figures(report, device), self.truth(journal), how)
            self.assertEqual(next(d for d in report["processes"][0]["snapshot"]["devices"] if d["device"] == device)["exact"], exact)
        self.assertEqual(report["leaks"], [])
        return report

    def program(self, steps=2, **more):
        allocator = made.Allocator(**more)
        made.training(allocator, steps)
        return allocator

    def test_a_whole_history_and_every_window_of_it_have_the_journal_s_figures(self):
        for expandable in (False, True):
            allocator = self.program(expandable=expandable)
            for drop in (0, 5, 20, 47, 80, len(allocator.events) - 12):
                whole, journals = made.snapshot(allocator, drop=drop)
                with self.subTest(expandable=expandable, drop=drop):
                    self.check(whole, journals)

    def test_a_random_program_cut_anywhere_is_rebuilt(self):
        for seed in range(12):
            chance = random.Random(seed)
            allocator, live = made.Allocator(expandable=seed % 3 == 2), []
            for _ in range(600):
                if live and chance.random() < 0.48:
                    allocator.free(live.pop(chance.randrange(len(live))))
                elif chance.random() < 0.03:
                    allocator.empty_cache()
                else:
                    live.append(allocator.alloc(chance.choice([chance.randrange(1, 5000), chance.randrange(1, 1 << 20), chance.randrange(1 << 20, 40 << 20)])))
            whole, journals = made.snapshot(allocator, drop=chance.randrange(len(allocator.events)))
            with self.subTest(seed=seed):
                report = self.report(self.path(whole))
                self.assertEqual(self.figures(report), self.truth(journals[0]))

    def test_protocols_and_packed_files_are_the_same(self):
        whole, journals = made.snapshot(self.program(), drop=40)
        for protocol in (2, 3, 4, 5):
            self.check(whole, journals, protocol=protocol)
        packs = {".gz": gzip.compress, ".xz": lzma.compress}
        if zstandard:
            packs[".zst"] = zstandard.ZstdCompressor().compress
        for end, pack in packs.items():
            self.check(whole, journals, name="s.pickle" + end, pack=pack)

    def test_the_shape_of_2_0_and_files_without_a_window(self):
        whole, journals = made.snapshot(self.program())
        self.check(made.old(whole), journals)
        whole, journals = made.snapshot(self.program(), drop=10**9)
        report = self.check(made.old({**whole, "device_traces": [[]]}), [[self.program().journal[-1]]])
        self.assertTrue(report["processes"][0]["snapshot"]["releases"].startswith("2.0"))
        said = " ".join(self.run_on(self.path(whole)).stdout.split())
        self.assertRegex(said, "device 0 no history HELD .* as the file was written, .* reserved, at the end")
        self.assertNotIn("LEAK", said)
        allocator = made.Allocator()
        allocator.alloc(30 << 20, made.frames("train.py:7 main"))
        self.path(made.snapshot(allocator)[0])
        self.assertIn("next   stormlog-analyze tree s.pickle", self.run_on("s.pickle").stdout)
        for more in ((), ("--at", "end")):
            self.assertRegex(self.run_on("tree", *more, "s.pickle").stdout, "the state at its end|at its end")

    def test_unknown_keys_are_passed_over_and_missing_ones_are_unknown(self):
        whole, journals = made.snapshot(self.program(), drop=30)
        for event in whole["device_traces"][0]:
            event["of_a_later_release"] = {"a": [1, (2, 3)], "b": None, "c": 1.5, "d": -1, "e": 1 << 80, "f": b"x"}
            del event["stream"]
        for segment in whole["segments"]:
            del segment["segment_pool_id"], segment["frames"], segment["active_size"]
        whole["more"] = [True, False, {}, [], ()]
        self.check(whole, journals)

    def test_what_asked_is_named_where_no_frame_is_python(self):
        said = self.run_on(self.path(made.snapshot(self.program(1))[0])).stdout
        self.assertIn("MmBackward0", said)
        self.assertNotIn("no stack", said)

    def test_a_line_s_purpose_is_that_of_most_of_its_memory(self):
        allocator = made.Allocator()
        cublas = ("at::cuda::getCUDABlasLtWorkspace()", "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)")
        allocator.alloc(32 << 20, made.frames("train.py:7 forward", native=cublas))
        for caller in range(12):
            allocator.alloc(20 << 20, made.frames("train.py:7 forward", f"train.py:{caller + 30} forward"))
        self.assertEqual(self.rows(self.path(made.snapshot(allocator)[0])),
                         {"activations": (240 << 20, "train.py:7 forward"), "workspaces": (32 << 20, "train.py:7 forward")})

    def test_frames_of_cpp_become_the_operation_that_asked(self):
        below = ("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(signed char)", "at::detail::empty_cuda(c10::ArrayRef<long>)",
                 "at::_ops::empty_memory_format::redispatch(c10::DispatchKeySet)", "c10::impl::wrap_kernel_functor_unboxed_<at::Tensor ()>::call(c10::OperatorKernel*)")
        bmm = (*below, "at::_ops::bmm::call(at::Tensor const&, at::Tensor const&)")
        engine = ("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)", "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", "clone")
        stacks = {"einsum": (*bmm, "at::_ops::einsum::call(c10::basic_string_view<char>)", "torch::autograd::THPVariable_einsum(_object*)", "cfunction_call"), "empty_memory_format": below}
        allocator = made.Allocator()
        for i, (_, native) in enumerate(stacks.items()):
            allocator.alloc(30 << 20, made.frames(f"train.py:{i + 7} main", native=native))
        for node in ("BmmBackward0::apply(std::vector<at::Tensor>&&)", "SelectBackward0_apply_functional(std::vector<at::Tensor>&&)"):
            allocator.alloc(20 << 20, made.frames(native=(*bmm, "torch::autograd::generated::" + node, "torch::autograd::generated::BmmBackward0::apply()", *engine)))
        allocator.alloc(10 << 20, made.frames(native=(*below, "at::cuda::getCUDABlasLtWorkspace()", *bmm[4:], *engine)))
        for _ in range(5):
            allocator.alloc(512, made.frames("train.py:20 main"))
        path = self.path(made.snapshot(allocator)[0])
        said = self.run_on("tree", "--all-frames", "--at", "peak", path).stdout
        self.assertNotRegex(said, "c10::|at::|clone|cfunction|Node::")
        names = [row.strip("│ ├└╴") for row in re.findall(r"(?m)[│├└].*$", said)]
        for outer, inner in (("train.py:7 main", "einsum"), ("einsum", "bmm"), ("train.py:8 main", "empty_memory_format"), ("BmmBackward0", "bmm")):
            self.assertIn((outer, inner), list(zip(names, names[1:])), said)
        for name in ("torch::autograd::Engine", "BmmBackward0", "cuBLAS workspace"):
            self.assertEqual(names.count(name), 1, said)
        self.assertEqual(self.rows(path)["gradients"], (40 << 20, "BmmBackward0"))

    def test_one_step_leaks_nothing_and_five_steps_tell_the_line_that_keeps(self):
        for steps, drop, told in ((1, 0, False), (2, 30, False), (8, 0, True), (8, 100, True)):
            allocator = made.Allocator()
            made.training(allocator, steps, leak=2 << 20)
            whole, _ = made.snapshot(allocator, drop=drop)
            said = self.run_on(self.path(whole)).stdout
            with self.subTest(steps=steps, drop=drop):
                self.assertEqual("train.py:46" in said and "LEAK" in said, told, said)

    def test_a_line_whose_blocks_are_freed_but_for_one_a_step_leaks(self):
        for drop in 0, 100:
            for at in (("train.py:41 main",), ("adam.py:20 update", "train.py:45 main")):
                allocator = made.Allocator()
                made.training(allocator, 12, leak=2 << 20, at=at)
                with self.subTest(drop=drop, at=at):
                    leak, = self.report(self.path(made.snapshot(allocator, drop=drop)[0]))["answer"]["verdicts"]
                    file, line, function = re.split("[: ]", at[0])
                    self.assertEqual((leak["word"], leak["lines"][-1]["file"], leak["lines"][-1]["line"], leak["lines"][-1]["function"], leak["lines"][-1]["mark"]),
                                     ("LEAK", file, int(line), function, "made here"))
                    self.assertRegex(leak["why"][0], f"1[12] of the .* tensors that {file}:{line} made were still held at the end of the window, 2[24] MiB")

    def fit(self, path, *arguments):
        return json.loads(self.run_on("fit", "--json", *arguments, path).stdout)

    def test_fit_reproduces_every_window_and_a_whole_history_needs_what_it_reserved(self):
        for expandable in (False, True):
            allocator = self.program(expandable=expandable)
            for drop in (0, 20, 80):
                whole, journals = made.snapshot(allocator, drop=drop, conf="expandable_segments:True" if expandable else "")
                with self.subTest(expandable=expandable, drop=drop):
                    said = self.fit(self.path(whole), "--settings", "expandable_segments:True" if expandable else "")
                    self.assertTrue(said["reproduces"], said)
                    self.assertLessEqual(said["smallest"][0]["always_from_bytes"], max(r for r, _ in journals[0]))
                    self.assertGreaterEqual(said["smallest"][0]["always_from_bytes"], max(a for _, a in journals[0]))

    def test_fit_of_a_program_of_pytorch_2_6_is_as_of_its_recording(self):
        if not zstandard:
            self.skipTest("python3-zstandard is not here")
        said = self.fit(os.path.join(HERE, "golden", "streams-2.6.pickle.zst"), "--torch", "2.6", *sum((["--settings", s] for s in ALWAYS_FROM), []))
        self.assertTrue(said["reproduces"])
        self.assertEqual({one["settings"]: one["least_bytes"] for one in said["smallest"]}, ALWAYS_FROM)
        self.assertEqual({one["settings"]: one["always_from_bytes"] for one in said["smallest"]}, {**ALWAYS_FROM, **STREAMS_REVERSED})

    def test_fit_finds_a_capacity_far_below_what_was_reserved(self):
        allocator = made.Allocator()
        for size in range(130, 1630, 2):  # each is larger than all before it, and they are the cache
            allocator.free(allocator.alloc(size << 20))
        said = json.loads(self.run_on("fit", "--json", "--settings", "", self.path(made.snapshot(allocator)[0])).stdout)
        self.assertEqual([one["always_from_bytes"] for one in said["smallest"]], [1628 << 20])

    def test_fit_of_private_pools_is_as_the_program_ran(self):
        if not zstandard:
            self.skipTest("python3-zstandard is not here")
        for name, (release, settings, truth, graphs) in PRIVATE_POOLS.items():
            said = self.fit(os.path.join(HERE, "golden", name + ".pickle.zst"), "--torch", release, "--settings", settings)
            with self.subTest(name=name):
                self.assertTrue(said["reproduces"])
                one, = said["smallest"]
                self.assertLessEqual(one["least_bytes"], truth)
                self.assertLessEqual(truth, one["always_from_bytes"])
                self.assertEqual(one["least_bytes"] == one["always_from_bytes"], graphs)  # who uses a MemPool, and how long, the file does not tell

    def test_fit_has_no_verdict_where_the_file_cannot_tell(self):
        whole, _ = made.snapshot(self.program(), drop=10**9)
        said = self.run_on("fit", self.path(whole), code=1).stdout
        self.assertIn("NO VERDICT   the file has no window", said)

    def test_an_out_of_memory_is_told_as_it_was(self):
        allocator = made.Allocator()
        live = [allocator.alloc(30 << 20, made.frames("train.py:7 main")) for _ in range(6)]
        allocator.oom(64 << 20, 12345678, made.frames("train.py:8 main"))
        for addr in live:
            allocator.free(addr)
        said = self.run_on(self.path(made.snapshot(allocator)[0])).stdout
        self.assertIn("OUT OF MEMORY", said)
        self.assertIn("OUT OF MEMORY train.py:8 asks 64 MiB, 11.8 MiB are free", " ".join(said.split()))
        self.assertRegex(said, r"why +train\.py:7 made 180 MiB in 6 blocks and never gave one back")
        self.assertRegex(said, "train.py:8 +main +<- asks 64 MiB")

    def test_two_devices_and_ranks(self):
        first, second = self.program(1), made.Allocator(device=1)
        made.training(second, 2, layers=3)
        whole, journals = made.snapshot(first, second)
        self.check(whole, journals)
        for rank in range(3):
            self.path(whole, name=f"snap_rank{rank}.pickle")
        os.remove(os.path.join(self.at.name, "s.pickle"))
        report = self.report(self.at.name)
        self.assertEqual(sorted(p["rank"] for p in report["processes"]), [0, 1, 2])

    def test_a_free_that_waits_for_another_stream_counts_until_it_is_complete(self):
        allocator = made.Allocator()
        first = allocator.alloc(5 << 20)
        for _ in range(6):
            allocator.alloc(1000)
        allocator.free(first, between=lambda: allocator.alloc(7 << 20))
        self.check(*made.snapshot(allocator))

    def test_events_that_do_not_lead_to_the_end_are_said(self):
        whole, _ = made.snapshot(self.program(), drop=60)  # so that blocks from before the window are freed in it
        del whole["device_traces"][0][60:]
        report = self.report(self.path(whole))
        self.assertTrue(report["processes"][0]["snapshot"]["devices"][0]["trimmed"])
        self.assertIn("do not lead to", " ".join(self.run_on(self.path(whole)).stdout.split()))

    def peak_of_the_cache(self):
        """What was reserved is most after the tensors' peak: a second size does not fit the pieces of the first."""
        allocator = made.Allocator()
        first = [allocator.alloc(40 << 20) for _ in range(5)]
        for addr in first:
            allocator.free(addr)
        allocator.free(allocator.alloc(90 << 20))
        return allocator

    def test_a_gate_takes_the_peak_of_what_was_reserved_and_passes_nothing_that_is_not_known(self):
        whole, journals = made.snapshot(self.peak_of_the_cache())
        path = self.path(whole)
        self.assertEqual(max(r for r, _ in journals[0]), 290 << 20)
        self.run_on("check", "--max-peak", "290M", "--no-oom", "--strict", path)
        self.assertIn("peak of what was reserved 290 MiB", self.run_on("check", "--max-peak", "289M", path, code=1).stdout)
        self.assertIn("does not tell how its program ended", self.run_on("check", "--max-leak", "1G", path).stdout)
        self.run_on("check", "--max-leak", "1G", "--strict", path, code=1)
        whole["device_traces"] = [[]]
        path = self.path(whole)
        self.assertIn("no window", self.run_on("check", "--no-oom", path).stdout)
        self.run_on("check", "--no-oom", "--strict", path, code=1)

    def test_the_screen_tells_what_was_reserved_most_and_what_gave_it_back(self):
        allocator = self.peak_of_the_cache()
        allocator.empty_cache()
        said = " ".join(self.run_on(self.path(made.snapshot(allocator)[0])).stdout.split())
        self.assertIn("200 MiB of tensors and 200 MiB reserved", said)
        self.assertRegex(said, r"290 MiB were reserved at most, with 90 MiB of tensors at \d+ us of the window")
        self.assertIn("empty_cache() gave back 290 MiB in 1 call at train.py:99.", said)
        self.assertNotIn("NEARLY", said)

    def test_what_was_made_before_the_window_is_counted_at_the_peak(self):
        allocator = made.Allocator()
        old = [allocator.alloc(size << 20) for size in [25] * 8 + [6] * 4]
        drop = len(allocator.events)
        for addr in old[:5]:
            allocator.free(addr)
        allocator.alloc(400 << 20, made.frames("train.py:7 main"))
        path = self.path(made.snapshot(allocator, drop=drop)[0])
        self.assertEqual(self.rows(path)["earlier"], (99 << 20, "made before the recording, 75 in blocks of 25.0 MiB, 24 in blocks of 6.00 MiB"))
        self.assertEqual(self.figures(self.report(path))[1], (99 + 125) << 20)
        self.assertRegex(self.run_on("tree", path).stdout, r"75\.0 MiB +[\d.]+% +3 .*blocks of 25\.0 MiB\n +24\.0 MiB +[\d.]+% +4 .*blocks of 6\.00 MiB")

    def test_a_request_that_found_no_memory_at_first_is_told(self):
        allocator = self.peak_of_the_cache()
        asks = made.frames("train.py:70 main", native=("c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(signed char)",))
        allocator.empty_cache(asks)
        allocator.alloc(400 << 20, asks)
        said = " ".join(self.run_on(self.path(made.snapshot(allocator)[0])).stdout.split())
        self.assertRegex(said, "NEARLY OUT OF MEMORY train.py:70 asks 400 MiB and finds no memory at first train.py:70 main <- asks 400 MiB")
        self.assertIn("PyTorch gave 290 MiB of its cache back and asked again", said)
        self.assertNotIn("empty_cache()", said)

    def test_times_of_all_devices_count_from_the_file_s_first_event(self):
        late = made.Allocator(device=1)
        late.now += 1000000
        for _ in range(9):
            late.alloc(30 << 20, made.frames("train.py:7 main"))
        late.oom(64 << 20, 12345678, made.frames("train.py:8 main"))
        said = " ".join(self.run_on(self.path(made.snapshot(self.program(1), late)[0])).stdout.split())
        self.assertIn("2 devices 1.0 s OUT OF MEMORY device 1's tensors are 22 times as large as device 0's", said)
        self.assertIn("is 64 MiB on device 1 and 2.88 MiB on device 0.", said)
        self.assertIn("fix move some of what works at train.py:8 to device 0, or give it fewer or smaller inputs", said)
        self.assertIn(", at 1.0 s, out of memory", self.run_on("tree", "--at", "oom", "s.pickle").stdout)
        self.assertIn("next stormlog-analyze tree --at oom --by device ", said)
        self.assertIn("270 MiB 9 device 1", re.sub(r" +[\d.]+%", "", " ".join(self.run_on("tree", "--at", "oom", "--by", "device", "s.pickle").stdout.split())))

    def test_a_time_is_that_of_the_window(self):
        whole, (journal,) = made.snapshot(self.program(), drop=30)
        path, last = self.path(whole), len(whole["device_traces"][0]) - 1
        for event in (0, 20, last):
            at = str((7 * event + (3 if event < last else 0)) / 1e6)  # an event is 7 us after the one before
            rows = {row["name"]: row["bytes"] for row in json.loads(self.run_on("tree", "--json", "--at", at, path).stdout)["owners"]}
            self.assertEqual(rows["PyTorch tensors"], journal[event + 1][1])
        self.assertIn(f"the window lasts {7 * last / 1e6:.6f} s", self.run_on("tree", "--at", "3", path, code=2).stderr)
        self.assertIn("no window with times", self.run_on("tree", "--at", "3", self.path(made.old(whole)), code=2).stderr)

    def test_an_exported_snapshot_is_read_back_with_the_same_figures(self):
        for expandable, drop in ((False, 0), (False, 60), (True, 0), (True, 60)):
            allocator = self.program(expandable=expandable)
            allocator.oom(64 << 20, 12345678, made.frames("train.py:8 main"))
            path = self.path(made.snapshot(allocator, drop=drop, conf="expandable_segments:True" if expandable else "")[0])
            done = subprocess.run([ANALYZE, "export", "pytorch-snapshot", "-q", path], check=True, capture_output=True)
            again = pickle.loads(done.stdout)
            with self.subTest(expandable=expandable, drop=drop):
                self.assertEqual(self.run_on(self.path(again)).stdout, self.run_on(self.path(made.snapshot(allocator, drop=drop, conf=again[
                    "allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"])[0])).stdout)
                before, after = allocator.dumped(drop), again["device_traces"][0]
                self.assertEqual([(e["action"], e.get("addr"), e["size"]) for e in after], [(e["action"], e.get("addr"), e["size"]) for e in before[1]])
                self.assertEqual([[(b["address"], b["size"], b["requested_size"], b["state"]) for b in s["blocks"]] for s in again["segments"]],
                                 [[(b["address"], b["size"], b["requested_size"], b["state"]) for b in s["blocks"]]
                                  for s in sorted(before[0], key=lambda s: s["address"])])

    def test_a_comparison_and_the_list_of_runs_tell_no_end_of_a_snapshot(self):
        path = self.path(made.snapshot(self.program())[0])
        state = os.path.join(self.at.name, "state")
        said = self.run_on("diff", path, path).stdout
        self.assertNotRegex(said, "leak|hidden")
        said = self.run_on("diff", path, self.path(made.snapshot(self.peak_of_the_cache())[0], name="other.pickle")).stdout
        self.assertIn("PLACES", said)
        self.assertNotIn("LIBRARIES", said)
        with unittest.mock.patch.dict(os.environ, XDG_STATE_HOME=state):
            self.assertRegex(self.run_on("runs", self.at.name).stdout, r"s\.pickle .* \?  .*unknown")

    def test_a_snapshot_is_called_by_its_file(self):
        self.path(made.snapshot(self.program())[0])
        for verb in (["tree"], ["fit"], ["check", "--fits", "1M"]):
            done = subprocess.run([ANALYZE, *verb, "s.pickle"], capture_output=True, text=True, cwd=self.at.name, check=False)
            self.assertIn("s.pickle", done.stdout)
            self.assertNotRegex(done.stdout, r"pid \d|s\.pickle-")

    def test_in_tensors_is_what_was_asked_for_in_every_verb(self):
        allocator = made.Allocator()
        for _ in range(40):
            allocator.alloc((4 << 20) + 1 - 512, made.frames("train.py:7 main"))  # each is rounded up by 511 bytes
            allocator.alloc(513, made.frames("train.py:8 main"))
        allocator.alloc((30 << 20) + 1, made.frames("train.py:9 main"))
        self.path(made.snapshot(allocator)[0])
        asked = self.report("s.pickle")["processes"][0]["snapshot"]["devices"][0]["requested_peak_bytes"]
        self.assertEqual(asked, allocator.requested)
        rows = {row["name"]: row["bytes"] for row in json.loads(self.run_on("tree", "--json", "s.pickle").stdout)["owners"]}
        self.assertEqual(rows["PyTorch tensors"], asked)
        self.assertEqual(self.run_on("tree", "--min", "1", "s.pickle").stdout.count("rounding of sizes"), 1)
        self.run_on("check", "--max-allocated", str(asked), "s.pickle")
        self.run_on("check", "--max-allocated", str(asked - 1), "s.pickle", code=1)

    def test_other_pickles_are_refused_with_their_offset_and_never_run(self):
        flag = os.path.join(self.at.name, "ran")
        evil = b"\x80\x04}\x94\x8c\x08segments\x94cos\nsystem\n\x8c" + bytes([len(flag) + 6]) + b"touch " + flag.encode() + b"\x85Rs."
        cases = {"evil": (evil, "names or calls something"), "torn": (pickle.dumps(made.snapshot(self.program())[0])[:5000], "torn"),
                 "other": (pickle.dumps({"segments": 3, "a": 4})[:-1] + b"\xff", "opcode 0xff")}
        for name, (data, why) in cases.items():
            path = os.path.join(self.at.name, name + ".pickle")
            with open(path, "wb") as file:
                file.write(data)
            done = self.run_on(path, code=3)
            self.assertRegex(done.stderr, rf"{name}\.pickle: offset \d+: .*{why}")
        self.assertFalse(os.path.exists(flag))

    def test_a_file_that_is_none_of_ours_is_named_in_one_line(self):
        whole = pickle.dumps(made.snapshot(self.program())[0])
        with zipfile.ZipFile(os.path.join(self.at.name, "model.pt"), "w") as checkpoint:
            checkpoint.writestr("archive/data.pkl", b"\x80\x02}.")
        files = {"model.pt": (None, "a zip file, as torch.save writes"), "state.pt": (pickle.dumps({"weight": [1.0]}), "a pickle of something else"),
                 "none.pickle": (b"", "empty"), "s.pickle.bz2": (bz2.compress(whole), "packed by bzip2"), "torn.pickle": (whole[:9000], "torn")}
        for name, (data, why) in files.items():
            path = os.path.join(self.at.name, name)
            if data is not None:
                with open(path, "wb") as file:
                    file.write(data)
            with self.subTest(name):
                self.assertRegex(self.run_on(path, code=3).stderr, rf"^stormlog-analyze: [^\n]*{name}: [^\n]*{why}[^\n]*\n$")

    def test_a_list_of_segments_is_the_state_at_its_end(self):
        allocator = self.program(1)
        whole, journals = made.snapshot(allocator)
        report = self.report(self.path(whole["segments"]))
        self.assertEqual(self.figures(report)[2:], (journals[0][-1][0], journals[0][-1][1], journals[0][-1][0]))

    def test_events_that_skip_actions_left_out_are_not_needed(self):
        for names in (["free_requested"], ["free_completed"], ["segment_alloc", "segment_free", "snapshot"]):
            whole, journals = made.snapshot(self.program())
            whole["device_traces"] = [[e for e in events if e["action"] not in names] for events in whole["device_traces"]]
            with self.subTest(names=names):
                self.assertEqual(self.figures(self.report(self.path(whole)))[2:], self.truth(journals[0])[2:])

    def test_words_that_are_not_known_are_named_and_a_set_is_passed_over(self):
        whole, journals = made.snapshot(self.program())
        whole["later"] = [{1, 2}, frozenset([3])]
        whole["device_traces"][0].insert(30, {**whole["device_traces"][0][30], "action": "teleport"})
        self.assertEqual(self.figures(self.report(self.path(whole))), self.truth(journals[0]))
        self.assertIn('unknown here: 1 event "teleport"', self.run_on(self.path(whole)).stdout)
        whole["segments"][0]["blocks"][0]["state"] = "hibernating"
        self.assertIn('1 block "hibernating"', self.run_on(self.path(whole)).stdout)

    def test_an_empty_snapshot_and_one_without_stacks_say_so(self):
        said = self.run_on(self.path({"segments": [], "device_traces": []})).stdout
        self.assertIn("PyTorch's allocator held nothing", said)
        allocator = made.Allocator()
        allocator.alloc(30 << 20)
        whole, _ = made.snapshot(allocator)
        whole["device_traces"] = [[]]
        said = self.run_on(self.path(whole)).stdout
        self.assertRegex(said, r"fix +record again with stacks, before the model is made:\n +torch\.cuda\.memory\._record_memory_history\(\)")
        self.assertRegex(said, "open +which line asked: the file has no stacks")
        self.assertRegex(said, r"next +stormlog-analyze tree \S+ +every size")
        self.assertIn("blocks of 30.0 MiB", " ".join(self.run_on("tree", self.path(whole)).stdout.split()))

    def test_one_of_several_runs_is_shown_and_the_others_are_counted(self):
        for name in ("first.pickle", "second.pickle", "third.pickle"):
            self.path(made.snapshot(self.program())[0], name=name)
        self.assertIn("the newest of 3 runs here", " ".join(self.run_on(self.at.name).stdout.split()))
        self.assertRegex(self.run_on("check", "--max-peak", "1G", self.at.name).stdout, r"incomplete +1 of 3 runs here was checked, that of \w+\.pickle: ")
        self.run_on("check", "--max-peak", "1G", "--strict", self.at.name, code=1)
        self.run_on("check", "--max-peak", "1G", "--strict", "--run", "all", self.at.name)
        said = self.run_on("report", "--run", "all", self.at.name).stdout
        self.assertIn("and 2 more PyTorch snapshots", said.splitlines()[0])
        self.assertNotRegex(said, "hosts|completed|unknown way")

    def test_a_recording_s_title_counts_no_snapshots_beside_it(self):
        cupy = os.path.join(HERE, "..", "golden", "gpu", "cupy", "rank-00000-1106.msgpack.zst")
        recorded = os.path.join(self.at.name, "rank-00000-1106.msgpack.zst")
        shutil.copy(cupy, recorded)
        title = self.report(recorded)["answer"]["title"]
        for name in ("first.pickle", "second.pickle"):
            self.path(made.snapshot(self.program())[0], name=name)
        self.assertEqual(self.report("--run", "all", self.at.name)["answer"]["title"], title + ", beside 2 PyTorch snapshots")

    def test_who_follows_a_folder_sees_its_snapshots(self):
        for rank in range(2):
            self.path(made.snapshot(self.program())[0], name=f"snap_rank{rank}.pickle")
        rows = [json.loads(line) for line in self.run_on("monitor", "--format", "ndjson", self.at.name).stdout.splitlines()]
        self.assertEqual({row.get("rank") for row in rows}, {0, 1}, rows)

    def test_a_folder_s_other_pickles_are_passed_over(self):
        self.path({"weights": [1, 2, 3]}, name="weights.pkl")
        self.path(made.snapshot(self.program())[0], name="snapshot.pickle")
        self.assertEqual(len(self.report(self.at.name)["processes"]), 1)

    def test_the_25_of_strangers(self):
        truth = os.path.join(SHARED, "truth.jsonl")
        if not os.path.exists(truth):
            self.skipTest("../shared/snapshots is not here")
        with open(truth) as file:
            for line in map(json.loads, file):
                report = self.report(os.path.join(SHARED, line["file"]))
                for device in line["devices"]:
                    keys = ("reserved_start", "active_start", "reserved_peak", "active_peak", "reserved_end")
                    if device["events"] < 10:
                        keys = ("reserved_end", "active_end") * 2 + ("reserved_end",)
                    with self.subTest(file=line["file"], device=device["device"]):
                        self.assertEqual(self.figures(report, device["device"]), tuple(device[k] for k in keys))
                self.assertEqual(report["leaks"], [], line["file"])
                self.assertNotRegex(self.run_on("tree", "--at", "peak", os.path.join(SHARED, line["file"])).stdout, r"\b(at|c10|pybind11|std)::|_?Py[A-Z]\w+_", line["file"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
