/* SPDX-License-Identifier: MIT */
/*
 * The C library's text functions and mapping calls for code that runs inside a program's dlsym: sanitizers look up the
 * functions they intercept with it, and until they have found strcmp a call of strcmp is a jump to 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The compiler must not make library calls of these loops again (-fno-tree-loop-distribute-patterns, meson.build). */
static inline size_t sl_plain_length(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static inline bool sl_plain_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static inline bool sl_plain_begins(const char *text, const char *prefix)
{
	while (*prefix && *text == *prefix)
		text++, prefix++;
	return !*prefix;
}

/* What follows the last slash. */
static inline const char *sl_plain_name(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

static inline void *sl_plain_map(size_t bytes)
{
	long pages = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);

	return pages == -1 ? NULL : (void *)pages;
}

static inline void sl_plain_unmap(void *pages, size_t bytes)
{
	syscall(SYS_munmap, pages, bytes);
}
