/* SPDX-License-Identifier: MIT */
/* Which files below a path are telemetry: sinks and bundles by their manifests, the rest by their names. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/budget.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/upstream/files/files.h"

/* Diagnose bundles: three columns of a timeline become sample events of the bundle's session. */

struct columns {
	const struct sl_value *timestamps, *allocated, *reserved;
	uint32_t count;
};

static bool read_columns(const struct sl_value *payload, struct columns *c)
{
	c->timestamps = sl_value_get(payload, "timestamps");
	c->allocated = sl_value_get(payload, "allocated");
	c->reserved = sl_value_get(payload, "reserved");
	if (!sl_value_is(c->reserved, SL_VALUE_ARRAY))
		c->reserved = c->allocated;
	if (!sl_value_is(c->timestamps, SL_VALUE_ARRAY) || !sl_value_is(c->allocated, SL_VALUE_ARRAY))
		return false;
	c->count = c->timestamps->count;
	c->count = c->count < c->allocated->count ? c->count : c->allocated->count;
	c->count = c->count < c->reserved->count ? c->count : c->reserved->count;
	return true;
}

/* A number of either kind that is at least `least` and below 2^62. */
static bool to_number(const struct sl_value *value, double *out)
{
	*out = value->kind == SL_VALUE_INT ? (double)value->integer : value->kind == SL_VALUE_DOUBLE ? value->real : NAN;
	return fabs(*out) < 4e18;
}

static int64_t whole(const struct sl_value *value)
{
	return value->kind == SL_VALUE_INT ? (int64_t)value->integer : sl_stats_whole(value->real);
}

static bool hint(const struct sl_value *payload, const char *key, int64_t least, int64_t *out)
{
	const struct sl_value *places[] = {payload, sl_value_get(payload, "metadata"),
					   sl_value_get(payload, "distributed_identity")};

	for (size_t i = 0; i < 3; i++)
		if (sl_value_get_int64(places[i], key, out) && *out >= least && *out <= INT32_MAX)
			return true;
	return false;
}

/* rank3, rank_3, rank-3 as a word of one part of the path, innermost part first; not local_rank3. */
static bool rank_of_path(const char *path, int64_t *rank)
{
	const char *part = path + strlen(path);

	while (part > path) {
		const char *end = part;

		while (part > path && part[-1] != '/')
			part--;
		for (const char *at = part; at + 5 <= end; at++) {
			if (strncasecmp(at, "rank", 4) != 0 || (at > part && isalnum((unsigned char)at[-1])) ||
			    (at - part >= 6 && strncasecmp(at - 6, "local", 5) == 0))
				continue;
			const char *digits = at + 4 + (at[4] == '-' || at[4] == '_');

			if (isdigit((unsigned char)*digits) && strspn(digits, "0123456789") < 9) {
				*rank = atoll(digits);
				return true;
			}
		}
		if (part > path)
			part--;
	}
	return false;
}

static void resolve_rank(struct sl_telemetry *t, const char *path, const struct sl_value *payload,
			 struct sl_session_summary *summary)
{
	char *real = realpath(path, NULL);
	int64_t world = 1;

	if (!hint(payload, "rank", 0, &summary->rank) && !rank_of_path(real ? real : path, &summary->rank))
		summary->rank = t->next_rank;
	free(real);
	if (!hint(payload, "local_rank", 0, &summary->local_rank))
		summary->local_rank = summary->rank;
	hint(payload, "world_size", 1, &world);
	if (world <= summary->rank)
		world = summary->rank + 1;
	if (world <= summary->local_rank)
		world = summary->local_rank + 1;
	if (world < t->max_world_size)
		world = t->max_world_size;
	summary->world_size = world;
	if (summary->rank >= t->next_rank)
		t->next_rank = (int32_t)summary->rank + 1;
	if (world > t->max_world_size)
		t->max_world_size = (int32_t)world;
}

/* The bundle's own summary, or one made up from the timeline. */
static void read_summary(struct sl_telemetry *t, const char *folder, const char *timeline, const struct columns *c,
			 struct sl_session_summary *summary)
{
	struct sl_value_error error = {0};
	const struct sl_value *manifest = sl_value_read(&t->arena, sl_arena_printf(&t->arena, "%s/manifest.json", folder), &error);
	const char *id = sl_value_get_text(manifest, "session_id"), *status = sl_value_get_text(manifest, "session_status");
	char *real = realpath(timeline, NULL);
	const char *parts[] = {sl_arena_strdup(&t->arena, real ? real : timeline), "diagnose.timeline"};
	double seconds;

