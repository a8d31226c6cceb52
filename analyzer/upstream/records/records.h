/* SPDX-License-Identifier: MIT */
/* Upstream's records: events, sessions, and the files that they are read from. */
#pragma once

#include "analyzer/base/json.h"
#include "analyzer/base/map.h"
#include "analyzer/base/utf8.h"

/* The receiver of a file's records: readers of every form of file hand the records to one. */

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

/*
 * One telemetry record: from any version of Python Stormlog to TelemetryEventV3.
 *
 * V3 is one flat object of 19 required and 4 optional keys; V2 lacks session_id; "legacy" is every record without
 * a key schema_version, whose fields are found under the names of several older writers. doc/telemetry.md has the rules.
 *
 * A record keeps JSON values, so integers are exact to 127 bits here; struct sl_v3_event (event.h) is the form that
 * the analyses use, with 63 bits.
 */

/* In the order in which V3 is written: by name. */
enum sl_record_field {
	SL_RECORD_ACTIVE,
	SL_RECORD_ALLOCATED,
	SL_RECORD_CHANGE,
	SL_RECORD_INACTIVE,
	SL_RECORD_RESERVED,
	SL_RECORD_COLLECTOR,
	SL_RECORD_CONTEXT,
	SL_RECORD_FREE,
	SL_RECORD_DEVICE,
	SL_RECORD_TOTAL,
	SL_RECORD_USED,
	SL_RECORD_EVENT_TYPE,
	SL_RECORD_HOST,
	SL_RECORD_JOB,
	SL_RECORD_LOCAL_RANK,
	SL_RECORD_METADATA,
	SL_RECORD_PID,
	SL_RECORD_RANK,
	SL_RECORD_INTERVAL,
	SL_RECORD_VERSION,
	SL_RECORD_SESSION,
	SL_RECORD_TIMESTAMP,
	SL_RECORD_WORLD_SIZE,
	SL_RECORD_FIELDS,
};

struct sl_record {
	struct sl_value field[SL_RECORD_FIELDS];
};

struct sl_record_rules {
	const char *session_id; /* for records without one; NULL: made from the record's time, host and pid */
	const char *collector;	/* for legacy records that name none; NULL is "legacy.unknown" */
	bool strict;		/* refuse legacy records */
};

struct sl_record_error {
	char reason[256];
};

/* The V3 form of `raw`. Strings and metadata are shared with raw or live in the arena. */
bool sl_record_normalize(struct sl_arena *arena, const struct sl_value *raw, const struct sl_record_rules *rules,
			 struct sl_record *record, struct sl_record_error *error);

/* Is `raw` a complete V2 or V3 record as it stands? Stricter than normalizing, which repairs session ids. */
bool sl_record_validate(const struct sl_value *raw, struct sl_record_error *error);

/* The V3 object, keys in order. */
void sl_record_write(struct sl_json *j, const char *key, const struct sl_record *record);

/* "legacy-" and the uuid5 of the parts joined by "::", NULL parts left out: the id of a session that had none. */
const char *sl_record_session_id(struct sl_arena *arena, const char *const *parts, size_t count);

/*
 * TelemetryEventV3 in the form the analyses use, and what kind of event it is.
 *
 * Bytes are bytes and times Unix nanoseconds. Counts are exact to 63 bits and ranks to 31; a record beyond that is
 * refused with a reason where it is loaded. Texts and metadata belong to whoever made the event.
 */

#define SL_EVENT_UNKNOWN ((int64_t)-1) /* a count that was not known */

struct sl_v3_event {
	int64_t timestamp_ns;
	int64_t allocated_bytes, reserved_bytes, change_bytes, used_bytes;
	int64_t active_bytes, inactive_bytes, free_bytes, total_bytes; /* may be SL_EVENT_UNKNOWN */
	int64_t device_id;					       /* -1: the CPU or none */
	int64_t pid;						       /* -1: unknown */
	int64_t interval_ms;
	int32_t rank, local_rank, world_size; /* 0, 0, 1 where there is no job */
	const char *session_id, *event_type, *collector, *host;
	const char *job_id, *context;	 /* or NULL */
	const struct sl_value *metadata; /* an object, or NULL for an empty one */
};

/* Where events that were read keep their texts and metadata, one copy of each. */
struct sl_event_store {
	struct sl_map texts;
	struct sl_map metadata; /* compact JSON -> struct sl_value */
	struct sl_arena arena;
};

void sl_event_store_free(struct sl_event_store *store);

/* The V3 object, keys in order. */
void sl_event_write(struct sl_json *j, const struct sl_v3_event *event);

