/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/memory.h"
#include "common/now.h"

#define DEVICES SL_FIGURES_DEVICES

/* A process, or this machine's devices, with the last sample of each device. */
struct tracked {
	const struct sl_followed *followed;
	char *session_id;
	unsigned number; /* session number in the sink */
	struct sl_met met;
	struct sl_v3_event last[DEVICES]; /* by their place in `met` */
	bool seen[DEVICES], ended;
	uint64_t ooms;
};

struct sl_tracking {
	struct sl_tracking_settings settings;
	struct sl_live_sink *sink;
	SL_VECTOR(struct tracked *) tracked;
	struct sl_arena arena; /* memory for one look */
};

static const struct sl_value *metadata_of(struct sl_tracking *track, const char *backend, const char *source)
{
	struct sl_value *metadata = sl_value_object(&track->arena, 4);

	sl_value_set(metadata, "backend", sl_value_of_text(backend));
	sl_value_set(metadata, "sampling_source", sl_value_of_text(source));
	return metadata;
}

/* ---- events */

static struct sl_v3_event event_of(struct sl_tracking *track, const struct tracked *tracked, const char *type)
{
	const struct sl_header *header = tracked->followed ? &tracked->followed->process.trace->header : NULL;
	bool ranked = header && header->rank >= 0 && header->world_size > 1;
	static char host[256];

	if (!*host)
		gethostname(host, sizeof(host) - 1);
	return (struct sl_v3_event){
		.timestamp_ns = sl_now_ns(CLOCK_REALTIME),
		.active_bytes = SL_EVENT_UNKNOWN,
		.inactive_bytes = SL_EVENT_UNKNOWN,
		.free_bytes = SL_EVENT_UNKNOWN,
		.total_bytes = SL_EVENT_UNKNOWN,
		.device_id = -1,
		.pid = header ? header->pid : getpid(),
		.interval_ms = (int64_t)(track->settings.interval * 1000),
		.rank = ranked ? (int32_t)header->rank : 0,
		.local_rank = ranked && header->local_rank >= 0 ? (int32_t)header->local_rank : 0,
		.world_size = ranked ? (int32_t)header->world_size : 1,
		.session_id = tracked->session_id,
		.event_type = type,
		.collector = "stormlog.cuda_preload",
		.host = header && header->host && *header->host ? header->host : host,
		.job_id = header && header->job_id && *header->job_id ? header->job_id : NULL,
		.metadata = metadata_of(track, "cuda", header ? "preload" : "nvml"),
	};
}

struct sieve {
	struct sl_tracking *track;
	unsigned number;
	int64_t from_ns; /* alerts before this time were written with the previous sample */
};

static void put_alert(void *context, const struct sl_v3_event *event)
{
	const struct sieve *sieve = context;

	if (event->timestamp_ns < sieve->from_ns)
		return;
	sl_live_sink_add(sieve->track->sink, sieve->number, event);
	if (sieve->track->settings.watchdog)
		sl_escape_print(stderr, "stormlog: %s: pid %lld device %lld: %s\n", event->event_type, (long long)event->pid,
				(long long)event->device_id, event->context ? event->context : "");
}

static void put_sample(struct sl_tracking *track, struct tracked *tracked, struct sl_v3_event *event)
{
	unsigned at = sl_figures_met(&tracked->met, (int)event->device_id);
	const struct sl_v3_event *both[] = {NULL, event};
	struct sl_series series;
	struct sieve sieve = {track, tracked->number, event->timestamp_ns};

	if (at == DEVICES)
		return;
	both[0] = &tracked->last[at];
	series = (struct sl_series){both + !tracked->seen[at], 2u - !tracked->seen[at]};
	if (tracked->seen[at] && event->timestamp_ns <= tracked->last[at].timestamp_ns)
		event->timestamp_ns = sieve.from_ns = tracked->last[at].timestamp_ns + 1; /* the clock was set back */
	event->change_bytes = tracked->seen[at] ? event->allocated_bytes - tracked->last[at].allocated_bytes : 0;
	sl_live_sink_add(track->sink, tracked->number, event);
	sl_alerts_derive(&series, &track->settings.thresholds, &track->arena, put_alert, &sieve);
	tracked->last[at] = *event;
	tracked->last[at].metadata = NULL; /* it is in this look's arena */
	tracked->seen[at] = true;
}

