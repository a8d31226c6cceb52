/* SPDX-License-Identifier: MIT */
/* Tracks during a replay: how they are kept, and how they are read (parts.h). */
#pragma once

#include "analyzer/model/state/parts.h"

struct sl_model;
struct sl_event;
struct sl_item;
struct sl_defs;

/* Finds the track of an event's stack. */
uint32_t sl_tracks_of(struct sl_model *model, const struct sl_event *event, unsigned kind, int device);
/* The track of what the call asks for; NULL: it is no memory that is counted.  Valid until the next one is made. */
struct sl_track *sl_tracks_place(struct sl_model *model, const struct sl_item *item);
/* True: both stacks would have one track. */
bool sl_tracks_alike(const struct sl_defs *defs, struct sl_stack a, struct sl_stack b);
/* Notes a request, granted or failed: deaths before it are not part of the teardown. */
void sl_tracks_asked(struct sl_tracks *tracks);
/* Sets the size of a block that was unknown at its birth. */
void sl_tracks_sized(struct sl_model *model, uint32_t index, uint64_t bytes);
void sl_tracks_birth(struct sl_model *model, uint32_t track, uint64_t bytes, uint32_t label);
void sl_tracks_death(struct sl_model *model, uint32_t track, uint64_t bytes, uint64_t born_ns);
void sl_tracks_rest(struct sl_tracks *tracks); /* drops the courses; nothing may begin or end afterwards */
void sl_tracks_free(struct sl_tracks *tracks);

static inline const struct sl_track_course *sl_tracks_course(const struct sl_tracks *tracks, const struct sl_track *track)
{
	return &tracks->course[track - tracks->item];
}

/* The window's minimum up to the final run of deaths. */
void sl_tracks_least(const struct sl_tracks *tracks, const struct sl_track *track, uint32_t window, uint64_t *bytes,
		     uint64_t *blocks);
/* Blocks born in the window that lived when the final run of deaths began. */
uint64_t sl_tracks_left(const struct sl_tracks *tracks, const struct sl_track *track, uint32_t window);
/* The most births that a freed block outlived before the final run of deaths, rounded to a window. */
uint64_t sl_tracks_lived(const struct sl_tracks *tracks, const struct sl_track *track);
/* Blocks that lived when the final run of deaths began. */
void sl_tracks_held(const struct sl_tracks *tracks, const struct sl_track *track, uint64_t *bytes, uint64_t *blocks);
