/* SPDX-License-Identifier: MIT */
/*
 * For stand-ins of other interposers.  Each stand-in forwards calls as the interposer's source does, and prints at the end what it saw.
 */
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t address;

#define CALL(function, ...) ((int (*)())(function))(__VA_ARGS__)

/* Returns what was found, or ends the program, as the interposers do. */
static inline void *need(void *found, const char *name)
{
	if (!found) {
		fprintf(stderr, "%s is not there\n", name);
		_Exit(9);
	}
	return found;
}