/* An object of texts and how often each was counted in the map. */
void sl_event_write_counts(struct sl_json *j, const char *key, const struct sl_map *counts);

/* used - reserved: what the device holds beyond the allocator. Signed. */
int64_t sl_event_hidden_gap(const struct sl_v3_event *event);

/* "sample" exactly; sl_event_is_any_sample takes it with white space and in any case too. */
bool sl_event_is_sample(const struct sl_v3_event *event);
bool sl_event_is_any_sample(const struct sl_v3_event *event);
bool sl_event_is_alert(const struct sl_v3_event *event);
bool sl_event_is_oom(const struct sl_v3_event *event);
bool sl_event_is_degradation(const struct sl_v3_event *event);
bool sl_event_is_collector_transition(const struct sl_v3_event *event);

/* critical, warning, info or what the metadata says, as a low-cardinality text. */
const char *sl_event_severity(struct sl_arena *arena, const struct sl_v3_event *event);

/* A text for grouping: trimmed, lower case, hex numbers as <hex>, numbers as <num>, white space as one space;
 * `fallback` for NULL and blank. */
const char *sl_event_dimension(struct sl_arena *arena, const char *text, const char *fallback);

/* The same of any JSON value, whose text is Python's str(). */
const char *sl_event_dimension_of(struct sl_arena *arena, const struct sl_value *value, const char *fallback);

/* Stable sort by time. */
void sl_event_sort(struct sl_v3_event *events, size_t count);

/*
 * Who a process is in a distributed job: job id, rank, local rank, world size.
 *
 * Rules of Python Stormlog: an explicit value wins over the metadata's.  Missing: rank 0, local rank as rank, world size 1.
 * The environment, which Python Stormlog asks next, is not that of the process that wrote a file.
 */

enum sl_identity_field { SL_IDENTITY_JOB, SL_IDENTITY_RANK, SL_IDENTITY_LOCAL, SL_IDENTITY_WORLD, SL_IDENTITY_FIELDS };

extern const char *const sl_identity_names[SL_IDENTITY_FIELDS]; /* job_id, rank, local_rank, world_size */

/*
 * explicit_values, metadata: objects, or NULL.
 * On success values[] holds a string or null, then three integers with 0 <= rank, local rank < world size.
 * On failure *reason is a fixed text.
 */
bool sl_record_identity(const struct sl_value *explicit_values, const struct sl_value *metadata,
			struct sl_value values[SL_IDENTITY_FIELDS], const char **reason);

/*
 * A session: one process from start to end, its identity and its events in time order.
 */

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
	struct sl_session_answers *answers; /* what upstream finds; see upstream/answers/answers.h */
};

/* Read a summary; false when upstream's rules for it do not hold. Texts stay where they are. */
bool sl_session_summary_read(const struct sl_value *value, struct sl_session_summary *summary);
void sl_session_summary_write(struct sl_json *j, const char *key, const struct sl_session_summary *summary);

void sl_session_add_event(struct sl_session *session, const struct sl_v3_event *event);

/*
 * What the analyses work on: the events of one session in time order, whole or one rank's, as pointers into the
 * session. Made once per session, so that nothing goes through all events once per rank.
 */

struct sl_series {
	const struct sl_v3_event **events;
	size_t count;
};

struct sl_rank_series {
	int32_t rank;
	struct sl_series all, samples; /* samples: event_type "sample", trimmed and in any case */
};

struct sl_session_series {
	struct sl_series all;
	struct sl_rank_series *ranks; /* by rank */
	size_t rank_count;
};

/* In the arena. */
void sl_series_init(struct sl_session_series *series, const struct sl_session *session, struct sl_arena *arena);

/* Makes a session id for the records of a file that name none.  It depends on the path alone, so all who read it get the same. */
const char *sl_session_id_of_file(struct sl_arena *arena, const char *path);

/* For the segments of a sink: `path` is the directory or file as the user named it. */
const char *sl_session_id_of_sink(struct sl_arena *arena, const char *path);

/*
 * Reading the records of one file, whatever its form:
 *
 *	.jsonl	one object a line, in constant memory
 *	.json	an array of objects, an object with an array "events", or one record
 *	.csv	a header and rows, numbers and metadata as Stormlog's own reader takes them
 *
 * Anything else is read as lines. A bad record is a problem with file and line, and reading goes on.
 */

enum sl_source_form { SL_SOURCE_LINES, SL_SOURCE_JSON, SL_SOURCE_CSV };

enum sl_source_form sl_source_form(const char *path);

/* false when the file cannot be opened or read; that was reported as a problem too. */
bool sl_source_read(const char *path, const struct sl_source_reader *reader);
