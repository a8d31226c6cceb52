/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins for other interposers, written after what their sources do.  Each forwards calls as its model does, and prints at the end what it saw.
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

/* What is there or the program ends, as the models do. */
static inline void *need(void *found, const char *name)
{
	if (!found) {
		fprintf(stderr, "%s is not there\n", name);
		_Exit(9);
	}
	return found;
}
