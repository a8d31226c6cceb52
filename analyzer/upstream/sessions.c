/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/upstream.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/report/bundle_path.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/words.h"

#define OOMS_MAX   64
#define ALERTS_MAX 64

/* What is known of the exact moment of an error; a bin would only give a mean.  What others hold is in their own sinks. */
static void set_exactly(struct sl_v3_event *event, const struct sl_model *model, const struct sl_oom *oom)
{
	int64_t unused = event->reserved_bytes - event->allocated_bytes, own;

	if (oom->device < 0)
		return;
	event->reserved_bytes = (int64_t)oom->live_bytes;
	event->allocated_bytes = event->reserved_bytes > unused ? event->reserved_bytes - unused : 0;
	if (event->active_bytes != SL_EVENT_UNKNOWN) {
		event->active_bytes = event->allocated_bytes;
		event->inactive_bytes = event->reserved_bytes - event->allocated_bytes;
	}
	if (oom->free_bytes == SL_UNKNOWN || oom->total_bytes == SL_UNKNOWN || oom->free_bytes > oom->total_bytes) {
		event->used_bytes = event->used_bytes > event->reserved_bytes ? event->used_bytes : event->reserved_bytes;
		return;
	}
	event->total_bytes = (int64_t)oom->total_bytes;
	event->free_bytes = (int64_t)oom->free_bytes;
	own = event->total_bytes - event->free_bytes -
	      sl_maker_at(model, model->devices[oom->device + 1]->others_line, oom->time_ns);
	event->used_bytes = own > event->reserved_bytes ? own : event->reserved_bytes;
}

static void add_ooms(struct sl_maker *m)
{
	const struct sl_model *model = m->process->model;
	char bundle[512];

	for (size_t i = 0; i < model->ooms.count && i < OOMS_MAX; i++) {
		const struct sl_oom *oom = &model->ooms.item[i];
		const struct sl_hook *hook = sl_header_hook(model->header, oom->api);
		const struct sl_device_state *device = oom->device >= 0 ? model->devices[oom->device + 1] : NULL;
		struct sl_v3_event event;
		struct sl_value *metadata = sl_maker_metadata(m, 5, device, oom->free_bytes == SL_UNKNOWN ? oom->time_ns : 0);

		if (oom->group != i)
			continue;
		event = sl_maker_event(m, device, oom->time_ns, "error");
		set_exactly(&event, model, oom);
		sl_value_set(metadata, "oom_reason", sl_value_of_text(sl_bundle_reason(oom)));
		if (sl_bundle_path(m->process, oom, bundle, sizeof(bundle)))
			sl_value_set(metadata, "oom_dump_path", sl_value_of_text(sl_arena_strdup(m->arena, bundle)));
		sl_value_set(metadata, "api", sl_value_of_text(hook ? hook->plain : NULL));
		sl_value_set(metadata, "requested_bytes", sl_value_of_int((int64_t)oom->requested_bytes));
		sl_value_set(metadata, "severity", sl_value_of_text(oom->recovered == 1 ? "warning" : "critical"));
		event.context = sl_arena_printf(m->arena, "%s: out of memory", hook ? hook->plain : "allocation");
		event.metadata = metadata;
		sl_maker_add(m, event);
	}
}

static void add_lifecycle(struct sl_maker *m, const struct sl_device_state *device, bool start)
{
	const struct sl_trace *trace = m->process->trace;
	const struct sl_model *model = m->process->model;
	uint64_t ns = start ? trace->header.monotonic_ns : model->now_ns;
	struct sl_v3_event event;
	struct sl_value *metadata;

	if (!start && trace->status != SL_STATUS_COMPLETED)
		return;
	event = sl_maker_event(m, device, ns, start ? "start" : "stop");
	event.timestamp_ns = (int64_t)(start ? m->process->started_unix_ns : m->process->ended_unix_ns);
	metadata = sl_maker_metadata(m, 2, device, ns);
	if (model->phases.count < model->phases_seen) { /* ranges were thinned out; the session says so */
		sl_value_set(metadata, "label_entries", sl_value_of_int((int64_t)model->phases_seen));
		sl_value_set(metadata, "label_entries_with_events", sl_value_of_int((int64_t)model->phases.count));
	}
	event.metadata = metadata;
	event.context = start ? "Recording started" : "Process ended";
	sl_maker_add(m, event);
}

