/* SPDX-License-Identifier: MIT */
/*
 * Replaces the folder of an analysis.  The new one is made beside it, under a name that begins with a dot, and takes its place
 * when it is whole: a reader sees the old one or the new one.
 *
 * Only a folder that Stormlog wrote is replaced: one with its report.json, or in which no file has a byte, as a machine that dies
 * may leave it.  Files of others in it stay where they are; then our files are exchanged one by one.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct sl_destination {
	char folder[PATH_MAX];	  /* as the user named it, without trailing slashes */
	char made[PATH_MAX + 16]; /* where files are written after sl_destination_begin */
	char why[3 * PATH_MAX];	  /* a sentence for people after a failure */
	bool shared;		  /* files of others are in it */
};

/*
 * True: `folder` may be made or replaced. inputs: the paths that are read, ended by NULL; neither they nor folders that contain
 * them may be replaced.
 */
bool sl_destination_choose(struct sl_destination *place, const char *folder, char *const *inputs);

/* Makes the folder beside its place, and the parents of the place. */
bool sl_destination_begin(struct sl_destination *place);

/* Moves it to its place. */
bool sl_destination_end(struct sl_destination *place);

/* Removes what was begun. */
void sl_destination_drop(struct sl_destination *place);
