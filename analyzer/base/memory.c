/* SPDX-License-Identifier: MIT */
#include "analyzer/base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *sl_memory_must(void *memory)
{
	static pthread_mutex_t ending = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP; /* other threads wait while one ends the program */

	if (!memory) {
		if (pthread_mutex_lock(&ending))
			_exit(3); /* nor has what is done at exit any memory */
		fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
		exit(3);
	}
	return memory;
}

char *sl_memory_copy(const char *text)
{
	return text ? sl_memory_must(strdup(text)) : NULL;
}

char *sl_memory_vprint(const char *format, va_list arguments)
{
	char *text;

	return sl_memory_must(vasprintf(&text, format, arguments) < 0 ? NULL : text);
}

char *sl_memory_print(const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = sl_memory_vprint(format, arguments);
	va_end(arguments);
	return text;
}
