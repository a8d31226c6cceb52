/* SPDX-License-Identifier: MIT */
/*
 * One telemetry record: from any version of Python Stormlog to TelemetryEventV3.
 *
 * V3 is one flat object of 19 required and 4 optional keys; V2 lacks session_id; "legacy" is every record without
 * a key schema_version, whose fields are found under the names of several older writers. doc/telemetry.md has the rules.
 *
 * A record keeps JSON values, so integers are exact to 127 bits here; struct sl_v3_event (event.h) is the form that
 * the analyses use, with 63 bits.
 */
#pragma once

#include "analyzer/base/json.h"
#include "analyzer/base/value.h"

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
