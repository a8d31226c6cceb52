/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for TensorFlow's allocator: one region of the simulated GPU, blocks one after the other, functions by their mangled
 * names and called through a table of pointers as virtual functions are.  It writes a journal of its blocks.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cudaMalloc(void **pointer, size_t bytes);

struct allocator;
void *allocate(struct allocator *, size_t, size_t,
	       const void *) __asm__("_ZN3tsl12BFCAllocator11AllocateRawEmmRKNS_20AllocationAttributesE");
void deallocate(struct allocator *, void *) __asm__("_ZN3tsl12BFCAllocator13DeallocateRawEPv");

struct table {
	void *(*allocate)(struct allocator *, size_t, size_t, const void *);
	void (*deallocate)(struct allocator *, void *);
};
extern const struct table bfc_table;
const struct table bfc_table = {allocate, deallocate};

static char *region;
static size_t used;

static FILE *journal(void)
{
	static FILE *file;

	if (!file)
		file = fopen(getenv("POOLS_JOURNAL") ? getenv("POOLS_JOURNAL") : "/dev/null", "w");
	return file;
}

void *allocate(struct allocator *self, size_t alignment, size_t bytes, const void *attributes)
{
	char *block;

	(void)self, (void)attributes;
	if (!region && cudaMalloc((void **)&region, (size_t)64 << 20))
		return NULL;
	used = (used + alignment - 1) / alignment * alignment;
	block = region + used;
	used += bytes;
	fprintf(journal(), "block %p %zu\n", (void *)block, bytes);
	fflush(journal());
	return block;
}

void deallocate(struct allocator *self, void *block)
{
	(void)self;
	fprintf(journal(), "free %p\n", block);
	fflush(journal());
}
