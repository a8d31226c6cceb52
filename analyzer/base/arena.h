/* SPDX-License-Identifier: MIT */
/*
 * Memory that is freed all at once.  Texts and tables read from a file are in an arena of their owner, which frees them together.
 *
 * Allocation never returns NULL: the analyzer is a program of its own and ends with a message when memory is out. Memory is zeroed
 * and aligned to 16 bytes. One thread per arena.
 */
#pragma once

#include <stddef.h>

struct sl_arena_chunk;

/* All zeroes is an empty arena. */
struct sl_arena {
	struct sl_arena_chunk *chunk;
};

void *sl_arena_alloc(struct sl_arena *arena, size_t bytes);
char *sl_arena_strdup(struct sl_arena *arena, const char *text);
char *sl_arena_strndup(struct sl_arena *arena, const char *text, size_t length);
char *sl_arena_printf(struct sl_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Forget the contents and keep the largest chunk for the next round. */
void sl_arena_reset(struct sl_arena *arena);
void sl_arena_free(struct sl_arena *arena);

/* A growing array: makes room for one more item, doubling. Ends the program when memory is out. */
void *sl_arena_grow(void *items, size_t *capacity, size_t count, size_t item_bytes);
/* Shrinks an array to `count` items. */
void *sl_arena_trim(void *items, size_t *capacity, size_t count, size_t item_bytes);
