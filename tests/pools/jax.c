/* SPDX-License-Identifier: MIT */
/*
 * jax PLUGIN [cost|refused]: calls the plugin's table (GetPjrtApi) as JAX's training steps do.  Weights come from the host; each step
 * takes them over (donation) and returns new ones.  One array has a view.  cost: prints the cost of a host array and of a step.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ERROR_CODE = 2, COMPILE = 20, FROM_HOST = 22, EXECUTE = 55, DESTROY = 58, VIEW = 93 };

struct program {
	const char *name;
	uint64_t outputs, donated, temporaries;
	uint64_t dims[4];
};

static const uint64_t *table;

static void call(unsigned slot, uint64_t *args, unsigned words)
{
	args[0] = words * 8;
	if (((void *(*)(uint64_t *))table[5 + slot])(args))
		abort();
}

static uint64_t from_host(uint64_t rows, uint64_t columns)
{
	uint64_t dims[] = {rows, columns}, args[15] = {0, 0, 0, 0, 11, (uintptr_t)dims, 2};

	call(FROM_HOST, args, 15);
	return args[14];
}

/* Asks for more than the pool may hold, and twice for the code of the error, as JAX does for each array that waits. */
static int be_refused(void)
{
	uint64_t dims[] = {8192, 4096}, args[15] = {15 * 8, 0, 0, 0, 11, (uintptr_t)dims, 2}, code[4] = {28};

	code[2] = (uint64_t)(uintptr_t)((void *(*)(uint64_t *))table[5 + FROM_HOST])(args);
	for (int i = 0; i < 2; i++)
		((void *(*)(uint64_t *))table[5 + ERROR_CODE])(code);
	return (code[3] & UINT32_MAX) == 8;
}

static void destroy(uint64_t array)
{
	uint64_t args[3] = {0, 0, array};

	call(DESTROY, args, 3);
}

static uint64_t view(uint64_t array)
{
	uint64_t args[14] = {0, 0, 0, array};

	call(VIEW, args, 14);
	return args[12];
}

static uint64_t compile(const struct program *program)
{
	uint64_t args[7] = {0, 0, 0, (uintptr_t)program};

	call(COMPILE, args, 7);
	return args[6];
}

static void execute(uint64_t executable, uint64_t *arguments, uint64_t count, uint64_t *outputs)
{
	uint64_t *argument_lists[] = {arguments}, *output_lists[] = {outputs};
	uint64_t args[10] = {0, 0, executable, 0, (uintptr_t)argument_lists, 1, count, (uintptr_t)output_lists};

	call(EXECUTE, args, 10);
}

static double ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The best of some rounds: a recording is slower in its first tenth of a second. */
static void cost(uint64_t forward, uint64_t *arguments)
{
	enum { ROUNDS = 20, TIMES = 20000 };
	double arrays = 1e9, steps = 1e9;
	uint64_t output[2];

	for (unsigned round = 0; round < ROUNDS; round++) {
		double begin = ns(), middle, end;

		for (unsigned i = 0; i < TIMES; i++)
			destroy(from_host(16, 16));
		middle = ns();
		for (unsigned i = 0; i < TIMES; i++) {
			execute(forward, arguments, 3, output);
			destroy(output[0]);
		}
		end = ns();
		arrays = middle - begin < arrays ? middle - begin : arrays;
		steps = end - middle < steps ? end - middle : steps;
	}
	printf("%.1f %.1f\n", arrays / TIMES, steps / TIMES);
}

int main(int argc, char **argv)
{
	static const struct program step = {"jit_step", 2, 2, 1 << 20, {1024, 5120, 5120, 1024}},
				    forward = {"jit_forward", 1, 0, 1 << 20, {1024, 3072}};
	static const struct timespec long_enough = {0, 12000000}; /* after which the agent asks again what the pool holds */
	void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	const void *(*get)(void) = plugin ? (const void *(*)(void))dlsym(plugin, "GetPjrtApi") : NULL;
	uint64_t arguments[3], outputs[2], train, evaluate;

	if (!get || !(table = get()) || get() != table)
		return 1;
	arguments[0] = from_host(1024, 5120); /* 20 MiB */
	arguments[1] = from_host(5120, 1024);
	arguments[2] = from_host(2047, 1200);
	train = compile(&step);
	evaluate = compile(&forward);
	if (argc > 2 && !strcmp(argv[2], "refused"))
		return be_refused();
	if (argc > 2 && !strcmp(argv[2], "cost")) {
		cost(evaluate, arguments);
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		nanosleep(&long_enough, NULL);
		execute(train, arguments, 3, outputs);
		destroy(arguments[0]);
		destroy(arguments[1]);
		memcpy(arguments, outputs, sizeof(outputs));
	}
	nanosleep(&long_enough, NULL);
	execute(evaluate, arguments, 3, outputs); /* 12 MiB: the peak */
	destroy(view(outputs[0]));
	destroy(outputs[0]);
	destroy(arguments[2]);
	puts("trained");
	return 0;
}
