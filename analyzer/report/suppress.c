/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/arena.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/suppress.h"
#include "common/base.h"

#define TEXTS_MAX (1 + 3 * SL_STACK_MAX)

static unsigned texts_of(struct sl_process *process, const char *library, struct sl_stack stack, const char *texts[TEXTS_MAX])
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	unsigned count = sl_process_stack(process, frames, stack), n = 0;

	texts[n++] = library;
	for (unsigned i = 0; i < count; i++) {
		texts[n++] = frames[i].function;
		texts[n++] = frames[i].file;
		texts[n++] = frames[i].module;
	}
	return n;
}

const char *sl_suppress_by_stack(const struct sl_suppressions *list, struct sl_process *process, const char *library,
				 struct sl_stack stack)
{
	const char *texts[TEXTS_MAX], *found = NULL;
	unsigned count = texts_of(process, library, stack, texts);

	for (unsigned i = 0; i < count && !found; i++)
		found = sl_suppressions_match(list, texts[i]);
	return found;
}

void sl_suppress_mark_stack(const struct sl_suppressions *list, struct sl_process *process, const char *library,
			    struct sl_stack stack, bool *used)
{
	const char *texts[TEXTS_MAX];

	for (unsigned n = texts_of(process, library, stack, texts); n > 0; n--)
		sl_suppressions_mark(list, texts[n - 1], used);
}

/*
 * The parts of a pattern between stars are each taken at their first match; a later part never makes an earlier match wrong.
 * Without ^ the text may begin anywhere, as if behind a star; without $ it may go on after the pattern.  memmem reads each byte
 * once, so the cost is linear in pattern and text.
 */
static bool match(const char *pattern, const char *text, const char *end)
{
	bool anchored = *pattern == '^';

	for (pattern += anchored;; anchored = false) {
		const char *star = strchrnul(pattern, '*');
		size_t size = (size_t)(star - pattern), left = (size_t)(end - text);

		if (!*star && size && star[-1] == '$')
			return (anchored ? left == size - 1 : left >= size - 1) && !memcmp(end - (size - 1), pattern, size - 1);
		if (anchored ? left < size || memcmp(text, pattern, size) : !(text = memmem(text, left, pattern, size)))
			return false;
		if (!*star)
			return true;
		text += size;
		pattern = star + 1;
	}
}

/* ---- many patterns: each waits for four bytes that a text must contain; few texts contain any */

#define GRAM	4
#define BUCKETS (1 << 16)

static unsigned bucket_of(const char *gram)
{
	uint32_t bytes;

	memcpy(&bytes, gram, GRAM);
	return bytes * 0x9E3779B1u >> 16;
}

/* The next position in the pattern with four literal bytes; NULL: none. */
static const char *next_gram(const char *pattern, const char *at)
{
	for (at += *pattern == '^' && at == pattern; strnlen(at, GRAM) == GRAM; at++)
		if (!memchr(at, '*', GRAM) && (at[GRAM - 1] != '$' || at[GRAM]))
			return at;
	return NULL;
}

static void prepare(struct sl_suppressions *list)
{
	uint32_t *shared = sl_memory_must(calloc(BUCKETS, sizeof(*shared)));

	free(list->waiting);
	list->waiting = sl_memory_must(calloc(BUCKETS, sizeof(*list->waiting)));
	list->always = 0;
	for (size_t i = 0; i < list->count; i++)
		for (const char *at = list->pattern[i]; (at = next_gram(list->pattern[i], at)); at++)
			shared[bucket_of(at)]++;
	for (size_t i = list->count; i-- > 0;) { /* so that chains are in ascending order */
		uint16_t *chain = &list->always;
		uint32_t least = UINT32_MAX;

		for (const char *at = list->pattern[i]; (at = next_gram(list->pattern[i], at)); at++)
			if (shared[bucket_of(at)] < least) {
				least = shared[bucket_of(at)];
				chain = &list->waiting[bucket_of(at)];
			}
		list->next[i] = *chain;
		*chain = (uint16_t)(i + 1);
	}
	free(shared);
}

struct look {
	const char *text, *end;
	uint64_t tried[SL_SUPPRESSIONS_MAX / 64 + 1]; /* each pattern is tried once */
	size_t best;				      /* the first pattern that matches */
	bool *used;				      /* all patterns that match; NULL: only the first is wanted */
};

static void look_along(const struct sl_suppressions *list, unsigned chain, struct look *look)
{
	for (size_t i = chain - 1; chain && (look->used || i < look->best); chain = list->next[i], i = chain - 1) {
		uint64_t bit = 1ull << i % 64;

		if (look->tried[i / 64] & bit || (look->used && look->used[i]))
			continue;
		look->tried[i / 64] |= bit;
		if (!match(list->pattern[i], look->text, look->end))
			continue;
		if (look->used)
			look->used[i] = true;
		else
			look->best = i;
	}
}

static size_t look_for(const struct sl_suppressions *list, const char *text, bool *used)
{
	struct look look = {.text = text, .best = list ? list->count : 0, .used = used};

	if (!look.best || !text)
		return SIZE_MAX;
	look.end = text + strlen(text);
	look_along(list, list->always, &look);
	for (const char *at = text; look.end - at >= GRAM; at++)
		look_along(list, list->waiting[bucket_of(at)], &look);
	return look.best < list->count ? look.best : SIZE_MAX;
}

const char *sl_suppressions_match(const struct sl_suppressions *list, const char *text)
{
	size_t found = look_for(list, text, NULL);

	return found == SIZE_MAX ? NULL : list->pattern[found];
}

void sl_suppressions_mark(const struct sl_suppressions *list, const char *text, bool *used)
{
	look_for(list, text, used);
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
	if (fine)
		prepare(list);
	return fine;
}

void sl_suppressions_free(struct sl_suppressions *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->pattern[i]);
	free(list->pattern);
	free(list->waiting);
}

const char *sl_suppressions_builtin(const char *library)
{
	static const struct {
		const char *verdict, *pattern;
	} builtin[] = {
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

	for (size_t i = 0; library && i < SL_COUNT(builtin); i++)
		if (match(builtin[i].pattern, library, library + strlen(library)))
			return builtin[i].verdict;
	return NULL;
}
