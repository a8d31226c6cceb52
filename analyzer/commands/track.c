/* SPDX-License-Identifier: MIT */
/* stormlog-analyze track: writes what running programs hold into a telemetry sink, which Python Stormlog reads while it grows. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/begin.h"
#include "analyzer/commands/living.h"
#include "analyzer/follow/figures.h"
#include "analyzer/machine/machine.h"
#include "analyzer/upstream/answers/alerts.h"
#include "analyzer/upstream/files/live_sink.h"
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

struct track {
	const char *output;
	double interval, duration;
	struct sl_alert_thresholds thresholds;
	bool watchdog, node;
	struct sl_follow *follow;
	struct sl_machine machine;
	struct sl_live_sink *sink;
	SL_VECTOR(struct tracked *) tracked;
	struct sl_arena arena; /* memory for one look */
};

#define INTO struct track
static const struct sl_option table[] = {
	{"--output", 'o', "DIR", "where the sink goes: a new or an empty folder (needed)", SL_TO_TEXT(output)},
	{"--interval", 0, "SECONDS", "time between two samples, 0.1 to 3600 (default: 1)", SL_TO_REAL(interval, 0.1, 3600)},
	{"--duration", 0, "SECONDS", "how long it goes on (default: until every process has ended)", SL_TO_REAL(duration, 0, 1e9)},
	{"--warning-threshold", 0, "PERCENT",
	 "percent of the device that raises a warning: PyTorch's use in a process, without PyTorch all use (default: 80)",
	 SL_TO_REAL(thresholds.warning_percent, 0, 100)},
	{"--critical-threshold", 0, "PERCENT", "the same for a critical alert; not below the other (default: 95)",
	 SL_TO_REAL(thresholds.critical_percent, 0, 100)},
	{"--watchdog", 0, NULL, "print alerts on stderr too; the cache of a program cannot be emptied from outside",
	 SL_TO_FLAG(watchdog)},
	{0},
};

static const struct sl_value *metadata_of(struct track *track, const char *backend, const char *source)
{
	struct sl_value *metadata = sl_value_object(&track->arena, 4);

	sl_value_set(metadata, "backend", sl_value_of_text(backend));
	sl_value_set(metadata, "sampling_source", sl_value_of_text(source));
	return metadata;
}

/* ---- events */

static struct sl_v3_event event_of(struct track *track, const struct tracked *tracked, const char *type)
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
		.interval_ms = (int64_t)(track->interval * 1000),
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
	struct track *track;
	unsigned number;
	int64_t from_ns; /* alerts before this time were written with the previous sample */
};

static void put_alert(void *context, const struct sl_v3_event *event)
{
	const struct sieve *sieve = context;

	if (event->timestamp_ns < sieve->from_ns)
		return;
	sl_live_sink_add(sieve->track->sink, sieve->number, event);
	if (sieve->track->watchdog)
		sl_escape_print(stderr, "stormlog: %s: pid %lld device %lld: %s\n", event->event_type, (long long)event->pid,
				(long long)event->device_id, event->context ? event->context : "");
}

static void put_sample(struct track *track, struct tracked *tracked, struct sl_v3_event *event)
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
	sl_alerts_derive(&series, &track->thresholds, &track->arena, put_alert, &sieve);
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

