/* SPDX-License-Identifier: MIT */
#include "analyzer/report/suppress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/paths.h"
#include "common/base.h"

/*
 * Between stars stand parts, each of which is taken where it is met first: what an earlier one took stays right.  Without ^ the text may
 * begin anywhere, as behind a star; without $ what is left of it behind the pattern may be anything.  memmem looks at each byte once,
 * so a pattern costs what it and the text are long.
 */
static bool match(const char *pattern, const char *text, const char *end)
{
	bool here = *pattern == '^';

	for (pattern += here;; here = false) {
		const char *star = strchrnul(pattern, '*');
		size_t size = (size_t)(star - pattern), left = (size_t)(end - text);

		if (!*star && size && star[-1] == '$')
			return (here ? left == size - 1 : left >= size - 1) && !memcmp(end - (size - 1), pattern, size - 1);
		if (here ? left < size || memcmp(text, pattern, size) : !(text = memmem(text, left, pattern, size)))
			return false;
		if (!*star)
			return true;
		text += size;
		pattern = star + 1;
	}
}

const char *sl_suppressions_match(const struct sl_suppressions *list, const char *text)
{
	const char *end = text ? text + strlen(text) : NULL;

	for (size_t i = 0; list && text && i < list->count; i++)
		if (match(list->pattern[i], text, end))
			return list->pattern[i];
	return NULL;
}

static char *trim(char *text)
{
	size_t size;

	text += strspn(text, " \t");
	size = strlen(text);
	while (size && strchr(" \t\r\n", text[size - 1]))
		text[--size] = 0;
	return text;
}

bool sl_suppressions_read(struct sl_suppressions *list, const char *path, unsigned *line)
{
	FILE *file = sl_paths_open_text(path);
	char *text = NULL;
	size_t size = 0;
	bool fine = true;

	if (!file)
		return false;
	errno = 0;
	for (*line = 1; fine && getline(&text, &size, file) >= 0; ++*line) {
		char *clean = trim(text);

		if (!*clean || *clean == '#')
			continue;
		fine = !strncmp(clean, "leak:", 5) && clean[5];
		if (fine && list->count == SL_SUPPRESSIONS_MAX) {
			errno = E2BIG;
			fine = false;
			break;
		}
		if (!fine) {
			errno = 0;
			break;
		}
		list->pattern = sl_arena_grow(list->pattern, &list->capacity, list->count, sizeof(*list->pattern));
		list->pattern[list->count++] = strdup(clean + 5);
	}
	free(text);
	fclose(file);
	return fine;
}

void sl_suppressions_free(struct sl_suppressions *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->pattern[i]);
	free(list->pattern);
}

const char *sl_suppressions_builtin(const char *library)
{
	static const struct {
		const char *verdict, *pattern;
	} known[] = {
		{"cache", "libc10_cuda"},
		{"cache", "libc10_hip"},
		{"cache", "libtorch_cuda"},
		{"cache", "libtorch_hip"},
		{"cache", "libtensorflow"},
		{"cache", "_pywrap_tensorflow"},
		{"cache", "xla_cuda"},
		{"cache", "xla_extension"},
		{"cache", "jaxlib"},
		{"cache", "pjrt"},
		{"cache", "cupy"},
		{"workspace", "^libcublas"},
		{"workspace", "^libcudnn"},
		{"workspace", "^libnccl"},
		{"workspace", "^librccl"},
		{"workspace", "^libcufft"},
		{"workspace", "^libcusolver"},
		{"workspace", "^libcusparse"},
		{"workspace", "^libcurand"},
		{"workspace", "^librocblas"},
		{"workspace", "^libhipblas"},
		{"workspace", "^libMIOpen"},
		{"workspace", "^librocfft"},
		{"workspace", "^libnvinfer"},
		{"workspace", "^libcutensor"},
		{"workspace", "^libcuda.so"},
		{"workspace", "^libcudart.so"},
	};

	for (size_t i = 0; library && i < SL_COUNT(known); i++)
		if (match(known[i].pattern, library, library + strlen(library)))
			return known[i].verdict;
	return NULL;
}
