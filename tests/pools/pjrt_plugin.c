/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for a PJRT plugin with a pool on the simulated GPU.  It writes a journal of the arrays that it gives and takes back.
 * It uses no header: every struct that it needs consists of words of eight bytes, which it addresses by number.
 *
 * POOLS_PLUGIN=mapped: a pool made by cuMemCreate and cuMemMap, as XLA's is on CUDA; old: says version 0.56; lacks: has no function
 * that tells whether an array was deleted; short: has a table that ends before that function.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "journal.h"

#define MIB	  ((uint64_t)1 << 20)
#define POOL	  (64 * MIB)
#define CONSTANTS 1024

int cudaMalloc(void **pointer, size_t bytes);
int cudaSetDevice(int device);
int cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags);
int cuMemCreate(uint64_t *handle, size_t bytes, const void *prop, unsigned long long flags);
int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemRelease(uint64_t handle);

struct array {
	uint64_t bytes, dims[2], rank;
	int deleted;
};
struct program {
	const char *name;
	uint64_t outputs, donated, temporaries;
	uint64_t dims[4];
};

static uint64_t in_use;
static void *pool;
static int device;

/* CUmemAllocationProp: pinned, of device 0. */
static int map_pool(void)
{
	const struct {
		int type, handles, location, ordinal;
		void *security;
		unsigned char flags[8];
	} prop = {.type = 1, .location = 1};
	uint64_t address, handle;

	pool = &device;
	return cudaSetDevice(0) || cuMemAddressReserve(&address, POOL, 0, 0, 0) || cuMemCreate(&handle, POOL, &prop, 0) ||
	       cuMemMap(address, POOL, 0, handle, 0) || cuMemRelease(handle);
}

static int make_pool(void)
{
	const char *how = getenv("POOLS_PLUGIN");

	return how && !strcmp(how, "mapped") ? map_pool() : cudaMalloc(&pool, POOL);
}

static struct array *new_array(const char *how, const uint64_t *dims, uint64_t rank)
{
	struct array *array = calloc(1, sizeof(*array));

	array->bytes = 4;
	array->rank = rank;
	for (uint64_t i = 0; i < rank; i++)
		array->bytes *= array->dims[i] = dims[i];
	if (!pool && make_pool())
		abort();
	in_use += (array->bytes + 255) & ~(uint64_t)255;
	if (in_use > POOL)
		abort();
	journal("array %p %" PRIu64 " %s f32[%" PRIu64 "%s", (void *)array, array->bytes, how, dims[0], rank > 1 ? "," : "]\n");
	if (rank > 1)
		journal("%" PRIu64 "]\n", dims[1]);
	return array;
}

static void end(struct array *array)
{
	if (array->deleted++)
		return;
	in_use -= (array->bytes + 255) & ~(uint64_t)255;
	journal("gone %p\n", (void *)array);
}

static void *fails(uint64_t *args)
{
	(void)args;
	return &device;
}

static void *nothing(uint64_t *args)
{
	(void)args;
	return NULL;
}

/* An error as PJRT hands it out: one for want of memory, of the bytes that were asked for. */
static char refusal[128];

static void *error_message(uint64_t *args)
{
	args[3] = (uintptr_t)refusal;
	args[4] = strlen(refusal);
	return NULL;
}

static void *error_code(uint64_t *args)
{
	*(int *)&args[3] = args[2] == (uintptr_t)refusal ? 8 : 12; /* RESOURCE_EXHAUSTED, UNIMPLEMENTED */
	return NULL;
}

static void *from_host(uint64_t *args)
{
	uint64_t bytes = 4;

	for (uint64_t i = 0; i < args[6]; i++)
		bytes *= ((const uint64_t *)args[5])[i];
	if (bytes > POOL) {
		snprintf(refusal, sizeof(refusal), "RESOURCE_EXHAUSTED: Out of memory while trying to allocate %.2fMiB.",
			 (double)bytes / (1 << 20));
		journal("refused %" PRIu64 "\n", bytes);
		return refusal;
	}
	args[14] = (uintptr_t)new_array("host", (const uint64_t *)args[5], args[6]);
	return NULL;
}

/* A view has no memory of its own, so the journal has neither it nor its end. */
static void *view(uint64_t *args)
{
	struct array *array = calloc(1, sizeof(*array));

	array->deleted = 1;
	args[12] = (uintptr_t)array;
	return NULL;
}

static void *destroy(uint64_t *args)
{
	end((struct array *)args[2]);
	free((void *)args[2]);
	return NULL;
}

