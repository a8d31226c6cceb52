/* SPDX-License-Identifier: MIT */
/*
 * The data of report.html, built from a report (doc/report-page.md has the format).  What may be given up to fit a
 * size is in struct sl_page_budget; everything else is the same at every size.
 */
#pragma once

#include <stdio.h>

#include "analyzer/base/json.h"
#include "analyzer/report/report.h"

/*
 * The page while it is written: its data, and its tables of texts, frames and stacks.
 *
 * Times in the page are ns since the run's first process started.  Texts, frames and stacks are numbers into tables, which are
 * written last, when they are complete.
 */

struct sl_page_budget {
	unsigned bins;	   /* of one line */
	unsigned samples;  /* places of one moment, or stacks of a diff; smaller ones are merged into one */
	unsigned moments;  /* of one process, in addition to peak, end, errors, leaks and churn */
	unsigned detailed; /* processes with all their lines; the others keep only their total */
	unsigned heat;	   /* columns of the heat map */
	unsigned blocks;   /* of one segment map */
	unsigned stays;	   /* rows of what outlived a window of time, for one process */
	unsigned cards;	   /* rows of a diff */
};

struct sl_page_frame {
	uint32_t function, file, module, line;
	uint8_t python, folded, own;
};

/* The lines of a process, and the offset from their clock to Unix time. */
struct sl_page_timeline {
	const struct sl_timeline *timeline;
	int64_t unix_offset;
};

/* One card. */
struct sl_page_finding {
	const char *id, *severity, *advice;
	int process, device;	     /* -1: about the run, about no device */
	uint64_t from_unix, to_unix; /* 0: no time */
	uint64_t bytes;		     /* SL_UNKNOWN: none */
	char text[400];
	struct {
		char name[40], value[64];
	} evidence[6];
	unsigned evidence_count;
	uint32_t node;
};

struct sl_page {
	struct sl_report *report;	    /* NULL: only telemetry */
	struct sl_page_timeline *timelines; /* of each process */
	/*
	 * Where all timelines would take too much memory: makes that of one process, valid until the next call; NULL: they are
	 * in `timelines`.
	 */
	const struct sl_timeline *(*draw)(void *context, unsigned process);
	void *draw_context;
	int32_t *ranks; /* of each process, where there is no report */
	unsigned process_count;
	SL_VECTOR(struct sl_page_finding) findings;
	struct sl_page_budget budget;
	size_t left_stacks, left_rows; /* beyond the budget, for a diff */
	uint64_t t0_unix_ns, t1_unix_ns;
	bool timeless;	 /* a snapshot whose events have no times: each counts as a microsecond */
	unsigned *order; /* processes, unusual ones first */

	struct sl_map strings; /* text -> number */
	SL_VECTOR(const char *) texts;
	struct sl_map frame_ids; /* packed frame as text -> number + 1 */
	SL_VECTOR(struct sl_page_frame) frames;
	struct sl_idmap node_ids; /* parent << 32 | frame -> node */
	SL_VECTOR(uint32_t) node_parent;
	SL_VECTOR(uint32_t) node_frame;
	uint32_t **site_nodes;	      /* [process][site]: node + 1, 0: not resolved yet; NULL: none of it */
	struct sl_idmap *stack_nodes; /* [process]: python << 32 | native -> node */
	struct sl_json *j;	      /* the data, packed */
};

/* Between begin and open the caller fills t0_unix_ns, t1_unix_ns and `order`. */
void sl_page_begin(struct sl_page *page, unsigned processes, const struct sl_page_budget *budget);
void sl_page_open(struct sl_page *page, const char *source, const char *title, const char *run, const char *tag, const char *dry);
void sl_page_put_warning(void *page, const char *text); /* for each item of the array `warnings` */
void sl_page_close(struct sl_page *page);		/* writes given_up and the tables strings, frames, nodes */

uint32_t sl_page_string(struct sl_page *page, const char *text); /* NULL is "" and 0 */
uint32_t sl_page_stack(struct sl_page *page, unsigned process, struct sl_stack stack);
uint32_t sl_page_site(struct sl_page *page, unsigned process, uint32_t site); /* SL_NO_SITE: 0 */
/* Adds frames, innermost first, below `root` (0: none). */
uint32_t sl_page_frames(struct sl_page *page, uint32_t root, const struct sl_stack_frame *frames, unsigned count);
/* A stack of one frame that is not code: "120 smaller places". */
uint32_t sl_page_note(struct sl_page *page, const char *text);

/* ns since t0; earlier times give 0 */
double sl_page_time(const struct sl_page *page, unsigned process, uint64_t ns);

/* A member of the object that is open, in ns since t0. */
void sl_page_put_time(struct sl_page *page, const char *key, unsigned process, uint64_t ns); /* 0, SL_UNKNOWN: null */
void sl_page_put_unix(struct sl_page *page, const char *key, uint64_t unix_ns);		     /* 0: null */
void sl_page_row(struct sl_page *page, unsigned process); /* begins an object, whose first member is its process */

void sl_page_free(struct sl_page *page);

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
	const char *text;		      /* HTML that a page in a file shows until it is drawn; NULL on a server */
	const struct sl_telemetry *telemetry; /* beside a report the same run's: its analyses are findings too */
	unsigned ranks;			      /* of the telemetry, where there is no report */
	const unsigned *devices;	      /* of each of them */
	const struct sl_page_fits *fits;
	const char *path;
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

/* The parts of the page: each writes its keys and their values into the open map. */
void sl_page_lines(struct sl_page *page);				 /* lines */
void sl_page_heat(struct sl_page *page);				 /* heat */
void sl_page_moments(struct sl_page *page);				 /* moments */
void sl_page_places(struct sl_page *page);				 /* roles, places */
void sl_page_processes(struct sl_page *page);				 /* processes, devices */
void sl_page_fit(struct sl_page *page, const struct sl_page_fits *fits); /* fit */

/*
 * True: the page shows the site for this device.  Where PyTorch's allocator reports, the page shows its tensors and unused memory
 * in place of the driver's segments.
 */
bool sl_page_is_shown(const struct sl_model *model, const struct sl_site *site, int device);

/*
 * Adds what upstream's analyses say of a session: gap, collectives, first cause.  process_of: the process of a rank and pid
 * (-1: any); -1: none.
 */
void sl_page_session_findings(struct sl_page *page, const struct sl_session_answers *answers,
			      int (*process_of)(const struct sl_page *page, int64_t rank, int64_t pid));
struct sl_page_finding *sl_page_find(struct sl_page *page, const char *id, const char *severity);
void sl_page_put_findings(struct sl_page *page); /* findings */

/*
 * Writes one line of a process.  name: "" where `what` says all; shared: number of the device if several processes sample it,
 * else -1.
 */
void sl_page_put_line(struct sl_page *page, unsigned process, const struct sl_line *line, const char *name, int shared);