	free(real);
	if (sl_session_summary_read(sl_value_get(manifest, "session"), summary))
		return;
	*summary = (struct sl_session_summary){
		.session_id = id && !sl_utf8_is_blank(id) ? id : sl_record_session_id(&t->arena, parts, 2),
		.source = id && !sl_utf8_is_blank(id) ? "stormlog.diagnose.bundle" : "stormlog.diagnose.timeline",
		.host = "unknown",
		.pid = -1,
		.status = SL_SESSION_INCOMPLETE,
		.started_at_ns = to_number(&c->timestamps->items[0], &seconds) && seconds < 9e9 ? (int64_t)(seconds * 1e9) : 0,
	};
	for (int i = SL_SESSION_COMPLETED; status && i <= SL_SESSION_RUNNING; i++)
		if (sl_utf8_matches(status, sl_session_status_names[i]))
			summary->status = (enum sl_session_status)i;
}

static const struct sl_value *source_metadata(struct sl_telemetry *t)
{
	struct sl_value *object = sl_value_object(&t->arena, 1);

	sl_value_set(object, "source", sl_value_of_text("diagnose.telemetry_timeline"));
	return object;
}

static void add_samples(struct sl_telemetry *t, const char *timeline, const struct columns *c, struct sl_session *session)
{
	const struct sl_session_summary *s = &session->summary;
	const struct sl_value *metadata = source_metadata(t);
	double seconds, before = NAN, allocated, reserved;
	int64_t last = 0;

	for (uint32_t i = 0; i < c->count; i++) {
		if (!to_number(&c->timestamps->items[i], &seconds) || !(seconds >= 0 && seconds < 9e9) ||
		    !to_number(&c->allocated->items[i], &allocated) || !to_number(&c->reserved->items[i], &reserved) ||
		    allocated < 0 || reserved < 0) {
			sl_telemetry_problem(t, SL_SOURCE_RECORD, timeline, c->timestamps->items[i].line,
					     "a sample of the timeline makes no sense");
			continue;
		}
		int64_t bytes = whole(&c->allocated->items[i]), reserved_bytes = whole(&c->reserved->items[i]);
		double interval = isnan(before) ? 0 : nearbyint((seconds - before) * 1000);
		struct sl_v3_event event = {
			.timestamp_ns = (int64_t)(seconds * 1e9),
			.allocated_bytes = bytes,
			.reserved_bytes = reserved_bytes,
			.change_bytes = bytes - last,
			.used_bytes = bytes > reserved_bytes ? bytes : reserved_bytes,
			.active_bytes = SL_EVENT_UNKNOWN,
			.inactive_bytes = SL_EVENT_UNKNOWN,
			.free_bytes = SL_EVENT_UNKNOWN,
			.total_bytes = SL_EVENT_UNKNOWN,
			.pid = s->pid,
			.interval_ms = interval > 0 ? (int64_t)interval : 0,
			.rank = (int32_t)s->rank,
			.local_rank = (int32_t)s->local_rank,
			.world_size = (int32_t)s->world_size,
			.session_id = s->session_id,
			.event_type = "sample",
			.collector = "stormlog.diagnose.timeline",
			.host = s->host,
			.job_id = s->job_id,
			.context = "diagnose timeline sample",
			.metadata = metadata,
		};

		sl_session_add_event(session, &event);
		last = bytes;
		before = seconds;
	}
	sl_event_sort(session->events, session->count);
}

/* A bundle's folder (manifest or not) with telemetry_timeline.json. */
static void load_diagnose(struct sl_telemetry *t, const char *folder)
{
	const char *timeline = sl_arena_printf(&t->arena, "%s/telemetry_timeline.json", folder);
	struct sl_value_error error = {0};
	const struct sl_value *payload = sl_value_read(&t->arena, timeline, &error);
	struct columns c = {0};
	const char **source = sl_arena_alloc(&t->arena, sizeof(*source));

	if (!payload || !read_columns(payload, &c) || c.count == 0) {
		sl_telemetry_problem(t, SL_SOURCE_FILE, timeline, payload ? payload->line : error.line,
				     payload ? "the timeline has no samples" : error.reason);
		return;
	}
	struct sl_session_summary summary;

	read_summary(t, folder, timeline, &c, &summary);
	resolve_rank(t, timeline, payload, &summary);
	struct sl_session *session = sl_telemetry_new_loaded(t);

	*source = sl_telemetry_display(t, timeline);
	session->summary = summary;
	session->kind = SL_SESSION_DIAGNOSE;
	session->sources = source;
	session->source_count = 1;
	add_samples(t, timeline, &c, session);
}

/* OOM bundles: the manifest, the metadata, and the events of the last moments. */

/* NULL for an empty text too. */
static const char *text_of(const struct sl_value *object, const char *key)
{
	const char *text = sl_value_get_text(object, key);

	return text && *text ? text : NULL;
}

