/* SPDX-License-Identifier: MIT */
/* Longer than other files: the rules of V2, V3 and legacy records end in the same checks. */
#include "analyzer/upstream/records/records.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/hash.h"
#include "analyzer/base/memory.h"

const char *const sl_identity_names[SL_IDENTITY_FIELDS] = {"job_id", "rank", "local_rank", "world_size"};

static const char *const number_reasons[] = {NULL, "rank must be an integer", "local_rank must be an integer",
					     "world_size must be an integer"};

static bool check(struct sl_value *values, const char **reason)
{
	static const char *const negative[] = {NULL, "rank must be >= 0", "local_rank must be >= 0", "world_size must be >= 1"};
	struct sl_value *job = &values[SL_IDENTITY_JOB];
	__int128 world;

	*reason = job->kind != SL_VALUE_NULL && job->kind != SL_VALUE_STRING	? "job_id must be a string"
		  : job->kind == SL_VALUE_STRING && sl_utf8_is_blank(job->text) ? "job_id must be a non-empty string"
										: NULL;
	for (int i = SL_IDENTITY_RANK; i < SL_IDENTITY_FIELDS && !*reason; i++)
		if (values[i].kind != SL_VALUE_INT)
			*reason = number_reasons[i];
		else if (values[i].integer < (i == SL_IDENTITY_WORLD))
			*reason = negative[i];
	if (*reason)
		return false;
	world = values[SL_IDENTITY_WORLD].integer;
	if (values[SL_IDENTITY_RANK].integer >= world)
		*reason = "rank must be < world_size";
	else if (values[SL_IDENTITY_LOCAL].integer >= world)
		*reason = "local_rank must be < world_size";
	return !*reason;
}

bool sl_record_identity(const struct sl_value *explicit_values, const struct sl_value *metadata,
			struct sl_value values[SL_IDENTITY_FIELDS], const char **reason)
{
	for (int i = 0; i < SL_IDENTITY_FIELDS; i++) {
		const struct sl_value *value = sl_value_get(explicit_values, sl_identity_names[i]);

		if (!value || value->kind == SL_VALUE_NULL)
			value = sl_value_get(metadata, sl_identity_names[i]);
		values[i] = value ? *value : (struct sl_value){.kind = SL_VALUE_NULL};
	}
	if (values[SL_IDENTITY_WORLD].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_WORLD] = sl_value_of_int(1);
	if (values[SL_IDENTITY_RANK].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_RANK] = sl_value_of_int(0);
	if (values[SL_IDENTITY_LOCAL].kind == SL_VALUE_NULL)
		values[SL_IDENTITY_LOCAL] = values[SL_IDENTITY_RANK];
	return check(values, reason);
}

enum kind {
	WHOLE,	       /* integer, at least `least` */
	WHOLE_OR_NULL, /* the same or null */
	ANY_WHOLE,     /* integer of any sign */
	TEXT,	       /* string, not blank */
	TEXT_OR_NULL,  /* string, may be blank, or null */
	JOB_ID,	       /* string, not blank, or null */
	OBJECT,
	VERSION,
};

/* What V3 says of each key, in the order of enum sl_record_field. */
static const struct {
	const char *name;
	enum kind kind;
	int least;
	bool optional;
} fields[SL_RECORD_FIELDS] = {
	[SL_RECORD_ACTIVE] = {"allocator_active_bytes", WHOLE_OR_NULL},
	[SL_RECORD_ALLOCATED] = {"allocator_allocated_bytes", WHOLE},
	[SL_RECORD_CHANGE] = {"allocator_change_bytes", ANY_WHOLE},
	[SL_RECORD_INACTIVE] = {"allocator_inactive_bytes", WHOLE_OR_NULL},
	[SL_RECORD_RESERVED] = {"allocator_reserved_bytes", WHOLE},
	[SL_RECORD_COLLECTOR] = {"collector", TEXT},
	[SL_RECORD_CONTEXT] = {"context", TEXT_OR_NULL},
	[SL_RECORD_FREE] = {"device_free_bytes", WHOLE_OR_NULL},
	[SL_RECORD_DEVICE] = {"device_id", ANY_WHOLE},
	[SL_RECORD_TOTAL] = {"device_total_bytes", WHOLE_OR_NULL},
	[SL_RECORD_USED] = {"device_used_bytes", WHOLE},
	[SL_RECORD_EVENT_TYPE] = {"event_type", TEXT},
	[SL_RECORD_HOST] = {"host", TEXT},
	[SL_RECORD_JOB] = {"job_id", JOB_ID, .optional = true},
	[SL_RECORD_LOCAL_RANK] = {"local_rank", WHOLE, .optional = true},
	[SL_RECORD_METADATA] = {"metadata", OBJECT},
	[SL_RECORD_PID] = {"pid", WHOLE, -1},
	[SL_RECORD_RANK] = {"rank", WHOLE, .optional = true},
	[SL_RECORD_INTERVAL] = {"sampling_interval_ms", WHOLE},
	[SL_RECORD_VERSION] = {"schema_version", VERSION},
	[SL_RECORD_SESSION] = {"session_id", TEXT},
	[SL_RECORD_TIMESTAMP] = {"timestamp_ns", WHOLE},
	[SL_RECORD_WORLD_SIZE] = {"world_size", WHOLE, 1, .optional = true},
};

