/* SPDX-License-Identifier: MIT */
/* The parts of the page: each writes its keys and their values into the open map. */
#pragma once

#include "analyzer/outputs/page/document.h"
#include "analyzer/upstream/files/telemetry.h"

void sl_page_lines(struct sl_page *page);     /* lines */
void sl_page_heat(struct sl_page *page);      /* heat */
void sl_page_moments(struct sl_page *page);   /* moments */
void sl_page_places(struct sl_page *page);    /* roles, places */
void sl_page_marks(struct sl_page *page);     /* marks, steps */
void sl_page_segments(struct sl_page *page);  /* segments */
void sl_page_processes(struct sl_page *page); /* processes, devices */
void sl_page_tables(struct sl_page *page);    /* memory, libraries, labels, apis */
void sl_page_findings(struct sl_page *page);  /* ooms, leaks; takes the report's findings */
void sl_page_changes(struct sl_page *page);   /* changes */
void sl_page_reads(struct sl_page *page);     /* reads */
struct sl_page_fits;
void sl_page_fit(struct sl_page *page, const struct sl_page_fits *fits); /* fit */

/*
 * What is shown of a device: where PyTorch's allocator reports, its tensors and what it keeps unused stand for the
 * segments that it got from the driver.
 */
bool sl_page_is_shown(const struct sl_model *model, const struct sl_site *site, int device);

/*
 * Adds what upstream's analyses say of a session: gap, collectives, first cause.  process_of: the process of a rank and pid
 * (-1: any); -1: none.
 */
void sl_page_session_findings(struct sl_page *page, const struct sl_session *session,
			      int (*process_of)(const struct sl_page *page, int64_t rank, int64_t pid));
struct sl_page_finding *sl_page_find(struct sl_page *page, const char *id, const char *severity);
void sl_page_put_findings(struct sl_page *page); /* findings */

/*
 * Writes one line of a process.  name: "" where `what` says all; shared: number of the device if several processes sample it,
 * else -1.
 */
void sl_page_put_line(struct sl_page *page, unsigned process, const struct sl_line *line, const char *name, int shared);
