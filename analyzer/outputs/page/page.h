/* SPDX-License-Identifier: MIT */
/*
 * The data of report.html, built from a report (doc/report-page.md has the format).  What may be given up to fit a
 * size is in struct sl_page_budget; everything else is the same at every size.
 *
 * Times in the page are ns since the run's first process started; texts, frames and stacks are numbers into
 * tables that are written last, when all of them are known.
 */
#ifndef ANALYZER_OUTPUTS_PAGE_PAGE_H
#define ANALYZER_OUTPUTS_PAGE_PAGE_H

#include "analyzer/drive.h"
#include "analyzer/map.h"
#include "analyzer/outputs/page/pack.h"

struct sl_page_budget {
	unsigned bins;	   /* of one line, at most */
	unsigned samples;  /* places of one moment; the smaller ones become one */
	unsigned moments;  /* of one process, beside peak, end, errors, leaks and churn */
	unsigned detailed; /* processes with all their lines; the others keep their total */
	unsigned heat;	   /* columns of the heat map */
	unsigned blocks;   /* of one segment map */
	unsigned cards;	   /* leaks and errors */
};

struct sl_page_frame {
	uint32_t function, file, module, line;
	uint8_t python;
};

struct sl_page {
	struct sl_report *report;
	struct sl_page_budget budget;
	uint64_t t0_unix_ns, t1_unix_ns;
	unsigned *order; /* processes, those unlike the others first */

	struct sl_map strings; /* text -> number */
	SL_VECTOR(const char *) texts;
	struct sl_map frame_ids; /* packed frame as text -> number + 1 */
	SL_VECTOR(struct sl_page_frame) frames;
	struct sl_idmap node_ids; /* parent << 32 | frame -> node */
	SL_VECTOR(uint32_t) node_parent;
	SL_VECTOR(uint32_t) node_frame;
	uint32_t **site_nodes;	     /* [process][site]: node + 1, 0: not resolved yet */
	struct sl_idmap *stack_nodes; /* [process]: python << 32 | native -> node */
	struct sl_pack pack;
};

void sl_page_build(struct sl_page *page, struct sl_report *report, const struct sl_page_budget *budget);
void sl_page_free(struct sl_page *page);

/* ---- between the files of this folder */

uint32_t sl_page_string(struct sl_page *page, const char *text); /* NULL is "" and 0 */
uint32_t sl_page_stack(struct sl_page *page, unsigned process, uint32_t python, uint32_t native, uint64_t caller);
uint32_t sl_page_site(struct sl_page *page, unsigned process, uint32_t site); /* SL_NO_SITE: 0 */
/* A stack of one frame that is no code: "120 smaller places". */
uint32_t sl_page_note(struct sl_page *page, const char *text);

/* ns since t0; NaN-free: times before it are 0 */
double sl_page_time(const struct sl_page *page, unsigned process, uint64_t ns);

void sl_page_key(struct sl_page *page, const char *key);
void sl_page_put_time(struct sl_page *page, const char *key, unsigned process, uint64_t ns); /* 0: nil */
void sl_page_put_device(struct sl_page *page, const char *key, int device);		      /* -1: nil */
void sl_page_put_known(struct sl_page *page, const char *key, uint64_t value);
void sl_page_put_text(struct sl_page *page, const char *key, const char *text);

/*
 * What is shown of a device: where PyTorch's allocator reports, its tensors and what it keeps unused stand for the
 * segments that it got from the driver.
 */
bool sl_page_is_shown(const struct sl_model *model, const struct sl_site *site, int device);

/* Known memory of a process at its largest, over all its devices the fullest one, and when; live at the end. */
uint64_t sl_page_peak(const struct sl_process *process, uint64_t *when);
uint64_t sl_page_end(const struct sl_process *process);

/* Parts of the page: each writes keys and their values into the open map. */
void sl_page_lines(struct sl_page *page);   /* lines */
void sl_page_heat(struct sl_page *page);    /* heat */
void sl_page_moments(struct sl_page *page); /* moments */
void sl_page_marks(struct sl_page *page);   /* marks, steps */
void sl_page_segments(struct sl_page *page); /* segments */
void sl_page_processes(struct sl_page *page); /* processes, devices */
void sl_page_tables(struct sl_page *page);    /* memory, libraries, labels, apis */
void sl_page_findings(struct sl_page *page);  /* ooms, leaks, findings */

#endif
