/* SPDX-License-Identifier: MIT */
/*
 * make_blocks FOLDER N: the trace of a PyTorch program with one segment of 20 MiB, in which N blocks are made and freed.  At the
 * end there is 1 MiB in use at the segment's beginning, and 2 MiB behind a gap of 1 MiB, which a variable holds.
 */
#include <stdlib.h>

#include "tests/analyzer/synth.h"

#define MIB	(1ull << 20)
#define SEGMENT 0x7f2000000000ull

int main(int argc, char **argv)
{
	struct sl_synth *s;
	unsigned stack, label;
	static const char *const functions[] = {"forward", "<module>"};

	if (argc != 3)
		return 2;
	s = synth_new(argv[1], -1, 77);
	stack = synth_python(s, 2, functions, "/home/me/model.py", 10);
	label = synth_text(s, "step_#");
	synth_module(s, 0x7f0000000000, 0x7f0000100000, "/usr/lib/libc10_cuda.so");
	synth_call(s, 1, "cudaMalloc", .address = SEGMENT, .bytes = 20 * MIB, .device = 0, .caller = 0x7f0000000100,
		   .python = stack);
	synth_call(s, 1, "block_alloc", .address = SEGMENT, .bytes = MIB, .device = 0, .extra = MIB, .extra2 = 20 * MIB,
		   .python = stack);
	for (unsigned i = 0; i < (unsigned)atoi(argv[2]); i++) {
		uint64_t at = SEGMENT + MIB + (i % 16) * MIB;

		synth_call(s, 1, "range_push", .label = label, .extra = i);
		synth_call(s, 1, "block_alloc", .address = at, .bytes = MIB, .device = 0, .extra = 2 * MIB, .extra2 = 20 * MIB,
			   .python = stack, .label = label);
		synth_call(s, 1, "block_free", .address = at, .bytes = MIB, .device = 0, .extra = MIB, .extra2 = 20 * MIB);
		synth_call(s, 1, "range_pop");
	}
	synth_call(s, 1, "block_alloc", .address = SEGMENT + 2 * MIB, .bytes = 2 * MIB, .device = 0, .extra = 3 * MIB,
		   .extra2 = 20 * MIB, .python = stack);
	label = synth_text(s, "Meter.secrets[*].hidden\tattribute\tlist\t/home/me/model.py:10 forward");
	synth_call(s, 1, "stormlog_hold", .address = SEGMENT + 2 * MIB, .bytes = 2 * MIB, .label = label, .extra = 1);
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}
