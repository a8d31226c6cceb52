#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Places of compiled programs: without symbols, on several devices, and where the compiler made several calls of one line."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import e2e

MIB = 1 << 20
HEAD = """
int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaSetDevice(int), usleep(unsigned);
#define OUT __attribute__((noinline))
#define MIB (1ul << 20)
"""

# A helper, a function that keeps every third block, and one that gives its blocks back.
WRAPPED = HEAD + """
OUT void *device_new(unsigned long bytes) { void *p = 0; cudaMalloc(&p, bytes); __asm__(""); return p; }
OUT void keeps(int i) { if (i % 3 == 0) device_new(5 * MIB); __asm__(""); }
OUT void gives_back(void) { void *p = device_new(70 * MIB); usleep(100); cudaFree(p); __asm__(""); }
int main(void) { for (int i = 0; i < 120; i++) { keeps(i); gives_back(); } }
"""

# Device 0 has most of the weights, device 1 the leak.
DEVICES = HEAD + """
OUT void weights(void) { void *p; cudaSetDevice(0); cudaMalloc(&p, 400 * MIB); cudaSetDevice(1); cudaMalloc(&p, 100 * MIB); }
OUT void leaks(int i) { void *p; cudaSetDevice(1); cudaMalloc(&p, 3 * MIB); usleep(1000); if (i % 2) cudaFree(p); }
int main(void) { weights(); for (int i = 0; i < 80; i++) leaks(i); }
"""

# One line with four calls, as in an unrolled loop: each return address makes only a part of the blocks.
UNROLLED = HEAD + """
OUT void grow(void) { void *p; cudaMalloc(&p, 1 * MIB); usleep(5000); }
OUT void refine(void) {
	for (int i = 0; i < 50; i++) { grow(); grow(); grow(); grow(); }
}
int main(void) { refine(); }
"""

# Each call returns a new block.
PLUGIN = HEAD + """
OUT void *cache(void) { void *p = 0; cudaMalloc(&p, SIZE * MIB); usleep(3000); __asm__(""); return p; }
"""

# REOPENS PLUGIN...: ten rounds; in each, every plugin is opened, called eight times and closed, and the next one must be loaded elsewhere.
REOPENS = HEAD + """
#include <dlfcn.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	Dl_info here;
	for (int i = 0; i < 10; i++)
		for (int k = 1; k < argc; k++) {
			void *library = dlopen(argv[k], RTLD_NOW), *(*cache)(void) = (void *(*)(void))dlsym(library, "cache"), *passing;
			for (int n = 0; n < 8; n++) {
				cache();
				cudaMalloc(&passing, 7 * MIB);
				cudaFree(passing);
			}
			dladdr((void *)cache, &here);
			dlclose(library);
			if (k == 1)
				mmap(here.dli_fbase, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		}
}
"""

# Functions in a namespace, some of them inlined, over a class's operators new.
NAMESPACE = """
extern "C" int cudaMalloc(void **, unsigned long), usleep(unsigned);
namespace scene {
struct Mesh {
	static void *operator new(unsigned long bytes) { void *p = nullptr; cudaMalloc(&p, bytes << 20); return p; }
	static void *operator new[](unsigned long bytes) { return Mesh::operator new(bytes); }
	bool lit;
};
static inline __attribute__((always_inline)) Mesh *load(int (*parts)[2])
{
	return new Mesh[(*parts)[1]];
}
static __attribute__((noinline)) void frames(int (*parts)[2])
{
	for (int i = 0; i < 100; i++) {
		load(parts);
		usleep(500);
	}
}
}
int main() { int parts[2] = {1, 3}; scene::frames(&parts); }
"""


