/* SPDX-License-Identifier: MIT */
/* oom/oom_dump_...: a bundle for each out-of-memory error: the events before it, and the holders of the device. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/output.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/owners.h"
#include "analyzer/upstream/files/files.h"
#include "analyzer/upstream/upstream.h"

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

struct writer {
	struct sl_report *report;
	struct sl_process *process;
	const struct sl_oom *oom;
	const struct sl_account *account;
};

/* The lines about the error in the run's summary; `stormlog-analyze BUNDLE` prints them again. */
static void put_account(struct sl_json *j, const struct writer *w)
{
	static const struct sl_face_style style = {.ascii = true, .columns = 100};
	char *text = NULL, *rest;
	size_t length;
	FILE *memory = sl_memory_must(open_memstream(&text, &length));
	struct sl_answers *answers = sl_answer_error(w->report, w->process, (size_t)(w->oom - w->process->model->ooms.item));

	sl_face_terminal(answers, memory, &style);
	sl_answers_free(answers);
	fclose(memory);
	rest = text;
	sl_json_array(j, "account");
	for (char *line; (line = strsep(&rest, "\n")) && rest;)
		sl_json_string(j, NULL, line);
	sl_json_end(j);
	free(text);
}

static void put_custom(struct sl_json *j, void *context)
{
	const struct writer *w = context;
	const struct sl_hook *hook = sl_header_hook(w->process->model->header, w->oom->api);

	sl_json_string(j, "api", hook ? hook->plain : NULL);
	sl_json_int(j, "code", w->oom->code);
	sl_json_uint(j, "requested_bytes", w->oom->requested_bytes);
	sl_json_uint(j, "live_bytes", w->oom->live_bytes);
	sl_json_known_uint(j, "device_free_bytes", sl_account_measured(w->account, w->oom->free_bytes));
	sl_json_known_uint(j, "device_total_bytes", sl_account_measured(w->account, w->oom->total_bytes));
	sl_json_known_uint(j, "vm_bytes", w->oom->context.time_ns ? w->oom->context.vm_bytes : SL_UNKNOWN);
	sl_json_known_uint(j, "vm_limit_bytes", w->oom->context.time_ns ? w->oom->context.vm_limit_bytes : SL_UNKNOWN);
	sl_json_known_uint(j, "rss_bytes", w->oom->context.time_ns ? w->oom->context.rss_bytes : SL_UNKNOWN);
	sl_json_bool(j, "injected", w->oom->injected);
	sl_answer_describe(w->report);
	sl_json_string(j, "cause", sl_account_cause(w->account));
	sl_json_string(j, "recommendation", w->account->advice);
	sl_json_string(j, "tag", w->process->model->header->tag);
	sl_json_object(j, "metadata"); /* keys that the user chose */
	sl_output_metadata(j, w->process->model);
	sl_json_end(j);
	sl_output_pairs(j, "range", w->process->model, w->oom->pairs, w->oom->pair_count);
	sl_json_stack(j, NULL, w->process, w->oom->stack);
	put_account(j, w);
}

