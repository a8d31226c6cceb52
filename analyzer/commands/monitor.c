/* SPDX-License-Identifier: MIT */
/* stormlog-analyze monitor [PATH|PID]...: a row for each device of each process that runs, every so often. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/stat.h>

#include "analyzer/base/format.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/base/stats.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/dry.h"
#include "common/now.h"

enum format { TABLE, CSV, NDJSON, SINK }; /* in the order of --format */

#define DEVICES SL_FIGURES_DEVICES

struct monitor {
	double duration;
	bool json;
	struct sl_tracking_settings track;
	struct sl_tracking *sink; /* NULL: rows are written */
	bool failed;		  /* the sink could not be written */
	enum format format;
	const char *output;
	FILE *out;
	int error;			       /* errno of the first row that could not be written */
	bool gone;			       /* its file was replaced or removed by another */
	off_t whole;			       /* bytes of whole rows written */
	bool header_printed;		       /* the header of the table or csv has been printed */
	SL_VECTOR(struct sl_met) met;	       /* for each process */
	SL_VECTOR(struct sl_outlook) outlooks; /* DEVICES for each process, by their place in its `met` */
	struct sl_machine machine;	       /* where no path was named: devices without a recorded process get rows too */
	SL_VECTOR(struct sl_outlook) device_outlooks;
};

#define INTO struct monitor
static const struct sl_option table[] = {
	{"--interval", 0, "SECONDS", "time between two updates, 0.1 to 3600 (default: 1)", SL_TO_REAL(track.interval, 0.1, 3600)},
	{"--duration", 0, "SECONDS", "how long it goes on (default: until every process has ended)", SL_TO_REAL(duration, 0, 1e9)},
	{"--format", 0, "table|csv|ndjson|sink",
	 "how the rows are written (default: table); sink: for Python Stormlog, needs --output", SL_TO_WORD(format)},
	{"--json", 0, NULL, "the same as --format ndjson; sink: at the end, what was written (schemas/done.schema.json)",
	 SL_TO_FLAG(json)},
	{"--output", 'o', "FILE", "write there (default: standard output); sink: a new or an empty folder", SL_TO_TEXT(output)},
	{"--warning-threshold", 0, "PERCENT",
	 "sink: percent of the device that raises a warning: PyTorch's use in a process, without PyTorch all use (default: 80)",
	 SL_TO_REAL(track.thresholds.warning_percent, 0, 100)},
	{"--critical-threshold", 0, "PERCENT", "sink: the same for a critical alert; not below the other (default: 95)",
	 SL_TO_REAL(track.thresholds.critical_percent, 0, 100)},
	{"--watchdog", 0, NULL, "sink: print alerts on stderr too; the cache of a program cannot be emptied from outside",
	 SL_TO_FLAG(track.watchdog)},
	{0},
};

struct row {
	const struct sl_followed *followed; /* NULL: a device that no recorded process uses */
	struct sl_figures figures;
	uint64_t unix_ns;
	bool grows;
	double per_second, full_in; /* full_in: seconds; not finite: the device does not seem to fill */
};

static const char *own_host(void)
{
	static char name[256];

	if (!*name)
		gethostname(name, sizeof(name) - 1);
	return name;
}

#define SCHEMA "stormlog.monitor"

/* The members of a row; the columns of csv are in their order. */
static void put_figures(struct sl_json *j, const struct row *row)
{
	const struct sl_process *process = row->followed ? &row->followed->process : NULL;
	const struct sl_header *header = process ? &process->trace->header : NULL;
	const struct sl_figures *f = &row->figures;

	sl_json_uint(j, "timestamp_ns", row->unix_ns);
	sl_json_string(j, "session_id", process ? process->session_id : NULL);
	sl_json_string(j, "host", header ? header->host : own_host());
	sl_json_known(j, "pid", header ? header->pid : -1);
	sl_json_known(j, "rank", header ? header->rank : -1);
	sl_json_string(j, "status", process ? sl_trace_status(process->trace) : NULL);
	sl_json_known(j, "device_id", f->device);
	sl_json_string(j, "device_uuid", f->uuid);
	sl_json_known_uint(j, "live_bytes", f->live);
	sl_json_known_uint(j, "peak_bytes", f->peak);
	sl_json_known_uint(j, "allocator_allocated_bytes", f->allocated);
	sl_json_known_uint(j, "allocator_reserved_bytes", f->reserved);
	sl_json_known_uint(j, "device_used_bytes", f->used);
	sl_json_known_uint(j, "device_total_bytes", f->total);
	sl_json_known_uint(j, "hidden_bytes", f->hidden);
	sl_json_known_uint(j, "events", process ? process->model->events : SL_UNKNOWN);
	sl_json_known_uint(j, "ooms", process ? process->model->ooms_total : SL_UNKNOWN);
	sl_json_known_uint(j, "calls_in_flight", process ? process->model->in_flight.count : SL_UNKNOWN);
	sl_json_double(j, "growth_bytes_per_second", row->grows ? row->per_second : NAN);
	sl_json_double(j, "full_in_seconds", row->full_in);
	sl_json_string(j, "dry", header ? sl_dry_card(header) : NULL);
}

