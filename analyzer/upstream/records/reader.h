/* SPDX-License-Identifier: MIT */
/* Who takes the records of a file: every form of file (source.h, csv.h) hands them to one of these. */
#ifndef ANALYZER_UPSTREAM_RECORDS_READER_H
#define ANALYZER_UPSTREAM_RECORDS_READER_H

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
	/* A diagnose timeline instead of records; NULL: that is a problem. */
	void (*timeline)(void *context, const struct sl_value *payload);
	void *context;
};

#endif