/* Where each part of the identity goes, in the order of enum sl_identity_field. */
static const enum sl_record_field identity_fields[SL_IDENTITY_FIELDS] = {SL_RECORD_JOB, SL_RECORD_RANK, SL_RECORD_LOCAL_RANK,
									 SL_RECORD_WORLD_SIZE};

static bool __attribute__((format(printf, 2, 3))) fail(struct sl_record_error *error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(error->reason, sizeof(error->reason), format, args);
	va_end(args);
	sl_utf8_printable(error->reason);
	return false;
}

static bool is_number(const struct sl_value *value)
{
	return sl_value_is(value, SL_VALUE_INT) || sl_value_is(value, SL_VALUE_DOUBLE);
}

static bool is_text(const struct sl_value *value)
{
	return sl_value_is(value, SL_VALUE_STRING) && !sl_utf8_is_blank(value->text);
}

static bool check_field(int i, const struct sl_value *value, struct sl_record_error *error)
{
	const char *name = fields[i].name;

	switch (fields[i].kind) {
	case WHOLE_OR_NULL:
		if (value->kind == SL_VALUE_NULL)
			return true;
		/* fallthrough */
	case WHOLE:
		if (value->kind == SL_VALUE_INT && value->integer < fields[i].least)
			return fail(error, "%s must be >= %d", name, fields[i].least);
		/* fallthrough */
	case ANY_WHOLE:
	case VERSION:
		return value->kind == SL_VALUE_INT || fail(error, "%s must be an integer", name);
	case TEXT_OR_NULL:
		return value->kind == SL_VALUE_NULL || value->kind == SL_VALUE_STRING || fail(error, "%s must be a string", name);
	case JOB_ID:
		if (value->kind == SL_VALUE_NULL)
			return true;
		/* fallthrough */
	case TEXT:
		if (value->kind != SL_VALUE_STRING && value->kind != SL_VALUE_NULL)
			return fail(error, "%s must be a string", name);
		return is_text(value) || fail(error, "%s must be a non-empty string", name);
	case OBJECT:
		return value->kind == SL_VALUE_OBJECT || fail(error, "%s must be an object", name);
	}
	return false;
}

/* The rules that hold for every V3 record, once each field is in its place. */
static bool check_record(const struct sl_record *record, struct sl_record_error *error)
{
	const struct sl_value *total = &record->field[SL_RECORD_TOTAL];

	for (int i = 0; i < SL_RECORD_FIELDS; i++)
		if (!check_field(i, &record->field[i], error))
			return false;
	if (total->kind == SL_VALUE_NULL)
		return true;
	if (record->field[SL_RECORD_USED].integer > total->integer)
		return fail(error, "device_used_bytes cannot exceed device_total_bytes");
	if (record->field[SL_RECORD_FREE].kind == SL_VALUE_INT && record->field[SL_RECORD_FREE].integer > total->integer)
		return fail(error, "device_free_bytes cannot exceed device_total_bytes");
	return true;
}

/* Sort the members of a V2 or V3 object into their places; missing and unknown names are errors.
 * without: a field that need not and must not be there, or SL_RECORD_FIELDS. */