/* An OOM bundle's folder. */
static void load_bundle(struct sl_telemetry *t, const char *folder, const struct sl_value *manifest)
{
	const char *path = sl_arena_printf(&t->arena, "%s/metadata.json", folder);
	struct sl_value_error error = {0};
	const struct sl_value *metadata = sl_value_read(&t->arena, path, &error);
	int64_t count;

	if (!metadata)
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, error.line, error.reason);
	*SL_PUSH(&t->bundles) = (struct sl_oom_row){
		.path = sl_telemetry_display(t, folder),
		.created_at_utc = text_of(manifest, "created_at_utc"),
		.backend = text_of(manifest, "backend"),
		.reason = text_of(manifest, "reason"),
		.session_id = text_of(manifest, "session_id"),
		.session_status = text_of(manifest, "session_status"),
		.exception_type = text_of(metadata, "exception_type"),
		.exception_module = text_of(metadata, "exception_module"),
		.exception_message = text_of(metadata, "exception_message"),
		.context = text_of(metadata, "context"),
		.account = sl_value_get(sl_value_get(metadata, "custom_metadata"), "account"),
		.event_count = sl_value_get_int64(manifest, "event_count", &count) ? count : SL_EVENT_UNKNOWN,
	};
	path = sl_arena_printf(&t->arena, "%s/events.json", folder);
	if (access(path, F_OK) == 0)
		sl_telemetry_load_file(t, path, SL_SESSION_BUNDLE);
	else
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, 0, "the bundle has no events");
}

struct walk {
	struct sl_telemetry *t;
	SL_VECTOR(const char *) folders; /* with a manifest */
	SL_VECTOR(const char *) files;	 /* telemetry by name */
	struct sl_map bundles;		 /* folders of OOM bundles */
	size_t found;
	uint64_t looked_at; /* files and folders */
};

static bool first_time(struct sl_telemetry *t, const char *path)
{
	char *real = realpath(path, NULL);
	bool first = (*sl_map_at(&t->seen, real ? real : path))++ == 0;
	struct stat status;
	int fd = first ? sl_paths_open_regular(path, &status) : -1;

	if (fd >= 0) {
		t->disk_bytes += sl_budget_size(fd);
		close(fd);
	}
	free(real);
	return first;
}

static bool is_regular(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), tail = strlen(suffix);

	return length >= tail && strcasecmp(name + length - tail, suffix) == 0;
}

