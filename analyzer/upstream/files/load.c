/* SPDX-License-Identifier: MIT */
/* Records into sessions: one file, or the segments of a sink. */
#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/stats.h"
#include "analyzer/base/value.h"
#include "analyzer/upstream/files/files.h"
#include "analyzer/upstream/records/records.h"

struct loading {
	struct sl_telemetry *t;
	struct sl_arena scratch;
	struct sl_record_rules rules;
	struct sl_map index; /* session id -> place in t->loaded, plus 1 */
	struct sl_map files; /* session id and file, for the list of sources */
	size_t first;	     /* sessions of this source begin here in t->loaded */
	enum sl_session_kind kind;
	const char *path, *display;
	int64_t read;		      /* records of the file that were whole */
	SL_VECTOR(const char *) lost; /* losses that are reported in the sessions' warnings */
};

static struct sl_session *session_of(struct loading *l, const char *session_id)
{
	uintptr_t *place = sl_map_at(&l->index, session_id);

	if (!*place) {
		struct sl_session *session = sl_telemetry_new_loaded(l->t);

		session->kind = l->kind;
		session->summary.session_id = sl_map_intern(&l->t->store.texts, session_id);
		*place = l->t->loaded.count;
	}
	return &l->t->loaded.item[*place - 1];
}

static void add_source(struct loading *l, struct sl_session *session, const char *display)
{
	uintptr_t *entry = sl_map_at(&l->files, sl_arena_printf(&l->scratch, "%s\n%s", session->summary.session_id, display));

	if (!(*entry)++)
		sl_telemetry_add_text(l->t, &session->sources, &session->source_count, display);
}

static void on_problem(void *context, enum sl_source_loss loss, const char *file, uint32_t line, const char *reason)
{
	struct loading *l = context;

	sl_telemetry_problem(l->t, loss, file, line, reason);
	if (loss != SL_SOURCE_TORN && l->lost.count < 1000)
		*SL_PUSH(&l->lost) = sl_arena_printf(&l->t->arena, "%s:%u: %s", l->display, line, reason);
}

/* A deep copy in another arena. */
static struct sl_value value_copy(struct sl_arena *arena, const struct sl_value *value)
{
	struct sl_value copy = *value;

	if (value->kind == SL_VALUE_STRING) {
		copy.text = sl_arena_strdup(arena, value->text);
	} else if (value->kind == SL_VALUE_ARRAY) {
		struct sl_value *items = sl_arena_alloc(arena, value->count * sizeof(*items));

		for (uint32_t i = 0; i < value->count; i++)
			items[i] = value_copy(arena, &value->items[i]);
		copy.items = items;
	} else if (value->kind == SL_VALUE_OBJECT) {
		struct sl_member *members = sl_arena_alloc(arena, value->count * sizeof(*members));

		for (uint32_t i = 0; i < value->count; i++) {
			members[i].key = sl_arena_strdup(arena, value->members[i].key);
			members[i].value = value_copy(arena, &value->members[i].value);
		}
		copy.members = members;
	}
	return copy;
}

/* A tracker writes the same metadata with every event: keep one tree of each. */
static const struct sl_value *intern_metadata(struct sl_event_store *store, const struct sl_value *metadata)
{
	if (metadata->count == 0)
		return NULL;
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);

	sl_json_value(j, NULL, metadata);
	uintptr_t *entry = sl_map_at(&store->metadata, sl_json_text(j, NULL));

	sl_json_close(j);
	if (!*entry) {
		struct sl_value *copy = sl_arena_alloc(&store->arena, sizeof(*copy));

		*copy = value_copy(&store->arena, metadata);
		*entry = (uintptr_t)copy;
	}
	return (const struct sl_value *)*entry;
}

static bool to_int64(const struct sl_record *record, enum sl_record_field field, int64_t max, int64_t *out, const char *name,
		     struct sl_record_error *error)
{
	const struct sl_value *value = &record->field[field];

	*out = SL_EVENT_UNKNOWN;
	if (value->kind != SL_VALUE_INT)
		return true;
	if (value->integer > max || value->integer < -(__int128)max) {
		snprintf(error->reason, sizeof(error->reason), "%s is too large to analyze", name);
		return false;
	}
	*out = (int64_t)value->integer;
	return true;
}

