/* SPDX-License-Identifier: MIT */
/* What the verbs over many runs share: the catalogue and the choice of runs in it.  One thread. */
#pragma once

#include "analyzer/catalogue/scan.h"
#include "analyzer/commands/arguments.h"

/* The first rows of such a verb's table; the filters are those of Python Stormlog's queries. */
enum { SL_CATALOGUED_OPTIONS = 13 };
/* clang-format off */
#define SL_OPTION_CATALOGUED \
	{"--catalogue", 0, "FILE", "the catalogue of runs (default: stormlog/catalogue.sqlite of $XDG_STATE_HOME)"}, \
	{"--run-id", 0, "ID", "only the run of this id"}, \
	{"--session-id", 0, "ID", "only runs with this session (each process is one)"}, \
	{"--job-id", 0, "ID", "only runs of this job"}, \
	{"--rank", 0, "N", "only runs in which this rank was recorded"}, \
	{"--world-size", 0, "N", "only runs of so many ranks"}, \
	{"--status", 0, "WORD", "only runs that are completed, failed, killed, running, unknown or damaged"}, \
	{"--has-oom-bundle", 0, NULL, "only runs that ran out of memory"}, \
	{"--no-has-oom-bundle", 0, NULL, "only runs that did not"}, \
	{"--created-after", 0, "TIME", "only runs begun after that: a date, a date and a time, or -7d"}, \
	{"--created-before", 0, "TIME", "only runs begun before that"}, \
	{"--quiet", 'q', NULL, "no progress"}, \
	{"--utc", 0, NULL, "times in UTC (default: local)"}
/* clang-format on */

struct sl_catalogued {
	const char *catalogue; /* NULL: the default */
	const char *symbols;   /* --symbols */
	bool quiet, utc;
	struct sl_arena arena;
	const char *filters;	/* the filters as terms of a query; NULL: none */
	struct sl_query query;	/* the user's query and the filters */
	struct sl_store *store; /* NULL: not open */
	struct sl_scan scan;
	bool narrowed; /* paths were named, so only runs found there are shown */
};

/* Takes one of SL_OPTION_CATALOGUED; false: the value is invalid. */
bool sl_catalogued_take(struct sl_catalogued *c, int option, const char *value);

/*
 * Opens the catalogue, adds what is new below the existing paths (without the first `skip`), and parses the one that does not
 * exist as a query (none: every run).  After this the program is confined (begin.h).  Returns an exit status after printing
 * why, or -1: go on.  Call sl_catalogued_close in every case.
 */
int sl_catalogued_open(struct sl_catalogued *c, const struct sl_arguments *parsed, unsigned skip);
/* The same in single steps, for a verb that adds no runs; results as above. */
bool sl_catalogued_is_query(const char *text); /* true: neither an existing path nor written like one */
/* inputs: paths that are read, ended by NULL, or NULL: the catalogue is made under none of their names. */
int sl_catalogued_store(struct sl_catalogued *c, bool write, char *const *inputs);
int sl_catalogued_query(struct sl_catalogued *c, const char *text);
bool sl_catalogued_has(const struct sl_catalogued *c, int64_t run);
int sl_catalogued_fail(struct sl_catalogued *c); /* prints why the store failed */
/* Returns the exit status: of one that was fine, SL_EXIT_UNSAVED where a pack found no room to be read. */
int sl_catalogued_close(struct sl_catalogued *c, int status);

/* 2026-11-21 10:30, or "unknown". */
#define SL_CATALOGUED_TIME 24
const char *sl_catalogued_time(const struct sl_catalogued *c, char out[SL_CATALOGUED_TIME], int64_t unix_ns);
