/* SPDX-License-Identifier: MIT */
/* stormlog-analyze diagnose: a bundle as Python Stormlog's diagnose writes one, about a run or about what runs now. */
#include <sys/utsname.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/commands/commands.h"
#include "common/now.h"

#define DEVICES		 16
#define HIGH_UTILIZATION 0.85 /* as Python Stormlog's */
#define FRAGMENTED	 0.3

static const char *const names[] = {"environment.json", "telemetry_timeline.json", "diagnostic_summary.json", "manifest.json"};

struct point {
	double time_s;
	uint64_t allocated, reserved;
};

struct diagnosis {
	const char *output;
	double duration, interval;
	char **argv;
	bool node, json;
	struct sl_follow *follow;
	struct sl_machine machine;
	const struct sl_followed *followed; /* the process that holds most */
	struct sl_figures figures;	    /* of the device on which it holds most */
	uint64_t allocated, reserved;	    /* now; for a run that has ended, at its last error or its peak */
	SL_VECTOR(struct point) points;
	bool oom, full, fragmented;
};

#define INTO struct diagnosis
static const struct sl_option table[] = {
	{"--output", 'o', "DIR", "where the bundle goes; in a folder that exists, as stormlog-diagnose-TIME (default: that, here)",
	 SL_TO_TEXT(output)},
	{"--duration", 0, "SECONDS", "how long to look at what runs (default: 5)", SL_TO_REAL(duration, 0, 1e6)},
	{"--interval", 0, "SECONDS", "time between two updates, 0.1 to 3600 (default: 0.5)", SL_TO_REAL(interval, 0.1, 3600)},
	{"--json", 0, NULL, "where the bundle is and what it found, as a JSON object on stdout", SL_TO_FLAG(json)},
	{0},
};

/* ---- figures */

/*
 * Takes the figures of a run that has ended from its last out-of-memory error, else from its peak: at the end it had freed its
 * memory.
 */
static void go_back(struct diagnosis *d)
{
	const struct sl_model *model = d->followed->process.model;
	const struct sl_device_state *device = model->devices[d->figures.device + 1];
	const struct sl_torch *torch = &device->torch_at_peak;

	d->figures.live = device->known_peak;
	for (size_t i = 0; i < model->ooms.count; i++)
		if (model->ooms.item[i].device == d->figures.device) {
			torch = &model->ooms.item[i].torch;
			d->figures.live = model->ooms.item[i].live_bytes;
		}
	if (!torch->reported)
		return;
	d->figures.reserved = torch->reserved_bytes;
	d->figures.allocated = torch->allocated_bytes;
}

/* Takes PyTorch's figures where it reports them, else those of the calls. */
static void set_now(struct diagnosis *d)
{
	bool torch = d->figures.reserved != SL_UNKNOWN;

	d->reserved = torch && d->figures.reserved > d->figures.live ? d->figures.reserved : d->figures.live;
	d->allocated = d->figures.live;
	if (torch && d->figures.reserved > d->figures.allocated && d->allocated > d->figures.reserved - d->figures.allocated)
		d->allocated -= d->figures.reserved - d->figures.allocated;
}

static void choose(struct diagnosis *d)
{
	uint64_t max_peak = 0;

	d->followed = NULL;
	for (unsigned i = 0; i < sl_follow_count(d->follow); i++) {
		const struct sl_followed *followed = sl_follow_process(d->follow, i);
		struct sl_figures figures[DEVICES];
		unsigned count = sl_figures_of(&followed->process, figures, DEVICES);

		for (unsigned k = 0; k < count; k++)
			if (!d->followed || figures[k].peak > max_peak) {
				d->followed = followed;
				d->figures = figures[k];
				max_peak = figures[k].peak;
			}
	}
	if (d->followed && d->followed->ended && d->followed->process.model->devices[d->figures.device + 1])
		go_back(d);
	if (d->followed)
		set_now(d);
}