static bool collect(const struct sl_value *raw, int without, struct sl_record *record, struct sl_record_error *error)
{
	bool seen[SL_RECORD_FIELDS] = {false};

	for (uint32_t m = 0; m < raw->count; m++) {
		int i = 0;

		while (i < SL_RECORD_FIELDS && strcmp(fields[i].name, raw->members[m].key) != 0)
			i++;
		if (i == SL_RECORD_FIELDS || i == without)
			return fail(error, "unknown field: %.100s", raw->members[m].key);
		seen[i] = true;
		record->field[i] = raw->members[m].value;
		if (fields[i].optional && !check_field(i, &record->field[i], error))
			return false; /* an explicit null is an error where a missing key is not */
	}
	for (int i = 0; i < SL_RECORD_FIELDS; i++)
		if (!seen[i] && !fields[i].optional && i != without)
			return fail(error, "missing field: %s", fields[i].name);
	return true;
}

static bool resolve_identity(const struct sl_value *raw, const struct sl_value *metadata, struct sl_record *record,
			     struct sl_record_error *error)
{
	struct sl_value identity[SL_IDENTITY_FIELDS];
	const char *reason;

	if (!sl_record_identity(raw, metadata, identity, &reason))
		return fail(error, "%s", reason);
	for (int i = 0; i < SL_IDENTITY_FIELDS; i++)
		record->field[identity_fields[i]] = identity[i];
	return true;
}

static bool check_version(const struct sl_value *version, struct sl_record_error *error)
{
	if (!sl_value_is(version, SL_VALUE_INT))
		return fail(error, "schema_version must be an integer");
	if (version->integer != 2 && version->integer != 3)
		return fail(error, "unsupported schema_version: %lld", (long long)version->integer);
	return true;
}

bool sl_record_validate(const struct sl_value *raw, struct sl_record_error *error)
{
	struct sl_record record = {0};

	if (!sl_value_is(raw, SL_VALUE_OBJECT))
		return fail(error, "record must be an object");
	const struct sl_value *version = sl_value_get(raw, "schema_version");

	if (!check_version(version, error))
		return false;
	bool v2 = version->integer == 2;

	if (!collect(raw, v2 ? SL_RECORD_SESSION : SL_RECORD_FIELDS, &record, error))
		return false;
	if (v2)
		record.field[SL_RECORD_SESSION] = sl_value_of_text("none");
	return resolve_identity(raw, NULL, &record, error) && check_record(&record, error);
}

static void put_uuid5(uint8_t *bytes, char out[37])
{
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 5 << 4);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	for (int i = 0; i < 16; i++) {
		bool dash = i == 4 || i == 6 || i == 8 || i == 10;

		out += sprintf(out, dash ? "-%02x" : "%02x", bytes[i]);
	}
}

/* uuid5(NAMESPACE_URL, name) as text. */
static void hash_uuid5_url(const char *name, char out[37])
{
	static const uint8_t namespace_url[16] = {0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1,
						  0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8};
	size_t length = strlen(name);
	uint8_t digest[20], *data = sl_memory_must(malloc(length + 16));

	memcpy(data, namespace_url, 16);
	memcpy(data + 16, name, length);
	sl_hash_sha1(data, length + 16, digest);
	free(data);
	put_uuid5(digest, out);
}

const char *sl_record_session_id(struct sl_arena *arena, const char *const *parts, size_t count)
{
	const char *separator = "";
	char uuid[37], *name, *end;
	size_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += parts[i] ? strlen("::") + strlen(parts[i]) : 0;
	name = end = sl_memory_must(calloc(length + 1, 1));
	for (size_t i = 0; i < count; i++)
		if (parts[i]) {
			end = stpcpy(stpcpy(end, separator), parts[i]);
			separator = "::";
		}
	hash_uuid5_url(name, uuid);
	free(name);
	return sl_arena_printf(arena, "legacy-%s", uuid);
}

/* str(value) of Python; NULL for None. Lists and objects never get here with a valid record. */
static const char *to_text(struct sl_arena *arena, const struct sl_value *value, const char *missing)
{
	char number[40];

	if (!value)
		return missing;
	switch (value->kind) {
	case SL_VALUE_STRING:
		return value->text;
	case SL_VALUE_BOOL:
		return value->truth ? "True" : "False";
	case SL_VALUE_DOUBLE:
		if (isnan(value->real))
			return "nan";
		if (isinf(value->real))
			return value->real < 0 ? "-inf" : "inf";
		sl_json_repr(value->real, number);
		return sl_arena_strdup(arena, number);
	case SL_VALUE_INT: {
		struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);

		sl_json_int128(j, NULL, value->integer);
		const char *digits = sl_arena_strdup(arena, sl_json_text(j, NULL));

		sl_json_close(j);
		return digits;
	}
	default:
		return NULL;
	}
}