/* A writer for each row, which is read at once. */
static void put_json(struct monitor *monitor, const struct row *row)
{
	struct sl_json *j = sl_json_new(monitor->out, SL_JSON_COMPACT);

	sl_json_document(j, SCHEMA, 1);
	put_figures(j, row);
	sl_json_finish(j);
}

static void put_cells(struct monitor *monitor, const struct row *row, enum sl_json_style style)
{
	struct sl_json *j = sl_json_new(monitor->out, style);

	sl_json_object(j, NULL);
	put_figures(j, row);
	sl_json_end(j);
	sl_json_close(j);
	putc('\n', monitor->out);
}

static void put_csv(struct monitor *monitor, const struct row *row)
{
	if (!monitor->header_printed)
		put_cells(monitor, row, SL_JSON_CSV_HEAD);
	put_cells(monitor, row, SL_JSON_CSV);
}

static const char *size(char *text, uint64_t bytes)
{
	return bytes == SL_UNKNOWN ? "-" : sl_format_size(text, bytes);
}

/* Empty while the process runs, and for a device. */
static const char *ending(char text[SL_FORMAT_BYTES], const struct sl_process *process)
{
	const struct sl_trace *trace = process ? process->trace : NULL;

	if (!trace || trace->status == SL_STATUS_RUNNING)
		return "";
	if (trace->exited <= 1)
		return sl_ended_names[sl_trace_ended(trace)];
	snprintf(text, SL_FORMAT_BYTES, "exit %u", trace->exited - 1);
	return text;
}

/*
 * Rows come one by one, so each column has its width.  What grows, and how a process ended, is the last one, which may need a line
 * of its own.
 */
static void put_table(struct monitor *monitor, const struct row *row)
{
	static const char *const titles[] = {"time", "pid", "rank", "dev", "live", "peak", "used of the card", "status"};
	char pid[24] = "-", rank[24] = "-", device[24] = "-", live[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES], used[SL_FORMAT_BYTES],
	     total[SL_FORMAT_BYTES], rate[SL_FORMAT_BYTES] = "", full[SL_FORMAT_BYTES] = "", when[24], end[SL_FORMAT_BYTES];
	const struct sl_process *process = row->followed ? &row->followed->process : NULL;
	const struct sl_figures *f = &row->figures;
	const char *card = process ? sl_dry_card(&process->trace->header) : NULL;
	struct sl_terminal to = sl_terminal_here();
	struct sl_cells table = {.columns = "lrrrrrrw"};
	time_t seconds = (time_t)(row->unix_ns / 1000000000);

	to.out = monitor->out;
	if (!monitor->header_printed) {
		sl_dry_head(monitor->out, card);
		for (unsigned i = 0; i < SL_COUNT(titles); i++)
			sl_cells_put(&table, SL_COLOUR_NONE, "%s", titles[i]);
	}
	strftime(when, sizeof(when), "%H:%M:%S", localtime(&seconds));
	if (process)
		snprintf(pid, sizeof(pid), "%lld", (long long)process->trace->header.pid);
	if (process && process->trace->header.rank >= 0)
		snprintf(rank, sizeof(rank), "%lld", (long long)process->trace->header.rank);
	if (f->device >= 0)
		snprintf(device, sizeof(device), "%d", f->device);
	if (row->grows)
		snprintf(rate, sizeof(rate), "%c%s/s", row->per_second < 0 ? '-' : '+',
			 SL_SIZE(sl_stats_bytes(fabs(row->per_second))));
	if (isfinite(row->full_in))
		snprintf(full, sizeof(full), "%sfull in %s", row->grows ? ", " : "",
			 SL_SPAN((uint64_t)fmin(row->full_in * 1e9, 1e18)));
	sl_cells_put(&table, SL_COLOUR_DIM, "%s", when);
	sl_cells_put(&table, SL_COLOUR_NONE, "%6s", pid);
	sl_cells_put(&table, SL_COLOUR_NONE, "%4s", rank);
	sl_cells_put(&table, SL_COLOUR_NONE, "%3s", device);
	sl_cells_put(&table, SL_COLOUR_NONE, "%8s", size(live, f->live));
	sl_cells_put(&table, SL_COLOUR_NONE, "%8s", size(peak, f->peak));
	if (f->used == SL_UNKNOWN && f->total == SL_UNKNOWN)
		sl_cells_put(&table, SL_COLOUR_NONE, "%8s%11s", "-", "");
	else
		sl_cells_put(&table, SL_COLOUR_NONE, "%8s of %-8s", size(used, f->used), size(total, f->total));
	sl_cells_put(&table, SL_COLOUR_NONE, "%s%s%s%s", rate, full, card ? "dry " : "", ending(end, process));
	sl_cells_print(&table, &to, 0);
}

