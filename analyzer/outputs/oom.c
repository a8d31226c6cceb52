/* SPDX-License-Identifier: MIT */
/* oom/oom_dump_...: a bundle for each out-of-memory error: the events before it, and the holders of the device. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "analyzer/answer/make.h"
#include "analyzer/report/owners.h"
#include "analyzer/outputs/output.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/devices.h"
#include "analyzer/upstream/upstream.h"

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
	struct sl_answers *answers = sl_answer_error(w->report, w->process, w->oom);

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
	const struct sl_site *site;
	char where[512];

	sl_json_array(j, NULL);
	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(w->process, w->oom, owner, &site));) {
		sl_owners_line(w->process, site->stack, 8, where, sizeof(where));
		sl_json_object(j, NULL);
		sl_json_string(j, "kind", sl_event_kinds[site->kind].name);
		sl_json_string(j, "library", sl_model_library(w->process->model, site));
		sl_json_uint(j, "bytes", owner->bytes);
		sl_json_uint(j, "blocks", owner->blocks);
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
	struct writer writer = {report, process, oom, sl_process_account(process, oom)};
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
		.backend = sl_bundle_backend(process, oom),
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
	size_t count;
	uint64_t *times = sl_bundle_times(report, &count);

	removed = removed < count ? removed : count;
	if (removed)
		report->bundles_kept_ns = times[removed - 1] + 1;
	free(times);
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

		for (const struct sl_oom *oom = NULL; fine && (oom = sl_bundle_next(process, oom));) {
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
