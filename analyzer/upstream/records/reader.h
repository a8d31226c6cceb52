/* SPDX-License-Identifier: MIT */
/* The receiver of a file's records: readers of every form of file (source.h, csv.h) hand the records to one. */
#pragma once

#include <stdio.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/value.h"

/* How much a problem cost. Upstream passes over a torn last line and refuses the file for anything else. */
enum sl_source_loss {
	SL_SOURCE_RECORD, /* this record */
	SL_SOURCE_TORN,	  /* the unfinished last line of a writer that died */
	SL_SOURCE_FILE,	  /* the rest of the file */
};

struct sl_source_reader {
	/* A record; it and all it points to are gone after the call. */
	void (*record)(void *context, const struct sl_value *raw, uint32_t line);
	void (*problem)(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason);
	void *context;
};

/* To be asked at each record.  True, with a problem: the file's time is used up (base/budget.h). */
struct sl_source_clock {
	struct sl_budget budget;
	uint32_t records;
};
void sl_source_clock_start(struct sl_source_clock *clock, FILE *file);
bool sl_source_clock_spent(struct sl_source_clock *clock, const struct sl_source_reader *reader, const char *path, uint32_t line);
