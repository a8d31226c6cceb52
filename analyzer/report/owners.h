/* SPDX-License-Identifier: MIT */
/*
 * Who holds memory, as a tree of names.  Bytes are added up by library, then by the frame a person looks for, or by any other
 * naming of a site.
 */
#pragma once

#include <limits.h>

#include "analyzer/report/report.h"

struct sl_share {
	const char *name; /* of the owners' names */
	uint64_t bytes, blocks;
	/* Indexes, 0: none; siblings are sorted by bytes, largest first, after sl_owners_sort. */
	uint32_t parent, child, sibling;
};

/* share[0] is the root. */
struct sl_owners {
	SL_VECTOR(struct sl_share) share;
	struct sl_idmap children; /* from parent and name to child */
	struct sl_map names;
};

void sl_owners_init(struct sl_owners *owners);
void sl_owners_free(struct sl_owners *owners);
/* Adds bytes along a path of names from the root; returns the index of the last. */
uint32_t sl_owners_add(struct sl_owners *owners, const char *const *names, unsigned count, uint64_t bytes, uint64_t blocks);
void sl_owners_sort(struct sl_owners *owners);

/*
 * Keeps `frames` frames of the chain.  If all are in one file, the last one becomes the first of another file: a library's user
 * is worth a line.  If none is in the folder of the outermost one, where the program begins, one more is kept: the innermost
 * that does.  Returns how many are kept.
 */
unsigned sl_owners_shorten(const struct sl_stack_frame **chain, unsigned given, unsigned frames);

/* The line of code that names a site: "train.py:88 forward", up to `frames` of them joined by " < ". */
void sl_owners_line(struct sl_process *process, struct sl_stack stack, unsigned frames, char *out, size_t size);

/* True: the site's bytes are shown.  Of PyTorch, blocks are and segments are not. */
bool sl_owners_shows(const struct sl_process *process, const struct sl_site *site);

/* Which bytes of a site: held at the peak of its device, held now (at the end), or all that it allocated.  ANY: these, or none. */
enum sl_weigh { SL_WEIGH_PEAK, SL_WEIGH_LIVE, SL_WEIGH_TOTAL, SL_WEIGH_ANY }; /* in the order of --weigh */

/* The next site after `site` (NULL: the first) that is shown and has such bytes, on one device or any.  NULL: none is left. */
const struct sl_site *sl_owners_next(const struct sl_process *process, int device, enum sl_weigh weigh, const struct sl_site *site,
				     uint64_t *bytes);
#define SL_DEVICE_ANY INT_MIN /* -1 is the host */

/* The next of the largest at an error, after `owner` (NULL: the largest of all), and its site.  NULL: none is left. */
const struct sl_owner *sl_owners_at_error(const struct sl_process *process, const struct sl_oom *oom, const struct sl_owner *owner,
					  const struct sl_site **site);
