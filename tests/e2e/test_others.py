#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""
End to end: bugs that HAMi-core and UCX, which interpose the same calls, have had, one test each.  Tested elsewhere: names that
begin like hooked ones, RTLD_NEXT asked twice, dlsym of many threads (HAMi-core 215, 2903; tests/agent/hooks/lookups.c);
cuGetProcAddress by version, with per-thread streams and without a status (HAMi-core 36; test_lookups.py); outputs after a
failure and questions that fail (HAMi-core 313, 187, 188, 306; test_hard_cases.py); the plain cuDevicePrimaryCtxReset and memory of
pools (HAMi-core 72; test_journal.py); stdbuf beside us (test_invisible.py); an embedded runtime (UCX 6038; test_journal.py).
"""
import os
import platform
import subprocess
import sys
import tempfile
import unittest

import e2e
from e2e import Recording, differences, rows_of

TRAPS = os.path.join(e2e.HERE, "..", "apps", "traps.py")
MIB = 1 << 20

# A driver that looks up its own functions, as WSL2's does: it must find them and not the agent's wrappers.
DRIVER = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int cuMemAlloc_v2(unsigned long long *p, size_t n)
{
	static int depth;
	int (*found[2])(unsigned long long *, size_t) = {
		dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuMemAlloc_v2"), dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")};
	if (depth++)
		return 99;
	for (int i = 0; i < 2; i++)
		if (found[i] && found[i] != cuMemAlloc_v2)
			return 90 + i;
	*p = 0x1000 * n;
	depth--;
	return 0;
}
'''
CALLER = r'''
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
	int (*alloc)(unsigned long long *, unsigned long) = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAlloc_v2");
	unsigned long long p = 0;
	for (int i = 1; i < 4; i++)
	{
		int result = alloc(&p, i);
		printf("%d %llx\n", result, p);
	}
	return 0;
}
'''

# Like UCX's hooks by relocation: overwrites a function's GOT slot in every loaded object, the agent included.
RELOCATIONS = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int cudaMalloc(void **, size_t), cudaFree(void *);
static int (*malloc_before)(void **, size_t), (*free_before)(void *), mallocs, frees, maps;
static void *(*map_before)(void *, size_t, int, int, int, off_t);

static int on_malloc(void **p, size_t n)
{
	mallocs++;
	return malloc_before(p, n);
}

static int on_free(void *p)
{
	frees++;
	return free_before(p);
}

static void *on_map(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	__atomic_add_fetch(&maps, 1, __ATOMIC_RELAXED);
	return map_before(at, n, protection, flags, fd, offset);
}

static void patch(ElfW(Addr) base, const ElfW(Rela) *rela, size_t bytes, const ElfW(Sym) *symbols, const char *names)
{
	const struct {
		const char *name;
		void *hook;
	} hooks[] = {{"cudaMalloc", on_malloc}, {"cudaFree", on_free}, {"mmap", on_map}};

	for (; bytes >= sizeof(*rela); rela++, bytes -= sizeof(*rela)) {
		unsigned type = ELF64_R_TYPE(rela->r_info);
		const char *name = names + symbols[ELF64_R_SYM(rela->r_info)].st_name;
		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		for (int i = 0; i < 3; i++) {
			void **slot = (void **)(base + rela->r_offset);
			if (strcmp(name, hooks[i].name) || *slot == hooks[i].hook)
				continue;
			if (mprotect((void *)((unsigned long)slot & ~4095ul), 4096, PROT_READ | PROT_WRITE))
				continue;
			*slot = hooks[i].hook;
		}
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	const ElfW(Rela) *jumps = NULL, *rela = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	size_t jump_bytes = 0, rela_bytes = 0;
	if (strstr(info->dlpi_name, "ld-linux") || strstr(info->dlpi_name, "libc.so") || strstr(info->dlpi_name, "vdso"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag; d++) {
			void *at = (void *)d->d_un.d_ptr;
			switch (d->d_tag) {
			case DT_JMPREL: jumps = at; break;
			case DT_PLTRELSZ: jump_bytes = d->d_un.d_val; break;
			case DT_RELA: rela = at; break;
			case DT_RELASZ: rela_bytes = d->d_un.d_val; break;
			case DT_SYMTAB: symbols = at; break;
			case DT_STRTAB: names = at; break;
			}
		}
	}
	if (symbols && names) {
		patch(info->dlpi_addr, jumps, jumps ? jump_bytes : 0, symbols, names);
		patch(info->dlpi_addr, rela, rela ? rela_bytes : 0, symbols, names);
	}
	return 0;
}

int main(void)
{
	void *p[3];
	malloc_before = dlsym(RTLD_DEFAULT, "cudaMalloc");
	free_before = dlsym(RTLD_DEFAULT, "cudaFree");
	map_before = dlsym(RTLD_DEFAULT, "mmap");
	dl_iterate_phdr(visit, NULL);
	for (int i = 0; i < 3; i++)
		printf("%d\n", cudaMalloc(&p[i], (i + 1) << 20));
	printf("%d\n", cudaFree(p[1]));
	printf("seen %d %d\n", mallocs, frees);
	return 0;
}
'''


def compile(folder, name, source, *flags):
    path = os.path.join(folder, name)
    subprocess.run(["cc", "-w", "-O1", "-x", "c", "-", "-o", path, *flags], input=source.encode(), check=True)
    return path


def real_functions():
    """Offsets of functions in libcuda.so.1, by which they are called past every interposer."""
    done = subprocess.run(["nm", "-D", os.path.join(e2e.SIM, "libcuda.so.1")], capture_output=True, text=True, check=True)
    offsets = {line.split()[2]: line.split()[0] for line in done.stdout.splitlines() if len(line.split()) == 3}
    return ["%s=%s" % (name, offsets[name]) for name in ("cuMemAlloc_v2", "cuMemAllocAsync", "cuMemHostAlloc", "cuMemCreate")]


# Like torch_memory_saver: interposes cudaMalloc and finds the next one by RTLD_NEXT.
SAVER = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int cudaMalloc(void **p, size_t n)
{
	static int (*real)(void **, size_t);

	if (!real)
		real = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
	return real ? real(p, n) : 99;
}
'''
# A trainer sets LD_PRELOAD to the saver alone and starts its workers in several ways, some by fork, some by vfork or spawn.
TRAINER = r'''
import multiprocessing, os, subprocess, sys
worker, saver = sys.argv[1:3]
os.environ["LD_PRELOAD"] = saver
def run():
    os.execv(worker, [worker])
if __name__ == "__main__":
    subprocess.run([worker], check=True)
    subprocess.run([worker], check=True, preexec_fn=os.getpid)
    subprocess.run([worker], check=True, close_fds=False)
    os.waitpid(os.posix_spawn(worker, [worker], os.environ), 0)
    os.waitpid(os.spawnvp(os.P_NOWAIT, worker, [worker]), 0)
    process = multiprocessing.get_context("spawn").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == 0
'''


class Others(unittest.TestCase):
    maxDiff = None

    def trap(self, *what, **environment):
        """Run traps.py without and with the agent: answers must be equal.  Returns the recording."""
        with Recording("python3", TRAPS, *what, preload=False) as plain:
            run = Recording("python3", TRAPS, *what, **environment)
            self.addCleanup(run.__exit__)
            self.assertEqual((run.done.stdout, run.done.stderr), (plain.done.stdout, plain.done.stderr))
            self.assertTrue(plain.done.stdout)
        return run

    def process(self, run):
        process, = run.report()["processes"]
        return process

    def as_journalled(self, *what):
        run = self.trap(*what)
        process, truth = self.process(run), run.truth()[0]
        self.assertEqual(differences(process, truth, rows_of(run.traces)), [])
        return process

    def test_outputs_may_be_null(self):
        """HAMi-core 321, 333: OptiX asks cuMemGetInfo for only one of its two figures."""
        self.as_journalled("null_outputs")

    def test_outputs_may_be_null_below_a_limit(self):
        with Recording("python3", TRAPS, "null_outputs", preload=False) as plain, \
                Recording("python3", TRAPS, "null_outputs", STORMLOG_LIMIT="1G") as run:
            before, after = ([line.split() for line in done.stdout.decode().splitlines()] for done in (plain.done, run.done))
            self.assertEqual([line[::2] for line in before[:2]], [line[::2] for line in after[:2]])  # result codes
            self.assertEqual([line[1] for line in after[:2]], [str(1 << 30)] * 2)
            self.assertTrue(all(0 < int(line[3]) <= 1 << 30 for line in after[:2]))
            self.assertEqual(before[2], after[2])

    def test_memory_that_nobody_saw_is_freed(self):
        """HAMi-core 257, 67: it did not free memory that its table lacked, or its count became negative (200)."""
        process = self.process(self.trap("unseen", *real_functions()))
        self.assertEqual(process["unknown_frees"], 4)  # of five, one was refused
        for row in process["memory"]:
            self.assertEqual((row["frees"], row["live_blocks"], row["live_bytes"]), (0, 0, 0), row)

    def test_physical_memory_of_threads_without_a_context(self):
        """HAMi-core 187, 169; HAMi 2641: it asked for the device of a thread that has none, or took host memory for the device's."""
        process = self.as_journalled("without_context")
        self.assertEqual({(row["kind"], row["device"]): (row["allocations"], row["live_bytes"]) for row in process["memory"] if row["kind"] == "vmm"},
                         {("vmm", 1): (1, 0), ("vmm", None): (3, 4 * MIB)})

    def test_memory_of_a_graph_outlives_it_and_is_freed_by_cudafree(self):
        """HAMi-core 67 is about memory of graphs."""
        process = self.as_journalled("graph_freed")
        row, = [row for row in process["memory"] if row["kind"] == "graph"]
        # four allocations: two are freed by cudaFree, one by a launch that frees automatically; the last one stays
        self.assertEqual((row["allocations"], row["frees"], row["implicit_frees"], row["live_blocks"]), (4, 2, 1, 1))

    def test_attributes_of_pointers_are_the_drivers(self):
        """HAMi 2691: managed memory was reported as ordinary memory."""
        self.as_journalled("attributes")

    def test_rows_are_as_long_as_the_driver_made_them(self):
        """HAMi-core guesses the pitch from the size of an element."""
        self.as_journalled("pitches")

    def test_formats_of_arrays_that_no_table_has(self):
        """HAMi-core reads past the end of its table of 33 formats."""
        self.trap("formats")

    def test_handlers_of_signals_are_the_programs(self):
        """HAMi-core takes SIGUSR1 and SIGUSR2 away from the program."""
        self.assertEqual(self.trap("signals").done.stdout, b"True\n")

    def test_a_driver_that_looks_itself_up_finds_itself(self):
        """HAMi-core 326: WSL2's driver called the interposer again without end."""
        with tempfile.TemporaryDirectory() as folder:
            compile(folder, "libcuda.so.1", DRIVER, "-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libcuda.so.1", "-ldl")
            program = compile(folder, "caller", CALLER, "-ldl")
            for preload in (False, True):
                with self.subTest(preload=preload), Recording(program, preload=preload, LD_LIBRARY_PATH=folder) as run:
                    self.assertEqual(run.done.stdout, b"0 1000\n0 2000\n0 3000\n")
                    if preload:
                        row, = self.process(run)["memory"]
                        self.assertEqual((row["kind"], row["allocations"], row["allocated_bytes"]), ("device", 3, 6))

    @unittest.skipUnless(platform.machine() == "x86_64", "the relocations are x86-64's")
    def test_a_library_that_writes_over_relocations_of_every_object_sees_every_call_and_so_do_we(self):
        """UCX can hook by relocation or by patching code; the latter is in test_hard_cases.py."""
        with tempfile.TemporaryDirectory() as folder:
            program = compile(folder, "relocations", RELOCATIONS, "-L" + e2e.SIM, "-l:libcudart.so.13", "-ldl")
            with Recording(program, preload=False) as plain, Recording(program) as run:
                self.assertEqual(plain.done.stdout, b"0\n0\n0\n0\nseen 3 1\n")
                self.assertEqual((run.done.stdout, run.done.stderr), (plain.done.stdout, plain.done.stderr))
                row, = [row for row in self.process(run)["memory"] if row["kind"] == "device"]
                self.assertEqual((row["allocations"], row["frees"], row["live_bytes"]), (3, 1, 4 * MIB))


