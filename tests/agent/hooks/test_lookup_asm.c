/* SPDX-License-Identifier: MIT */
/*
 * The assembly of dlsym and dlvsym by itself, on this machine and, cross-built, under qemu: arguments and caller reach
 * the filter; an answer is returned; a jump leaves arguments, return address and stack as they came.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "agent/hooks/lookup.h"

void *dlsym(void *handle, const char *name);
void *dlvsym(void *handle, const char *name, const char *version);
void *dlopen(const char *path, int flags);
void *dlmopen(long name_space, const char *path, int flags);

static struct {
	void *handle;
	const char *name, *version;
	const void *caller;
} asked, jumped;
static struct sl_lookup reply;

struct sl_lookup sl_lookup_filter(void *handle, const char *name, const char *version, const void *caller)
{
	/* Compilers use aligned stores for this, which crash where the stack is not aligned. */
	volatile __attribute__((aligned(16))) char room[64];

	memset((char *)room, (int)(uintptr_t)handle, sizeof(room));
	asked.handle = handle;
	asked.name = name;
	asked.version = version;
	asked.caller = caller;
	return reply;
}

static struct {
	const void *first, *second;
	long third, asked;
} opened;

static void *real_open(const void *first, const void *second, long third)
{
	opened.first = first;
	opened.second = second;
	opened.third = third;
	return (void *)0x5678;
}

void *sl_lookup_opening(int flags)
{
	opened.asked = flags;
	return real_open;
}

void *sl_lookup_opening_in(long name_space)
{
	opened.asked = name_space;
	return real_open;
}

static void *real(void *handle, const char *name, const char *version)
{
	jumped.handle = handle;
	jumped.name = name;
	jumped.version = version;
	jumped.caller = __builtin_return_address(0);
	return (void *)0x1234;
}

static int failures;

static void expect(int ok, const char *what)
{
	if (!ok)
		failures++, printf("not so: %s\n", what);
}

/* Asks, and compares what the filter and the real function saw.  A caller less than 4096 bytes behind ask() is taken for ask() itself. */
static __attribute__((noinline)) void ask(int with_version)
{
	void *got = with_version ? dlvsym((void *)7, "name", "VERSION") : dlsym((void *)7, "name");
	uintptr_t from = (uintptr_t)asked.caller - (uintptr_t)ask;

	expect(asked.handle == (void *)7 && !strcmp(asked.name, "name"), "the filter sees handle and name");
	expect(with_version ? asked.version && !strcmp(asked.version, "VERSION") : !asked.version, "the filter sees the version");
	expect(from < 4096, "the filter sees the caller");
	if (reply.jump) {
		expect(got == (void *)0x1234, "the real function's answer is returned");
		expect(jumped.handle == (void *)7 && !strcmp(jumped.name, "name"), "the real function sees handle and name");
		expect(!with_version || !strcmp(jumped.version, "VERSION"), "the real function sees the version");
		expect(jumped.caller == asked.caller, "the real function sees the true caller");
	} else {
		expect(got == reply.answer, "the filter's answer is returned");
	}
}

int main(void)
{
	for (int with_version = 0; with_version < 2; with_version++) {
		reply = (struct sl_lookup){(void *)0x99, NULL};
		ask(with_version);
		reply = (struct sl_lookup){NULL, NULL};
		ask(with_version);
		reply = (struct sl_lookup){NULL, (void *)real};
		ask(with_version);
	}
	expect(dlopen("path", 8) == (void *)0x5678 && opened.asked == 8, "dlopen's flags are seen, its answer returned");
	expect(!strcmp(opened.first, "path") && (uintptr_t)opened.second == 8, "the real dlopen sees its arguments");
	expect(dlmopen(-1, "path", 2) == (void *)0x5678 && opened.asked == -1, "dlmopen's namespace is seen, its answer returned");
	expect((intptr_t)opened.first == -1 && !strcmp(opened.second, "path") && (int)opened.third == 2,
	       "the real dlmopen sees its arguments");
	return failures != 0;
}
