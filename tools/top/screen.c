/* SPDX-License-Identifier: MIT */
/* The screen: title, devices, tabs, the lines of a view that fit, and keys.  Colour never carries information alone. */
#include <curses.h>
#include <math.h>
#include <wchar.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/dry.h"
#include "tools/top/top.h"
#include "common/now.h"

#define DEVICES_SHOWN 4
#define BAR_MAX	      40

/* Prints a name from a trace: control characters are removed and it is cut to the remaining columns. */
static void put(int y, int x, attr_t attributes, const char *format, ...)
{
	char *text = NULL, *clean = NULL;
	size_t bytes = 0, length;
	va_list arguments;
	wchar_t *wide;
	FILE *door;
	int left = COLS - x;

	va_start(arguments, format);
	text = sl_memory_vprint(format, arguments);
	va_end(arguments);
	door = sl_memory_must(open_memstream(&clean, &bytes));
	sl_escape_put(door, SL_ESCAPE_LINE, text);
	fclose(door);
	wide = sl_memory_must(calloc(bytes + 1, sizeof(*wide)));
	length = mbstowcs(wide, clean, bytes);
	for (size_t i = 0; length != (size_t)-1 && i < length; i++) {
		int width = wcwidth(wide[i]);

		left -= width > 0 ? width : 0;
		if (left < 0)
			length = i;
	}
	if (length != (size_t)-1 && y < LINES && x < COLS) {
		attron(attributes);
		mvaddnwstr(y, x, wide, (int)length);
		attroff(attributes);
	}
	free(wide);
	free(clean);
	free(text);
}

static void title(const struct sl_top *top)
{
	unsigned count = 0, running = 0, removed = 0, snapshots = 0;
	const struct sl_header *header = NULL;
	uint64_t until = 0, begun = UINT64_MAX;
	const char *card;
	char since[SL_FORMAT_BYTES + 16] = "", gone[32] = "", jobs[48] = "", files[32] = "", chosen[TOP_CHOSEN_MAX];

	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		const struct sl_followed *followed = sl_top_process(top, i);

		if (!sl_top_shown(top, i))
			continue;
		header = header ? header : &followed->process.trace->header;
		if (!followed->process.model->recording.follows_process) { /* its window is of another time */
			snapshots++;
			continue;
		}
		count++;
		running += !followed->ended;
		removed += followed->removed;
		begun = followed->process.started_unix_ns < begun ? followed->process.started_unix_ns : begun;
		until = followed->process.ended_unix_ns > until ? followed->process.ended_unix_ns : until;
	}
	if (running)
		until = sl_now_ns(CLOCK_REALTIME);
	card = header ? sl_dry_card(header) : NULL;
	if (card)
		snprintf(since, sizeof(since), "DRY RUN on %.20s: no number was computed", card);
	else if (count && until > begun)
		sl_format_duration(since, until - begun);
	sl_top_chosen(top, chosen, sizeof(chosen));
	if (removed)
		snprintf(gone, sizeof(gone), ", %u removed", removed);
	if (count || !snapshots)
		snprintf(jobs, sizeof(jobs), "%u running, %u ended", running, count - running - removed);
	if (snapshots)
		snprintf(files, sizeof(files), "%s%u snapshot%s", count ? ", " : "", snapshots, snapshots == 1 ? "" : "s");
	mvchgat(0, 0, -1, A_REVERSE, 0, NULL);
	put(0, 1, A_REVERSE, "stormlog-top  %s%s%.40s  %s%s%s%s%s  %s%s",
	    header	     ? sl_stacks_program(header)
	    : top->telemetry ? "Python Stormlog's files"
			     : "nothing is recorded",
	    *chosen ? "  " : "", chosen, jobs, gone, files, header && header->host ? " on " : "",
	    header && header->host ? header->host : "", since, top->paused ? "  paused" : "");
	put(0, COLS > 16 ? COLS - 15 : 0, A_REVERSE, "q quit  ? help");
}

struct shared {
	const char *uuid;
	int device;
	uint64_t used, total, live, sampled_unix_ns;
	bool shares_host;
	double per_second;	 /* sum over all processes that grow on the device */
	double full_in;		 /* seconds, the soonest forecast for the device; infinite: none */
	int grows;		 /* the process with that forecast, else the one that grows most; -1: none */
	int grows_device;	 /* ordinal of the device in that process */
	double grows_per_second; /* bytes per second by which it grows */
};