static const char *session_of(struct sl_arena *arena, const struct sl_value *raw, const struct sl_value *metadata,
			      const struct sl_record_rules *rules)
{
	const struct sl_value *id = sl_value_get(raw, "session_id");

	if (!id || id->kind == SL_VALUE_NULL)
		id = sl_value_get(metadata, "session_id");
	if (is_text(id))
		return id->text;
	if (rules->session_id)
		return rules->session_id;
	const struct sl_value *time = sl_value_get(raw, "timestamp_ns");
	const char *parts[] = {
		to_text(arena, time ? time : sl_value_get(raw, "timestamp"), "unknown"),
		to_text(arena, sl_value_get(raw, "host"), "unknown"),
		to_text(arena, sl_value_get(raw, "pid"), "-1"),
	};

	return sl_record_session_id(arena, parts, 3);
}

static bool normalize_versioned(struct sl_arena *arena, const struct sl_value *raw, const struct sl_record_rules *rules,
				struct sl_record *record, struct sl_record_error *error)
{
	const struct sl_value *metadata = sl_value_get(raw, "metadata");
	bool has_session = sl_value_get(raw, "session_id") != NULL;

	if (!check_version(sl_value_get(raw, "schema_version"), error))
		return false;
	if (metadata && metadata->kind != SL_VALUE_OBJECT)
		return fail(error, "metadata must be an object");
	if (!collect(raw, has_session ? SL_RECORD_FIELDS : SL_RECORD_SESSION, record, error))
		return false;
	record->field[SL_RECORD_SESSION] = sl_value_of_text(session_of(arena, raw, metadata, rules));
	record->field[SL_RECORD_VERSION] = sl_value_of_int(3);
	return resolve_identity(raw, NULL, record, error) && check_record(record, error);
}

/* --- legacy ------------------------------------------------------------------------------------------------ */

/* The first of the names that is a key, whatever its value. */
static const struct sl_value *first_key(const struct sl_value *raw, const char *const *names, size_t count)
{
	const struct sl_value *value = NULL;

	for (size_t i = 0; i < count && !value; i++)
		value = sl_value_get(raw, names[i]);
	return value;
}
#define FIRST(raw, ...) first_key(raw, (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static struct sl_value or_else(const struct sl_value *value, struct sl_value other)
{
	return value ? *value : other;
}

static bool starts_with(const char *string, const char *prefix)
{
	return strncmp(string, prefix, strlen(prefix)) == 0;
}

/* int(x) of a double that fits, as Python truncates it. */
static bool truncate_double(double real, const char *name, struct sl_value *out, struct sl_record_error *error)
{
	if (!(fabs(real) < 1e37)) /* NaN too */
		return fail(error, "%s is out of range", name);
	*out = sl_value_of_int((__int128)real);
	return true;
}

static double to_double(const struct sl_value *value)
{
	return value->kind == SL_VALUE_INT ? (double)value->integer : value->real;
}

static bool legacy_timestamp(const struct sl_value *raw, struct sl_value *out, struct sl_record_error *error)
{
	const struct sl_value *exact = sl_value_get(raw, "timestamp_ns"), *seconds = sl_value_get(raw, "timestamp");

	if (exact) {
		*out = *exact;
		return true;
	}
	if (!is_number(seconds))
		return fail(error, "legacy record is missing a valid timestamp");
	return truncate_double(to_double(seconds) * 1e9, "timestamp", out, error);
}

static struct sl_value legacy_device(struct sl_arena *arena, const struct sl_value *raw)
{
	const struct sl_value *id = sl_value_get(raw, "device_id");
	const char *device = sl_value_get_text(raw, "device");

	if (id)
		return *id;
	if (device) {
		const char *lower = sl_utf8_lower(arena, device), *colon = strrchr(lower, ':');

		if (strstr(lower, "cpu"))
			return sl_value_of_int(-1);
		if (colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) && strlen(colon + 1) < 19) {
			long long number;

			sscanf(colon + 1, "%lld", &number);
			return sl_value_of_int(number);
		}
		if (starts_with(lower, "/gpu"))
			return sl_value_of_int(0);
	}
	return sl_value_of_int(sl_value_get(raw, "memory_mb") ? 0 : -1);
}

