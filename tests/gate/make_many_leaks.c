/* SPDX-License-Identifier: MIT */
/* make_many_leaks FOLDER N: the trace of a process that leaks at N places. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/analyzer/synth.h"

int main(int argc, char **argv)
{
	struct sl_synth *s;

	if (argc != 3)
		return 2;
	s = synth_new(argv[1], 0, 4242);
	for (unsigned i = 0; i < (unsigned)atoi(argv[2]); i++) {
		char name[64];
		const char *functions[] = {name, "train_step|with*marks<>", "<module>"};

		snprintf(name, sizeof(name), "place_%u", i);
		synth_call(s, 1, "cudaMalloc", .address = 0x100000000 + i * 0x1000ull, .bytes = 512, .device = 0,
			   .python = synth_python(s, 3, functions, "/home/me/train.py", i + 1));
	}
	synth_close(s, SYNTH_COMPLETED);
	return 0;
}
