/* SPDX-License-Identifier: MIT */
/*
 * A folder of ours that takes its place as a whole: it is made beside it under a name with a dot, and moved there at
 * the end, so that a reader sees the old one or the new one.
 *
 * Only what we wrote is ever replaced: a folder in which report.json says that it is ours and every name is one that
 * we write.  Anything else stays as it is, and is refused before any work.  The old folder is looked at again after
 * it has been moved aside, through descriptors that follow no link, and from it only names of ours are removed.
 */
#ifndef ANALYZER_OUTPUTS_DESTINATION_H
#define ANALYZER_OUTPUTS_DESTINATION_H

#include <limits.h>
#include <stdbool.h>

struct sl_destination {
	char folder[PATH_MAX];	  /* as the user named it, without slashes at its end */
	char made[PATH_MAX + 16]; /* after sl_destination_begin: where the files go meanwhile */
	char why[3 * PATH_MAX];	  /* after a failure: a sentence for people */
};

/* May `folder` be made or replaced?  inputs: what is read, NULL ends it; neither they nor what holds them is replaced. */
bool sl_destination_choose(struct sl_destination *place, const char *folder, char *const *inputs);

/* Makes the folder beside the place, and the place's parents. */
bool sl_destination_begin(struct sl_destination *place);

/* Moves it there.  true with a `why`: done, but something of somebody else's turned up in the old one, and was kept. */
bool sl_destination_end(struct sl_destination *place);

/* Gives up what was begun. */
void sl_destination_drop(struct sl_destination *place);

#endif