/* Takes the points of a finished run from its time line: the maximum of each bin. */
static void points_of_past(struct diagnosis *d)
{
	const struct sl_process *process = &d->followed->process;
	const struct sl_timeline *timeline = &process->model->timeline;
	const struct sl_line *line = sl_timeline_find(timeline, SL_LINE_KNOWN, d->figures.device, -1);

	for (unsigned i = 0; !line && i < timeline->line_count; i++)
		if (timeline->lines[i]->what == SL_LINE_KNOWN && timeline->lines[i]->device == d->figures.device)
			line = timeline->lines[i];
	d->points.count = 0;
	for (uint32_t b = line ? line->first : 0; line && line->begun && b <= line->bin; b++) {
		uint64_t ns = timeline->begin_ns + ((uint64_t)b << timeline->shift);

		*SL_PUSH(&d->points) =
			(struct point){(double)sl_process_unix(process, ns) / 1e9, line->bins[b].max, line->bins[b].max};
	}
}

static void look(struct diagnosis *d)
{
	for (uint64_t begin = sl_now_ns(CLOCK_REALTIME);;) {
		if (d->node)
			sl_follow_node(d->follow, 0);
		sl_follow_poll(d->follow);
		choose(d);
		if (d->followed)
			*SL_PUSH(&d->points) = (struct point){(double)sl_now_ns(CLOCK_REALTIME) / 1e9, d->allocated, d->reserved};
		if ((d->followed && d->followed->ended) ||
		    (double)(sl_now_ns(CLOCK_REALTIME) - begin) / 1e9 + d->interval > d->duration)
			break;
		usleep((useconds_t)(d->interval * 1e6));
	}
	if (d->followed && d->followed->ended)
		points_of_past(d);
}

/* ---- the bundle */

static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static double fragmentation(const struct diagnosis *d)
{
	return d->figures.reserved == SL_UNKNOWN || d->figures.reserved <= d->figures.allocated
		       ? 0
		       : share((double)(d->figures.reserved - d->figures.allocated), (double)d->figures.reserved);
}

static double utilization(const struct diagnosis *d)
{
	return d->figures.total == SL_UNKNOWN ? 0 : share((double)d->allocated, (double)d->figures.total);
}

static void put_environment(struct sl_json *j, const struct diagnosis *d, const struct sl_machine *machine)
{
	struct utsname system;

	uname(&system);
	sl_json_object(j, NULL);
	sl_json_object(j, "system");
	sl_json_string(j, "platform", system.sysname);
	sl_json_string(j, "release", system.release);
	sl_json_string(j, "architecture", system.machine);
	sl_json_string(j, "detected_backend", "cuda");
	sl_json_string(j, "cuda_version", *machine->cuda ? machine->cuda : NULL);
	sl_json_string(j, "driver_version", *machine->nvidia_driver ? machine->nvidia_driver : NULL);
	sl_json_int(j, "cpu_count", sysconf(_SC_NPROCESSORS_ONLN));
	sl_json_end(j);
	sl_json_object(j, "gpu");
	sl_json_int(j, "device_id", d->figures.device);
	sl_json_string(j, "device_name", d->figures.name);
	sl_json_string(j, "uuid", d->figures.uuid);
	sl_json_known_uint(j, "total_memory", d->figures.total);
	sl_json_known_uint(j, "device_used_bytes", d->figures.used);
	sl_json_end(j);
	sl_json_object(j, "fragmentation");
	sl_json_uint(j, "reserved_bytes", d->reserved);
	sl_json_uint(j, "allocated_bytes", d->allocated);
	sl_json_double(j, "fragmentation_ratio", fragmentation(d));
	sl_json_end(j);
	sl_json_end(j);
}

static void put_timeline(struct sl_json *j, const struct diagnosis *d)
{
	sl_json_object(j, NULL);
	sl_json_array(j, "timestamps");
	for (size_t i = 0; i < d->points.count; i++)
		sl_json_double(j, NULL, d->points.item[i].time_s);
	sl_json_end(j);
	sl_json_array(j, "allocated");
	for (size_t i = 0; i < d->points.count; i++)
		sl_json_uint(j, NULL, d->points.item[i].allocated);
	sl_json_end(j);
	sl_json_array(j, "reserved");
	for (size_t i = 0; i < d->points.count; i++)
		sl_json_uint(j, NULL, d->points.item[i].reserved);
	sl_json_end(j);
	sl_json_end(j);
}

