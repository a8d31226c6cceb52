#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""include/stormlog.h: every kind of program builds with it as its reader would type, says nothing without the agent, and under
it the trace holds what was said."""
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
try:
    from e2e import ANALYZE, PRELOAD, SIM, Recording
    import stormlog_trace
except ImportError as error:
    print("skipped: python3-msgpack, python3-zstandard and python3-numpy are needed:", error)
    sys.exit(77)

INCLUDE = os.path.join(HERE, "..", "..", "include")
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]
PROGRAMS = {  # as a user would type it
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
        blocks = [row[3] for row in rows if row[0] == "cudaMalloc"]
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
        self.assertEqual(stacks, [True, True, False])  # the third was made while recording was off
        self.assertEqual({item["key"]: item["value"] for item in trace.defs["metadata"]},
                         {"early": "said before the first call", "model": "resnet50"})

    def test_labels_off_says_nothing_of_ranges(self):
        with Recording(self.programs["C99, PIE"], STORMLOG_LABELS="off") as run:
            trace = stormlog_trace.Trace(os.path.join(run.traces, run.files()[0]))
            names = trace.names()
            self.assertEqual([names[int(api)] for api in trace.events()["api"] if names[int(api)].startswith("stormlog_")], [])
            self.assertEqual(len(trace.defs["metadata"]), 2)


class Flush(unittest.TestCase):
    """Its file without its ring, taken when flush() has returned."""

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
