/* SPDX-License-Identifier: MIT */
/* Stands in for sqlite.c in a build without SQLite. */
#include <errno.h>

#include "analyzer/exports/export.h"

static bool run(struct sl_export_job *job)
{
	fputs("stormlog-analyze: this build has no sqlite; csv and ndjson hold the same events\n", stderr);
	errno = 0;
	return false;
}

const struct sl_export sl_export_sqlite = {.name = "sqlite", .summary = "not in this build", .wants_path = true, .run = run};
