/* SPDX-License-Identifier: MIT */
/* The view of the past: alerts since this program started, and the sessions in Python Stormlog's own files. */
#include <math.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "tools/top/top.h"

#define ALERTS_KEPT 200

static const char *const rules[] = {"full-in < 10min for 5s", "ooms > 0", "call-age > 1min", "unlike > 3.5 for 10s",
				    "used > 98% for 30s"};

static struct sl_rule parsed[SL_COUNT(rules)];

static void clock_of(uint64_t unix_ns, char text[16])
{
	time_t seconds = (time_t)(unix_ns / SL_NS_PER_S);
	struct tm local;

	strftime(text, 16, "%H:%M:%S", localtime_r(&seconds, &local));
}

static void remember(struct sl_top *top, char *line)
{
	if (top->alerts.count == ALERTS_KEPT) {
		free(top->alerts.item[0]);
		memmove(top->alerts.item, top->alerts.item + 1, --top->alerts.count * sizeof(*top->alerts.item));
	}
	*SL_PUSH(&top->alerts) = line;
}

static void turned(void *context, const struct sl_alert *alert)
{
	char when[16], *line;

	clock_of(alert->unix_ns, when);
	line = sl_memory_print("%s %s", when, alert->text);
	remember(context, line);
}

void sl_top_alerts_look(struct sl_top *top)
{
	if (!top->watch) {
		for (size_t i = 0; i < SL_COUNT(rules); i++)
			sl_rule_parse(&parsed[i], rules[i]);
		top->watch = sl_watch_new(parsed, SL_COUNT(rules));
	}
	sl_watch_look(top->watch, top->follow, turned, NULL, top);
}

/* ---- Python Stormlog's files */

bool sl_top_sessions_open(struct sl_top *top, const char *path)
{
	struct sl_telemetry *telemetry = top->telemetry ? top->telemetry : sl_telemetry_new();
	bool found = sl_telemetry_add_path(telemetry, path, true) > 0;

	top->telemetry = telemetry;
	return found;
}

/* Called once the last path has been opened. */
void sl_top_sessions_finish(struct sl_top *top)
{
	if (!top->telemetry)
		return;
	sl_telemetry_finish(top->telemetry, NULL);
	for (size_t s = 0; s < top->telemetry->sessions.count; s++)
		for (size_t e = 0; e < top->telemetry->sessions.item[s].count; e++) {
			const struct sl_v3_event *event = &top->telemetry->sessions.item[s].events[e];
			char when[16], *line;

			if (!sl_event_is_alert(event))
				continue;
			clock_of((uint64_t)event->timestamp_ns, when);
			line = sl_memory_print("%s %s: %s (%s)", when, event->event_type, event->context ? event->context : "",
					       event->session_id);
			remember(top, line);
		}
}

static const char *number_or_dash(char text[24], int64_t number)
{
	snprintf(text, 24, "%lld", (long long)number);
	return number < 0 ? "-" : text;
}

/* One line for each device of each session: its last and its largest sample. */
static void session_lines(struct sl_top_lines *lines, const struct sl_session *session, int64_t device)
{
	char live[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES], hidden[SL_FORMAT_BYTES], pid[24], number[24], rank[24] = "-";
	const struct sl_v3_event *last = NULL;
	int64_t peak_bytes = 0;

	for (size_t e = 0; e < session->count; e++) {
		const struct sl_v3_event *event = &session->events[e];

		if (event->device_id != device || !sl_event_is_any_sample(event))
			continue;
		last = event;
		peak_bytes = event->allocated_bytes > peak_bytes ? event->allocated_bytes : peak_bytes;
	}
	if (!last)
		return;
	if (session->summary.world_size > 1)
		snprintf(rank, sizeof(rank), "%lld", (long long)session->summary.rank);
	sl_top_line(lines, session->summary.status == SL_SESSION_RUNNING ? TONE_PLAIN : TONE_DIM, ALL,
		    "%8s %5s %4s %10s %10s %10s %13s %s", number_or_dash(pid, session->summary.pid), rank,
		    number_or_dash(number, device), sl_format_size(live, (uint64_t)last->allocated_bytes),
		    sl_format_size(peak, (uint64_t)peak_bytes),
		    last->used_bytes >= last->reserved_bytes
			    ? sl_format_size(hidden, (uint64_t)(last->used_bytes - last->reserved_bytes))
			    : "-",
		    sl_session_status_names[session->summary.status], session->summary.session_id);
}

/* False: a run is chosen, or another session. */
static bool is_shown(const struct sl_top *top, size_t session)
{
	return top->session == ALL ? !top->one_run : top->session == (int)session;
}

/* Adds what one device held to the columns; after the last sample the value stays. */
static void add_device(const struct sl_session *session, int64_t device, double *column, unsigned count, int64_t begin, double span)
{
	double current = 0, *peaks = sl_memory_must(calloc(count, sizeof(*peaks)));
	unsigned filled = 0; /* columns so far */

	for (size_t e = 0; e < session->count; e++) {
		const struct sl_v3_event *event = &session->events[e];
		unsigned at = (unsigned)((double)(event->timestamp_ns - begin) / span * (count - 1));

		if (event->device_id != device || !sl_event_is_any_sample(event) || at >= count)
			continue;
		for (; filled <= at; filled++)
			peaks[filled] = current;
		current = (double)event->allocated_bytes;
		peaks[at] = fmax(peaks[at], current);
	}
	for (; filled < count; filled++)
		peaks[filled] = current;
	for (unsigned c = 0; c < count; c++)
		column[c] += peaks[c];
	free(peaks);
}

uint64_t sl_top_session_columns(const struct sl_session *session, double *column, unsigned count)
{
	int64_t begin = session->count ? session->events[0].timestamp_ns : 0;
	int64_t end = session->count ? session->events[session->count - 1].timestamp_ns : 0;
	double span = end > begin ? (double)(end - begin) : 1;

	for (int64_t device = -1; device < TOP_DEVICES; device++)
		add_device(session, device, column, count, begin, span);
	return (uint64_t)span;
}

void sl_top_sessions(struct sl_top *top, struct sl_top_lines *lines)
{
	for (size_t s = 0; top->telemetry && s < top->telemetry->sessions.count; s++)
		for (int64_t device = -1; device < TOP_DEVICES && is_shown(top, s); device++)
			session_lines(lines, &top->telemetry->sessions.item[s], device);
}

void sl_top_past_free(struct sl_top *top)
{
	for (size_t i = 0; i < top->alerts.count; i++)
		free(top->alerts.item[i]);
	free(top->alerts.item);
	if (top->watch)
		sl_watch_free(top->watch);
	for (size_t i = 0; i < SL_COUNT(rules); i++)
		sl_rule_free(&parsed[i]);
	if (top->telemetry)
		sl_telemetry_free(top->telemetry);
}
