/* SPDX-License-Identifier: MIT */
/*
 * Replaces an output folder as a whole.  It is made beside its place, under a name that begins with a dot, and moved there at the
 * end, so that a reader sees either the old one or the new one.
 *
 * Only folders that Stormlog wrote are replaced: those without a foreign name that have its report.json, or in which no file has a
 * byte, as a machine that dies may leave them.  The new one is on the disk before one is replaced.  Anything else is refused before
 * any work, and stays as it is.  The old folder is checked again after it has been moved aside, through descriptors that
 * follow no link, and only our names are removed from it.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct sl_destination {
	char folder[PATH_MAX];	  /* as the user named it, without trailing slashes */
	char made[PATH_MAX + 16]; /* where files are written after sl_destination_begin */
	char why[3 * PATH_MAX];	  /* a sentence for people after a failure */
};

/*
 * Removes what killed processes left beside `folder`: folders of such a name, of this user, that were not changed for a day and
 * hold our names alone.  Of former analyses that were put aside the newest whole one goes back where nothing has taken its
 * place, and is removed where another analysis has.  To be called before rights are given up: a former analysis may be no input,
 * and is one to be read from then on.
 */
void sl_destination_clear_left(const char *folder);

/*
 * True: `folder` may be made or replaced. inputs: the paths that are read, ended by NULL; neither they nor folders that contain
 * them may be replaced.
 */
bool sl_destination_choose(struct sl_destination *place, const char *folder, char *const *inputs);

/* Makes the folder beside its place, and the parents of the place. */
bool sl_destination_begin(struct sl_destination *place);

/* Moves it to its place.  True with a text in `why`: done, but the old folder contained foreign files, which were kept. */
bool sl_destination_end(struct sl_destination *place);

/* Removes what was begun. */
void sl_destination_drop(struct sl_destination *place);