static bool event_from_record(struct sl_event_store *store, const struct sl_record *record, struct sl_v3_event *event,
			      struct sl_record_error *error)
{
	const struct sl_value *field = record->field;
	int64_t rank, local_rank, world_size;

	memset(event, 0, sizeof(*event));
#define NUMBER(which, out, name) to_int64(record, which, INT64_MAX, out, name, error)
#define SMALL(which, out, name)	 to_int64(record, which, INT32_MAX, out, name, error)
	if (!NUMBER(SL_RECORD_TIMESTAMP, &event->timestamp_ns, "timestamp_ns") ||
	    !NUMBER(SL_RECORD_ALLOCATED, &event->allocated_bytes, "allocator_allocated_bytes") ||
	    !NUMBER(SL_RECORD_RESERVED, &event->reserved_bytes, "allocator_reserved_bytes") ||
	    !NUMBER(SL_RECORD_CHANGE, &event->change_bytes, "allocator_change_bytes") ||
	    !NUMBER(SL_RECORD_USED, &event->used_bytes, "device_used_bytes") ||
	    !NUMBER(SL_RECORD_ACTIVE, &event->active_bytes, "allocator_active_bytes") ||
	    !NUMBER(SL_RECORD_INACTIVE, &event->inactive_bytes, "allocator_inactive_bytes") ||
	    !NUMBER(SL_RECORD_FREE, &event->free_bytes, "device_free_bytes") ||
	    !NUMBER(SL_RECORD_TOTAL, &event->total_bytes, "device_total_bytes") ||
	    !NUMBER(SL_RECORD_DEVICE, &event->device_id, "device_id") || !NUMBER(SL_RECORD_PID, &event->pid, "pid") ||
	    !NUMBER(SL_RECORD_INTERVAL, &event->interval_ms, "sampling_interval_ms") || !SMALL(SL_RECORD_RANK, &rank, "rank") ||
	    !SMALL(SL_RECORD_LOCAL_RANK, &local_rank, "local_rank") || !SMALL(SL_RECORD_WORLD_SIZE, &world_size, "world_size"))
		return false;
#undef NUMBER
#undef SMALL
	event->rank = (int32_t)rank;
	event->local_rank = (int32_t)local_rank;
	event->world_size = (int32_t)world_size;
	event->session_id = sl_map_intern(&store->texts, field[SL_RECORD_SESSION].text);
	event->event_type = sl_map_intern(&store->texts, field[SL_RECORD_EVENT_TYPE].text);
	event->collector = sl_map_intern(&store->texts, field[SL_RECORD_COLLECTOR].text);
	event->host = sl_map_intern(&store->texts, field[SL_RECORD_HOST].text);
	if (field[SL_RECORD_JOB].kind == SL_VALUE_STRING)
		event->job_id = sl_map_intern(&store->texts, field[SL_RECORD_JOB].text);
	if (field[SL_RECORD_CONTEXT].kind == SL_VALUE_STRING)
		event->context = sl_map_intern(&store->texts, field[SL_RECORD_CONTEXT].text);
	event->metadata = intern_metadata(store, &field[SL_RECORD_METADATA]);
	return true;
}

static void on_record(void *context, const struct sl_value *raw, uint32_t line)
{
	struct loading *l = context;
	struct sl_record record;
	struct sl_record_error error;
	struct sl_v3_event event;

	if (sl_record_normalize(&l->scratch, raw, &l->rules, &record, &error) &&
	    event_from_record(&l->t->store, &record, &event, &error)) {
		struct sl_session *session = session_of(l, event.session_id);

		l->read++;
		sl_session_add_event(session, &event);
		add_source(l, session, l->display);
		if (event.world_size > l->t->max_world_size)
			l->t->max_world_size = event.world_size;
		if (event.rank >= l->t->next_rank)
			l->t->next_rank = event.rank + 1;
	} else {
		on_problem(l, SL_SOURCE_RECORD, l->path, line, error.reason);
	}
	sl_arena_reset(&l->scratch);
}

static const char *base_name(struct sl_telemetry *t, const char *path)
{
	char *real = NULL;
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	const char *copy = sl_arena_strndup(&t->arena, path, length), *slash = strrchr(copy, '/');
	const char *name = slash && slash[1] ? slash + 1 : copy;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "/") == 0) {
		real = realpath(path, NULL);
		slash = real ? strrchr(real, '/') : NULL;
		name = slash ? sl_arena_strdup(&t->arena, slash + 1) : name;
		free(real);
	}
	return name;
}