static bool legacy_allocated(const struct sl_value *raw, struct sl_value *out, struct sl_record_error *error)
{
	const struct sl_value *bytes = FIRST(raw, "allocator_allocated_bytes", "memory_allocated");
	const struct sl_value *megabytes = sl_value_get(raw, "memory_mb");

	if (bytes) {
		*out = *bytes;
		return true;
	}
	if (is_number(megabytes))
		return truncate_double(to_double(megabytes) * 1048576, "memory_mb", out, error);
	*out = or_else(sl_value_get(raw, "device_used_bytes"), sl_value_of_int(0));
	return true;
}

static struct sl_value legacy_collector(struct sl_arena *arena, const struct sl_value *raw, const struct sl_value *metadata,
					const struct sl_record_rules *rules, const struct sl_value *device)
{
	static const struct {
		const char *backend, *collector;
	} collectors[] = {
		{"mps", "stormlog.mps_tracker"},
		{"rocm", "stormlog.rocm_tracker"},
		{"cuda", "stormlog.cuda_tracker"},
		{"cpu", "stormlog.cpu_tracker"},
	};
	const struct sl_value *collector = sl_value_get(raw, "collector"), *backend = sl_value_get(raw, "backend");

	if (is_text(collector))
		return *collector;
	if (!backend)
		backend = sl_value_get(metadata, "backend");
	for (size_t i = 0; i < 4 && sl_value_is(backend, SL_VALUE_STRING); i++)
		if (sl_utf8_matches(backend->text, collectors[i].backend))
			return sl_value_of_text(collectors[i].collector);
	if (sl_value_get(raw, "memory_mb"))
		return sl_value_of_text("stormlog.tensorflow.memory_tracker");
	if (sl_value_get(raw, "memory_allocated"))
		return sl_value_of_text(device->kind == SL_VALUE_INT && device->integer == -1 ? "stormlog.cpu_tracker"
											      : "stormlog.cuda_tracker");
	return sl_value_of_text(rules->collector ? rules->collector : "legacy.unknown");
}

static void set_member(struct sl_member *members, uint32_t *count, const char *key, const struct sl_value *value)
{
	uint32_t at = 0;

	while (at < *count && strcmp(members[at].key, key) != 0)
		at++;
	*count += at == *count;
	members[at].key = key;
	members[at].value = *value;
}

/* The object `metadata`, overlaid with every key metadata_X. */
static bool legacy_metadata(struct sl_arena *arena, const struct sl_value *raw, struct sl_value *out, struct sl_record_error *error)
{
	const struct sl_value *own = sl_value_get(raw, "metadata");
	uint32_t own_count = sl_value_is(own, SL_VALUE_OBJECT) ? own->count : 0, count = own_count;

	if (own && own->kind != SL_VALUE_NULL && own->kind != SL_VALUE_OBJECT)
		return fail(error, "metadata must be an object when provided");
	struct sl_member *members = sl_arena_alloc(arena, (own_count + raw->count) * sizeof(*members));

	if (own_count)
		memcpy(members, own->members, own_count * sizeof(*members));
	for (uint32_t i = 0; i < raw->count; i++)
		if (starts_with(raw->members[i].key, "metadata_"))
			set_member(members, &count, raw->members[i].key + strlen("metadata_"), &raw->members[i].value);
	*out = (struct sl_value){.kind = SL_VALUE_OBJECT, .count = count, .members = members};
	return true;
}

/* What became a field of its own does not stay in the metadata. */
static void drop_identity(struct sl_value *metadata)
{
	struct sl_member *members = (struct sl_member *)metadata->members;
	uint32_t kept_count = 0;

	for (uint32_t i = 0; i < metadata->count; i++) {
		bool drop = strcmp(members[i].key, "session_id") == 0;

		for (int k = 0; k < SL_IDENTITY_FIELDS; k++)
			drop = drop || strcmp(members[i].key, sl_identity_names[k]) == 0;
		if (!drop)
			members[kept_count++] = members[i];
	}
	metadata->count = kept_count;
}

static struct sl_value legacy_free(const struct sl_value *raw, const struct sl_value *total, const struct sl_value *used)
{
	const struct sl_value *free_bytes = sl_value_get(raw, "device_free_bytes");

