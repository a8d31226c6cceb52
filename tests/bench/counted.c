/* SPDX-License-Identifier: MIT */
/*
 * The work of a program whose files are compiled with -fsanitize-coverage=trace-pc: how many stretches of straight code it ran
 * through.  The same in every run, however busy the machine is; what the C library does inside of a call is not in it.
 */
#include <inttypes.h>
#include <stdio.h>

static uint64_t work;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	work++; /* of one thread: -j 1 */
}

static void __attribute__((destructor)) say(void)
{
	fprintf(stderr, "work %" PRIu64 "\n", work);
}
