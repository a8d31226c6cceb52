#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""agent/include/stormlog.h: every kind of program builds with it by a user's command.  Without the agent its functions do nothing; with
the agent the trace holds what the program reported."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "e2e")]
from e2e import ANALYZE, Recording
import stormlog_trace

INCLUDE = os.path.join(HERE, "..", "..", "agent", "include")
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
PROGRAMS = {  # the commands that a user would type
    "C99, PIE": ["gcc", "-std=c99", *STRICT, "-O2", "-fPIE", "-pie"],
    "C99, no PIE": ["gcc", "-std=c99", *STRICT, "-O2", "-no-pie"],
    "C99, no PIE, as it comes": ["gcc", "-std=c99", "-no-pie"],
    "C99 by clang": ["clang", "-std=c99", *STRICT, "-O2"],
    "C11, static": ["gcc", "-std=c11", *STRICT, "-O2", "-static", "-DSAYS_STATIC"],
    "C11, static PIE": ["gcc", "-std=c11", *STRICT, "-O2", "-static-pie", "-DSAYS_STATIC"],
    "C++11, PIE": ["g++", "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIE", "-pie"],
    "C++20, no PIE": ["g++", "-x", "c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-no-pie"],
}


class Header(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="stormlog-header-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.programs = {}
        for name, command in PROGRAMS.items():
            if not shutil.which(command[0]):
                continue
            path = os.path.join(cls.folder, re.sub(r"\W+", "_", name))
            done = subprocess.run([*command, "-I", INCLUDE, SOURCE, "-o", path], capture_output=True, text=True)
            if done.returncode and "static" in name and "cannot find" in done.stderr:
                continue  # this system has no static C library
            if done.returncode:
                raise AssertionError("%s: %s" % (name, done.stderr))
            cls.programs[name] = path

    def test_all_were_built(self):
        self.assertIn("C99, PIE", self.programs)
        self.assertIn("C99, no PIE", self.programs)

    def test_without_the_agent_nothing_happens(self):
        for name, path in self.programs.items():
            with self.subTest(name), Recording(path, preload=False) as run:
                self.assertEqual(run.done.stdout, b"0 0 0\n")
                self.assertEqual(run.done.stderr, b"")

    def test_a_static_program_has_no_agent_and_runs(self):
        for name, path in self.programs.items():
            if "static" in name:
                with self.subTest(name), Recording(path) as run:
                    self.assertEqual(run.done.stdout, b"0 0 0\n")
                    self.assertEqual(run.files(), [])

    def test_the_trace_holds_what_was_said(self):
        for name, path in self.programs.items():
            if "static" in name:
                continue
            with self.subTest(name), Recording(path) as run:
                said = run.done.stdout.decode().split("\n")
                self.assertEqual(said[0], "1 0 %d" % len(said[1]))
                self.assertEqual([os.path.join(run.traces, f) for f in run.files()], [said[1]])
                self.check(stormlog_trace.Trace(said[1]), "C++" in name)

    def check(self, trace, cpp):
        events, names, texts = trace.events(), trace.names(), trace.texts()
        rows = [(names[int(events["api"][i])], texts[int(events["label"][i])], int(events["extra"][i]),
                 int(events["address"][i]), int(events["bytes"][i])) for i in range(len(events["api"]))]
        mine = [row for row in rows if row[0].startswith("stormlog_")]
        blocks = [row[3] for row in rows if row[0] == "cudaMalloc"][1:]  # the first call only starts the recorder
        scope = [("stormlog_push_step", "scope_#", 2, 0, 0), ("stormlog_pop", "scope_#", 2, 0, 0)] if cpp else []
        self.assertEqual(mine, [
            ("stormlog_push_step", "step_#", 7, 0, 0),
            ("stormlog_pair", "batch_size=128", 0, 0, 0),
            ("stormlog_name", "KV cache", 0, blocks[0], 0),
            ("stormlog_push", "layer #", 3, 0, 0),
            ("stormlog_name", "optimizer state", 0, blocks[1], 1 << 19),
            ("stormlog_pop", "layer #", 3, 0, 0),
            ("stormlog_mark", "checkpoint saved", 0, 0, 0),
            ("stormlog_record", "recording off: calls without stacks", 0, 0, 0),
            ("stormlog_record", "recording on", 0, 0, 0),
            ("stormlog_pop", "step_#", 7, 0, 0)] + scope)
        stacks = [bool(events["native"][i]) for i in range(len(rows)) if rows[i][0] == "cudaMalloc"]
        self.assertEqual(stacks[1:], [True, True, False])  # the third was made while recording was off
        self.assertEqual({item["key"]: item["value"] for item in trace.defs["metadata"]},
                         {"early": "said before the first call", "model": "resnet50"})

    def test_labels_off_says_nothing_of_ranges(self):
        with Recording(self.programs["C99, PIE"], STORMLOG_LABELS="off") as run:
            trace = stormlog_trace.Trace(os.path.join(run.traces, run.files()[0]))
            names = trace.names()
            self.assertEqual([names[int(api)] for api in trace.events()["api"] if names[int(api)].startswith("stormlog_")], [])
            self.assertEqual(len(trace.defs["metadata"]), 2)


class Analyzed(unittest.TestCase):
    """The analyzer's report is compared with what the program did, written here by hand."""

    PROGRAM = r'''
#include "stormlog.h"
#include <dlfcn.h>
int main(void)
{
	int (*make)(void **, size_t), (*drop)(void *);
	void *a, *b, *c, *library = dlopen("libcudart.so.13", RTLD_NOW);
	*(void **)&make = dlsym(library, "cudaMalloc");
	*(void **)&drop = dlsym(library, "cudaFree");
	make(&a, 8 << 20);
	stormlog_name(a, 0, "weights");
	stormlog_name((char *)a + (6 << 20), 1 << 20, "bias");	/* a part of it has a name of its own */
	for (int i = 0; i < 3; i++) {
		stormlog_push_step("step", 10 + i);
		stormlog_pair("batch", i ? "64" : "32");
		make(&b, 4 << 20);
		stormlog_name(b, 0, "cache");
		make(&c, 2 << 20);
		drop(c);
		if (i < 2)
			drop(b);
		stormlog_pop();
	}
	stormlog_push("forward");
	stormlog_pair("batch_size", "128");
	make(&c, (size_t)1 << 60);
	stormlog_pop();
	stormlog_metadata("model", "resnet50");
	drop(a);
	return 0;
}
'''

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="stormlog-header-")
        cls.addClassCleanup(shutil.rmtree, folder)
        source, program = os.path.join(folder, "f.c"), os.path.join(folder, "f")
        with open(source, "w") as file:
            file.write(cls.PROGRAM)
        subprocess.run(["gcc", "-O1", "-I", INCLUDE, source, "-o", program], check=True)
        cls.run_ = Recording(program, STORMLOG_META="model=alexnet\nowner=me")
        cls.addClassCleanup(cls.run_.__exit__)

    def lines(self, *command):
        return [json.loads(line) for line in
                subprocess.run([ANALYZE, *command, self.run_.traces], capture_output=True, check=True).stdout.splitlines()]

    def test_each_entry_has_its_figures(self):
        rows = self.lines("table", "--entries", "step_#", "--json")
        mib = 1 << 20
        self.assertEqual([(r["step"], r["before_bytes"], r["after_bytes"], r["peak_bytes"], r["held_peak_bytes"], r["allocated_bytes"],
                           r["freed_bytes"], r["blocks_created"], r["blocks_freed"], r["pairs"]) for r in rows],
                         [(10, 8 * mib, 8 * mib, 14 * mib, 14 * mib, 6 * mib, 6 * mib, 2, 2, {"batch": "32"}),
                          (11, 8 * mib, 8 * mib, 14 * mib, 14 * mib, 6 * mib, 6 * mib, 2, 2, {"batch": "64"}),
                          (12, 8 * mib, 12 * mib, 14 * mib, 14 * mib, 6 * mib, 2 * mib, 2, 1, {"batch": "64"})])
        self.assertTrue(all(r["begin_ns"] < r["end_ns"] for r in rows))

    def test_they_add_up_to_the_reports_row(self):
        rows = self.lines("table", "--entries", "step_#", "--json")
        label = next(row for row in self.run_.report()["processes"][0]["labels"] if row["label"] == "step_#")
        self.assertEqual(label["entries"], len(rows))
        for name in ("allocated_bytes", "freed_bytes", "blocks_created", "blocks_freed"):
            self.assertEqual(label[name], sum(row[name] for row in rows))
        self.assertEqual(label["duration_ns"], sum(row["end_ns"] - row["begin_ns"] for row in rows))
        self.assertEqual(label["peak_bytes"], max(row["peak_bytes"] for row in rows))

    def test_what_is_named_right_after_the_call_that_makes_the_peak_has_its_name_there(self):
        program = self.PROGRAM[:self.PROGRAM.index("	for (int i")] + \
            '	make(&b, 4 << 20);\n	stormlog_name(b, 0, "cache");\n	drop(b);\n	make(&c, 1);\n	return 0;\n}\n'
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "g.c"), "w") as file:
                file.write(program)
            subprocess.run(["gcc", "-O1", "-I", INCLUDE, file.name, "-o", os.path.join(folder, "g")], check=True)
            with Recording(os.path.join(folder, "g")) as run:
                said = subprocess.run([ANALYZE, "table", "--by", "name", run.traces], capture_output=True, check=True).stdout.decode()
        self.assertEqual(re.findall(r"(?m)^ *(\d\.\d+ MiB) .* (weights|bias|cache|no name)$", said),
                         [("7.00 MiB", "weights"), ("4.00 MiB", "cache"), ("1.00 MiB", "bias")], said)

    def test_names_of_memory(self):
        names = {row["name"]: (row["device"], row["blocks"], row["live_bytes"], row["peak_bytes"])
                 for row in self.run_.report()["processes"][0]["names"]}
        self.assertEqual(names, {"weights": (0, 1, 0, 8 << 20), "bias": (0, 1, 0, 1 << 20), "cache": (0, 3, 4 << 20, 4 << 20)})

    def owners(self, verb, *options):
        answer, = self.lines(verb, "--by", "name", "--json", *options)
        return answer["bytes"], {row["name"]: (row["bytes"], row["blocks"]) for row in answer["owners"]}

    def test_tree_and_table_add_up_by_name(self):
        mib = 1 << 20
        peak = (14 * mib, {"weights": (7 * mib, 1), "bias": (mib, 1), "cache": (4 * mib, 1), "no name": (2 * mib, 1)})
        self.assertEqual(self.owners("tree"), peak)
        self.assertEqual(self.owners("table", "--at", "peak"), peak)
        self.assertEqual(self.owners("tree", "--at", "oom"),
                         (12 * mib, {"weights": (7 * mib, 1), "bias": (mib, 1), "cache": (4 * mib, 1)}))
        self.assertEqual(self.owners("table", "--at", "end"), (4 * mib, {"cache": (4 * mib, 1)}))
        self.assertEqual(self.owners("tree", "--from", "step_#10", "--to", "peak"), (6 * mib, {"cache": (4 * mib, 1), "no name": (2 * mib, 1)}))
        text = subprocess.run([ANALYZE, "table", "--by", "name", self.run_.traces], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"7\.00 MiB +50\.0% .*weights")

    def test_names_are_in_the_text_beside_the_peak(self):
        said = subprocess.run([ANALYZE, "--all", self.run_.traces], capture_output=True, text=True, check=True).stdout
        for name, most, end in ("weights", "8 MiB", "0 B"), ("cache", "4 MiB", "4 MiB"), ("bias", "1 MiB", ""):
            self.assertIn(f"{name}, so named by the program: {most} at most, {end}", said)

    def test_names_are_on_the_page(self):
        subprocess.run([ANALYZE, "-q", self.run_.traces], check=True)
        page = self.run_.page()
        self.assertEqual({row["name"]: (row["device"], row["blocks"], row["live_bytes"], row["peak_bytes"]) for row in page["processes"][0]["names"]},
                         {"weights": (0, 1, 0, 8 << 20), "bias": (0, 1, 0, 1 << 20), "cache": (0, 3, 4 << 20, 4 << 20)})
        self.assertEqual(page["rest"], "kept by PyTorch, unused")
        mib = 1 << 20
        pairs = page["processes"][0]["pairs"]
        self.assertEqual([(row["label"], row["pair"], row["entries"], row["peak_bytes"], row["allocated_bytes"]) for row in pairs],
                         [("step_#", "batch=32", 1, 14 * mib, 6 * mib), ("step_#", "batch=64", 2, 14 * mib, 12 * mib),
                          ("forward", "batch_size=128", 1, 12 * mib, 0)])
        spent = {pair: sum(row["end_ns"] - row["begin_ns"] for row in self.lines("table", "--entries", "*", "--json") if pair in row["pairs"].items())
                 for pair in (("batch", "32"), ("batch", "64"), ("batch_size", "128"))}
        self.assertEqual([row["duration_ns"] for row in pairs], list(spent.values()))
        self.assertEqual([one["note"] for one in page["answer"]["verdicts"]], [["it was in forward with batch_size=128"]])

    def test_metadata_of_the_program_is_beside_the_users(self):
        self.assertEqual(self.run_.report()["run"]["metadata"], {"owner": "me", "model": "resnet50"})

    def test_the_dump_has_numbers_of_steps(self):
        rows = [row for row in self.lines("dump") if row["verb"] == "RANGE_PUSH"]
        self.assertEqual([(row["label"], row["step"]) for row in rows], [("step_#", 10), ("step_#", 11), ("step_#", 12), ("forward", None)])

    def test_the_bundle_has_what_was_said_of_the_range(self):
        out = os.path.join(self.run_.folder, "analysis")
        subprocess.run([ANALYZE, "-o", out, self.run_.traces], check=True, capture_output=True)
        bundle, = os.listdir(os.path.join(out, "oom"))
        with open(os.path.join(out, "oom", bundle, "metadata.json")) as file:
            custom = json.load(file)["custom_metadata"]
        self.assertEqual(custom["range"], {"batch_size": "128"})
        self.assertEqual(custom["metadata"], {"owner": "me", "model": "resnet50"})


