/* SPDX-License-Identifier: MIT */
/*
 * An output turns a report into bytes.  To add one: a file here with a const descriptor, a line in list.c
 * (doc/add-an-output.md).  Outputs run on the main thread, after every analysis.
 */
#ifndef ANALYZER_OUTPUTS_OUTPUT_H
#define ANALYZER_OUTPUTS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "analyzer/drive.h"

struct sl_output {
	const char *name; /* of the file or folder inside analysis/: report.json, telemetry */
	/* One of the two.  false: an error of the file system, in errno. */
	bool (*file)(struct sl_report *report, FILE *out);
	bool (*folder)(struct sl_report *report, const char *path); /* `path` does not exist yet; made when needed */
};

/* What makes up analysis/, in the order of writing; NULL ends it. */
extern const struct sl_output *const sl_outputs[];

/* report.json, for --json */
bool sl_json_report(struct sl_report *report, FILE *out);

/* The summary for people.  colour: escape sequences; ascii: no character beyond it; saved: path of the written
 * folder, NULL: nothing was written. */
struct sl_text_style {
	bool colour, ascii;
	unsigned columns;
	const char *saved;
};
void sl_text_report(struct sl_report *report, FILE *out, const struct sl_text_style *style);

/* Path of the bundle of an out-of-memory error inside analysis/, in a buffer of PATH_MAX; false: it has none. */
bool sl_oom_bundle_path(const struct sl_process *process, const struct sl_oom *oom, char *path, size_t size);

/*
 * Write all of sl_outputs into `folder`, which is replaced as a whole: a reader sees the old one or the new one.
 * On failure the old one stays and `why` tells; false.
 */
bool sl_outputs_write(struct sl_report *report, const char *folder, char *why, size_t size);

#endif