class Native(unittest.TestCase):
    def setUp(self):
        self.cc = shutil.which("cc") or self.skipTest("needs a C compiler")
        self.folder = tempfile.mkdtemp(prefix="stormlog-native-")
        self.addCleanup(shutil.rmtree, self.folder)

    def build(self, text, *options, name="prog", compiler=None):
        source, program = os.path.join(self.folder, name + (".cc" if compiler else ".c")), os.path.join(self.folder, name)
        with open(source, "w") as file:
            file.write(text)
        subprocess.run([compiler or self.cc, *options, "-o", program, source, "-L" + e2e.SIM, "-l:libcudart.so.12"], check=True)
        return program

    def screen(self, run):
        return subprocess.run([e2e.ANALYZE, "--all", run.traces], capture_output=True, text=True, check=True).stdout

    def test_a_stripped_program_is_told_by_who_called_its_helper(self):
        program = self.build(WRAPPED, "-O0")
        ends = {}
        for line in subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout.splitlines():
            if len(line.split()) == 4:
                start, size, _, name = line.split()
                ends[name] = range(int(start, 16), int(start, 16) + int(size, 16))
        subprocess.run(["strip", program], check=True)
        with e2e.Recording(program, SIM_VRAM="8G") as run:
            screen, report = self.screen(run), run.report()
        function = lambda offset: next(name for name, where in ends.items() if int(offset, 16) in where)
        (leak,) = [one for one in report["answer"]["verdicts"] if one["word"] == "LEAK"]
        owners = {function(re.search(r"prog\+(0x\w+)", row["text"])[1]): row["bytes"] >> 20 for row in leak["table"]["rows"]}
        self.assertEqual(owners, {"keeps": 200, "gives_back": 70}, screen)
        self.assertEqual([function(line["function"].split("+")[1]) for line in leak["lines"]], ["main", "keeps"], screen)
        (finding,) = [one for one in report["findings"] if one["class"] == "leak"]
        self.assertEqual(function(re.match(r"prog\+(0x\w+) keeps ", finding["description"])[1]), "keeps", screen)

    def test_the_device_is_named_where_a_process_has_several(self):
        with e2e.Recording(self.build(DEVICES, "-g", "-O0"), SIM_VRAM="8G", SIM_DEVICES="2") as run:
            screen, report = " ".join(self.screen(run).split()), run.report()
        self.assertRegex(screen, r"LEAK .* 40 of the 80 blocks that prog\.c:\d+ made were .*, 120 MiB\. It is on device 1\.")
        self.assertEqual([row["peak_bytes"] >> 20 for row in report["processes"][0]["memory"]], [400, 223])
        self.assertEqual(sorted((leak["device"], leak["bytes"] >> 20) for leak in report["leaks"] if leak["verdict"] == "live_at_exit"), [(0, 400), (1, 100)])

    def test_a_function_that_was_inlined_in_a_namespace_is_named_without_parameters(self):
        line = {text: number for number, text in enumerate(NAMESPACE.splitlines(), 1)}
        for compiler in filter(shutil.which, ("c++", "clang++")):  # only clang's DWARF has these functions below their namespace
            program = self.build(NAMESPACE, "-g", "-O1", "-Wno-everything" if "clang" in compiler else "-w", compiler=compiler)
            with self.subTest(compiler=compiler), e2e.Recording(program, SIM_VRAM="8G") as run:
                tree = subprocess.run([e2e.ANALYZE, "tree", run.traces], capture_output=True, text=True, check=True).stdout
                self.assertRegex(" ".join(tree.split()), r"300 MiB .*prog.cc:%d (?:scene::)?load\b" % line["\treturn new Mesh[(*parts)[1]];"])
                self.assertNotRegex(tree + self.screen(run), r"prog.cc:\d+ [\w:]*\(")

    def test_calls_that_a_compiler_made_of_one_line_are_one_leak(self):
        with e2e.Recording(self.build(UNROLLED, "-g", "-O0"), SIM_VRAM="8G") as run:
            report = run.report()
        [leak] = [leak for leak in report["leaks"] if "refine" in [frame["function"] for frame in leak["stack"]]]
        self.assertEqual((len(report["leaks"]), leak["blocks"]), (1, 200))
        self.assertEqual((leak["bytes"], leak["verdict"]), (leak["blocks"] * MIB, "growing"))
        self.assertIn("leak.growing", [finding["kind"] for finding in report["findings"]])

    def test_a_library_that_is_opened_again_at_another_place_leaks_as_one(self):
        plugins = [self.build(PLUGIN, "-g", "-O0", "-fPIC", "-shared", "-DSIZE=%d" % mib, name="%s.so" % name) for name, mib in (("one", 1), ("two", 3))]
        program = self.build(REOPENS, "-g", "-O0", "-D_GNU_SOURCE")
        for count in (1, 2):
            with self.subTest(plugins=count), e2e.Recording(program, *plugins[:count], SIM_VRAM="8G") as run:
                report, screen, (truth,) = run.report(), re.sub(r"\n +(?=\S)", " ", self.screen(run)), run.truth()
                leaks = [leak for leak in report["leaks"] if leak["verdict"] == "growing"]
                self.assertEqual(sorted((leak["blocks"], leak["bytes"]) for leak in leaks), [(80, 80 * mib * MIB) for mib in (1, 3)[:count]])
                self.assertEqual(sum(leak["bytes"] for leak in leaks), truth.memory["device", 0].live_bytes)
                for plugin, mib in (("one", 1), ("two", 3))[:count]:
                    self.assertRegex(screen, r"LEAK +%s.so.c:\d+ +keeps %d MiB of every pass" % (plugin, mib))
                    self.assertRegex(screen, r"all 80 blocks that %s.so.c:\d+ made were never freed, %d MiB" % (plugin, 80 * mib))

    def test_a_library_that_was_opened_by_a_relative_path_is_found(self):
        self.build(PLUGIN, "-g", "-O0", "-fPIC", "-shared", "-DSIZE=1", name="one.so")
        with e2e.Recording(self.build(REOPENS, "-g", "-O0", "-D_GNU_SOURCE"), "./one.so", cwd=self.folder, SIM_VRAM="8G") as run:
            self.assertRegex(" ".join(self.screen(run).split()), r"LEAK one.so.c:\d+ keeps .* all 80 blocks that \S+ made were never freed, 80 MiB")

    def test_what_lies_at_one_address_of_two_libraries_without_names_are_two_leaks(self):
        plugins = [self.build(PLUGIN, "-O0", "-fPIC", "-shared", "-s", "-DSIZE=%d" % mib, name="%s.so" % name) for name, mib in (("one", 1), ("two", 3))]
        with e2e.Recording(self.build(REOPENS, "-O0", "-s", "-D_GNU_SOURCE"), *plugins, SIM_VRAM="8G") as run:
            found = [one["bytes"] // MIB for one in run.report()["findings"] if one["kind"] == "leak.growing"]
        self.assertEqual(sorted(found), [80, 240])


if __name__ == "__main__":
    unittest.main()
