/* SPDX-License-Identifier: MIT */
#include "analyzer/base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"

/* A small owner costs little: the first chunk is small, and each next one is twice as large. */
enum { CHUNK_FIRST_BYTES = 256, CHUNK_BYTES = 64 * 1024, ALIGN = 16 };

struct sl_arena_chunk {
	struct sl_arena_chunk *next;
	size_t used, size;
	char data[] __attribute__((aligned(ALIGN)));
};

void *sl_arena_alloc(struct sl_arena *arena, size_t bytes)
{
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	struct sl_arena_chunk *chunk = arena->chunk;

	if (!chunk || chunk->size - chunk->used < bytes) {
		size_t usual = !chunk ? CHUNK_FIRST_BYTES : chunk->size < CHUNK_BYTES / 2 ? chunk->size * 2 : CHUNK_BYTES;
		size_t size = bytes > usual / 4 ? bytes : usual;

		chunk = sl_memory_must(malloc(sizeof(*chunk) + size));
		chunk->used = 0;
		chunk->size = size;
		/* A large block gets a chunk of its own behind the current one, whose free room stays in use. */
		if (size != usual && arena->chunk) {
			chunk->next = arena->chunk->next;
			arena->chunk->next = chunk;
		} else {
			chunk->next = arena->chunk;
			arena->chunk = chunk;
		}
	}
	void *memory = chunk->data + chunk->used;

	chunk->used += bytes;
	return memset(memory, 0, bytes);
}

char *sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length)
{
	char *copy = sl_arena_alloc(arena, length + 1);

	memcpy(copy, text, length);
	return copy;
}

char *sl_arena_strdup(struct sl_arena *arena, const char *text)
{
	return sl_arena_strndup(arena, text, strlen(text));
}

char *sl_arena_printf(struct sl_arena *arena, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int length = vsnprintf(NULL, 0, format, args);
	char *text = sl_arena_alloc(arena, (size_t)length + 1);

	vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void sl_arena_reset(struct sl_arena *arena)
{
	struct sl_arena_chunk *keep = NULL;

	for (struct sl_arena_chunk *chunk = arena->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		if (!keep || chunk->size > keep->size) {
			free(keep);
			keep = chunk;
		} else {
			free(chunk);
		}
	}
	if (keep) {
		keep->next = NULL;
		keep->used = 0;
	}
	arena->chunk = keep;
}

void sl_arena_free(struct sl_arena *arena)
{
	for (struct sl_arena_chunk *chunk = arena->chunk, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	arena->chunk = NULL;
}

void *sl_arena_grow(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
	if (count < *capacity)
		return items;
	*capacity = *capacity ? *capacity * 2 : 4;
	return sl_memory_must(realloc(items, *capacity * item_bytes));
}

void *sl_arena_trim(void *items, size_t *capacity, size_t count, size_t item_bytes)
{
	if (count == *capacity)
		return items;
	*capacity = count;
	if (count)
		return sl_memory_must(realloc(items, count * item_bytes));
	free(items);
	return NULL;
}