/* Adds what one process does on the device. */
static void add_growth(struct shared *shared, const struct sl_top *top, unsigned process, unsigned device, int ordinal)
{
	double per_second = sl_top_rate(top, process, ordinal), full_in = top->seen.item[process].full_in[device];

	shared->per_second += per_second;
	if (isfinite(full_in) && full_in < shared->full_in) {
		shared->full_in = full_in;
		shared->grows = (int)process;
		shared->grows_device = ordinal;
	} else if (isinf(shared->full_in) && per_second > shared->grows_per_second) {
		shared->grows_per_second = per_second;
		shared->grows = (int)process;
		shared->grows_device = ordinal;
	}
}

/* One figure per device over all processes; a device with a UUID is the same in all of them. */
static unsigned devices_of(const struct sl_top *top, struct shared *shared, unsigned limit)
{
	unsigned count = 0;

	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		const struct sl_followed *followed = sl_top_process(top, i);
		struct sl_figures f[TOP_DEVICES];
		unsigned devices = sl_figures_of(&followed->process, f, TOP_DEVICES);

		for (unsigned d = 0; d < devices; d++) {
			unsigned at = 0;

			if (f[d].device < 0 || !sl_top_shown(top, i) || !followed->process.model->recording.follows_process)
				continue;
			while (at < count && !(f[d].uuid && shared[at].uuid && !strcmp(f[d].uuid, shared[at].uuid)))
				at++;
			if (at == limit)
				continue;
			if (at == count)
				shared[count++] = (struct shared){.uuid = f[d].uuid,
								  .device = f[d].device,
								  .used = f[d].used,
								  .total = f[d].total,
								  .shares_host = f[d].shares_host,
								  .full_in = INFINITY,
								  .grows = -1};
			if (followed->ended)
				continue;
			shared[at].live += f[d].live;
			if (f[d].used != SL_UNKNOWN && f[d].sampled_unix_ns > shared[at].sampled_unix_ns) {
				shared[at].used = f[d].used; /* takes the newest value from a living process */
				shared[at].sampled_unix_ns = f[d].sampled_unix_ns;
			}
			add_growth(&shared[at], top, i, d, f[d].device);
		}
	}
	return count;
}

static int fuller(const void *a, const void *b)
{
	const struct shared *x = a, *y = b;
	double p = x->total && x->total != SL_UNKNOWN && x->used != SL_UNKNOWN ? (double)x->used / (double)x->total : 0;
	double q = y->total && y->total != SL_UNKNOWN && y->used != SL_UNKNOWN ? (double)y->used / (double)y->total : 0;

	return SL_FALLING(p, q) ?: x->device - y->device;
}

/* Returns how many lines it drew. */
static int bar(int y, const struct sl_top *top, const struct shared *device)
{
	double left = device->full_in;
	char place[256] = "";
	char used[SL_FORMAT_BYTES], total[SL_FORMAT_BYTES], text[SL_FORMAT_BYTES], rate[SL_FORMAT_BYTES + 8] = "";
	bool is_known = device->total != SL_UNKNOWN && device->total && device->used != SL_UNKNOWN;
	double share = is_known ? fmin(1, (double)device->used / (double)device->total) : 0;
	unsigned width = COLS > 100 ? BAR_MAX : 24, filled = (unsigned)(share * width + 0.5);

	if (device->per_second > 0)
		snprintf(rate, sizeof(rate), "+%s/s", sl_format_size(text, (uint64_t)device->per_second));
	put(y, 1, 0, "device %d", device->device);
	for (unsigned i = 0; i < width; i++)
		put(y, 11 + (int)i, share > 0.95 ? A_BOLD : 0, "%s", i < filled ? top->ascii ? "#" : "█" : top->ascii ? "." : "░");
	put(y, 12 + (int)width, share > 0.95 ? A_BOLD : 0, "%s of %s%s%s  %s",
	    device->used == SL_UNKNOWN ? "?" : sl_format_size(used, device->used),
	    device->total == SL_UNKNOWN ? "?" : sl_format_size(total, device->total),
	    device->shares_host ? " shared with the host" : "", share > 0.95 ? " FULL" : "", rate);
	if (device->grows >= 0)
		sl_watch_full_by(top->watch, sl_top_process(top, (unsigned)device->grows), device->grows_device, place,
				 sizeof(place));
	if (isfinite(left))
		put(y + 1, 11, A_BOLD, "full in %s at this rate%s%s", sl_format_duration(text, (uint64_t)fmin(left * 1e9, 1e18)),
		    *place ? ": " : "", place);
	else if (*place)
		put(y + 1, 11, A_BOLD, "grows at %s", place);
	return isfinite(left) || *place ? 2 : 1;
}

static int devices(struct sl_top *top, int y)
{
	struct shared shared[64];
	unsigned count = devices_of(top, shared, 64);

	qsort(shared, count, sizeof(*shared), fuller);
	for (unsigned i = 0; i < count && i < DEVICES_SHOWN; i++)
		y += bar(y, top, &shared[i]);
	if (count > DEVICES_SHOWN)
		put(y++, 1, A_DIM, "and %u more devices", count - DEVICES_SHOWN);
	return y;
}