class Children(unittest.TestCase):
    """Programs whose parent has set or removed LD_PRELOAD since its own start."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.saver = os.path.join(folder.name, "saver.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.saver, "-x", "c", "-", "-ldl"], input=SAVER.encode(), check=True)
        self.trainer = os.path.join(folder.name, "trainer.py")
        with open(self.trainer, "w") as file:
            file.write(TRAINER)

    def test_workers_of_a_trainer_that_replaces_it_are_recorded_once(self):
        worker = os.path.join(e2e.APPS, "runtime12")
        with Recording(sys.executable, self.trainer, worker, self.saver) as run:
            wrong, report = e2e.equal_to_journal(run, threads=3)
            self.assertEqual((wrong, len(report["processes"])), ([], 6))

    def test_both_are_in_a_worker_and_ours_is_there_once(self):
        for before, count in ((self.saver, 1), (e2e.PRELOAD + ":" + self.saver, 1), (self.saver + " " + e2e.PRELOAD, 1)):
            shown = "import re; print(sorted(set(re.findall(r'(saver|libstormlog_preload)[.]so', open('/proc/self/maps').read()))), os.environ['LD_PRELOAD'])"
            code = "import os, subprocess, sys; os.environ['LD_PRELOAD'] = %r; subprocess.run([sys.executable, '-c', %r], check=True)" % (before, "import os, " + shown[7:])
            with Recording(sys.executable, "-c", code) as run:
                seen, _, preload = run.done.stdout.decode().strip().partition("] ")
                self.assertEqual(seen, "['libstormlog_preload', 'saver'")
                self.assertEqual(preload.count("libstormlog_preload.so"), count)

    def test_they_are_in_a_worker_that_has_many_variables_where_the_stack_has_the_room(self):
        """A thread's stack of 256 KiB has none for 31 000 more: its worker is not recorded, and that is said."""
        worker = os.path.join(e2e.APPS, "runtime12")
        vfork, fork = "subprocess.run([worker], env=them, check=True)", "subprocess.run([worker], env=them, check=True, preexec_fn=os.getpid)"
        spawn = "os.waitpid(os.posix_spawn(worker, [worker], them), 0)"
        for way, many, stack, recorded in ((vfork, 1100, 0, 2), (vfork, 31000, 0, 2), (fork, 31000, 0, 2), (spawn, 31000, 0, 2),
                                           (vfork, 31000, 256, 1), (spawn, 31000, 256, 1), (vfork, 34000, 0, 1)):
            code = ("import ctypes, os, subprocess, threading\nctypes.CDLL('libcudart.so.13').cudaFree(None)\n"
                    "worker, them = %r, dict(os.environ, LD_PRELOAD=%r)\nthem.update(('V%%d' %% i, '') for i in range(%d))\n"
                    "threading.stack_size(%d << 10)\nthread = threading.Thread(target=lambda: %s)\nthread.start()\nthread.join()\n")
            with self.subTest(way=way, many=many, stack=stack), Recording(sys.executable, "-c", code % (worker, self.saver, many, stack, way)) as run:
                processes = run.report()["processes"]
                notes = [note for process in processes for note in process["capabilities"]["notes"] if "more variables" in note]
                self.assertEqual((run.done.stderr, len(processes), len(notes)), (b"", recorded, 2 - recorded))

    def test_without_it_a_note_says_so_and_a_program_that_wants_none_has_none(self):
        for change, noted in (("del environment['LD_PRELOAD']", 1), ("environment['STORMLOG_DISABLE'] = '1'; environment['LD_PRELOAD'] = %r" % self.saver, 0),
                              ("environment.clear()", 0)):
            code = ("import ctypes, os, subprocess\nctypes.CDLL('libcudart.so.13').cudaFree(None)\nenvironment = dict(os.environ)\n%s\n"
                    "for i in range(3): print(subprocess.run(['/usr/bin/env'], env=environment, capture_output=True, text=True).stdout)" % change)
            with self.subTest(change), Recording(sys.executable, "-c", code) as run:
                self.assertNotIn("libstormlog", run.done.stdout.decode().replace("NVTX_INJECTION64_PATH=" + e2e.PRELOAD, ""))
                notes = run.report()["processes"][0]["capabilities"]["notes"]
                self.assertEqual(sum("LD_PRELOAD" in note for note in notes), noted, notes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
