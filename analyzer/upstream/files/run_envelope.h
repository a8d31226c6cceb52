/* SPDX-License-Identifier: MIT */
/*
 * stormlog_run.json: the run as a whole, so that `stormlog query runs` lists it with its sessions and attachments.
 * Upstream refuses a file with a key it does not know: these structures have all there are.
 */
#pragma once

#include "analyzer/upstream/records/session.h"

struct sl_run_attachment {
	const char *title, *kind; /* e.g. "report", "native_trace" */
	const char *path;	  /* absolute, or relative to the envelope */
	const char *session_id;	  /* or NULL */
	int64_t start_ns, end_ns; /* or SL_EVENT_UNKNOWN */
};

struct sl_run_envelope {
	const char *run_id;		    /* not blank */
	const char *title, *job_id;	    /* or NULL */
	int64_t started_at_ns, ended_at_ns; /* or SL_EVENT_UNKNOWN */
	const char *const *tags;	    /* blank and repeated ones are left out */
	size_t tag_count;
	const struct sl_session_summary *const *sessions;
	size_t session_count;
	const struct sl_run_attachment *attachments;
	size_t attachment_count;
	const struct sl_value *metadata; /* an object, or NULL */
};

/* The document. */
void sl_run_envelope_write(struct sl_json *j, const struct sl_run_envelope *run);