static void summarize(const struct sl_process *process, struct sl_arena *arena, struct sl_session *session)
{
	static const enum sl_session_status statuses[] = {SL_SESSION_COMPLETED, SL_SESSION_INTERRUPTED, SL_SESSION_RUNNING,
							  SL_SESSION_INCOMPLETE};
	const struct sl_header *header = &process->trace->header;
	const char **source = sl_arena_alloc(arena, sizeof(*source));
	bool alone = header->rank < 0 || header->world_size <= 1;

	*source = sl_arena_strdup(arena, sl_paths_name(process->trace->name));
	session->kind = SL_SESSION_NATIVE;
	session->sources = source;
	session->source_count = 1;
	session->summary = (struct sl_session_summary){
		.session_id = process->session_id,
		.host = header->host && *header->host ? header->host : "unknown",
		.source = *source,
		.job_id = header->job_id && *header->job_id ? header->job_id : NULL,
		.status = process->trace->damage.damaged ? SL_SESSION_INCOMPLETE : statuses[process->trace->status],
		.started_at_ns = (int64_t)process->started_unix_ns,
		.ended_at_ns = (int64_t)process->ended_unix_ns,
		.has_end = process->trace->status != SL_STATUS_RUNNING,
		.pid = header->pid,
		.rank = alone ? 0 : header->rank,
		.local_rank = alone || header->local_rank < 0 ? 0 : header->local_rank,
		.world_size = alone ? 1 : header->world_size,
	};
}

static void add_alert(void *context, const struct sl_v3_event *event)
{
	struct sl_maker *m = context;

	if (m->alerts++ < ALERTS_MAX)
		sl_session_add_event(m->session, event);
}

/* Alerts for one device, whose samples are the events from `from` on. */
static void add_alerts(struct sl_maker *m, const struct sl_device_state *device, size_t from,
		       const struct sl_alert_thresholds *thresholds)
{
	size_t count = m->session->count - from;
	struct sl_v3_event *samples = sl_arena_alloc(m->arena, (count + 1) * sizeof(*samples));
	struct sl_series series = {.events = sl_arena_alloc(m->arena, (count + 1) * sizeof(*series.events))};

	for (size_t i = 0; i < count; i++) {
		samples[i] = m->session->events[from + i];
		samples[i].total_bytes = device->total_bytes == SL_UNKNOWN ? SL_EVENT_UNKNOWN : (int64_t)device->total_bytes;
		series.events[series.count++] = &samples[i];
	}
	sl_alerts_derive(&series, thresholds ? thresholds : &sl_alert_defaults, m->arena, add_alert, m);
}

/* Adds an event for each call of a collective. */
static void add_marks(struct sl_maker *m, const struct sl_device_state *device)
{
	const struct sl_model *model = m->process->model;

	for (size_t i = 0; i < model->collectives.count; i++) {
		const struct sl_collective *mark = &model->collectives.item[i];
		struct sl_v3_event event = sl_maker_event(m, device, mark->begin_ns, "collective");
		struct sl_value *metadata = sl_maker_metadata(m, 4, device, mark->begin_ns);

		sl_value_set(metadata, "api", sl_value_of_text(mark->name));
		sl_value_set(metadata, "duration_ns", sl_value_of_int((int64_t)(mark->end_ns - mark->begin_ns)));
		if (mark->communicator)
			sl_value_set(
				metadata, "communicator",
				sl_value_of_text(sl_arena_printf(m->arena, "%016llx", (unsigned long long)mark->communicator)));
		if (mark->bytes)
			sl_value_set(metadata, "message_bytes", sl_value_of_int((int64_t)mark->bytes));
		event.context = mark->name;
		event.metadata = metadata;
		sl_maker_add(m, event);
	}
}

