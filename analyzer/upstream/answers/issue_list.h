/* SPDX-License-Identifier: MIT */
/* Collects issues, where problems with the same fingerprint are one issue, and writes the array of them. */
#pragma once

#include "analyzer/base/arena.h"
#include "analyzer/base/json.h"
#include "analyzer/base/map.h"
#include "analyzer/base/value.h"

#define SL_ISSUE_NO_TIME INT64_MIN

struct sl_evidence {
	struct sl_evidence *next;
	const char *session_id, *source_path, *source_kind, *event_type, *bundle_path;
	int64_t timestamp_ns; /* SL_ISSUE_NO_TIME */
	int64_t rank;	      /* -1: unknown */
	const struct sl_value *metadata;
};

struct sl_issue {
	char id[31];
	const char *kind, *title, *severity;
	const struct sl_value *dimensions, *details;
	struct sl_evidence *first, *last;
	int64_t hits, first_ns, last_ns;
};

struct sl_issue_list {
	struct sl_arena arena;
	struct sl_map places; /* id -> place + 1 */
	struct sl_issue *list;
	size_t count, capacity;
};

/*
 * Adds a problem.  The issue keeps the first title, the worst severity and the last details.  All texts live in the list's
 * arena, or outlive it.
 */
void sl_issue_list_add(struct sl_issue_list *all, const char *kind, const char *title, const char *severity,
		       const struct sl_value *dimensions, const struct sl_value *details, const struct sl_evidence *evidence);

/* The array, the worst first.  states: see sl_issues_write. */
void sl_issue_list_write(struct sl_json *j, const char *key, struct sl_issue_list *all, const struct sl_value *states);
void sl_issue_list_free(struct sl_issue_list *all);

/* The first value of the states, or they as a whole, that is not as sl_issues_write takes them; NULL: all are. */
const struct sl_value *sl_issue_list_wrong_state(const struct sl_value *states);
