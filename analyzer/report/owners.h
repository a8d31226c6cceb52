/* SPDX-License-Identifier: MIT */
/*
 * Who holds memory, as a tree of names: shares of bytes added up by library, then by the frame a person looks
 * for, or by any other way of naming a site.
 */
#ifndef ANALYZER_REPORT_OWNERS_H
#define ANALYZER_REPORT_OWNERS_H

#include "analyzer/report/report.h"

struct sl_share {
	char *name;
	uint64_t bytes, blocks;
	uint32_t parent, child, sibling; /* indexes, 0: none; siblings by bytes, largest first after sl_owners_sort */
};

/* share[0] is the root. */
struct sl_owners {
	SL_VECTOR(struct sl_share) share;
	struct sl_idmap children; /* by parent and name */
};

void sl_owners_init(struct sl_owners *owners);
void sl_owners_free(struct sl_owners *owners);
/* Add along the path of names from the root; the index of its last. */
uint32_t sl_owners_add(struct sl_owners *owners, const char *const *names, unsigned count, uint64_t bytes, uint64_t blocks);
void sl_owners_sort(struct sl_owners *owners);

/* The line of code to name for a site: "train.py:88 forward", up to `frames` of them joined by " < ". */
void sl_owners_line(struct sl_process *process, uint32_t python, uint32_t native, uint64_t caller, unsigned frames, char *out,
		    size_t size);

/* Whether a site stands for memory of a device: segments of PyTorch are shown by the blocks in them; what is left
 * of them is kept unused. */
bool sl_owners_shows(const struct sl_process *process, const struct sl_site *site);

#endif