/* Writes a suggestion with its place, without which suggestions of one kind would be the same text. */
static void put_suggestion(struct sl_json *j, const struct sl_finding *finding)
{
	const char *advice = finding->advice ?: "", *point = strrchr(finding->text, '.');
	char *text = sl_memory_print("%s%s%s", finding->text, !*advice ? "" : point && !point[1] ? " " : ": ", advice);

	sl_json_string(j, NULL, text);
	free(text);
}

/* Writes the findings and the advice of a report made now. */
static void put_suggestions(struct sl_json *j, const struct diagnosis *d)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1};
	struct sl_report report = {0};
	char *paths[] = {d->followed->process.trace->name, NULL};

	sl_json_array(j, "suggestions");
	if (sl_pipeline_run(&report, paths, 1, &options) == SL_PIPELINE_FINE) {
		sl_answer_describe(&report);
		for (size_t i = 0; i < report.findings.count; i++)
			if (strcmp(report.findings.item[i].severity, "info") != 0)
				put_suggestion(j, &report.findings.item[i]);
	}
	sl_report_free(&report);
	sl_json_end(j);
}

static void put_summary(struct sl_json *j, const struct diagnosis *d)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "backend", "cuda");
	sl_json_uint(j, "allocated_bytes", d->allocated);
	sl_json_uint(j, "reserved_bytes", d->reserved);
	sl_json_uint(j, "peak_bytes", d->figures.peak);
	sl_json_known_uint(j, "total_bytes", d->figures.total);
	sl_json_uint(j, "allocator_gap_bytes", d->reserved - d->allocated);
	sl_json_double(j, "utilization_ratio", utilization(d));
	sl_json_double(j, "fragmentation_ratio", fragmentation(d));
	sl_json_uint(j, "num_ooms", d->followed->process.model->ooms_total);
	sl_json_object(j, "risk_flags");
	sl_json_bool(j, "oom_occurred", d->oom);
	sl_json_bool(j, "high_utilization", d->full);
	sl_json_bool(j, "fragmentation_warning", d->fragmented);
	sl_json_end(j);
	put_suggestions(j, d);
	sl_json_end(j);
}

static struct sl_session_summary session_of(const struct diagnosis *d)
{
	const struct sl_process *process = &d->followed->process;
	const struct sl_header *header = &process->trace->header;
	bool ranked = header->rank >= 0 && header->world_size > 1, ended = d->followed->ended;

	return (struct sl_session_summary){
		.session_id = process->session_id,
		.host = header->host && *header->host ? header->host : "unknown",
		.source = "stormlog-analyze diagnose",
		.job_id = header->job_id && *header->job_id ? header->job_id : NULL,
		.status = !ended					  ? SL_SESSION_RUNNING
			  : process->trace->status == SL_STATUS_COMPLETED ? SL_SESSION_COMPLETED
									  : SL_SESSION_INTERRUPTED,
		.started_at_ns = (int64_t)process->started_unix_ns,
		.ended_at_ns = (int64_t)process->ended_unix_ns,
		.has_end = ended,
		.pid = header->pid,
		.rank = ranked ? header->rank : 0,
		.local_rank = ranked && header->local_rank >= 0 ? header->local_rank : 0,
		.world_size = ranked ? header->world_size : 1,
	};
}

static void put_manifest(struct sl_json *j, const struct diagnosis *d)
{
	struct sl_session_summary session = session_of(d);
	bool risk = d->oom || d->full || d->fragmented;
	char stamp[64], command[512] = "stormlog-analyze";
	time_t now = time(NULL);
	struct tm utc;

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	for (char **word = d->argv; *word && strlen(command) + strlen(*word) + 2 < sizeof(command); word++)
		strcat(strcat(command, " "), *word);
	sl_json_object(j, NULL);
	sl_json_int(j, "schema_version", 2);
	sl_json_int(j, "version", 2);
	sl_json_string(j, "created_iso", stamp);
	sl_json_string(j, "command_line", command);
	sl_json_bool(j, "native_history_enabled", false);
	sl_json_texts(j, "files", names, SL_COUNT(names));
	sl_json_int(j, "exit_code", risk ? 2 : 0);
	sl_json_bool(j, "risk_detected", risk);
	sl_json_string(j, "session_id", session.session_id);
	sl_json_string(j, "session_status", sl_session_status_names[session.status]);
	sl_session_summary_write(j, "session", &session);
	sl_json_end(j);
}