static unsigned samples_each(const struct sl_report *report)
{
	unsigned each = report->process_count ? SL_SESSIONS_SAMPLES / report->process_count : 0;

	if (report->options.samples)
		return report->options.samples;
	return each > SL_SESSION_SAMPLES ? SL_SESSION_SAMPLES : each < SL_SESSION_SAMPLES_LEAST ? SL_SESSION_SAMPLES_LEAST : each;
}

void sl_sessions_make(const struct sl_report *report, const struct sl_process *process, struct sl_arena *arena,
		      struct sl_session *session)
{
	unsigned samples = samples_each(report);
	const struct sl_model *model = process->model;
	struct sl_maker m = {.process = process, .arena = arena, .session = session, .backend = sl_words_backend(model)};
	const struct sl_device_state *first = NULL;
	unsigned devices = 0;
	size_t from;

	*session = (struct sl_session){0};
	summarize(process, arena, session);
	for (size_t d = 1; d < SL_COUNT(model->devices); d++)
		if (model->devices[d] && model->devices[d]->used) {
			first = first ? first : model->devices[d];
			devices++;
		}
	if (!devices && model->host.rss)
		m.backend = "cpu";
	m.plain = sl_maker_metadata(&m, 0, NULL, 0);
	add_lifecycle(&m, first, true);
	if (!strcmp(m.backend, "cpu"))
		sl_session_samples_resident(&m, model->host.rss, samples);
	for (size_t d = 1; d < SL_COUNT(model->devices) && devices; d++)
		if (model->devices[d] && model->devices[d]->used) {
			m.last_allocated = 0;
			m.told = 0;
			from = session->count;
			sl_session_samples_device(&m, model->devices[d], samples / devices);
			add_alerts(&m, model->devices[d], from, report->options.alerts);
			sl_session_samples_peak(&m, model->devices[d]);
		}
	add_ooms(&m);
	for (size_t i = 0; i < model->phases.count; i++)
		sl_session_phases_add(&m, &model->phases.item[i], first);
	add_marks(&m, first);
	add_lifecycle(&m, first, false);
	sl_event_sort(session->events, session->count);
	/* changes are ordered by time, and each device has a line of its own */
	for (size_t d = 0; d < SL_COUNT(model->devices); d++) {
		int64_t last = 0;

		for (size_t i = 0; model->devices[d] && i < session->count; i++)
			if (session->events[i].device_id == (int64_t)d - 1) {
				session->events[i].change_bytes = session->events[i].allocated_bytes - last;
				last = session->events[i].allocated_bytes;
			}
	}
}

struct sl_session *sl_sessions_all(const struct sl_report *report, struct sl_arena *arena)
{
	struct sl_session *sessions = sl_memory_must(calloc(report->process_count + 1, sizeof(*sessions)));

	for (unsigned i = 0; i < report->process_count; i++)
		sl_sessions_make(report, &report->processes[i], arena, &sessions[i]);
	return sessions;
}

/* Names the call, its size, and where the memory was requested. */
static void say_call(struct sl_maker *m, struct sl_process *process, const struct sl_device_state *device,
		     const struct sl_known_at *change, struct sl_v3_event *event)
{
	const struct sl_hook *hook = sl_header_hook(process->model->header, change->api);
	const struct sl_site *site = &process->model->sites.item[change->site];
	struct sl_value *metadata = sl_maker_metadata(m, 3, device, change->end_ns);
	char where[512];

	sl_owners_line(process, site->stack, 3, where, sizeof(where));
	event->context = hook ? hook->plain : NULL;
	sl_value_set(metadata, "api", sl_value_of_text(event->context));
	sl_value_set(metadata, "bytes", sl_value_of_int(event->change_bytes < 0 ? -event->change_bytes : event->change_bytes));
	sl_value_set(metadata, "where", sl_value_of_text(where[0] ? sl_arena_strdup(m->arena, where) : NULL));
	event->metadata = metadata;
}

