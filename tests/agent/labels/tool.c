/* SPDX-License-Identifier: MIT */
/*
 * A tool that the user has injected: it knows some of NVTX's calls, counts them, and has return values of its
 * own.  At the end it writes what it saw to the descriptor that TOOL_FD names.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef const void *export_table(uint32_t id);

struct callbacks {
	size_t size;
	int (*module_table)(int module, void ****table, unsigned *count);
};

static unsigned objects, pushes, pops, domains;

static int push(const char *message)
{
	pushes++;
	return 1000;
}

static int pop(void)
{
	pops++;
	return 2000;
}

static void *create(const char *name)
{
	domains++;
	return &domains;
}

static int domain_push(const void *domain, const void *attributes)
{
	pushes += domain == &domains;
	return 3000;
}

static uint64_t start(const char *message)
{
	return 77;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(export_table *get);
int InitializeInjectionNvtx2(export_table *get)
{
	const struct callbacks *callbacks = get(1);
	void ***table;
	unsigned count;

	objects++;
	callbacks->module_table(1, &table, &count);
	*table[5] = (void *)start;
	*table[9] = (void *)push;
	*table[11] = (void *)pop;
	callbacks->module_table(5, &table, &count);
	*table[4] = (void *)domain_push;
	*table[12] = (void *)create;
	return 1;
}

__attribute__((destructor)) static void tell(void)
{
	if (objects && getenv("TOOL_FD"))
		dprintf(atoi(getenv("TOOL_FD")), "%u %u %u %u", objects, pushes, pops, domains);
}
