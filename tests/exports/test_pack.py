#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""stormlog-analyze pack: a pack gives the same report as the folder, a masked one gives it without names, a truncated one is reported."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "hostile"), os.path.join(HERE, "..")]
import traces as t
import stacks
from e2e import ANALYZE, APPS, BUILD, SIM, Recording, script

NUMBERS = ("allocations", "frees", "failed_allocations", "allocated_bytes", "live_bytes", "peak_bytes")


class Pack(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stormlog-pack-test-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.demo = os.path.join(self.folder, "secretproject")
        os.mkdir(self.demo)
        subprocess.run([os.path.join(BUILD, "tests", "analyzer", "make_demo_trace"), self.demo], check=True)
        self.file = os.path.join(self.folder, "x.stormlog")
        os.mkdir(os.path.join(self.folder, "tmp"))

    def analyze(self, *arguments, code=0):
        done = subprocess.run([ANALYZE, *arguments], capture_output=True, text=True,
                              env=dict(os.environ, TMPDIR=os.path.join(self.folder, "tmp")))
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(os.listdir(os.path.join(self.folder, "tmp")), [], "what was unpacked is removed")
        return done

    def report(self, path):
        text = self.analyze("--json", path).stdout
        return stacks.named(json.loads(re.sub(r"/[^\s\"]*/(rank-)", r"\1", text)))  # warnings name files with their folder, which differs

    def test_a_pack_is_the_folder(self):
        self.analyze("pack", "-o", self.file, self.demo)
        self.assertEqual(self.report(self.file), self.report(self.demo))
        for verb in (["dump"], ["tree"], ["export", "csv"], ["check", "--max-peak", "1T"]):
            self.assertEqual(self.analyze(*verb, self.file).stdout, self.analyze(*verb, self.demo).stdout, verb)

    def test_traces_of_one_name_in_two_folders_are_both_in_it(self):
        """As of containers, in each of which the job has one number.  Masks of one letter may be the same, and the hosts would be one."""
        both = os.path.join(self.folder, "both")
        for copy in "a", "b", "c":
            os.makedirs(os.path.join(both, copy))
            t.write(os.path.join(both, copy, "rank-00000-100.msgpack.zst"), t.header(rank=0, pid=100, host=12 * copy), t.Thread().events(1, api=t.MALLOC, kind=1, duration_ns=1, address=[4096], bytes=4096))
        for how in [], ["--redact"]:
            self.analyze("pack", *how, "-o", self.file, both)
            self.assertEqual([process["pid"] for process in self.report(self.file)["processes"]], [100, 100, 100], how)

    def test_the_analysis_of_a_pack_lies_beside_it(self):
        self.analyze("pack", "-o", self.file, self.demo)
        self.analyze(self.file)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "analysis", "report.json")))

    def test_how_a_process_ended_is_the_same_when_masked(self):
        program = "import ctypes\nctypes.CDLL('%s/libcudart.so.13').cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(4096))\nraise SystemExit(3)" % SIM
        with Recording("/usr/bin/python3", "-S", "-c", program, code=3) as run:
            self.analyze("pack", "--redact", "-o", self.file, run.traces)
            process, = self.report(self.file)["processes"]
            self.assertEqual((process["ended"], process["exit_status"]), ("failed", 3))
            done = subprocess.run([ANALYZE, self.file], capture_output=True, text=True, check=True)
            self.assertNotIn("another build", done.stdout + done.stderr)

    def test_a_masked_script_holds_what_it_asked_for_through_ctypes(self):
        with script("alloc=5") as run:
            self.analyze("pack", "--redact", "-o", self.file, run.traces)
            row, = self.report(self.file)["processes"][0]["libraries"]
            self.assertRegex(row["library"], r"^[g-z]{10}\.py$")

    def test_redacted_numbers_stay_and_names_go(self):
        self.analyze("pack", "--redact", "-o", self.file, self.demo)
        ours, true = self.report(self.file), self.report(self.demo)
        for mine, real in zip(ours["processes"], true["processes"]):
            self.assertEqual([[row[name] for name in NUMBERS] for row in mine["memory"]],
                             [[row[name] for name in NUMBERS] for row in real["memory"]])
            self.assertEqual(mine["status"], real["status"])
            self.assertFalse(mine["damaged"])
        text = json.dumps(ours)
        for name in ("train.py", "remember", "train_step", "/home/me"):
            self.assertIn(name, json.dumps(true))
            self.assertNotIn(name, text)
        self.assertIn("libcublas.so.13", text)
        self.assertRegex(self.file_of(ours), r"^(/[g-z]{10}){3}\.py$")

    def test_what_holds_a_block_is_masked_name_by_name(self):
        blocks = os.path.join(self.folder, "blocks")
        os.mkdir(blocks)
        subprocess.run([os.path.join(BUILD, "tests", "exports", "make_blocks"), blocks, "3"], check=True)
        self.analyze("pack", "--redact", "-o", self.file, blocks)
        ours, true = (self.report(path)["processes"][0]["holders"] for path in (self.file, blocks))
        self.assertEqual([one["path"] for one in true], ["Meter.secrets[*].hidden"])
        for name in "how", "container", "blocks", "bytes", "seen_bytes":
            self.assertEqual([one[name] for one in ours], [one[name] for one in true], name)
        self.assertRegex(ours[0]["path"], r"^([g-z]{10})\.([g-z]{10})\[\*\]\.([g-z]{10})$")
        self.assertRegex(ours[0]["file"], r"^(/[g-z]{10}){3}\.py$")
        self.assertFalse(re.search("Meter|secrets|hidden|model|/home/me", json.dumps(ours)))

    def file_of(self, report):
        return next(frame["file"] for leak in report["leaks"] for frame in leak["stack"] if frame["file"])

    def test_nothing_of_a_real_run_remains_in_the_bytes(self):
        import zstandard
        with Recording(os.path.join(APPS, "runtime13"), "--token=hushhush", STORMLOG_TAG="codename", STORMLOG_META="who=alice",
                       code=None) as run:
            self.analyze("pack", "--redact", "-o", self.file, run.traces)
            with open(self.file, "rb") as file:
                data = zstandard.ZstdDecompressor().stream_reader(file.read()[16:]).read()
            plain = data + b"".join(self.frames(data))
            for name in (b"codename", b"alice", APPS.encode()):
                self.assertNotIn(name, plain)
            self.assertIn(b"cudaMalloc", plain)
            self.assertEqual(self.report(self.file)["processes"][0]["events"], run.report()["processes"][0]["events"])

    def test_of_a_killed_run_the_masked_ring_has_the_same_events(self):
        def when(run):
            while not os.path.exists(os.path.join(run.folder, "made")):
                time.sleep(0.01)
        with script("calls=8000", "ready=made", "calls=4000000", "wait=never", kill_when=when, code=-9) as run:
            trace, = [os.path.join(run.traces, name) for name in run.files() if name.endswith(".zst")]
            torn = shutil.copytree(run.traces, os.path.join(self.folder, "torn"))
            with open(os.path.join(torn, os.path.basename(trace)), "r+b") as file:
                file.truncate(os.path.getsize(trace) - 300)  # of which the ring has nothing any more
            self.assertIn("may not be the whole run", self.analyze("pack", "--redact", "-o", self.file, torn, code=3).stderr)
            for path in torn, self.file:
                self.assertIn("incomplete", self.analyze("check", "--strict", "--max-peak", "100G", path, code=1).stdout)
            for part in "whole", "ring alone":
                with self.subTest(part):
                    if part != "whole":
                        os.remove(trace)
                    self.analyze("pack", "--redact", "-o", self.file, run.traces)
                    true, ours = (self.analyze("dump", path).stdout for path in (run.traces, self.file))
                    self.assertTrue(self.numbers(true) == self.numbers(ours))
                    if part == "whole":  # the ring is empty where the writer was quicker than the program
                        self.assertGreater(len(true), 1000)
                    true, ours = (self.report(path)["processes"][0] for path in (run.traces, self.file))
                    for key in "events", "lost_events", "status", "damaged", "rank", "pid":
                        self.assertEqual(true[key], ours[key], key)
                    self.assertEqual([[row[name] for name in NUMBERS] for row in true["memory"]], [[row[name] for name in NUMBERS] for row in ours["memory"]])

    def numbers(self, dump):
        """What stands before the stack of each line, and how many frames that has."""
        return [(line.split(',"stack"')[0], line.count('","')) for line in dump.splitlines()]

    def frames(self, data):
        import zstandard
        for at in (match.start() for match in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), data)):
            try:
                yield zstandard.ZstdDecompressor().decompressobj().decompress(data[at:])
            except zstandard.ZstdError:
                pass

    def built(self):
        """Build a program that keeps 5 blocks, made by an inlined function."""
        program, compiler = os.path.join(self.folder, "leaky"), shutil.which("cc")
        if not compiler:
            self.skipTest("needs a C compiler")
        with open(program + ".c", "w") as file:
            file.write("int cudaMalloc(void **, unsigned long);\n"
                       "static inline __attribute__((always_inline)) int ask(void **p) { return cudaMalloc(p, 1 << 20); }\n"
                       "__attribute__((noinline)) int keeps_it(void) { void *p; return ask(&p) + 0 * (p == &p); }\n"
                       "int main(void) { int bad = 0; for (int i = 0; i < 5; i++) bad += keeps_it(); return bad; }\n")
        subprocess.run([compiler, "-g", "-O1", "-o", program, program + ".c", "-L" + SIM, "-l:libcudart.so.13"], check=True)
        return program

    def places(self, path):
        report = self.report(path)
        return [[(frame["function"], frame["file"], frame["line"]) for frame in leak["stack"]] for leak in report["leaks"]], report["warnings"]

    def test_names_of_native_frames_are_there_where_the_program_is_not(self):
        for kind in ("native", "none"):  # none: there are only callers' addresses
            program = self.built()
            with Recording(program, STORMLOG_STACKS=kind) as run:
                here, _ = self.places(run.traces)
                self.analyze("pack", "-o", self.file, run.traces)
                again = self.file + ".again.stormlog"
                self.analyze("pack", "--redact", "-o", self.file + ".masked.stormlog", run.traces)
                os.remove(program)
                self.assertNotIn("keeps_it", str(self.places(run.traces)))
                self.assertEqual(self.places(self.file), (here, []))
                self.assertEqual([(frame[0], frame[2]) for frame in here[0][:2]], [("ask", 2), ("keeps_it", 3)])
                self.analyze("pack", "-o", again, self.file)  # a pack of the pack keeps the names, though the program is gone
                self.assertEqual(self.places(again), (here, []))
                self.assertEqual([frame[0] for frame in self.places(self.file + ".masked.stormlog")[0][0]][0], None)
                summary = os.path.join(self.folder, "x.summary")
                self.analyze("summarize", "-o", summary, self.file)
                self.assertEqual(self.places(summary)[0], here)

    def test_two_packs_mask_differently(self):
        self.analyze("pack", "--redact", "-o", self.file, self.demo)
        first = self.file_of(self.report(self.file))
        self.analyze("pack", "--redact", "-o", self.file, self.demo)
        self.assertNotEqual(self.file_of(self.report(self.file)), first)

    def test_a_torn_pack_says_so_and_gives_what_it_has(self):
        self.analyze("pack", "-o", self.file, self.demo)
        with open(self.file, "rb") as file:
            data = file.read()
        for size in (16, 20, len(data) // 2, len(data) - 30, len(data) - 1):
            with open(self.file, "wb") as file:
                file.write(data[:size])
            done = subprocess.run([ANALYZE, "--json", self.file], capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 3))
            self.assertIn("torn", done.stderr)

    def test_a_pack_cannot_write_outside_its_folder(self):
        import struct
        import zstandard
        for name in (b"../evil.ring", b"/tmp/evil.ring", b".ring", b"notes.txt", b"a\x00.ring"):
            body = struct.pack("<I", len(name)) + name + struct.pack("<Q", 4) + b"evil" + struct.pack("<I", 0)
            with open(self.file, "wb") as file:
                file.write(b"stormlog.pack\n\x01\x00" + zstandard.ZstdCompressor().compress(body))
            done = subprocess.run([ANALYZE, "--json", self.file], capture_output=True, text=True)
            self.assertEqual(done.returncode, 3)
            self.assertEqual([n for n in os.listdir(self.folder) if "evil" in n], [])

    def test_a_trace_that_cannot_be_read_is_named_and_goes_along_and_alone_it_is_no_pack(self):
        bad = os.path.join(self.folder, "bad")
        os.mkdir(bad)
        for folder in (bad, self.demo):
            with open(os.path.join(folder, "rank-00077-7.msgpack.zst"), "wb") as file:
                file.write(b"no frame" * 100)
        for masked in ([], ["--redact"]):
            self.assertIn("rank-00077-7.msgpack.zst: no readable header", self.analyze("pack", *masked, "-o", self.file, bad, code=3).stderr)
            self.assertFalse(os.path.exists(self.file))
            self.assertIn("rank-00077-7.msgpack.zst: no readable header", self.analyze("pack", *masked, "-o", self.file, self.demo, code=3 if masked else 0).stderr)
            self.assertIn("rank-00077-7.msgpack.zst: no readable header", self.analyze("--json", self.file).stderr)
            os.unlink(self.file)
        self.assertIn("rank-00077-7.msgpack.zst: no readable header", self.analyze("collect", "-o", self.file, bad, code=3).stderr)
        self.assertFalse(os.path.exists(self.file))

    def test_usage(self):
        self.analyze("pack", code=2)
        self.analyze("pack", os.path.join(self.folder, "nowhere"), code=2)
        self.analyze("pack", "--run", "nobody", self.demo, code=2)
        os.mkdir(os.path.join(self.folder, "empty"))
        self.analyze("pack", "-o", self.file, os.path.join(self.folder, "empty"), code=3)
        self.assertFalse(os.path.exists(self.file))


if __name__ == "__main__":
    unittest.main()