/* What the events say when there is no summary. Events are sorted and there is at least one. */
static void session_summary_infer(const struct sl_v3_event *events, size_t count, const char *source,
				  struct sl_session_summary *summary)
{
	*summary = (struct sl_session_summary){
		.session_id = events->session_id,
		.host = events->host,
		.source = source,
		.job_id = events->job_id,
		.status = SL_SESSION_INCOMPLETE,
		.started_at_ns = events->timestamp_ns,
		.pid = events->pid,
		.rank = events->rank,
		.local_rank = events->local_rank,
		.world_size = events->world_size,
	};
	for (size_t i = count; i-- > 0 && !summary->has_end;) {
		if (strcmp(events[i].event_type, "stop") == 0) {
			summary->status = SL_SESSION_COMPLETED;
			summary->ended_at_ns = events[i].timestamp_ns;
			summary->has_end = true;
		}
	}
}

/* A summary in the manifest takes precedence over what the events say. */
static void finish(struct loading *l, const struct sl_manifest *manifest, const char *path)
{
	struct sl_telemetry *t = l->t;
	const char *source = sl_arena_printf(&t->arena, "artifact:%s", base_name(t, path)), **lost = NULL;

	for (size_t i = 0; i < manifest->session_count; i++) {
		struct sl_session *session = session_of(l, manifest->sessions[i].session_id);

		session->summary = manifest->sessions[i];
	}
	if (l->lost.count) { /* the sessions share one list */
		lost = sl_arena_alloc(&t->arena, l->lost.count * sizeof(*lost));
		memcpy(lost, l->lost.item, l->lost.count * sizeof(*lost));
	}
	for (size_t i = l->first; i < t->loaded.count; i++) {
		struct sl_session *session = &t->loaded.item[i];

		sl_event_sort(session->events, session->count);
		if (!session->summary.source)
			session_summary_infer(session->events, session->count, source, &session->summary);
		if (session->source_count == 0)
			add_source(l, session, sl_telemetry_display(t, path));
		session->warnings = lost;
		session->warning_count = l->lost.count;
	}
	sl_map_free(&l->index);
	sl_map_free(&l->files);
	sl_arena_free(&l->scratch);
	free(l->lost.item);
}

static void read_one(struct loading *l, const char *path, const char *session_id)
{
	struct sl_source_reader reader = {on_record, on_problem, l};

	l->read = 0;
	l->path = path;
	l->display = sl_telemetry_display(l->t, path);
	l->rules.session_id = session_id;
	sl_source_read(path, &reader);
}

void sl_telemetry_load_file(struct sl_telemetry *t, const char *path, enum sl_session_kind kind)
{
	struct loading l = {.t = t, .first = t->loaded.count, .kind = kind};
	const struct sl_manifest none = {0};

	l.rules.collector = kind == SL_SESSION_CSV ? "legacy.csv" : NULL;
	read_one(&l, path, sl_session_id_of_file(&t->arena, path));
	finish(&l, &none, path);
}

/* --- sinks -------------------------------------------------------------------------------------------------- */

struct names {
	SL_VECTOR(const char *) list;
};

