/* SPDX-License-Identifier: MIT */
/*
 * test_unload PROBE.so SMALL.so LARGE.so: two modules are loaded at one place by turns, and their calls return to the same address.
 * If each is unwound by its own frame, a stack through one has the same addresses as through the other.  It must still be another
 * stack, and the same one as before when its module comes back.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t capture(unsigned mode);
typedef uint64_t with_frame(capture *capture, unsigned mode);

enum { NATIVE = 2, TURNS = 5 };

static void *probe;
static with_frame *place;

static void *find(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	if (!found) {
		printf("%s: %s\n", name, dlerror());
		exit(1);
	}
	return found;
}

static __attribute__((noinline)) uint32_t from(unsigned deeper, with_frame *function)
{
	uint64_t ids;

	if (deeper)
		ids = (uint64_t)from(deeper - 1, function) << 32;
	else
		ids = function(find(probe, "probe_capture"), NATIVE);
	__asm__ volatile("" : "+r"(ids)); /* not a tail call */
	return (uint32_t)(ids >> 32);
}

/* Captures often, so that every cache of rules has one for the module; then twice from `deeper` frames further in. */
static uint32_t stack_through(const char *path, unsigned deeper)
{
	void (*unload)(int) = (void (*)(int))find(probe, "probe_unload");
	void *module = dlopen(path, RTLD_NOW);
	with_frame *function = (with_frame *)find(module, "with_frame");
	uint32_t id = 0;

	if (place && function != place) {
		printf("they do not come to one place: the test has no result\n");
		exit(77);
	}
	place = function;
	for (unsigned i = 0; i < 40; i++)
		from(0, function);
	for (unsigned i = 0; i < 2; i++)
		id = from(deeper, function);
	unload(0);
	dlclose(module);
	unload(1);
	return id;
}

/* What defines the native stack behind its id: ids count up from 1. */
static size_t find_addresses(uint32_t id, const uint8_t **found)
{
	const uint8_t *log;
	size_t end = ((size_t(*)(const uint8_t **))find(probe, "probe_log"))(&log);
	uint32_t bytes;

	for (size_t at = 0; at < end; at += 4 + bytes) {
		memcpy(&bytes, log + at, 4);
		if (!memmem(log + at + 4, bytes, "native_stack", 12) || --id)
			continue;
		*found = memmem(log + at + 4, bytes, "pcs", 3);
		return (size_t)(log + at + 4 + bytes - *found);
	}
	return 0;
}

static bool have_equal_addresses(uint32_t a, uint32_t b)
{
	const uint8_t *one, *other;
	size_t bytes = find_addresses(a, &one);

	return bytes && find_addresses(b, &other) == bytes && !memcmp(one, other, bytes);
}

int main(int argc, char **argv)
{
	int (*describe)(char *, size_t);
	char text[256];
	uint32_t ids[TURNS];

	probe = dlopen(argv[1], RTLD_NOW);
	((void (*)(unsigned, unsigned))find(probe, "probe_start"))(NATIVE, 200);
	describe = (int (*)(char *, size_t))find(probe, "probe_describe");
	for (unsigned turn = 0; turn < TURNS; turn++)
		ids[turn] = stack_through(argv[2 + turn % 2], turn ? 3 : 1);
	describe(text, sizeof(text));
	printf("%u %u, then %u %u, %s\n", ids[1], ids[2], ids[3], ids[4], text);
	return !ids[1] || !ids[2] || ids[1] == ids[2] || ids[1] != ids[3] || ids[2] != ids[4] ||
	       !have_equal_addresses(ids[1], ids[2]) || strstr(text, "differs");
}
