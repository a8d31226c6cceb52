/* SPDX-License-Identifier: MIT */
/* foreign CASE [NUMBER]: programs that are at odds with a recorder beside them; one case each, named in test_foreign.py. */
#include "gpu.h"
#include "late_free.h"

#include <unistd.h>

/* The blocks live until the end, and are freed by a small thread after it. */
static int late(int stack)
{
	late_free((size_t)stack);
	usleep(100000); /* the writer has seen them */
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int number);
	} cases[] = {{"late", late}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc > 1 && !strcmp(argv[1], cases[i].name))
			return cases[i].run(argc > 2 ? atoi(argv[2]) : 0);
	return 2;
}