static void place_of(const struct diagnosis *d, char *place, size_t size)
{
	time_t now = time(NULL);
	char stamp[32];
	struct tm utc;

	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", gmtime_r(&now, &utc));
	snprintf(place, size, "%s", d->output ? d->output : ".");
	for (unsigned i = 0; !access(place, F_OK) && i < 100; i++) {
		snprintf(place, size, "%s/stormlog-diagnose-%s", d->output ? d->output : ".", stamp);
		if (i)
			snprintf(place + strlen(place), size - strlen(place), "-%u", i);
	}
}

static bool save(const struct diagnosis *d, char *place, size_t size)
{
	struct sl_folder folder = {0};
	bool begun;

	place_of(d, place, size);
	begun = sl_folder_begin(&folder, place);
	for (size_t i = 0; begun && i < SL_COUNT(names); i++) {
		FILE *file;
		struct sl_json *j = sl_folder_json(&folder, names[i], &file);

		if (i == 0)
			put_environment(j, d, &d->machine);
		else
			(i == 1 ? put_timeline : i == 2 ? put_summary : put_manifest)(j, d);
		sl_folder_json_close(&folder, j, file, names[i]);
	}
	return sl_folder_end(&folder);
}

static void put_answer(const struct diagnosis *d, const char *place)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_INDENT);

	sl_json_document(j, "stormlog.diagnose", 1);
	sl_json_string(j, "bundle", place);
	sl_json_bool(j, "out_of_memory", d->oom);
	sl_json_bool(j, "nearly_full", d->full);
	sl_json_bool(j, "fragmented", d->fragmented);
	sl_json_finish(j);
}

static int diagnose(struct diagnosis *d)
{
	char place[4096];

	look(d);
	if (!d->followed)
		return sl_command_fail(SL_EXIT_LIMIT, "no recorded process uses a GPU: start one with stormlog-run");
	sl_damage_print(&d->followed->process.trace->damage);
	d->oom = d->followed->process.model->ooms_total > 0;
	d->full = utilization(d) >= HIGH_UTILIZATION;
	d->fragmented = fragmentation(d) >= FRAGMENTED;
	if (!save(d, place, sizeof(place)))
		return sl_command_fail(SL_EXIT_LIMIT, "%s: %m", place);
	if (d->json)
		put_answer(d, place);
	else
		sl_escape_print(stdout, "%s%s%s%s\n", place, d->oom ? "  ran out of memory" : "", d->full ? "  nearly full" : "",
				d->fragmented ? "  fragmented" : "");
	return d->oom || d->full || d->fragmented ? 2 : 0;
}

/* Opens what is needed to ask the driver, then gives up rights; before the first trace is opened. */
static int begin(struct diagnosis *d, const struct sl_arguments *options)
{
	d->node = !options->path_count;
	sl_machine_look(&d->machine);
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = options->paths,
						 .writes = {d->output ? d->output : "./stormlog-diagnose"},
						 .processes = sl_recordings_is_node(options)});
	if (!sl_recordings_add_all(d->follow, options))
		return SL_EXIT_USAGE;
	return diagnose(d);
}

static const char about[] =
	"Writes a bundle of the process that held most, as Python Stormlog's diagnose does.  Exit status as there: 0 fine,\n"
	"1 failure, 2 a risk (out of memory, nearly full, fragmented) or usage.";

static int run(struct sl_arguments *options)
{
	struct diagnosis d = {.duration = 5, .interval = 0.5, .argv = options->argv, .follow = sl_follow_new()};
	int status = sl_arguments_parse(options, NULL, &d);

	if (status < 0)
		status = begin(&d, options);
	sl_machine_free(&d.machine);
	free(d.points.item);
	sl_follow_free(d.follow);
	return status;
}

const struct sl_command sl_command_diagnose = {"diagnose",
					       "a bundle as Python Stormlog's diagnose writes one",
					       "diagnose [options] [PATH|PID]...",
					       about,
					       table,
					       run,
					       SL_PATHS_OPTIONAL};
