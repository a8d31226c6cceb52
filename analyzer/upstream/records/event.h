/* SPDX-License-Identifier: MIT */
/*
 * TelemetryEventV3 in the form the analyses use, and what kind of event it is.
 *
 * Bytes are bytes and times Unix nanoseconds. Counts are exact to 63 bits and ranks to 31; a record beyond that is
 * refused by sl_event_from_record with a reason. Texts and metadata belong to whoever made the event.
 */
#pragma once

#include "analyzer/base/arena.h"
#include "analyzer/base/json.h"
#include "analyzer/base/map.h"
#include "analyzer/base/utf8.h"
#include "analyzer/upstream/records/record.h"

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

bool sl_event_from_record(struct sl_event_store *store, const struct sl_record *record, struct sl_v3_event *event,
			  struct sl_record_error *error);

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
const char *sl_event_backend(struct sl_arena *arena, const struct sl_v3_event *event);

/* A text for grouping: trimmed, lower case, hex numbers as <hex>, numbers as <num>, white space as one space;
 * `fallback` for NULL and blank. */
const char *sl_event_dimension(struct sl_arena *arena, const char *text, const char *fallback);

/* The same of any JSON value, whose text is Python's str(). */
const char *sl_event_dimension_of(struct sl_arena *arena, const struct sl_value *value, const char *fallback);

/* Stable sort by time. */
void sl_event_sort(struct sl_v3_event *events, size_t count);
