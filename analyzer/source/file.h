/* SPDX-License-Identifier: MIT */
/* A source file as its lines; source.h says which files are read. */
#pragma once

#include "analyzer/source/source.h"

struct sl_source_file {
	char *text; /* NULL: it cannot be read; a line's end is a NUL */
	size_t size;
	SL_VECTOR(uint32_t) lines; /* where each begins */
	uid_t owner;
	uint64_t changed_ns; /* Unix time */
	enum sl_source_why why;
};

/* NULL: `why` tells. */
const struct sl_source_file *sl_source_open(struct sl_source *source, const struct sl_trace *trace, const char *path,
					    enum sl_source_why *why);

/* Counted from 1; NULL: there is no such line. */
static inline const char *sl_source_file_line(const struct sl_source_file *file, uint32_t line)
{
	return line && line <= file->lines.count ? file->text + file->lines.item[line - 1] : NULL;
}

/* A copy that lives as long as the handle. */
const char *sl_source_keep(struct sl_source *source, const char *text);