static void *delete_array(uint64_t *args)
{
	end((struct array *)args[2]);
	return NULL;
}

static void *execute(uint64_t *args)
{
	const struct program *program = (const struct program *)args[2];
	struct array *const *arguments = *(struct array *const *const *)args[4];
	struct array **outputs = *(struct array * *const *)args[7];
	char how[64];

	for (uint64_t i = 0; i < program->donated && i < args[6]; i++)
		end(arguments[i]);
	for (uint64_t i = 0; i < program->outputs; i++) {
		snprintf(how, sizeof(how), "%s#%" PRIu64, program->name, i);
		outputs[i] = new_array(how, &program->dims[2 * i], 2);
	}
	return NULL;
}

/* "compile": the program is the struct itself; its constants lie in the pool. */
static void *compile(uint64_t *args)
{
	in_use += CONSTANTS;
	args[6] = args[3];
	return NULL;
}

static void *get_executable(uint64_t *args)
{
	args[3] = args[2];
	return NULL;
}

static void *executable_name(uint64_t *args)
{
	const struct program *program = (const struct program *)args[2];

	args[3] = (uintptr_t)program->name;
	args[4] = strlen(program->name);
	return NULL;
}

static void *outputs_of(uint64_t *args)
{
	args[3] = ((const struct program *)args[2])->outputs;
	return NULL;
}

static void *compiled_stats(uint64_t *args)
{
	const struct program *program = (const struct program *)args[2];

	memset(&args[3], 0, 10 * sizeof(*args));
	args[6] = program->donated ? 4 : 0;
	args[7] = program->temporaries;
	return NULL;
}

static void *element_type(uint64_t *args)
{
	args[3] = 11; /* f32 */
	return NULL;
}

static void *dimensions(uint64_t *args)
{
	const struct array *array = (const struct array *)args[2];

	args[3] = (uintptr_t)array->dims;
	args[4] = array->rank;
	return NULL;
}

static void *size_of_array(uint64_t *args)
{
	args[3] = ((const struct array *)args[2])->bytes;
	return NULL;
}

static void *device_of(uint64_t *args)
{
	args[3] = (uintptr_t)&device;
	return NULL;
}

static void *is_deleted(uint64_t *args)
{
	*(char *)&args[3] = ((const struct array *)args[2])->deleted != 0;
	return NULL;
}

static void *is_on_cpu(uint64_t *args)
{
	*(char *)&args[3] = 0;
	return NULL;
}

static void *hardware_id(uint64_t *args)
{
	*(int *)&args[3] = 0;
	return NULL;
}

static void *memory_stats(uint64_t *args)
{
	args[3] = in_use;
	journal("stats %" PRIu64 "\n", in_use);
	args[4] = in_use; /* peak_bytes_in_use, and that it is set */
	*(char *)&args[5] = 1;
	args[10] = POOL; /* bytes_limit */
	*(char *)&args[11] = 1;
	args[20] = POOL; /* pool_bytes, and pool_bytes_is_set */
	*(char *)&args[21] = 1;
	return NULL;
}

const void *GetPjrtApi(void);
const void *GetPjrtApi(void)
{
	static uint64_t table[5 + 120];
	const char *how = getenv("POOLS_PLUGIN");
	static const struct {
		unsigned slot;
		void *(*function)(uint64_t *);
	} functions[] = {{0, nothing},	    {1, error_message},	  {2, error_code},     {20, compile},	      {22, from_host},
			 {31, hardware_id}, {34, memory_stats},	  {40, nothing},       {41, executable_name}, {44, outputs_of},
			 {50, nothing},	    {51, get_executable}, {55, execute},       {58, destroy},	      {59, element_type},
			 {60, dimensions},  {64, size_of_array},  {65, device_of},     {67, delete_array},    {68, is_deleted},
			 {71, is_on_cpu},   {93, view},		  {96, compiled_stats}};

	how = how ? how : "";
	if (table[0])
		return table;
	table[2] = 24;
	*((int *)&table[4] + 1) = strcmp(how, "old") ? 116 : 56;
	for (unsigned i = 0; i < 120; i++)
		table[5 + i] = (uintptr_t)fails;
	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		table[5 + functions[i].slot] = (uintptr_t)functions[i].function;
	if (!strcmp(how, "lacks"))
		table[5 + 68] = 0;
	table[0] = !strcmp(how, "short") ? (5 + 60) * 8 : sizeof(table);
	return table;
}
