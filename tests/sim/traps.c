/* SPDX-License-Identifier: MIT */
/*
 * Where the referee is meaner than a device: addresses come back at once, and device memory has no contents. The dry run has
 * functions of its own in their place (dry/place.c, dry/contents.c).
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

/*
 * Device addresses: one tebibyte per device, in a range where Linux places no mapping by itself. Nothing is behind them. A
 * freed address goes to the next block of the same power of two, because a careless tracer gets such reuse wrong.
 */
enum { VA_CLASSES = 48 };
#define VA_BASE	      0x200000000000ull
#define VA_PER_DEVICE (1ull << 40)

struct stack {
	uint64_t *items;
	size_t count, room;
};
static struct stack freed[SIM_MAX_DEVICES][VA_CLASSES];
static uint64_t va_used[SIM_MAX_DEVICES];

static int va_class(uint64_t bytes)
{
	int class = 9; /* 512 bytes: the driver's alignment */
	while (class < VA_CLASSES - 1 && (1ull << class) < bytes)
		class ++;
	return class;
}

uint64_t sim_va_take(int device, uint64_t bytes)
{
	int class = va_class(bytes);
	struct stack *s = &freed[device][class];
	if (s->count)
		return s->items[--s->count];
	uint64_t size = 1ull << class, at = sim_round_up(va_used[device], size);
	if (size > VA_PER_DEVICE || at > VA_PER_DEVICE - size)
		return 0;
	va_used[device] = at + size;
	return VA_BASE + device * VA_PER_DEVICE + at;
}

void sim_va_give(int device, uint64_t address, uint64_t bytes)
{
	struct stack *s = &freed[device][va_class(bytes)];
	if (s->count == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		uint64_t *items = realloc(s->items, room * sizeof *items);
		if (!items)
			return;
		s->items = items;
		s->room = room;
	}
	s->items[s->count++] = address;
}

void sim_va_back(uint64_t address, uint64_t bytes)
{
}

/* Only bytes between host addresses (managed memory too) move. */
void sim_contents_copy(uint64_t to, bool to_host, uint64_t from, bool from_host, uint64_t bytes)
{
	if (to_host && from_host)
		memmove((void *)to, (void *)from, bytes);
}

void sim_contents_fill(uint64_t to, bool host, uint64_t value, size_t width, uint64_t count)
{
	for (uint64_t i = 0; host && i < count; i++)
		memcpy((char *)to + i * width, &value, width);
}

void sim_table_missing(const void *caller)
{
}
