/* SPDX-License-Identifier: MIT */
/*
 * An export turns the events of a run into the file of another tool.  To add one: a file here with a const
 * descriptor, its names in list.c and meson.build (doc/add-an-output.md), a test that opens it with that tool.
 */
#pragma once

#include <stdio.h>

#include "analyzer/exports/merge.h"

enum sl_weigh { SL_WEIGH_PEAK, SL_WEIGH_LIVE, SL_WEIGH_TOTAL }; /* in the order of --weigh */

struct sl_export_job {
	struct sl_merge *merge;
	FILE *out;	     /* NULL for formats that need a path */
	const char *path;    /* of the file to write; NULL: stdout */
	uint64_t max_events; /* 0: the format's own limit, or none */
	enum sl_weigh weigh;
};

struct sl_export {
	const char *name, *summary;
	bool models;	 /* needs models that are kept up to date */
	bool places;	 /* names the line of each stack, which needs a report of the whole run first */
	bool wants_path; /* cannot write to stdout */
	/* False: writing failed, with errno; or the failure was printed already, and errno is 0. */
	bool (*run)(struct sl_export_job *job);
};

extern const struct sl_export *const sl_exports[]; /* ended by NULL */
extern const struct sl_export sl_export_dump;	   /* the verb dump */

/* ---- used by several exports */

/* Runs the merge to its end. */
void sl_export_replay(struct sl_merge *merge);

/* Bytes of a site according to the job's --weigh; 0: the site is not shown. */
uint64_t sl_export_weight(const struct sl_merge_process *process, const struct sl_site *site, enum sl_weigh weigh);