class Flush(unittest.TestCase):
    """The trace file without its ring, copied when flush() has returned, has every event."""

    PROGRAM = r'''
#include "stormlog.h"
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	int (*make)(void **, size_t);
	void *block, *library = dlopen("libcudart.so.13", RTLD_NOW);
	char path[4096], command[9000];
	*(void **)&make = dlsym(library, "cudaMalloc");
	make(&block, 4096);
	stormlog_push("only in the ring");
	if (stormlog_flush(60000) || !stormlog_trace(path, sizeof(path)))
		return 1;
	snprintf(command, sizeof(command), "cp '%s' rank-00000-1.msgpack.zst", path);
	return system(command) != 0;
}
'''.replace("#include <stdio.h>", "#include <stdio.h>\n#include <stdlib.h>")

    def test_it_is_in_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "f.c"), os.path.join(folder, "f")
            with open(source, "w") as file:
                file.write(self.PROGRAM)
            subprocess.run(["gcc", "-O1", "-I", INCLUDE, source, "-o", program], check=True)
            with Recording(program) as run:
                trace = stormlog_trace.Trace(os.path.join(run.folder, "rank-00000-1.msgpack.zst"))
                self.assertIn("only in the ring", trace.texts().values())
                names = trace.names()
                self.assertEqual([names[int(api)] for api in trace.events()["api"]][-1], "stormlog_push")


if __name__ == "__main__":
    unittest.main()