static bool is_segment_name(const char *name)
{
	size_t length = strlen(name);

	return strncmp(name, "segment-", 8) == 0 && length > 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

/* The segments that the manifest names and those in the folder, each once, by name. */
static void list_segments(struct sl_telemetry *t, const char *folder, const struct sl_manifest *manifest, struct names *names)
{
	DIR *dir = opendir(folder);
	size_t unique_count = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (is_segment_name(entry->d_name))
			*SL_PUSH(&names->list) = sl_arena_strdup(&t->arena, entry->d_name);
	if (dir)
		closedir(dir);
	for (size_t i = 0; i < manifest->segment_count; i++) {
		const char *name = manifest->segments[i].filename, *path = sl_arena_printf(&t->arena, "%s/%s", folder, name);

		if (access(path, F_OK) == 0)
			*SL_PUSH(&names->list) = name;
		else
			sl_telemetry_problem(t, SL_SOURCE_FILE, path, 0, "segment is in the manifest but not in the folder");
	}
	if (names->list.count)
		qsort(names->list.item, names->list.count, sizeof(*names->list.item), sl_stats_by_text);
	for (size_t i = 0; i < names->list.count; i++)
		if (i == 0 || strcmp(names->list.item[i], names->list.item[unique_count - 1]) != 0)
			names->list.item[unique_count++] = names->list.item[i];
	names->list.count = unique_count;
}

/* If a manifest names a segment twice, the last entry counts. */
static void map_segments(struct sl_map *segments, const struct sl_manifest *manifest)
{
	for (size_t i = 0; i < manifest->segment_count; i++)
		*sl_map_at(segments, manifest->segments[i].filename) = (uintptr_t)&manifest->segments[i];
}

/*
 * Records need no manifest.  A manifest.json of another program in the folder is no error.  single: a file beside it was named, not
 * the folder.
 */
static void read_manifest(struct sl_telemetry *t, const char *folder, bool single, struct sl_manifest *manifest)
{
	const char *path = sl_arena_printf(&t->arena, "%s/manifest.json", folder);
	struct sl_value_error error;
	size_t skipped = 0;

	*manifest = (struct sl_manifest){0};
	if (access(path, F_OK) != 0)
		return;
	const struct sl_value *payload = sl_value_read(&t->arena, path, &error);

	if (!payload) {
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, error.line, error.reason);
		return;
	}
	if (payload->kind != SL_VALUE_OBJECT) {
		if (!single)
			sl_telemetry_problem(t, SL_SOURCE_FILE, path, payload->line, "manifest is not an object");
		return;
	}
	sl_manifest_read(&t->arena, payload, manifest, &skipped);
	if (sl_manifest_kind_of(payload) != SL_MANIFEST_SINK)
		return;
	if (manifest->schema_version > SL_MANIFEST_NEWEST)
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, payload->line,
				     "its schema_version is newer than those known here, 1 and 2");
	if (skipped)
		sl_telemetry_problem(t, SL_SOURCE_RECORD, path, 1, "some sessions or segments of the manifest make no sense");
}

/*
 * Events do not leave a closed segment: fewer than the manifest says are a loss.  Where it counts none (0), bytes tell.
 * More may be there: upstream closes the segment of a killed writer without counting again.
 */
static void compare(struct loading *l, const struct sl_manifest_segment *segment)
{
	struct stat st;
	char reason[160];

	if (stat(l->path, &st) ||
	    (segment->event_count ? l->read >= segment->event_count : (int64_t)st.st_size >= segment->size_bytes))
		return;
	snprintf(reason, sizeof(reason),
		 "it has %lld events in %lld bytes; when it was closed it had %lld in %lld, says the manifest", (long long)l->read,
		 (long long)st.st_size, (long long)segment->event_count, (long long)segment->size_bytes);
	on_problem(l, SL_SOURCE_FILE, l->path, 0, reason);
}

void sl_telemetry_load_sink(struct sl_telemetry *t, const char *path, enum sl_session_kind kind)
{
	struct loading l = {.t = t, .first = t->loaded.count, .kind = kind};
	struct stat status;
	bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
	const char *folder = is_folder ? path : dirname(sl_arena_strdup(&t->arena, path));
	const char *name = is_folder ? "" : base_name(t, path), *fallback = sl_session_id_of_sink(&t->arena, path);
	struct sl_manifest manifest;
	struct names names = {0};
	struct sl_map segments = {0};

	bool single = !is_folder && strcmp(name, "manifest.json") != 0;

	read_manifest(t, folder, single, &manifest);
	if (single)
		*SL_PUSH(&names.list) = name;
	else
		list_segments(t, folder, &manifest, &names);
	map_segments(&segments, &manifest);
	for (size_t i = 0; i < names.list.count; i++) {
		const struct sl_manifest_segment *segment = (const void *)*sl_map_at(&segments, names.list.item[i]);
		const char *hint = segment ? segment->session_id : NULL;
		size_t wrong = t->problems.count;

		read_one(&l, single ? path : sl_arena_printf(&t->arena, "%s/%s", folder, names.list.item[i]),
			 hint && *hint ? hint : fallback);
		if (segment && segment->closed && t->problems.count == wrong)
			compare(&l, segment);
	}
	sl_map_free(&segments);
	free(names.list.item);
	finish(&l, &manifest, path);
}