/* Samples follow the rules of a report's telemetry: used is reserved plus what no call named. */
static void set_figures(struct sl_v3_event *event, const struct sl_figures *f)
{
	int64_t unused = f->reserved != SL_UNKNOWN && f->reserved > f->allocated ? (int64_t)(f->reserved - f->allocated) : 0;

	event->device_id = f->device;
	event->reserved_bytes = (int64_t)f->live;
	event->allocated_bytes = event->reserved_bytes > unused ? event->reserved_bytes - unused : 0;
	if (f->reserved != SL_UNKNOWN) {
		event->active_bytes = event->allocated_bytes;
		event->inactive_bytes = event->reserved_bytes - event->allocated_bytes;
	}
	event->used_bytes = event->reserved_bytes + (f->hidden == SL_UNKNOWN ? 0 : (int64_t)(f->hidden + f->others));
	if (f->total == SL_UNKNOWN)
		return;
	event->total_bytes = (int64_t)f->total;
	event->used_bytes = event->used_bytes < event->total_bytes ? event->used_bytes : event->total_bytes;
	event->free_bytes = event->total_bytes - event->used_bytes;
}

static void put_ooms(struct sl_tracking *track, struct tracked *tracked)
{
	const struct sl_model *model = tracked->followed->process.model;

	if (track->settings.watchdog && tracked->ooms < model->ooms_total)
		sl_escape_print(stderr, "stormlog: error: pid %lld ran out of memory: %llu failed requests\n",
				(long long)tracked->followed->process.trace->header.pid, (unsigned long long)model->ooms_total);
	for (; tracked->ooms < model->ooms_total; tracked->ooms++) {
		const struct sl_oom *oom = tracked->ooms < model->ooms.count ? &model->ooms.item[tracked->ooms] : NULL;
		struct sl_v3_event event = event_of(track, tracked, "error");
		struct sl_value *metadata = sl_value_object(&track->arena, 4);

		sl_value_set(metadata, "backend", sl_value_of_text("cuda"));
		sl_value_set(metadata, "oom_reason", sl_value_of_text("message_pattern:out of memory"));
		event.metadata = metadata;
		event.context = "out of memory";
		event.device_id = oom ? oom->device : -1;
		if (oom && oom->live_bytes != SL_UNKNOWN)
			event.allocated_bytes = event.reserved_bytes = event.used_bytes = (int64_t)oom->live_bytes;
		sl_live_sink_add(track->sink, tracked->number, &event);
	}
}

/* ---- looks */

static struct tracked *tracked_of(struct sl_tracking *track, const struct sl_followed *followed, const char *session_id)
{
	struct sl_session_summary summary = {.source = "stormlog-analyze track", .status = SL_SESSION_RUNNING};
	struct sl_v3_event start;
	struct tracked *tracked;

	for (size_t i = 0; i < track->tracked.count; i++)
		if (!strcmp(track->tracked.item[i]->session_id, session_id))
			return track->tracked.item[i];
	tracked = sl_memory_must(calloc(1, sizeof(*tracked)));
	*SL_PUSH(&track->tracked) = tracked;
	tracked->session_id = strdup(session_id);
	tracked->followed = followed;
	start = event_of(track, tracked, "start");
	summary.session_id = tracked->session_id;
	summary.host = start.host;
	summary.job_id = start.job_id;
	summary.started_at_ns = followed && followed->process.started_unix_ns < (uint64_t)start.timestamp_ns
					? (int64_t)followed->process.started_unix_ns
					: start.timestamp_ns;
	summary.pid = start.pid;
	summary.rank = start.rank;
	summary.local_rank = start.local_rank;
	summary.world_size = start.world_size;
	tracked->number = sl_live_sink_session(track->sink, &summary);
	start.context = "Tracking started";
	sl_live_sink_add(track->sink, tracked->number, &start);
	return tracked;
}