static bool is_telemetry_name(const char *name)
{
	static const char *const words[] = {"event", "track", "telemetry"};

	if (has_suffix(name, ".jsonl"))
		return true;
	if ((!has_suffix(name, ".json") && !has_suffix(name, ".csv")) || strcmp(name, "telemetry_timeline.json") == 0)
		return false;
	for (size_t i = 0; i < 3; i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static bool load_timeline(struct sl_telemetry *t, const char *folder)
{
	if (!is_regular(sl_arena_printf(&t->arena, "%s/telemetry_timeline.json", folder)))
		return false;
	load_diagnose(t, folder);
	return true;
}

static bool has_segments(const char *folder)
{
	DIR *dir = opendir(folder);
	bool hit = false;

	for (struct dirent *entry; dir && !hit && (entry = readdir(dir));)
		hit = strncmp(entry->d_name, "segment-", 8) == 0 && has_suffix(entry->d_name, ".jsonl");
	if (dir)
		closedir(dir);
	return hit;
}

/* Files of a sink are read with the sink, those of an OOM bundle with the bundle. */
static void mark_segments(struct sl_telemetry *t, const char *folder)
{
	DIR *dir = opendir(folder);

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (has_suffix(entry->d_name, ".jsonl"))
			first_time(t, sl_arena_printf(&t->arena, "%s/%s", folder, entry->d_name));
	if (dir)
		closedir(dir);
}

static bool load_folder(struct walk *w, const char *folder, const char *name_of_sink)
{
	struct sl_telemetry *t = w->t;
	const char *path = sl_arena_printf(&t->arena, "%s/manifest.json", folder);
	struct sl_value_error error;
	const struct sl_value *manifest = is_regular(path) ? sl_value_read(&t->arena, path, &error) : NULL;
	enum sl_manifest_kind kind = sl_manifest_kind_of(manifest);

	if (kind == SL_MANIFEST_NONE && has_segments(folder))
		kind = SL_MANIFEST_SINK; /* the ledger is missing, but the records are there */
	if (kind == SL_MANIFEST_NONE) {
		if (!manifest && is_regular(path) && first_time(t, path))
			sl_telemetry_problem(t, SL_SOURCE_FILE, path, error.line, error.reason);
		return load_timeline(t, folder);
	}
	if (!first_time(t, path))
		return true;
	if (kind == SL_MANIFEST_OOM) {
		load_bundle(t, folder, manifest);
		*sl_map_at(&w->bundles, folder) = 1;
	} else if (kind == SL_MANIFEST_DIAGNOSE) {
		load_diagnose(t, folder);
	} else {
		mark_segments(t, folder);
		sl_telemetry_load_sink(t, name_of_sink, SL_SESSION_SINK);
	}
	return true;
}

static void walk_into(struct walk *w, const char *folder, int depth)
{
	DIR *dir = opendir(folder);
	bool manifest = false;

	if (!dir) {
		sl_telemetry_problem(w->t, SL_SOURCE_FILE, folder, 0, strerror(errno));
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *name = entry->d_name, *path = sl_arena_printf(&w->t->arena, "%s/%s", folder, name);
		struct stat status;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || lstat(path, &status) != 0)
			continue;
		if (w->looked_at++ == sl_budget_files())
			sl_telemetry_problem(w->t, SL_SOURCE_FILE, folder, 0,
					     "too many files and folders; from here on they are not read");
		if (w->looked_at > sl_budget_files())
			break;
		/* We wrote analysis/ ourselves.  Links could lead in circles. */
		if (S_ISDIR(status.st_mode) && depth < 32 && strcmp(name, "analysis") != 0)
			walk_into(w, path, depth + 1);
		if (!is_regular(path))
			continue;
		manifest = manifest || strcmp(name, "manifest.json") == 0 || strcmp(name, "telemetry_timeline.json") == 0;
		if (is_telemetry_name(name))
			*SL_PUSH(&w->files) = path;
	}
	closedir(dir);
	if (manifest)
		*SL_PUSH(&w->folders) = folder;
}

static size_t load_file(struct sl_telemetry *t, const char *path)
{
	if (!first_time(t, path))
		return 0;
	switch (sl_source_form(path)) {
	case SL_SOURCE_CSV:
		sl_telemetry_load_file(t, path, SL_SESSION_CSV);
		break;
	case SL_SOURCE_JSON:
		sl_telemetry_load_file(t, path, SL_SESSION_JSON);
		break;
	default:
		sl_telemetry_load_sink(t, path, SL_SESSION_LINES);
		break;
	}
	return 1;
}

/* Files inside an out-of-memory bundle belong to the bundle. */
static bool is_in_bundle(const struct walk *w, const char *file)
{
	char *folder = sl_memory_copy(file), *slash;
	bool found = false;

	while (!found && (slash = strrchr(folder, '/'))) {
		*slash = 0;
		found = sl_map_find(&w->bundles, folder);
	}
	free(folder);
	return found;
}

static void walk_folder(struct walk *w, const char *folder)
{
	if (load_folder(w, folder, folder))
		w->found++;
	walk_into(w, folder, 0);
	if (w->folders.count)
		qsort(w->folders.item, w->folders.count, sizeof(*w->folders.item), sl_stats_by_text);
	if (w->files.count)
		qsort(w->files.item, w->files.count, sizeof(*w->files.item), sl_stats_by_text);
	for (size_t i = 0; i < w->folders.count; i++)
		if (strcmp(w->folders.item[i], folder) != 0 && load_folder(w, w->folders.item[i], w->folders.item[i]))
			w->found++;
	for (size_t i = 0; i < w->files.count; i++)
		if (!is_in_bundle(w, w->files.item[i]))
			w->found += load_file(w->t, w->files.item[i]);
}

size_t sl_telemetry_add_path(struct sl_telemetry *t, const char *path, bool full_names)
{
	struct walk w = {.t = t};
	struct stat status;
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	path = sl_arena_strndup(&t->arena, path, length);
	if (stat(path, &status) != 0) {
		sl_telemetry_problem(t, SL_SOURCE_FILE, path, 0, strerror(errno));
		return 0;
	}
	const char *name = sl_paths_name(path);

	t->root = NULL;
	if (S_ISDIR(status.st_mode)) {
		t->root = full_names ? NULL : path;
		walk_folder(&w, path);
	} else {
		const char *folder = dirname(sl_arena_strdup(&t->arena, path));

		t->root = full_names ? NULL : folder;
		if (strcmp(name, "manifest.json") == 0)
			w.found = load_folder(&w, folder, path);
		else if (strcmp(name, "telemetry_timeline.json") == 0)
			w.found = load_timeline(t, folder);
		else
			w.found = load_file(t, path);
	}
	t->root = NULL;
	free(w.folders.item);
	free(w.files.item);
	sl_map_free(&w.bundles);
	return w.found;
}
