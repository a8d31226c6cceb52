/* SPDX-License-Identifier: MIT */
/* make_demo_trace FOLDER [MORE]: a small run with a leak, a growing step, an OOM and a killed rank; MORE processes like the first. */
#include <stdio.h>
#include <stdlib.h>

#include "synth.h"

static void rank(const char *folder, int rank, int pid, bool killed)
{
	struct sl_synth *s = synth_new_run(folder, rank, pid, "demo", rank ? "GPU-1" : "GPU-0");
	static const char *const step[] = {"forward", "train_step", "<module>"}, *const leak[] = {"remember", "train_step",
												  "<module>"};
	unsigned work = synth_python(s, 3, step, "/home/me/train.py", 88), kept = synth_python(s, 3, leak, "/home/me/train.py", 97);
	unsigned label = synth_text(s, "step_#");
	uint64_t free_bytes = 16ull << 30;

	synth_module(s, 0x7f0000000000, 0x7f0000100000, "/usr/lib/libcublas.so.13");
	synth_module(s, 0x400000, 0x500000, "/usr/bin/python3.11");
	synth_call(s, 1, "cudaMalloc", .address = 0x900000000, .bytes = 200 << 20, .device = 0, .caller = 0x7f0000000100);
	for (unsigned i = 0; i < 100; i++) {
		synth_call(s, 1, "range_push", .label = label, .extra = i);
		synth_call(s, 1, "cudaMalloc", .address = 0x100000000, .bytes = 64 << 20, .device = 0, .python = work,
			   .caller = 0x400100, .label = label);
		synth_call(s, 1, "cudaMalloc", .address = 0x200000000 + i * 0x1000000ull, .bytes = 2 << 20, .device = 0,
			   .python = kept, .caller = 0x400200, .label = label);
		synth_sample(s, SYNTH_START_NS + 4000 * i, 0, (600ull << 20) + i * (2ull << 20), free_bytes);
		synth_call(s, 1, "cudaFree", .address = 0x100000000, .device = 0);
		synth_call(s, 1, "range_pop");
	}
	if (killed) {
		synth_flush(s);
		synth_call(s, 1, "cudaMalloc", .bytes = 20ull << 30, .device = 0, .python = work, .caller = 0x400100, .result = 2);
		synth_in_flight(s, 1, "cudaMalloc", (struct sl_event){.bytes = 1 << 30, .device = 0, .python = work});
	}
	synth_close(s, killed ? SYNTH_KILLED : SYNTH_COMPLETED);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	rank(argv[1], 0, 4242, false);
	rank(argv[1], 1, 4243, true);
	for (int more = argc > 2 ? atoi(argv[2]) : 0; more; more--)
		rank(argv[1], 0, 9000 + more, false);
	return 0;
}
