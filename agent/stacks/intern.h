/* SPDX-License-Identifier: MIT */
/*
 * Maps content to ids for the whole process: frames, stacks, modules, texts.  Lock-free and async-signal-safe.
 *
 * The table keeps a 128-bit hash instead of the content: 24 bytes an entry; a collision among a million stacks has a chance
 * of 2^-88.  Ids are dense, from 1.  A definition is in the log before its id is returned; two threads that meet the same
 * new content at the same instant may both write it, with the same id and the same bytes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sl_intern_key {
	uint64_t a, b;
};

#define SL_INTERN_KEY ((struct sl_intern_key){0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu})
void sl_intern_word(struct sl_intern_key *hash, uint64_t word);
void sl_intern_bytes(struct sl_intern_key *hash, const void *bytes, size_t count);

struct sl_intern_slot;

#define SL_INTERN_SEGMENTS 8

/* A zeroed table is empty. */
struct sl_intern {
	_Atomic uint32_t last; /* the id given out last */
	_Atomic(struct sl_intern_slot *) segment[SL_INTERN_SEGMENTS];
};

/* Writes the definition of `what` as `id`; false: it could not. */
typedef bool sl_intern_publish(uint32_t id, const void *what);

/* Returns the id of this content and publishes it if it is new.  0: no room, or publish failed (the next call tries again). */
uint32_t sl_intern(struct sl_intern *table, struct sl_intern_key hash, sl_intern_publish *publish, const void *what);

/* In a forked child: makes the table empty.  No other thread may be in it. */
void sl_intern_reset(struct sl_intern *table);