/* Where a view's name begins in the line of names, and the first column behind it. */
static int tab_of(unsigned view, int *end)
{
	int x = 1;

	for (unsigned i = 0; i < view; i++)
		x += (int)strlen(sl_top_view_names[i]) + 4;
	*end = x + (int)strlen(sl_top_view_names[view]) + 2;
	return x;
}

int sl_top_tab_at(int x)
{
	for (unsigned i = 0; i < VIEW_COUNT; i++) {
		int end, begin = tab_of(i, &end);

		if (x >= begin && x < end)
			return (int)i;
	}
	return -1;
}

static void tabs(const struct sl_top *top, int y)
{
	for (unsigned i = 0; i < VIEW_COUNT; i++) {
		int end, begin = tab_of(i, &end);

		put(y, begin, i == top->view ? A_REVERSE | A_BOLD : 0, "%u %s", i + 1, sl_top_view_names[i]);
	}
}

static void help(int y)
{
	static const char *const keys[] = {
		"1 .. 7, Tab, Shift-Tab    the views",
		"up down PgUp PgDn Home End j k, wheel    select",
		"click    selects; on the selected line: Enter; on a view's name: that view",
		"Enter    places of the selected process    Esc    every process again",
		"m        mark this moment: places show what has changed since",
		"/        only lines with what you type: rank 3, a function; Esc: all",
		"s S      the next, the previous run or session of Python Stormlog; then all",
		"w        write the page of this moment, stormlog-page-TIME/report.html",
		"Space    hold the picture      + -    look less, more often",
		"q, F10   quit                  ?, h, F1    this page",
		"",
		"live    held by calls of the process",
		"d       distance from the ranks' median, in deviations",
		"hidden  on the device, but asked for by no recorded call",
		"growth  slope of the last 64 looks; empty if chance explains it",
		"largest PyTorch's largest unused piece: a larger tensor needs a new segment",
		"Finished runs open too: stormlog-top traces/, and Python Stormlog's files.",
	};

	for (size_t i = 0; i < SL_COUNT(keys); i++)
		put(y + (int)i, 2, 0, "%s", keys[i]);
}

static void body(struct sl_top *top, struct sl_top_lines *lines, int y, int rows)
{
	static const attr_t tones[] = {
		[TONE_PLAIN] = 0, [TONE_BOLD] = A_BOLD, [TONE_DIM] = A_DIM, [TONE_WARN] = A_BOLD | A_UNDERLINE};
	unsigned count = (unsigned)lines->line.count, room = rows > 0 ? (unsigned)rows : 0;

	if (top->at >= count)
		top->at = count ? count - 1 : 0;
	if (top->at < top->first)
		top->first = top->at;
	if (top->at >= top->first + room)
		top->first = top->at - room + 1;
	if (top->first + room > count)
		top->first = count > room ? count - room : 0;
	for (unsigned i = 0; i < room && top->first + i < count; i++) {
		const struct sl_top_line *line = &lines->line.item[top->first + i];
		bool selected = top->first + i == top->at && top->view != VIEW_TIME;

		put(y + (int)i, 0, tones[line->tone] | (selected ? A_REVERSE : 0), "%s", line->text);
	}
}

static void bottom(const struct sl_top *top)
{
	if (top->filtering)
		put(LINES - 1, 0, A_BOLD, "/%s_", top->filter);
	else if (*top->message)
		put(LINES - 1, 0, A_BOLD, "%s", top->message);
	else
		put(LINES - 1, 0, A_DIM, " m mark   / filter%s%s   %s   Tab next view   q quit", *top->filter ? " " : "",
		    top->filter,
		    *top->filter	  ? "Esc every line"
		    : top->process == ALL ? "Enter who holds it"
					  : "Esc all processes");
}

void sl_top_draw(struct sl_top *top, struct sl_top_lines *lines)
{
	int y;

	erase();
	if (LINES < 8 || COLS < 40) {
		put(0, 0, 0, "too small");
		refresh();
		return;
	}
	title(top);
	y = devices(top, 1);
	top->tabs_y = y;
	tabs(top, y++);
	top->body_y = LINES;
	if (top->helping) {
		help(y + 1);
	} else {
		sl_top_view(top, lines, (unsigned)(LINES - y - 2), (unsigned)COLS);
		put(y++, 0, A_UNDERLINE, "%s", lines->header);
		top->body_y = y;
		body(top, lines, y, LINES - 1 - y);
	}
	bottom(top);
	refresh();
}
