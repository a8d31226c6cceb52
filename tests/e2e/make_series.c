/* SPDX-License-Identifier: MIT */
/*
 * make_series FOLDER rises|kept|level|turns: a program that works evenly, which no program does on a busy machine.  60 times in 300 ms
 * it makes a block of 3 MiB beside the 20 it has (rises; frees all at the end, or keeps them), does nothing with 500 MiB (level), or frees
 * the block of the turn before it.
 */
#include <string.h>

#include "tests/analyzer/synth.h"

#define MIB   (1ull << 20)
#define TURNS 60
#define TURN_NS 5000000ull

static struct sl_synth *s;
static unsigned stack;

static void make(unsigned block, uint64_t mib, uint64_t at_ns)
{
	synth_call(s, 1, "cudaMalloc", .address = 0x700000000000 + block * 1024 * MIB, .bytes = mib * MIB, .device = 0,
		.python = stack, .time_ns = SYNTH_START_NS + at_ns, .duration_ns = 100);
}

static void give_back(unsigned block, uint64_t at_ns)
{
	synth_call(s, 1, "cudaFree", .address = 0x700000000000 + block * 1024 * MIB, .device = 0,
		.time_ns = SYNTH_START_NS + at_ns, .duration_ns = 100);
}

int main(int argc, char **argv)
{
	static const char *const functions[] = {"allocate", "<module>"};
	const char *how = argc == 3 ? argv[2] : "";
	bool level = !strcmp(how, "level"), turns = !strcmp(how, "turns"), kept = !strcmp(how, "kept");

	if (!level && !turns && !kept && strcmp(how, "rises"))
		return 2;
	s = synth_new(argv[1], -1, 77);
	stack = synth_python(s, 2, functions, "/home/me/work.py", 10);
	make(0, level ? 500 : 20, 0);
	for (unsigned i = 1; i <= TURNS && !level; i++) {
		make(i, 3, i * TURN_NS);
		if (turns && i > 1)
			give_back(i - 1, i * TURN_NS + 1000);
	}
	for (unsigned i = 0; i <= (level ? 0 : TURNS) && !kept; i++)
		if (i == 0 || i == TURNS || !turns)
			give_back(i, (TURNS + 2) * TURN_NS + i * 1000);
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}
