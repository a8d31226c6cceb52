/* SPDX-License-Identifier: MIT */
/*
 * The work of a program whose files are compiled with -fsanitize-coverage=trace-pc: how many stretches of straight code it ran
 * through, and how much it moved, in lines of 64 bytes.  The same in every run, however busy the machine is; what else the C
 * library does inside of a call is not in it.
 */
#include <inttypes.h>
#include <stdio.h>

static uint64_t work;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	work++; /* of one thread: -j 1 */
}

void *__real_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size)
{
	work += size / 64;
	return __real_memmove(to, from, size);
}

static void __attribute__((destructor)) say(void)
{
	fprintf(stderr, "work %" PRIu64 "\n", work);
}
