/* SPDX-License-Identifier: MIT */
/*
 * Writing OOM bundles: what led up to an out-of-memory error, in upstream's form (version 2) without its losses:
 * events.json keeps upstream's keys and adds those that V3 needs, so that reading it back gives the same events.
 */
#pragma once

#include "analyzer/upstream/records/session.h"

/* A file of our own in the bundle, listed in its manifest. The name must not look like telemetry. */
struct sl_bundle_file {
	const char *name;
	void (*write)(struct sl_json *j, void *context); /* one JSON document */
	void *context;
};

struct sl_bundle {
	int64_t created_at_ns; /* gives the folder its name */
	int64_t pid;
	const char *backend; /* cuda, rocm */
	const char *reason;  /* e.g. "message_pattern:out of memory", as Stormlog's Python side says: issues group with it */
	const char *exception_type, *exception_module, *exception_message, *context; /* or NULL */
	const struct sl_session_summary *session;				     /* or NULL */
	const struct sl_v3_event *events;					     /* the last ones, in time order */
	size_t event_count;
	/* Members of the objects custom_metadata and environment.json; may be NULL. */
	void (*custom)(struct sl_json *j, void *context);
	void (*environment)(struct sl_json *j, void *context);
	void *writer_context;
	const struct sl_bundle_file *files;
	size_t file_count;
};

/*
 * A new folder oom_dump_<utc>_<pid>_<backend>_<n> in dump_dir, complete or not there; its name is put into *name, in
 * the arena. false: errno says why.
 */
bool sl_bundle_write(struct sl_arena *arena, const char *dump_dir, const struct sl_bundle *bundle, const char **name);

/* Removes the oldest bundles until at most max_bytes are left.  Returns how many went. */
size_t sl_bundle_prune(const char *dump_dir, int64_t max_bytes);