/* NULL: the process has too many. */
static struct sl_outlook *outlook_of(struct monitor *monitor, unsigned process, int device)
{
	unsigned at;

	while (monitor->met.count <= process)
		*SL_PUSH(&monitor->met) = (struct sl_met){0};
	while (monitor->outlooks.count < (size_t)(process + 1) * DEVICES)
		*SL_PUSH(&monitor->outlooks) = (struct sl_outlook){0};
	at = sl_figures_met(&monitor->met.item[process], device);
	return at < DEVICES ? &monitor->outlooks.item[process * DEVICES + at] : NULL;
}

/* Adds the row's figures to the earlier ones, and takes the forecast from them. */
static void look_ahead(struct row *row, struct sl_outlook *outlook)
{
	const struct sl_process *process = row->followed ? &row->followed->process : NULL;

	sl_figures_look(outlook, process, &row->figures, sl_now_ns(CLOCK_MONOTONIC));
	row->grows = sl_trend_slope(&outlook->trend, &row->per_second);
	row->full_in = sl_figures_full_in(outlook, process, &row->figures);
}

static bool is_used(const struct sl_follow *follow, const char *uuid)
{
	struct sl_figures figures[DEVICES];

	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		const struct sl_followed *followed = sl_follow_process(follow, i);
		unsigned count = followed->ended ? 0 : sl_figures_of(&followed->process, figures, DEVICES);

		for (unsigned d = 0; d < count; d++)
			if (figures[d].uuid && !strcmp(figures[d].uuid, uuid))
				return true;
	}
	return false;
}

static const struct sl_figures no_device = {.device = -1,
					    .live = SL_UNKNOWN,
					    .peak = SL_UNKNOWN,
					    .allocated = SL_UNKNOWN,
					    .reserved = SL_UNKNOWN,
					    .used = SL_UNKNOWN,
					    .total = SL_UNKNOWN,
					    .hidden = SL_UNKNOWN};

/* Devices of this machine that no recorded process uses now. */
static void put_others(struct monitor *monitor, const struct sl_follow *follow, void (*put)(struct monitor *, const struct row *),
		       uint64_t unix_ns)
{
	for (size_t i = 0; i < monitor->machine.devices.count; i++) {
		const struct sl_machine_device *device = &monitor->machine.devices.item[i];
		struct row row = {.unix_ns = unix_ns, .full_in = NAN, .figures = no_device};

		row.figures.device = (int)device->index;
		row.figures.uuid = *device->uuid ? device->uuid : NULL;
		row.figures.used = device->used_bytes;
		row.figures.total = device->total_bytes;
		while (monitor->device_outlooks.count <= i)
			*SL_PUSH(&monitor->device_outlooks) = (struct sl_outlook){0};
		if (device->used_bytes != SL_UNKNOWN)
			look_ahead(&row, &monitor->device_outlooks.item[i]);
		if (is_used(follow, device->uuid))
			continue;
		put(monitor, &row);
		monitor->header_printed = true;
	}
}

