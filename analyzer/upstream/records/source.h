/* SPDX-License-Identifier: MIT */
/*
 * Reading the records of one file, whatever its form:
 *
 *	.jsonl	one object a line, in constant memory
 *	.json	an array of objects, an object with an array "events", or one record
 *	.csv	a header and rows, numbers and metadata as Stormlog's own reader takes them
 *
 * Anything else is read as lines. What cannot be read is a problem with file and line, and reading goes on.
 */
#pragma once

#include "analyzer/upstream/records/reader.h"

enum sl_source_form { SL_SOURCE_LINES, SL_SOURCE_JSON, SL_SOURCE_CSV };

enum sl_source_form sl_source_form(const char *path);

/* false when the file cannot be opened or read; that was reported as a problem too. */
bool sl_source_read(const char *path, const struct sl_source_reader *reader);