static void put_ooms(struct track *track, struct tracked *tracked)
{
	const struct sl_model *model = tracked->followed->process.model;

	if (track->watchdog && tracked->ooms < model->ooms_total)
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

static struct tracked *tracked_of(struct track *track, const struct sl_followed *followed, const char *session_id)
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

static void look_at_process(struct track *track, const struct sl_followed *followed)
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

/* Without a recorded process: writes what the driver reports for each device, in a session of this verb. */
static void look_at_machine(struct track *track)
{
	char session_id[64];
	struct tracked *tracked;

	if (!track->machine.devices.count)
		return;
	snprintf(session_id, sizeof(session_id), "devices-%ld", (long)getpid());
	tracked = tracked_of(track, NULL, session_id);
	sl_machine_look_again(&track->machine);
	for (unsigned d = 0; d < track->machine.devices.count && d < DEVICES; d++) {
		const struct sl_machine_device *device = &track->machine.devices.item[d];
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

static bool look(struct track *track)
{
	if (track->node)
		sl_follow_node(track->follow, 0);
	sl_living_poll(track->follow);
	for (unsigned i = 0; i < sl_follow_count(track->follow); i++)
		look_at_process(track, sl_follow_process(track->follow, i));
	if (track->node)
		look_at_machine(track);
	sl_arena_free(&track->arena);
	return sl_live_sink_flush(track->sink);
}

static int go(struct track *track)
{
	struct pollfd asked = {.events = POLLIN};
	uint64_t begin = sl_now_ns(CLOCK_MONOTONIC), step = (uint64_t)(track->interval * 1e9), next = begin;
	bool fine;

	asked.fd = sl_save_ask_first();
	track->sink = sl_live_sink_open(track->output);
	if (!track->sink)
		return sl_command_fail(errno == ENOTEMPTY ? SL_EXIT_USAGE : SL_EXIT_UNSAVED, "%s: %m", track->output);
	do {
		fine = look(track);
		next += step;
		if ((!track->node && sl_follow_all_ended(track->follow)) || !fine ||
		    (track->duration > 0 && (double)(next - begin) / 1e9 > track->duration))
			break;
	} while (poll(&asked, 1,
		      next > sl_now_ns(CLOCK_MONOTONIC) ? (int)((next - sl_now_ns(CLOCK_MONOTONIC)) / 1000000) + 1 : 0) <= 0);
	if (!sl_live_sink_close(track->sink, sl_now_ns(CLOCK_REALTIME)))
		fine = false;
	if (!fine && errno == ENOENT)
		return sl_command_fail(SL_EXIT_UNSAVED, "%s, or a file of it, was removed meanwhile", track->output);
	return fine ? SL_EXIT_FINE : sl_command_fail(SL_EXIT_UNSAVED, "%s: %m", track->output);
}

/* Opens what is needed to ask the driver, then gives up rights; before the first trace is opened. */
static int begin(struct track *track, const struct sl_arguments *options)
{
	if (!track->output)
		return sl_command_fail(SL_EXIT_USAGE, "track needs --output DIR");
	track->node = !options->path_count;
	if (track->node)
		sl_machine_look(&track->machine);
	sl_begin(&(struct sl_verb_files){
		.inputs = options->paths, .writes = {track->output}, .processes = sl_living_is_node(options)});
	if (!sl_living_add_all(track->follow, options))
		return SL_EXIT_USAGE;
	return go(track);
}

static const char about[] =
	"Writes what running programs hold, as telemetry that Python Stormlog can read meanwhile.  Without PATH: of every\n"
	"recording on this node, and of its devices.";

static int run(struct sl_arguments *options)
{
	struct track track = {.interval = 1, .thresholds = sl_alert_defaults, .follow = sl_follow_new()};
	int status = sl_arguments_parse(options, NULL, &track);

	if (status < 0 && track.thresholds.critical_percent < track.thresholds.warning_percent)
		status = sl_command_fail(SL_EXIT_USAGE, "--critical-threshold is below --warning-threshold");
	if (status < 0)
		status = begin(&track, options);
	for (size_t i = 0; i < track.tracked.count; i++) {
		free(track.tracked.item[i]->session_id);
		free(track.tracked.item[i]);
	}
	free(track.tracked.item);
	sl_machine_free(&track.machine);
	sl_follow_free(track.follow);
	return status;
}

const struct sl_command sl_command_track = {"track",
					    "write what running programs hold to a telemetry sink",
					    "track --output DIR [options] [PATH|PID]...",
					    about,
					    table,
					    run,
					    SL_PATHS_OPTIONAL};
