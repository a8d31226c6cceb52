/* SPDX-License-Identifier: MIT */
/*
 * The data of report.html, built from a report (doc/report-page.md has the format).  What may be given up to fit a
 * size is in struct sl_page_budget; everything else is the same at every size.
 */
#pragma once

#include "analyzer/outputs/page/document.h"
#include "analyzer/upstream/files/telemetry.h"

/* What changed between runs: stacks are added run by run, while its report is open. */
struct sl_side;
struct sl_differences;
struct sl_page_change {
	uint32_t node;
	double before, after;
};
struct sl_page_changes {
	struct sl_page all;    /* frames and nodes of every stack; never written */
	struct sl_idmap index; /* node -> number + 1 */
	SL_VECTOR(struct sl_page_change) stacks;
	char dry[64]; /* the card of dry runs; "": they ran on a device */
};
void sl_page_changes_begin(struct sl_page_changes *changes);
void sl_page_changes_add(struct sl_page_changes *changes, struct sl_process *process, bool after, double share);
void sl_page_changes_free(struct sl_page_changes *changes);

/* The answers of the section "Would it have fit", asked once for all sizes of the page.  The report must outlive them. */
struct sl_page_fits;
struct sl_page_fits *sl_page_fits_new(const struct sl_report *report);
void sl_page_fits_free(struct sl_page_fits *fits);

/* What a page is made of: the members that its builder uses. */
struct sl_page_matter {
	void (*build)(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget);
	struct sl_report *report;
	const struct sl_telemetry *telemetry; /* beside a report the same run's: its analyses are findings too */
	unsigned ranks;			      /* of the telemetry, where there is no report */
	const unsigned *devices;	      /* of each of them */
	const struct sl_page_fits *fits;
	const char *path;
	const struct sl_emit_options *emit;
	const struct sl_page_changes *stacks;
	const struct sl_differences *differences;
	const struct sl_because *because; /* NULL: it was not asked for, or a side has several runs */
	char *const *paths;
	const unsigned *counts;
};

void sl_page_build(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget);
/* Only its lines, with the frames of their stacks; they are numbered on their own. */
void sl_page_build_lines(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget);
void sl_page_build_changes(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget);
/* The page of telemetry's selected session. */
void sl_page_build_telemetry(struct sl_page *page, const struct sl_page_matter *of, const struct sl_page_budget *budget);
/* The devices of each of its ranks, to free. */
#define SL_PAGE_TELEMETRY_LINES 4 /* of a rank on a device, where there is room */
unsigned *sl_page_telemetry_devices(const struct sl_telemetry *telemetry, unsigned *ranks);