/* False: the output is no file that we made.  st: of that file. */
static bool is_made(const struct monitor *monitor, int file, struct stat *st)
{
	return monitor->output && !sl_save_is_open(monitor->output) && !fstat(file, st) && S_ISREG(st->st_mode);
}

/* True: our file has no name left.  One that was only moved away keeps its rows, whatever is at its place (logrotate). */
static bool is_gone(const struct monitor *monitor, int file)
{
	struct stat st;

	return is_made(monitor, file, &st) && !st.st_nlink;
}

/* After a failed write: cuts a file of ours behind its last whole row, or removes it if it has none and is still there. */
static void cut(const struct monitor *monitor, int file)
{
	struct stat st, there;

	if (is_made(monitor, file, &st) && (ftruncate(file, monitor->whole) || !monitor->whole) &&
	    !lstat(monitor->output, &there) && there.st_ino == st.st_ino && there.st_dev == st.st_dev)
		unlink(monitor->output);
}

/* The time of the last event. */
static uint64_t ended_at(const struct sl_process *process)
{
	return sl_process_unix(process, process->model->now_ns);
}

static void put_rows(struct monitor *monitor, const struct sl_follow *follow)
{
	static void (*const put[])(struct monitor * monitor, const struct row *row) = {put_table, put_csv, put_json};
	uint64_t unix_ns = sl_now_ns(CLOCK_REALTIME);
	struct sl_holders holders;

	sl_figures_holders(follow, &holders);
	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		struct sl_figures figures[DEVICES];
		const struct sl_followed *followed = sl_follow_process(follow, i);
		unsigned count = sl_figures_of(&followed->process, figures, DEVICES);

		if (!count && monitor->format == TABLE) { /* it used no device: a reader looks for its pid */
			figures[count++] = no_device;
			figures[0].live = figures[0].peak = 0;
		}
		for (unsigned d = 0; d < count; d++) {
			struct row row = {.followed = followed,
					  .figures = figures[d],
					  .unix_ns = followed->ended ? ended_at(&followed->process) : unix_ns,
					  .full_in = NAN};

			struct sl_outlook *outlook = outlook_of(monitor, i, figures[d].device);

			if (!followed->ended && outlook)
				look_ahead(&row, outlook);
			row.figures.hidden = sl_figures_hidden(&holders, &followed->process, &figures[d]);
			put[monitor->format](monitor, &row);
			monitor->header_printed = true;
		}
	}
	sl_holders_free(&holders);
	put_others(monitor, follow, put[monitor->format], unix_ns);
	if (fflush(monitor->out) || ferror(monitor->out))
		monitor->error = errno ? errno : EIO;
	else
		monitor->whole = ftello(monitor->out);
	monitor->gone = is_gone(monitor, fileno(monitor->out));
}

/* asked: a descriptor that ends it as soon as it can be read; -1: none. */
static void watch(struct monitor *monitor, struct sl_follow *follow, bool node, int asked)
{
	uint64_t begin = sl_now_ns(CLOCK_MONOTONIC), step = (uint64_t)(monitor->track.interval * 1e9), next = begin, now;
	struct pollfd end = {.fd = asked, .events = POLLIN};

	do {
		if (node)
			sl_follow_node(follow, 0);
		sl_recordings_poll(follow);
		sl_machine_look_again(&monitor->machine);
		if (monitor->sink)
			monitor->failed = !sl_tracking_look(monitor->sink, follow, &monitor->machine);
		else
			put_rows(monitor, follow);
		next += step;
		if ((!node && sl_follow_all_ended(follow)) || monitor->error || monitor->gone || monitor->failed ||
		    (monitor->duration > 0 && (double)(next - begin) / 1e9 > monitor->duration))
			break;
		now = sl_now_ns(CLOCK_MONOTONIC);
	} while (poll(&end, 1, next > now ? (int)((next - now) / 1000000) + 1 : 0) <= 0);
}

