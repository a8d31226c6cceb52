/* SPDX-License-Identifier: MIT */
/* Kinds of findings and verdicts, and the ids under which a user meets them (found.def). */
#pragma once

enum sl_found {
	SL_FOUND_none,
#define KIND(family, name, id) SL_FOUND_##family##_##name,
#define GAP(name)	       SL_FOUND_##name,
#include "analyzer/report/found.def"
	SL_FOUND_COUNT
};

/* "leak.kept" */
const char *sl_found_name(enum sl_found kind);
/* "leak" */
const char *sl_found_family(enum sl_found kind);
/* "leak.growing": several kinds share an id. */
const char *sl_found_id(enum sl_found kind);
/* The kind of that name, which may be an id's.  SL_FOUND_none: there is no such kind. */
enum sl_found sl_found_by_name(const char *name);
