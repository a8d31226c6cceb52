#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Arrays of a PJRT plugin.  Compared with the journal of a stand-in (tests/pools/pjrt_plugin.c), and with JAX over real plugins."""
import json
import os
import subprocess
import sys
import unittest

from pools import BUILD, HERE, Pools, real
import e2e

JAX, PLUGIN = os.path.join(BUILD, "jax"), os.path.join(BUILD, "pjrt_plugin.so")
MIB = 1 << 20
POOL = 64 * MIB


def replay(journal):
    """(what is live at the end, at the peak), each {handle: (bytes, name)}, and how many arrays there were."""
    live, peak, made = {}, {}, 0
    for what, handle, *rest in journal:
        if what == "array":
            live[handle] = (int(rest[0]), rest[1])
            made += 1
        elif what == "gone":
            live.pop(handle, None)
        if sum(size for size, _ in live.values()) > sum(size for size, _ in peak.values()):
            peak = dict(live)
    return live, peak, made


def told(journal):
    """(in use, named, rounding, the rest) at the moment when the plugin reported the most in use."""
    live, most = {}, (0,)
    for what, handle, *rest in journal:
        if what == "array":
            live[handle] = int(rest[0])
        elif what == "gone":
            live.pop(handle, None)
        elif int(handle) > most[0]:
            named, rounded = sum(live.values()), sum(-(-size // 256) * 256 for size in live.values())
            most = (int(handle), named, rounded - named, int(handle) - rounded)
    return most


def applied(blocks):
    """Arrays live after all events of the trace."""
    live = {}
    for verb, address, size, text in blocks:
        if verb == "BLOCK_ALLOC":
            live["0x%x" % address] = (size, text)
        else:
            live.pop("0x%x" % address, None)
    return live


class Pjrt(unittest.TestCase):
    maxDiff = 4000

    def test_each_array_is_in_the_trace_with_shape_and_origin_until_it_ends(self):
        with Pools(JAX, PLUGIN) as run:
            live, _, made = replay(run.journal())
            blocks = run.blocks()
        self.assertEqual(applied(blocks), live)
        allocated = [row for row in blocks if row[0] == "BLOCK_ALLOC"]
        self.assertEqual(len(allocated), made)
        self.assertEqual(allocated[0][2:], (20 * MIB, "host f32[1024,5120]"))
        self.assertIn("jit_step#1 f32[5120,1024]", [row[3] for row in allocated])

    def test_a_view_is_no_array_and_its_end_is_no_array_s(self):
        with Pools(JAX, PLUGIN) as run:
            device, = run.report()["processes"][0]["pytorch"]
            gone = {int(words[1], 16) for words in run.journal() if words[0] == "gone"}
            freed = [address for verb, address, _, _ in run.blocks() if verb == "BLOCK_FREE"]
        self.assertEqual(len(set(freed) - gone), 1)  # the view's: it frees no array
        self.assertEqual(device["live_blocks"], 2)

    def test_arrays_and_the_rest_are_the_pool_and_most_has_a_name(self):
        self.hold_the_pool("")

    def test_a_pool_that_is_mapped_is_one_too(self):
        self.hold_the_pool("mapped")

    def hold_the_pool(self, how):
        with Pools(JAX, PLUGIN, POOLS_PLUGIN=how) as run:
            live, peak, _ = replay(run.journal())
            given = told(run.journal())
            process, = run.report()["processes"]
            tree = subprocess.run([e2e.ANALYZE, "tree", "--at", "peak", "--by", "label", run.traces], capture_output=True, check=True)
            subprocess.run([e2e.ANALYZE, "-q", run.traces], check=True)
            page = run.page()
        if page:  # if the build has the page
            self.assertEqual([tuple(row["given_out"][name + "_bytes"] for name in ("in_use", "named", "rounding", "unnamed")) for row in page["processes"][0]["pytorch"]], [given])
        device, = process["pytorch"]
        named = sum(size for size, _ in peak.values())
        self.assertEqual((device["peak_allocated_bytes"], device["peak_reserved_bytes"], device["reserved_bytes"]), (named, POOL, POOL))
        self.assertGreaterEqual(named, 0.95 * POOL)
        self.assertEqual((device["allocated_bytes"], device["live_blocks"]), (sum(size for size, _ in live.values()), len(live)))
        text = tree.stdout.decode()
        for _, name in peak.values():
            self.assertIn(name, text)
        self.assertEqual(tuple(device["given_out"][name + "_bytes"] for name in ("in_use", "named", "rounding", "unnamed")), given)
        self.assertEqual(given[3], 2 * 1024)  # constants of two executables
        self.assertIn("in pools, unnamed", text)
        self.assertIn("JAX arrays", text)
        self.assertEqual([row["live_bytes"] for row in process["memory"]], [POOL])
        self.assertEqual([row["library"] for row in process["libraries"] if row["live_bytes"]], ["pool of pjrt_plugin.so"])

    def test_a_pool_that_fills_the_device_is_no_closed_box(self):
        found = {}
        for tensors in ("auto", "off"):
            with Pools(JAX, PLUGIN, STORMLOG_TENSORS=tensors, SIM_VRAM="100M", SIM_CTX_BYTES=0) as run:
                found[tensors] = [row["kind"] for row in run.report()["findings"]]
        self.assertIn("allocator.arena", found["off"])
        self.assertNotIn("allocator.arena", found["auto"])

    def test_an_error_by_the_pool_s_own_limit_is_out_of_memory(self):
        with Pools(JAX, PLUGIN, "refused", code=1) as run:
            asked, = [int(words[1]) for words in run.journal() if words[0] == "refused"]
            error, = run.report()["ooms"]
            screen = " ".join(subprocess.run([e2e.ANALYZE, run.traces], capture_output=True, text=True, env=dict(os.environ, COLUMNS="100")).stdout.split())
        self.assertEqual((error["requested_bytes"], error["device_total_bytes"], error["recovered"]), (asked, POOL, False))
        self.assertRegex(screen, r"OUT OF MEMORY .* asks 128 MiB, more than the pool has")
        self.assertRegex(screen, r"64\.0 MiB JAX's pool at the error .* [\d.]+ free next")

    def test_an_executable_says_what_it_needs(self):
        with Pools(JAX, PLUGIN) as run:
            trace = run.trace()
            events, verbs, texts = trace.events(), trace.verbs(), trace.texts()
            marks = [texts[label] for api, label in zip(events["api"].tolist(), events["label"].tolist()) if verbs[api] == "MARK"]
        self.assertEqual([mark.split(":")[0] for mark in marks], ["executable jit_step", "executable jit_forward"])
        self.assertIn(" temporaries 1048576 ", marks[0])

    def test_a_table_that_is_not_known_is_handed_out_as_it_is_and_the_trace_says_so(self):
        for how, why in (("old", "the version of a PJRT plugin's table is not known"),
                         ("lacks", "a PJRT plugin's table lacks what we ask"), ("short", "a PJRT plugin's table lacks what we ask")):
            with self.subTest(how=how), Pools(JAX, PLUGIN, POOLS_PLUGIN=how) as run:
                self.assertEqual(run.done.stdout, b"trained\n")
                self.assertEqual(run.blocks(), [])
                self.assertIn("JAX arrays are not recorded: " + why, [row["text"] for row in run.trace().defs["note"]])

    def test_off_means_off(self):
        with Pools(JAX, PLUGIN, STORMLOG_TENSORS="off") as run:
            self.assertEqual((run.done.stdout, run.blocks()), (b"trained\n", []))


class Real(unittest.TestCase):
    def test_arrays_of_jax_are_what_jax_says_it_holds(self):
        python = real.python_of("pjrt")
        if not python:
            self.skipTest("PyPI does not give jax and xla-cpu-pjrt")
        plugin = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], capture_output=True, text=True,
                                check=True).stdout.strip() + "/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"
        program = os.path.join(HERE, "use_pjrt.py")
        with e2e.Recording(python, program, plugin, preload=False) as plain, \
                Pools(python, program, plugin, STORMLOG_TENSORS="cpu", STORMLOG_HOST="1") as run:
            self.assertEqual(run.done.stdout, plain.done.stdout)
            said = [line.split()[1:] for line in run.done.stdout.decode().splitlines() if line.startswith("live ")]
            blocks = run.blocks()
        self.assertEqual(sorted((shape, int(size)) for shape, size in said),
                         sorted((name.split()[-1], size) for size, name in applied(blocks).values()))
        donated = [row for row in blocks if row[3].startswith("jit_step#")]
        self.assertEqual(len(donated), 6)
        with Pools(python, program, plugin) as run:
            self.assertEqual(run.files(), [])  # arrays in host memory alone do not start a recording

    def test_arrays_and_rounding_are_what_the_plugins_for_cuda_say_is_in_use(self):
        if os.environ.get("STORMLOG_REAL") != "1":
            self.skipTest("jax-cuda12-plugin and jax-cuda13-plugin are 1 GB each: STORMLOG_REAL=1")
        for major in ("12", "13"):
            with self.subTest(cuda=major):
                python = real.python_of("jax" + major)
                if not python:
                    self.skipTest("PyPI does not give jax-cuda%s-plugin" % major)
                runtime = os.path.join(e2e.SIM, "libcudart.so." + major)
                with Pools(python, os.path.join(HERE, "use_jax_cuda.py"), LD_PRELOAD=e2e.PRELOAD + ":" + runtime, SIM_DEVICES=1) as run:
                    said = json.loads(run.done.stdout)
                    blocks = run.blocks()
                    device, = run.report()["processes"][0]["pytorch"]
                statistics, given = said["statistics"], device["given_out"]
                self.assertEqual(sorted(size for size, _ in applied(blocks).values()), said["live"])
                self.assertEqual((device["allocated_bytes"], device["reserved_bytes"]), (sum(said["live"]), statistics["pool_bytes"]))
                self.assertEqual((given["in_use_bytes"], given["unnamed_bytes"]), (statistics["bytes_in_use"], 0))
                self.assertEqual({text for verb, _, _, text in blocks if verb == "BLOCK_ALLOC"}, {"host f32[256,256]", "host f32[1050]"})

    def test_our_view_of_the_interface_is_its_header_s(self):
        python = real.python_of("pjrt")
        if not python:
            self.skipTest("PyPI does not give xla-cpu-pjrt")
        done = subprocess.run([sys.executable, os.path.join(HERE, "check_pjrt.py"), python], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if sys.argv[1:] == ["cost"]:
        for agent in (False, True):
            with e2e.Recording(JAX, PLUGIN, "cost", preload=agent) as run:
                print("agent %s: ns an array from the host and its end, a step and the end of its output: %s"
                      % (agent, run.done.stdout.decode().strip()))
        sys.exit()
    unittest.main()
