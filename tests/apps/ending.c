/* SPDX-License-Identifier: MIT */
/* ending exit|return|_exit|quick_exit|abort|segv|kill|dtor: one block freed, two live, then the end that was asked for. */
#include "gpu.h"

#include <signal.h>
#include <unistd.h>

static void *late;

__attribute__((destructor)) static void after_main(void)
{
	if (late)
		cudaFree(late); /* as a library's destructor that runs after all others */
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	void *p;
	OK(cudaMalloc(&p, MB));
	OK(cudaFree(p));
	OK(cudaMalloc(&p, 2 * MB));
	OK(cudaMalloc(&p, 3 * MB));
	if (!strcmp(how, "exit"))
		exit(3);
	if (!strcmp(how, "_exit"))
		_exit(4);
	if (!strcmp(how, "quick_exit"))
		quick_exit(5);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "dtor"))
		late = p;
	return 0;
}
