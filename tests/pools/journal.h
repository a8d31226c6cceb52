/* SPDX-License-Identifier: MIT */
/* A stand-in's journal: a line for each block that it hands out or takes back, in the file that POOLS_JOURNAL names. */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 1, 2))) static void journal(const char *format, ...)
{
	static FILE *file;
	va_list list;

	if (!file && getenv("POOLS_JOURNAL"))
		file = fopen(getenv("POOLS_JOURNAL"), "w");
	if (!file)
		return;
	va_start(list, format);
	vfprintf(file, format, list);
	va_end(list);
	fflush(file);
}