static void put_devices(struct sl_json *j, const struct sl_report *report, const struct sl_process *process)
{
	sl_json_array(j, "devices");
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		if (!sl_devices_state(report, device, (unsigned)(process - report->processes)))
			continue;
		sl_json_object(j, NULL);
		sl_json_known(j, "device", device->device);
		sl_json_string(j, "name", device->name);
		sl_json_string(j, "uuid", device->uuid);
		sl_json_known_uint(j, "total_bytes", device->total_bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_environment(struct sl_json *j, void *context)
{
	const struct writer *w = context;
	const struct sl_header *header = w->process->model->header;

	sl_json_object(j, "variables");
	for (unsigned i = 0; i < header->environment_count; i++)
		sl_json_string(j, header->environment[i].name, header->environment[i].value);
	sl_json_end(j);
	sl_json_object(j, "system");
	for (unsigned i = 0; i < header->system_count; i++)
		sl_json_string(j, header->system[i].name, header->system[i].value);
	sl_json_end(j);
	sl_json_string(j, "exe", header->exe);
	sl_json_texts(j, "argv", header->argv, header->argc);
	sl_json_string(j, "cwd", header->cwd);
	sl_json_string(j, "host", header->host);
	sl_json_string(j, "agent", header->agent);
	put_devices(j, w->report, w->process);
}

/* Live blocks by the place that made them, largest first. */
static void put_owners(struct sl_json *j, void *context)
{
	const struct writer *w = context;

	sl_json_array(j, NULL);
	for (unsigned i = 0; i < w->oom->owner_count; i++) {
		const struct sl_site *site = &w->process->model->sites.item[w->oom->owners[i].site];
		char where[512];

		sl_owners_line(w->process, site->stack, 8, where, sizeof(where));
		sl_json_object(j, NULL);
		sl_json_string(j, "kind", sl_event_kinds[site->kind].name);
		sl_json_string(j, "library", sl_model_library(w->process->model, site));
		sl_json_uint(j, "bytes", w->oom->owners[i].bytes);
		sl_json_uint(j, "blocks", w->oom->owners[i].blocks);
		sl_json_string(j, "where", where);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Bundles are removed by age, as Stormlog does; the age is that of the error. */
static bool set_age(const char *path, int64_t ns)
{
	const struct timespec time = {ns / SL_NS_PER_S, ns % SL_NS_PER_S}, times[] = {time, time};

	return !utimensat(AT_FDCWD, path, times, 0);
}

/* The range that was open, "step_412"; NULL: none. */
static const char *range_of(const struct sl_process *process, const struct sl_oom *oom, struct sl_arena *arena)
{
	const char *label = oom->label ? sl_defs_text(process->model->defs, oom->label) : NULL;
	const char *mark = label && oom->step != SL_UNKNOWN ? strchr(label, '#') : NULL;

	if (!mark)
		return label;
	return sl_arena_printf(arena, "%.*s%llu%s", (int)(mark - label), label, (unsigned long long)oom->step, mark + 1);
}

static bool write_bundle(struct sl_report *report, struct sl_process *process, const struct sl_oom *oom,
			 const struct sl_session *session, const char *folder, size_t before, struct sl_arena *arena)
{
	struct writer writer = {report, process, oom, &process->accounts[oom - process->model->ooms.item]};
	const struct sl_bundle_file owners = {"live_blocks.json", put_owners, &writer};
	const struct sl_hook *hook = sl_header_hook(process->model->header, oom->api);
	int64_t when = (int64_t)sl_process_unix(process, oom->time_ns);
	struct sl_v3_event *events;
	size_t end, begin;
	bool fine;
	const char *name;

	events = sl_sessions_before(process, arena, session, oom, &end);
	begin = end > before ? end - before : 0;
	const struct sl_bundle bundle = {
		.created_at_ns = when,
		.pid = process->trace->header.pid,
		.backend = hook && (hook->family == SL_FAMILY_hip || hook->family == SL_FAMILY_hsa) ? "rocm" : "cuda",
		.reason = sl_bundle_reason(oom),
		.exception_type = oom->reported_by_torch ? "OutOfMemoryError" : NULL,
		.exception_module = oom->reported_by_torch ? "torch" : NULL,
		.context = range_of(process, oom, arena),
		.exception_message = sl_arena_printf(arena, "%s returned %lld: out of memory", hook ? hook->plain : "a call",
						     (long long)oom->code),
		.session = &session->summary,
		.events = events + begin,
		.event_count = end - begin,
		.custom = put_custom,
		.environment = put_environment,
		.writer_context = &writer,
		.files = &owners,
		.file_count = 1,
	};
	fine = sl_bundle_write(arena, folder, &bundle, &name) && set_age(sl_arena_printf(arena, "%s/%s", folder, name), when);
	free(events);
	return fine;
}

/* Forgets the paths of the bundles that were removed, which are the oldest. */
static void forget(struct sl_report *report, size_t removed)
{
	SL_VECTOR(uint64_t) times = {0};

	for (unsigned i = 0; i < report->process_count && removed; i++) {
		const struct sl_process *process = &report->processes[i];

		for (size_t k = 0; k < process->model->ooms.count; k++) {
			uint64_t at = sl_process_unix(process, process->model->ooms.item[k].time_ns);

			if (process->model->ooms.item[k].group == k && at >= process->bundles_from_ns)
				*SL_PUSH(&times) = at;
		}
	}
	if (times.count)
		qsort(times.item, times.count, sizeof(*times.item), sl_stats_by_number);
	removed = removed < times.count ? removed : times.count;
	for (unsigned i = 0; i < report->process_count && removed; i++)
		report->processes[i].bundles_kept_ns = times.item[removed - 1] + 1;
	free(times.item);
}

static bool write_all(struct sl_report *report, const char *path)
{
	size_t before = report->options.oom_events ? report->options.oom_events : SL_OOM_EVENTS;
	struct sl_arena arena = {0};
	bool fine = true, made = false;

	sl_outputs_limit(report);
	for (unsigned i = 0; i < report->process_count && fine; i++) {
		struct sl_process *process = &report->processes[i];
		struct sl_session session = {0};
		unsigned count = 0;

		for (size_t k = 0; k < process->model->ooms.count && fine; k++) {
			const struct sl_oom *oom = &process->model->ooms.item[k];

			if (oom->group != k || sl_process_unix(process, oom->time_ns) < process->bundles_from_ns)
				continue;
			if (!made)
				fine = made = !mkdir(path, 0700) || errno == EEXIST;
			if (!count++)
				sl_sessions_make(report, process, &arena, &session);
			fine = fine && write_bundle(report, process, oom, &session, path, before, &arena);
		}
		free(session.events);
	}
	if (made && report->options.oom_max_mb)
		forget(report, sl_bundle_prune(path, (int64_t)report->options.oom_max_mb << 20));
	sl_arena_free(&arena);
	return fine;
}

/* Written before the other outputs, which name only the bundles that are left. */
const struct sl_output sl_output_oom = {.name = "oom", .folder = write_all};
