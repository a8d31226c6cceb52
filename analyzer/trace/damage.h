/* SPDX-License-Identifier: MIT */
/*
 * Collects what could not be read, with file and offset.  Damage ends nothing: readers add a line and go on.  One list per
 * process image, one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"

#define SL_DAMAGE_LINES 64 /* further lines are only counted */

struct sl_damage {
	unsigned count, lines;
	char *line[SL_DAMAGE_LINES];
	bool damaged;	      /* parts are missing or unreadable; notes alone leave it false */
	bool readable;	      /* damaged, but all that was written can be read: the recorder says itself what it lost */
	uint64_t lost_events; /* known to be lost */
};

/* Something is missing: adds "FILE: offset N: ...".  file NULL: without a place. */
void sl_damage_add(struct sl_damage *damage, const char *file, int64_t offset, const char *format, ...) SL_PRINTF(4, 5);

/* The same of what the recorder could not keep, and says so: nothing that was written is unreadable. */
void sl_damage_lost(struct sl_damage *damage, const char *file, const char *format, ...) SL_PRINTF(3, 4);

/* Adds a note; nothing is missing. */
void sl_damage_note(struct sl_damage *damage, const char *file, const char *format, ...) SL_PRINTF(3, 4);

/* Prints its lines on stderr. */
void sl_damage_print(const struct sl_damage *damage);

void sl_damage_free(struct sl_damage *damage);