static void look_at_process(struct sl_tracking *track, const struct sl_followed *followed)
{
	struct tracked *tracked = tracked_of(track, followed, followed->process.session_id);
	struct sl_figures figures[DEVICES];
	unsigned count = tracked->ended ? 0 : sl_figures_of(&followed->process, figures, DEVICES);

	tracked->followed = followed;
	for (unsigned d = 0; d < count; d++) {
		struct sl_v3_event event = event_of(track, tracked, "sample");

		set_figures(&event, &figures[d]);
		put_sample(track, tracked, &event);
	}
	if (!tracked->ended)
		put_ooms(track, tracked);
	if (followed->ended && !tracked->ended) {
		struct sl_v3_event stop = event_of(track, tracked, "stop");
		bool completed = followed->process.trace->status == SL_STATUS_COMPLETED;

		stop.context = completed ? "Process ended" : "Process was killed";
		if (completed)
			sl_live_sink_add(track->sink, tracked->number, &stop);
		sl_live_sink_end(track->sink, tracked->number,
				 completed	     ? SL_SESSION_COMPLETED
				 : followed->removed ? SL_SESSION_INCOMPLETE
						     : SL_SESSION_INTERRUPTED,
				 stop.timestamp_ns);
		tracked->ended = true;
	}
}

/* Without a recorded process: writes what the driver reports for each device, in a session of its own. */
static void look_at_machine(struct sl_tracking *track, const struct sl_machine *machine)
{
	char session_id[64];
	struct tracked *tracked;

	if (!machine->devices.count)
		return;
	snprintf(session_id, sizeof(session_id), "devices-%ld", (long)getpid());
	tracked = tracked_of(track, NULL, session_id);
	for (unsigned d = 0; d < machine->devices.count && d < DEVICES; d++) {
		const struct sl_machine_device *device = &machine->devices.item[d];
		struct sl_v3_event event = event_of(track, tracked, "sample");

		if (device->used_bytes == SL_MACHINE_UNKNOWN || device->total_bytes == SL_MACHINE_UNKNOWN)
			continue;
		event.device_id = device->index;
		event.allocated_bytes = event.reserved_bytes = event.used_bytes = (int64_t)device->used_bytes;
		event.total_bytes = (int64_t)device->total_bytes;
		event.free_bytes = event.total_bytes - event.used_bytes;
		put_sample(track, tracked, &event);
	}
}

struct sl_tracking *sl_tracking_open(const char *folder, const struct sl_tracking_settings *settings)
{
	struct sl_tracking *track = sl_memory_must(calloc(1, sizeof(*track)));

	track->settings = *settings;
	track->sink = sl_live_sink_open(folder);
	if (track->sink)
		return track;
	free(track);
	return NULL;
}

bool sl_tracking_look(struct sl_tracking *track, const struct sl_follow *follow, const struct sl_machine *machine)
{
	for (unsigned i = 0; i < sl_follow_count(follow); i++)
		look_at_process(track, sl_follow_process(follow, i));
	look_at_machine(track, machine);
	sl_arena_free(&track->arena);
	return sl_live_sink_flush(track->sink);
}

bool sl_tracking_close(struct sl_tracking *track, uint64_t *events)
{
	bool fine = sl_live_sink_close(track->sink, sl_now_ns(CLOCK_REALTIME), events);

	for (size_t i = 0; i < track->tracked.count; i++) {
		free(track->tracked.item[i]->session_id);
		free(track->tracked.item[i]);
	}
	free(track->tracked.item);
	free(track);
	return fine;
}
