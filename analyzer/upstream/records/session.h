/* SPDX-License-Identifier: MIT */
/*
 * A session: one process from start to end, its identity and its events in time order.
 */
#pragma once

#include "analyzer/upstream/records/event.h"

/* In the order of preference when one has to be chosen. */
enum sl_session_status { SL_SESSION_COMPLETED, SL_SESSION_INTERRUPTED, SL_SESSION_INCOMPLETE, SL_SESSION_RUNNING };

extern const char *const sl_session_status_names[];

struct sl_session_summary {
	const char *session_id, *host, *source;
	const char *job_id; /* or NULL */
	enum sl_session_status status;
	int64_t started_at_ns, ended_at_ns;
	bool has_end; /* false: ended_at_ns is unknown */
	int64_t pid;
	int64_t rank, local_rank, world_size;
};

/* What a session was read from; the last two are no telemetry of their own for upstream's issues. */
enum sl_session_kind {
	SL_SESSION_SINK,
	SL_SESSION_JSON,
	SL_SESSION_LINES,
	SL_SESSION_CSV,
	SL_SESSION_NATIVE,
	SL_SESSION_DIAGNOSE,
	SL_SESSION_BUNDLE,
};

extern const char *const sl_session_kind_names[];

struct sl_session {
	struct sl_session_summary summary;
	enum sl_session_kind kind;
	struct sl_v3_event *events; /* by time, in file order where equal */
	size_t count, capacity;
	bool borrowed;	      /* the events belong to another session */
	const char **sources; /* files, by name */
	size_t source_count;
	const char **warnings;
	size_t warning_count;
};

/* Read a summary; false when upstream's rules for it do not hold. Texts stay where they are. */
bool sl_session_summary_read(const struct sl_value *value, struct sl_session_summary *summary);
void sl_session_summary_write(struct sl_json *j, const char *key, const struct sl_session_summary *summary);

/* What the events say when there is no summary. Events are sorted and there is at least one. */
void sl_session_summary_infer(const struct sl_v3_event *events, size_t count, const char *source,
			      struct sl_session_summary *summary);

/* Which of two comes first: <0, 0, >0. */
int sl_session_summary_order(const struct sl_session_summary *a, const struct sl_session_summary *b);

void sl_session_add_event(struct sl_session *session, const struct sl_v3_event *event);
