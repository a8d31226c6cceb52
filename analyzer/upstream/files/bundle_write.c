/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/files/files.h"

#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/stats.h"

static const char prefix[] = "oom_dump_";

static const char *utc(struct sl_arena *arena, int64_t time_ns, const char *format)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm;
	char text[40];

	strftime(text, sizeof(text), format, gmtime_r(&seconds, &tm));
	return sl_arena_strdup(arena, text);
}

/* Replaces each run of characters other than letters, digits, _ and - by one _. */
static const char *safe_word(struct sl_arena *arena, const char *word)
{
	char *safe = sl_arena_alloc(arena, strlen(word) + 1), *out = safe;

	for (; *word; word++) {
		bool good = isalnum((unsigned char)*word) || *word == '_' || *word == '-';

		if (good)
			*out++ = *word;
		else if (out == safe || out[-1] != '_' || isalnum((unsigned char)word[-1]) || word[-1] == '_' || word[-1] == '-')
			*out++ = '_';
	}
	return *safe ? safe : "unknown";
}

static void write_session(struct sl_json *j, const struct sl_bundle *bundle)
{
	sl_json_string(j, "session_id", bundle->session ? bundle->session->session_id : NULL);
	sl_json_string(j, "session_status", bundle->session ? sl_session_status_names[bundle->session->status] : NULL);
	if (bundle->session)
		sl_session_summary_write(j, "session", bundle->session);
	else
		sl_json_null(j, "session");
}

/* Writes the keys of Stormlog's tracker, then those that V3 needs so that the same event is read back. */
static void write_event(struct sl_json *j, const struct sl_v3_event *event, const char *backend)
{
	sl_json_object(j, NULL);
	sl_json_double(j, "timestamp", (double)event->timestamp_ns / 1e9);
	sl_json_string(j, "event_type", event->event_type);
	sl_json_string(j, "session_id", event->session_id);
	sl_json_int(j, "memory_allocated", event->allocated_bytes);
	sl_json_int(j, "memory_reserved", event->reserved_bytes);
	sl_json_int(j, "memory_change", event->change_bytes);
	sl_json_int(j, "device_id", event->device_id);
	sl_json_string(j, "context", event->context);
	sl_json_string(j, "job_id", event->job_id);
	sl_json_int(j, "rank", event->rank);
	sl_json_int(j, "local_rank", event->local_rank);
	sl_json_int(j, "world_size", event->world_size);
	if (event->metadata) {
		sl_json_value(j, "metadata", event->metadata);
	} else {
		sl_json_object(j, "metadata");
		sl_json_end(j);
	}
	sl_json_known(j, "active_memory", event->active_bytes);
	sl_json_known(j, "inactive_memory", event->inactive_bytes);
	sl_json_int(j, "device_used", event->used_bytes);
	sl_json_known(j, "device_free", event->free_bytes);
	sl_json_known(j, "device_total", event->total_bytes);
	sl_json_string(j, "backend", backend);
	sl_json_int(j, "timestamp_ns", event->timestamp_ns);
	sl_json_int(j, "pid", event->pid);
	sl_json_string(j, "host", event->host);
	sl_json_string(j, "collector", event->collector);
	sl_json_int(j, "sampling_interval_ms", event->interval_ms);
	sl_json_int(j, "device_used_bytes", event->used_bytes);
	sl_json_known(j, "device_free_bytes", event->free_bytes);
	sl_json_known(j, "device_total_bytes", event->total_bytes);
	sl_json_known(j, "allocator_active_bytes", event->active_bytes);
	sl_json_known(j, "allocator_inactive_bytes", event->inactive_bytes);
	sl_json_end(j);
}

static void write_events(struct sl_folder *folder, const struct sl_bundle *bundle)
{
	FILE *file;
	struct sl_json *j = sl_folder_json(folder, "events.json", &file);

	sl_json_array(j, NULL);
	for (size_t i = 0; i < bundle->event_count; i++)
		write_event(j, &bundle->events[i], bundle->backend);
	sl_json_end(j);
	sl_folder_json_close(folder, j, file, "events.json");
}

static void write_metadata(struct sl_folder *folder, const struct sl_bundle *bundle)
{
	FILE *file;
	struct sl_json *j = sl_folder_json(folder, "metadata.json", &file);

	sl_json_object(j, NULL);
	sl_json_string(j, "reason", bundle->reason);
	sl_json_string(j, "exception_type", bundle->exception_type);
	sl_json_string(j, "exception_module", bundle->exception_module);
	sl_json_string(j, "exception_message", bundle->exception_message);
	sl_json_string(j, "context", bundle->context);
	sl_json_string(j, "backend", bundle->backend);
	sl_json_int(j, "captured_event_count", (int64_t)bundle->event_count);
	write_session(j, bundle);
	sl_json_object(j, "custom_metadata");
	if (bundle->custom)
		bundle->custom(j, bundle->writer_context);
	sl_json_end(j);
	sl_json_end(j);
	sl_folder_json_close(folder, j, file, "metadata.json");
}