	if (free_bytes)
		return *free_bytes;
	if (total->kind != SL_VALUE_INT || used->kind != SL_VALUE_INT)
		return (struct sl_value){.kind = SL_VALUE_NULL};
	return sl_value_of_int(total->integer > used->integer ? total->integer - used->integer : 0);
}

static bool normalize_legacy(struct sl_arena *arena, const struct sl_value *raw, const struct sl_record_rules *rules,
			     struct sl_record *record, struct sl_record_error *error)
{
	struct sl_value *field = record->field, metadata;
	const struct sl_value null = {.kind = SL_VALUE_NULL};

	if (!legacy_metadata(arena, raw, &metadata, error) || !legacy_timestamp(raw, &field[SL_RECORD_TIMESTAMP], error) ||
	    !legacy_allocated(raw, &field[SL_RECORD_ALLOCATED], error))
		return false;
	const struct sl_value *total = FIRST(raw, "device_total_bytes", "total_memory", "device_total", "total_bytes");

	if (!total)
		total = FIRST(&metadata, "total_memory", "device_total", "total_bytes");
	const struct sl_value *pid = sl_value_get(raw, "pid"), *host = sl_value_get(raw, "host");

	field[SL_RECORD_DEVICE] = legacy_device(arena, raw);
	field[SL_RECORD_RESERVED] = or_else(FIRST(raw, "allocator_reserved_bytes", "memory_reserved"), field[SL_RECORD_ALLOCATED]);
	field[SL_RECORD_CHANGE] = or_else(FIRST(raw, "allocator_change_bytes", "memory_change"), sl_value_of_int(0));
	field[SL_RECORD_ACTIVE] = or_else(sl_value_get(raw, "allocator_active_bytes"), null);
	field[SL_RECORD_INACTIVE] = or_else(sl_value_get(raw, "allocator_inactive_bytes"), null);
	field[SL_RECORD_USED] = or_else(sl_value_get(raw, "device_used_bytes"), field[SL_RECORD_ALLOCATED]);
	field[SL_RECORD_TOTAL] = or_else(total, null);
	field[SL_RECORD_FREE] = legacy_free(raw, &field[SL_RECORD_TOTAL], &field[SL_RECORD_USED]);
	field[SL_RECORD_EVENT_TYPE] = or_else(FIRST(raw, "event_type", "type"), sl_value_of_text("sample"));
	field[SL_RECORD_INTERVAL] = or_else(sl_value_get(raw, "sampling_interval_ms"), sl_value_of_int(0));
	field[SL_RECORD_PID] = or_else(pid ? pid : sl_value_get(&metadata, "pid"), sl_value_of_int(-1));
	field[SL_RECORD_HOST] = or_else(host ? host : sl_value_get(&metadata, "host"), sl_value_of_text("unknown"));
	field[SL_RECORD_COLLECTOR] = legacy_collector(arena, raw, &metadata, rules, &field[SL_RECORD_DEVICE]);
	field[SL_RECORD_CONTEXT] = or_else(FIRST(raw, "context", "message"), null);
	field[SL_RECORD_SESSION] = sl_value_of_text(session_of(arena, raw, &metadata, rules));
	field[SL_RECORD_VERSION] = sl_value_of_int(3);
	if (!resolve_identity(raw, &metadata, record, error))
		return false;
	drop_identity(&metadata);
	field[SL_RECORD_METADATA] = metadata;
	return check_record(record, error);
}

bool sl_record_normalize(struct sl_arena *arena, const struct sl_value *raw, const struct sl_record_rules *rules,
			 struct sl_record *record, struct sl_record_error *error)
{
	memset(record, 0, sizeof(*record));
	if (!sl_value_is(raw, SL_VALUE_OBJECT))
		return fail(error, "record must be an object");
	if (sl_value_get(raw, "schema_version"))
		return normalize_versioned(arena, raw, rules, record, error);
	if (rules->strict)
		return fail(error, "legacy record, and --strict was given");
	return normalize_legacy(arena, raw, rules, record, error);
}

void sl_record_write(struct sl_json *j, const char *key, const struct sl_record *record)
{
	sl_json_object(j, key);
	for (int i = 0; i < SL_RECORD_FIELDS; i++)
		sl_json_value(j, fields[i].name, &record->field[i]);
	sl_json_end(j);
}