/* A sample that says what the one before said: of a pause there may be more than a bundle has events. */
static bool is_idle(const struct sl_v3_event *sample, const struct sl_v3_event *before)
{
	return !strcmp(sample->event_type, "sample") && !strcmp(before->event_type, "sample") &&
	       sample->allocated_bytes == before->allocated_bytes && sample->reserved_bytes == before->reserved_bytes &&
	       sample->used_bytes == before->used_bytes && sample->device_id == before->device_id;
}

struct sl_v3_event *sl_sessions_before(struct sl_process *process, struct sl_arena *arena, const struct sl_session *session,
				       const struct sl_oom *oom, size_t *count)
{
	const struct sl_device_state *device = oom->device >= 0 ? process->model->devices[oom->device + 1] : NULL;
	struct sl_maker m = {.process = process, .arena = arena, .backend = sl_words_backend(process->model)};
	struct sl_v3_event *events = sl_memory_must(calloc(session->count + oom->change_count + 1, sizeof(*events)));
	int64_t when = (int64_t)sl_process_unix(process, oom->time_ns), last = 0;
	size_t at = 0, room = device && device->recent_mask ? device->recent_mask + 1 : SL_RECENT; /* summaries have none */

	for (size_t i = 0; i < session->count && session->events[i].timestamp_ns <= when; i++)
		if (!i || !is_idle(&session->events[i], &session->events[i - 1]))
			events[at++] = session->events[i];
	m.plain = sl_maker_metadata(&m, 0, device, 0);
	for (unsigned i = 0; i < oom->change_count; i++) {
		const struct sl_known_at *change = &oom->changes[i];
		int64_t known = (int64_t)change->known;
		struct sl_v3_event event = sl_maker_event(&m, device, change->end_ns, known < last ? "deallocation" : "allocation");

		event.allocated_bytes += known - event.reserved_bytes;
		event.allocated_bytes = event.allocated_bytes < 0 ? 0 : event.allocated_bytes;
		event.reserved_bytes = known;
		event.change_bytes = known - last;
		if (event.active_bytes != SL_EVENT_UNKNOWN) {
			event.active_bytes = event.allocated_bytes;
			event.inactive_bytes = known - event.allocated_bytes;
		}
		sl_maker_set_used(&m, device, change->end_ns, &event);
		say_call(&m, process, device, change, &event);
		last = known;
		/* if the ring is full, the size of its first change is unknown */
		if ((i || oom->change_count < room) && event.timestamp_ns <= when)
			events[at++] = event;
	}
	sl_event_sort(events, at);
	*count = at;
	return events;
}

static unsigned ranks_of(const struct sl_report *report)
{
	unsigned ranks = 0;

	for (unsigned i = 0; i < report->process_count; i++)
		ranks += report->processes[i].trace->header.rank >= 0;
	return ranks;
}

struct sl_telemetry *sl_sessions_telemetry(const struct sl_report *report, struct sl_arena *arena)
{
	struct sl_telemetry *telemetry = sl_telemetry_new();
	struct sl_session *sessions = sl_sessions_all(report, arena);
	const struct sl_session *merged;
	char reason[160];

	for (unsigned i = 0; i < report->process_count; i++)
		sl_telemetry_add_session(telemetry, &sessions[i]);
	free(sessions);
	sl_telemetry_finish(telemetry, NULL);
	/* the ranks of a run share a session, whatever their launcher said of a job */
	if (report->process_count > 1 && ranks_of(report) == report->process_count &&
	    (merged = sl_telemetry_merge_ranks(telemetry, reason, sizeof(reason))))
		telemetry->selected = merged;
	return telemetry;
}
