/* SPDX-License-Identifier: MIT */
/*
 * Where device memory lies. PyTorch's allocator takes, of two free blocks of one size, the one with the lower address, so the
 * order of addresses decides what it splits. As recorded on an H200 (driver 580.159.04): blocks of 2 MiB and more go into the
 * lowest hole that fits. The first holes are 2 and 24 MiB beside the context; then comes one region of 414 MiB; after it each
 * request that finds no hole opens a chunk of whole 32 MiB below the one before. Smaller blocks share pages elsewhere.
 *
 * Behind each address is memory of the host that takes no room until it is written (contents.c).
 */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <sys/mman.h>

#define MIB	      (1ull << 20)
#define VA_BASE	      0x200000000000ull /* Linux places no mapping there by itself */
#define VA_PER_DEVICE (1ull << 40)
#define LARGE	      (2 * MIB)
#define CHUNK	      (32 * MIB)

enum { CLASSES = 22 }; /* powers of two below LARGE */

struct hole {
	uint64_t at, size;
	struct hole *next;
};

static struct place {
	struct hole *holes; /* by address, no two adjacent */
	uint64_t low;	    /* the lowest chunk */
	bool begun, region_used;
	uint64_t small_used, small_mapped;
	struct hole *small[CLASSES]; /* freed small blocks */
} places[SIM_MAX_DEVICES];

void sim_va_back(uint64_t address, uint64_t bytes)
{
	mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static struct hole *new_hole(uint64_t at, uint64_t size, struct hole *next)
{
	struct hole *hole = malloc(sizeof(*hole));

	if (hole)
		*hole = (struct hole){at, size, next};
	return hole;
}

/* Joins a hole with the one behind it where they touch. */
static void join(struct hole *hole)
{
	struct hole *next = hole ? hole->next : NULL;

	if (!next || hole->at + hole->size != next->at)
		return;
	hole->size += next->size;
	hole->next = next->next;
	free(next);
}

static void add(struct place *place, uint64_t at, uint64_t size)
{
	struct hole *before = NULL, *next = place->holes;

	for (; next && next->at < at; next = next->next)
		before = next;
	next = new_hole(at, size, next);
	if (!next)
		return;
	*(before ? &before->next : &place->holes) = next;
	join(next);
	join(before);
}

static uint64_t take(struct place *place, uint64_t size)
{
	for (struct hole **link = &place->holes; *link; link = &(*link)->next) {
		struct hole *hole = *link;
		uint64_t at = hole->at;

		if (hole->size < size)
			continue;
		hole->at += size;
		hole->size -= size;
		if (!hole->size) {
			*link = hole->next;
			free(hole);
		}
		return at;
	}
	return 0;
}

static uint64_t take_large(struct place *place, uint64_t base, uint64_t size)
{
	uint64_t top = base + VA_PER_DEVICE / 4 * 3, at;

	if (!place->begun) {
		add(place, top, 2 * MIB);
		add(place, top + 74 * MIB, 24 * MIB);
		place->low = top - 1290 * MIB;
		place->begun = true;
	}
	if ((at = take(place, size)))
		return at;
	if (!place->region_used) {
		place->region_used = true;
		add(place, top - 414 * MIB, 414 * MIB);
		if ((at = take(place, size)))
			return at;
	}
	size = sim_round_up(size, CHUNK);
	if (place->low - base < size + VA_PER_DEVICE / 4)
		return 0;
	place->low -= size;
	add(place, place->low, size);
	return take(place, size);
}

static int class_of(uint64_t bytes)
{
	int class = 9; /* 512 bytes: the driver's alignment */

	while ((1ull << class) < bytes)
		class ++;
	return class;
}

static uint64_t take_small(struct place *place, uint64_t base, uint64_t bytes)
{
	struct hole **freed = &place->small[class_of(bytes)], *hole = *freed;
	uint64_t size = 1ull << class_of(bytes), at;

	if (hole) {
		at = hole->at;
		*freed = hole->next;
		free(hole);
		return at;
	}
	at = sim_round_up(place->small_used ? place->small_used : size, size);
	if (at + size > VA_PER_DEVICE / 4)
		return 0;
	for (; place->small_mapped < at + size; place->small_mapped += CHUNK)
		sim_va_back(base + place->small_mapped, CHUNK);
	place->small_used = at + size;
	return base + at;
}

uint64_t sim_va_take(int device, uint64_t bytes)
{
	uint64_t base = VA_BASE + (uint64_t)device * VA_PER_DEVICE, at;

	if (bytes < LARGE)
		return take_small(&places[device], base, bytes);
	bytes = sim_round_up(bytes, LARGE);
	at = take_large(&places[device], base, bytes);
	if (at)
		sim_va_back(at, bytes);
	return at;
}

void sim_va_give(int device, uint64_t address, uint64_t bytes)
{
	if (bytes < LARGE) {
		struct hole **freed = &places[device].small[class_of(bytes)], *hole = new_hole(address, 0, *freed);

		if (hole)
			*freed = hole;
		return;
	}
	bytes = sim_round_up(bytes, LARGE);
	munmap((void *)address, bytes);
	add(&places[device], address, bytes);
}