static void tell(const char *output, uint64_t events)
{
	struct sl_json *j = sl_json_new(stdout, SL_JSON_COMPACT);

	sl_json_document(j, "stormlog.track", 1);
	sl_json_string(j, "output", output);
	sl_json_uint(j, "events", events);
	sl_json_finish(j);
}

static int track(struct monitor *monitor, struct sl_follow *follow, bool node)
{
	int asked = sl_save_ask_first();
	uint64_t events;

	monitor->sink = sl_tracking_open(monitor->output, &monitor->track);
	if (!monitor->sink)
		return sl_command_fail(errno == ENOTEMPTY ? SL_EXIT_USAGE : SL_EXIT_UNSAVED, "%s: %m", monitor->output);
	watch(monitor, follow, node, asked);
	if (sl_tracking_close(monitor->sink, &events) && !monitor->failed) {
		if (monitor->json)
			tell(monitor->output, events);
		return SL_EXIT_FINE;
	}
	return sl_command_fail(SL_EXIT_UNSAVED, errno == ENOENT ? "%s, or a file of it, was removed meanwhile" : "%s: %m",
			       monitor->output);
}

static int save(struct monitor *monitor, struct sl_follow *follow, bool node)
{
	bool own;
	int file;

	monitor->out = sl_save_open(monitor->output);
	if (!monitor->out) {
		sl_paths_failed(monitor->output);
		return SL_EXIT_UNSAVED;
	}
	watch(monitor, follow, node, -1);
	own = monitor->out != stdout;
	file = own ? dup(fileno(monitor->out)) : -1; /* what fclose() could not write of a row is cut off */
	if (own && fclose(monitor->out) && !monitor->error)
		monitor->error = errno;
	if (monitor->error && own) { /* main() reports errors of standard output */
		cut(monitor, file);
		errno = monitor->error;
		sl_escape_print(stderr, "stormlog-analyze: %s: %m\n", monitor->output);
	} else if (monitor->gone || is_gone(monitor, file)) {
		monitor->gone = true;
		sl_escape_print(
			stderr,
			"stormlog-analyze: %s: the file that was begun there was replaced or removed, and its rows with it\n",
			monitor->output);
	}
	if (file >= 0)
		close(file);
	return monitor->error || monitor->gone	 ? SL_EXIT_UNSAVED
	       : sl_follow_count(follow) || node ? SL_EXIT_FINE
						 : SL_EXIT_UNREADABLE;
}

static const char about[] = "Prints what running programs hold now, a row for each device of each process.\n"
			    "Without PATH: of all recordings on this node.";

static int run(struct sl_arguments *parsed)
{
	struct monitor monitor = {.track = {.interval = 1, .thresholds = sl_alert_defaults}};
	struct sl_follow *follow = sl_follow_new();
	int status = sl_arguments_parse(parsed, NULL, &monitor);

	if (status < 0 && monitor.track.thresholds.critical_percent < monitor.track.thresholds.warning_percent)
		status = sl_command_fail(SL_EXIT_USAGE, "--critical-threshold is below --warning-threshold");
	if (monitor.json && monitor.format != SINK)
		monitor.format = NDJSON;
	if (status < 0 && monitor.format == SINK && !monitor.output)
		status = sl_command_fail(SL_EXIT_USAGE, "--format sink (track) needs --output DIR");
	if (status < 0) {
		if (!parsed->path_count)
			sl_machine_look(&monitor.machine); /* before rights are given up */
		sl_sandbox_setup(&(struct sl_verb_files){
			.inputs = parsed->paths, .writes = {monitor.output}, .processes = sl_recordings_is_node(parsed)});
		status = !sl_recordings_add_all(follow, parsed) ? SL_EXIT_USAGE
			 : monitor.format == SINK		? track(&monitor, follow, !parsed->path_count)
								: save(&monitor, follow, !parsed->path_count);
	}
	sl_follow_free(follow);
	free(monitor.met.item);
	free(monitor.outlooks.item);
	free(monitor.device_outlooks.item);
	sl_machine_free(&monitor.machine);
	return status;
}

const struct sl_command sl_command_monitor = {
	"monitor",	  "memory of running programs, row by row", "monitor [options] [PATH|PID]...", about, table, run,
	SL_PATHS_OPTIONAL};