static void write_environment(struct sl_folder *folder, const struct sl_bundle *bundle)
{
	FILE *file;
	struct sl_json *j = sl_folder_json(folder, "environment.json", &file);

	sl_json_object(j, NULL);
	sl_json_int(j, "pid", bundle->pid);
	if (bundle->environment)
		bundle->environment(j, bundle->writer_context);
	sl_json_end(j);
	sl_folder_json_close(folder, j, file, "environment.json");
}

static void write_files(struct sl_folder *folder, const struct sl_bundle *bundle)
{
	for (size_t i = 0; i < bundle->file_count; i++) {
		FILE *file;
		struct sl_json *j = sl_folder_json(folder, bundle->files[i].name, &file);

		bundle->files[i].write(j, bundle->files[i].context);
		sl_folder_json_close(folder, j, file, bundle->files[i].name);
	}
}

/* The manifest is written last: it says that the rest is complete. */
static void write_manifest(struct sl_folder *folder, const struct sl_bundle *bundle, const char *name)
{
	static const char *const own[] = {"manifest.json", "events.json", "metadata.json", "environment.json"};
	FILE *file;
	struct sl_json *j = sl_folder_json(folder, "manifest.json", &file);

	sl_json_object(j, NULL);
	sl_json_int(j, "schema_version", 2);
	sl_json_string(j, "bundle_name", name);
	sl_json_string(j, "created_at_utc", utc(&folder->arena, bundle->created_at_ns, "%Y-%m-%dT%H:%M:%SZ"));
	sl_json_string(j, "reason", bundle->reason);
	sl_json_string(j, "backend", bundle->backend);
	sl_json_int(j, "event_count", (int64_t)bundle->event_count);
	write_session(j, bundle);
	sl_json_array(j, "files");
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sl_json_string(j, NULL, own[i]);
	for (size_t i = 0; i < bundle->file_count; i++)
		sl_json_string(j, NULL, bundle->files[i].name);
	sl_json_end(j);
	sl_json_end(j);
	sl_folder_json_close(folder, j, file, "manifest.json");
}

bool sl_bundle_write(struct sl_arena *arena, const char *dump_dir, const struct sl_bundle *bundle, const char **name)
{
	const char *when = utc(arena, bundle->created_at_ns, "%Y%m%dT%H%M%SZ"), *backend = safe_word(arena, bundle->backend);
	struct sl_folder folder;
	const char *place;
	int number = 0;

	do {
		*name = sl_arena_printf(arena, "%s%s_%lld_%s_%d", prefix, when, (long long)bundle->pid, backend, ++number);
		place = sl_arena_printf(arena, "%s/%s", dump_dir, *name);
	} while (access(place, F_OK) == 0);
	if (sl_folder_begin(&folder, place)) {
		write_events(&folder, bundle);
		write_metadata(&folder, bundle);
		write_environment(&folder, bundle);
		write_files(&folder, bundle);
		write_manifest(&folder, bundle, *name);
	}
	return sl_folder_end(&folder);
}

/* --- retention ---------------------------------------------------------------------------------------------- */

struct old_bundle {
	const char *path;
	struct timespec changed;
	int64_t bytes;
};

static int by_age(const void *a, const void *b)
{
	const struct old_bundle *x = a, *y = b;

	return SL_RISING(x->changed.tv_sec, y->changed.tv_sec) ?: SL_RISING(x->changed.tv_nsec, y->changed.tv_nsec)
	       ?: strcmp(x->path, y->path);
}

static int64_t bytes_in(struct sl_arena *arena, const char *path)
{
	DIR *dir = opendir(path);
	struct stat status;
	int64_t bytes = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (lstat(sl_arena_printf(arena, "%s/%s", path, entry->d_name), &status) == 0 && S_ISREG(status.st_mode))
			bytes += status.st_size;
	if (dir)
		closedir(dir);
	return bytes;
}

size_t sl_bundle_prune(const char *dump_dir, int64_t max_bytes)
{
	struct sl_arena arena = {0};
	SL_VECTOR(struct old_bundle) list = {0};
	size_t gone = 0;
	int64_t total = 0;
	DIR *dir = opendir(dump_dir);

	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		const char *path = sl_arena_printf(&arena, "%s/%s", dump_dir, entry->d_name);
		struct stat status;

		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || lstat(path, &status) != 0 || !S_ISDIR(status.st_mode))
			continue;
		*SL_PUSH(&list) = (struct old_bundle){path, status.st_mtim, bytes_in(&arena, path)};
		total += list.item[list.count - 1].bytes;
	}
	if (dir)
		closedir(dir);
	if (list.count)
		qsort(list.item, list.count, sizeof(*list.item), by_age);
	while (gone < list.count && total > max_bytes) {
		sl_folder_remove(list.item[gone].path);
		total -= list.item[gone++].bytes;
	}
	free(list.item);
	sl_arena_free(&arena);
	return gone;
}
