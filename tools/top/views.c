/* SPDX-License-Identifier: MIT */
/* The views: lines of text made from the models of the followed processes. */
#include "tools/top/top.h"

#include <math.h>
#include <sys/resource.h>

#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/window_facts.h"
#include "common/now.h"

/* Selects what is shown: all, one run or one of Python Stormlog's sessions; and only the lines with the text that was typed. */

static const char *run_of(const struct sl_top *top, unsigned process)
{
	const char *run = sl_top_process(top, process)->process.trace->header.run_id;

	return run ? run : "";
}

/* The first process of each run, in the order in which they came. */
static unsigned runs_of(const struct sl_top *top, unsigned *first, unsigned limit)
{
	unsigned count = 0;

	for (unsigned i = 0; i < sl_follow_count(top->follow) && count < limit; i++) {
		unsigned at = 0;

		while (at < count && strcmp(run_of(top, first[at]), run_of(top, i)) != 0)
			at++;
		if (at == count)
			first[count++] = i;
	}
	return count;
}

/* after another choice of what is shown */
static void top_findings_anew(struct sl_top *top)
{
	sl_top_findings_end(top);
	free(top->findings.output);
	free(top->findings.text);
	top->findings = (struct sl_top_findings){.fd = -1};
	if (top->view == VIEW_FINDINGS)
		sl_top_findings_ask(top);
}

void sl_top_choose(struct sl_top *top, int by)
{
	unsigned first[256], runs = runs_of(top, first, SL_COUNT(first)), now = 0; /* 0: all; then runs, then sessions */
	unsigned all = 1 + runs + (top->telemetry ? (unsigned)top->telemetry->sessions.count : 0);

	for (unsigned i = 0; i < runs && top->one_run; i++)
		if (!strcmp(run_of(top, first[i]), top->run))
			now = 1 + i;
	if (top->session != ALL)
		now = 1 + runs + (unsigned)top->session;
	now = (now + all + (unsigned)by) % all;
	top->process = ALL;
	top->at = top->first = 0;
	top->one_run = now && now <= runs;
	top->session = now > runs ? (int)(now - runs - 1) : ALL;
	if (top->one_run)
		snprintf(top->run, sizeof(top->run), "%s", run_of(top, first[now - 1]));
	top_findings_anew(top);
}

bool sl_top_shown(const struct sl_top *top, unsigned process)
{
	return top->session == ALL && (!top->one_run || !strncmp(run_of(top, process), top->run, sizeof(top->run) - 1));
}

void sl_top_chosen(const struct sl_top *top, char *out, size_t size)
{
	out[0] = 0;
	if (top->one_run)
		snprintf(out, size, "run %s", *top->run ? top->run : "unknown");
	else if (top->session != ALL)
		snprintf(out, size, "session %s", top->telemetry->sessions.item[top->session].summary.session_id);
}

/* True: the line has the text that was typed, or "rank N" was typed and it is that rank's. */
static bool top_passes(const struct sl_top *top, const struct sl_top_line *line)
{
	long long rank;
	int end = 0;

	if (line->process != ALL && sscanf(top->filter, "rank %lld%n", &rank, &end) == 1 && !top->filter[end])
		return sl_top_process(top, (unsigned)line->process)->process.trace->header.rank == rank;
	return strcasestr(line->text, top->filter);
}

/* The view of frameworks' pools other than PyTorch's: one row per device, and below it the names of its largest blocks. */

#define NAMED 8 /* blocks named per device */

struct named {
	uint32_t label;
	uint16_t api;
	uint64_t bytes, blocks;
};

static int larger(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: SL_RISING(x->label, y->label);
}

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return SL_RISING(x->label, y->label) ?: SL_RISING(x->api, y->api);
}

/* The names of the device's blocks, largest first; returns how many. */
static size_t names_of(const struct sl_model *model, int device, struct named *named)
{
	size_t count = 0, unique_count = 0;

	for (size_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		const struct sl_hook *hook = sl_header_hook(model->header, site->api);

		if (hook && hook->family == SL_FAMILY_pool && site->device == device && site->live_blocks)
			named[count++] = (struct named){site->label, site->api, site->live_bytes, site->live_blocks};
	}
	qsort(named, count, sizeof(*named), by_name);
	for (size_t i = 0; i < count; i++)
		if (unique_count && !by_name(&named[unique_count - 1], &named[i])) {
			named[unique_count - 1].bytes += named[i].bytes;
			named[unique_count - 1].blocks += named[i].blocks;
		} else {
			named[unique_count++] = named[i];
		}
	qsort(named, unique_count, sizeof(*named), larger);
	return unique_count;
}

static void names(struct sl_top_lines *lines, int index, const struct sl_process *process, int device)
{
	const struct sl_model *model = process->model;
	struct named *named = sl_memory_must(calloc(model->sites.count + 1, sizeof(*named)));
	size_t count = names_of(model, device, named);
	char bytes[SL_FORMAT_BYTES];

	for (size_t i = 0; i < count && i < NAMED; i++) {
		const struct sl_hook *hook = sl_header_hook(model->header, named[i].api);
		const char *text = sl_defs_text(&process->trace->defs, named[i].label);

		sl_top_line(lines, TONE_PLAIN, index, "%16s%9s in %llu blocks  %s  %s", "", sl_format_size(bytes, named[i].bytes),
			    (unsigned long long)named[i].blocks, text ? text : "without a name", hook->plain);
	}
	if (count > NAMED)
		sl_top_line(lines, TONE_DIM, index, "%16sand %zu names more", "", count - NAMED);
	free(named);
}

/* The view of pools of frameworks other than PyTorch. */
static void put_pools(struct sl_top *top, struct sl_top_lines *lines)
{
	char t[3][SL_FORMAT_BYTES];

	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		if (!sl_top_shown(top, i))
			continue;
		const struct sl_process *process = &sl_top_process(top, i)->process;

		for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
			const struct sl_device_state *state = process->model->devices[d];
			const struct sl_torch *torch = state && state->used ? &state->torch : NULL;
			uint64_t used;

			if (!torch || !torch->pooled)
				continue;
			used = torch->pool_allocated_bytes < torch->pool_reserved_bytes ? torch->pool_allocated_bytes
											: torch->pool_reserved_bytes;
			sl_top_line(lines, TONE_BOLD, (int)i, "%7lld device %d: pools of frameworks %s, named %s, unnamed %s",
				    (long long)process->trace->header.pid, state->device,
				    sl_format_size(t[0], torch->pool_reserved_bytes),
				    sl_format_size(t[1], torch->pool_allocated_bytes),
				    sl_format_size(t[2], torch->pool_reserved_bytes - used));
			names(lines, (int)i, process, state->device);
		}
	}
}

const char *const sl_top_view_names[VIEW_COUNT] = {"Overview", "Places", "Time", "PyTorch", "Ranks", "Findings", "Calls"};

void sl_top_line(struct sl_top_lines *lines, enum sl_top_tone tone, int process, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = sl_memory_vprint(format, arguments);
	va_end(arguments);
	*SL_PUSH(&lines->line) = (struct sl_top_line){text, tone, process};
}

static const char *size(char *text, uint64_t bytes)
{
	return bytes == SL_UNKNOWN ? "-" : sl_format_size(text, bytes);
}

static const char *rank_of(char *text, const struct sl_process *process)
{
	snprintf(text, 24, process->trace->header.rank < 0 ? "-" : "%lld", (long long)process->trace->header.rank);
	return text;
}

static bool shown(const struct sl_top *top, unsigned index)
{
	return sl_top_shown(top, index) && (top->process == ALL || top->process == (int)index);
}

static const char *state_of(const struct sl_followed *followed)
{
	if (followed->removed)
		return "removed";
	if (!followed->process.model->recording.follows_process)
		return "snapshot";
	if (followed->ended && followed->process.trace->damage.damaged)
		return "torn";
	switch (followed->process.trace->status) {
	case SL_STATUS_RUNNING:
		return "";
	case SL_STATUS_INTERRUPTED:
		return "killed";
	default:
		return "ended";
	}
}

double sl_top_rate(const struct sl_top *top, unsigned index, int device)
{
	const struct sl_outlook *outlook = sl_watch_outlook(top->watch, sl_top_process(top, index), device);
	double per_second = 0;

	return outlook && sl_trend_slope(&outlook->trend, &per_second) ? per_second : 0;
}

/* "+2.1 MiB/s"; "" where chance explains the growth. */
static const char *rate(char *text, double per_second)
{
	text[0] = 0;
	if (per_second != 0)
		snprintf(text, SL_FORMAT_BYTES + 8, "%c%s/s", per_second < 0 ? '-' : '+', SL_SIZE((uint64_t)fabs(per_second)));
	return text;
}

#define SPARKS 12

/* The time from the line's begin to now, or to its end. */
static uint64_t span_of(const struct sl_model *model)
{
	return model->now_ns > model->timeline.begin_ns ? model->now_ns - model->timeline.begin_ns : 1;
}

/* The largest value in each column of a run's life.  After its last change the value stays. */
static void columns_of(const struct sl_model *model, const struct sl_line *line, double *column, unsigned count)
{
	const struct sl_timeline *timeline = &model->timeline;
	uint64_t span = span_of(model);
	unsigned last = 0;

	for (uint32_t b = line->first; line->begun && b <= line->bin; b++) {
		double width = (double)(1ull << timeline->shift), from = b * width / (double)span * count;
		double to = ((b + 1) * width - 1) / (double)span * count;

		for (unsigned c = (unsigned)from; c <= (unsigned)to && c < count; c++)
			column[last = c] = fmax(column[c], (double)line->bins[b].max);
	}
	while (line->begun && ++last < count)
		column[last] = fmax(column[last], (double)line->value);
}

static void spark(const struct sl_top *top, const struct sl_process *process, int device, char *text)
{
	static const char *const eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	const struct sl_line *line = process->model->devices[device + 1]->line;
	double column[SPARKS] = {0}, max = 0;

	text[0] = 0;
	if (!line)
		return;
	columns_of(process->model, line, column, SPARKS);
	for (unsigned c = 0; c < SPARKS; c++)
		max = fmax(max, column[c]);
	for (unsigned c = 0; c < SPARKS && max > 0; c++) {
		unsigned level = (unsigned)(column[c] / max * 7.99);

		strcat(text, top->ascii ? &"_\0.\0:\0-\0=\0+\0*\0#"[2 * level] : eighths[level]);
	}
}

static void overview(struct sl_top *top, struct sl_top_lines *lines)
{
	char live[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES], hidden[SL_FORMAT_BYTES], grows[SL_FORMAT_BYTES + 8], rank[24],
		device[24], bars[64];
	struct sl_holders holders;

	sl_figures_holders(top->follow, &holders);
	snprintf(lines->header, sizeof(lines->header), "%8s %5s %4s %10s %10s %10s %13s %s", "pid", "rank", "dev", "live", "peak",
		 "hidden", "growth", "trend");
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		const struct sl_followed *followed = sl_top_process(top, i);
		struct sl_figures f[TOP_DEVICES];
		unsigned count = sl_top_shown(top, i) ? sl_figures_of(&followed->process, f, TOP_DEVICES) : 0;

		for (unsigned d = 0; d < count; d++) {
			spark(top, &followed->process, f[d].device, bars);
			snprintf(device, sizeof(device), "%d", f[d].device);
			sl_top_line(lines, followed->ended ? TONE_DIM : TONE_PLAIN, (int)i, "%8lld %5s %4s %10s %10s %10s %13s %s",
				    (long long)followed->process.trace->header.pid, rank_of(rank, &followed->process),
				    f[d].device < 0 ? "-" : device, size(live, f[d].live), size(peak, f[d].peak),
				    size(hidden, sl_figures_hidden(&holders, &followed->process, &f[d])),
				    followed->ended ? state_of(followed) : rate(grows, sl_top_rate(top, i, f[d].device)), bars);
		}
	}
	sl_holders_free(&holders);
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		const struct sl_trace *trace = sl_top_process(top, i)->process.trace;
		char unseen[160];

		sl_trace_unseen(trace, unseen, sizeof(unseen));
		if (*unseen && sl_top_shown(top, i))
			sl_top_line(lines, TONE_DIM, (int)i, "%8lld %s", (long long)trace->header.pid, unseen);
	}
	sl_top_sessions(top, lines);
}

static void places_of(struct sl_top *top, struct sl_top_lines *lines, unsigned index, bool wide)
{
	struct sl_followed *followed = sl_top_process(top, index);
	const struct sl_top_seen *seen = &top->seen.item[index];
	double since = (double)(top->now_ns - seen->marked_ns) / 1e9;
	char bytes[SL_FORMAT_BYTES], more[SL_FORMAT_BYTES], each[SL_FORMAT_BYTES], rank[24], speed[SL_FORMAT_BYTES + 8],
		signed_more[SL_FORMAT_BYTES + 2];
	struct sl_live_places places;

	sl_live_places(&places, followed, &seen->mark);
	for (size_t i = 0; i < places.place.count; i++) {
		const struct sl_live_place *place = &places.place.item[i];
		uint64_t change = (uint64_t)llabs(place->since_bytes);
		bool grew = place->since_bytes > 0;
		const char *sign = change ? grew ? "+" : "-" : "";

		snprintf(speed, sizeof(speed), " %s%s/s", sign, size(each, since > 0 ? (uint64_t)((double)change / since) : 0));
		snprintf(signed_more, sizeof(signed_more), "%s%s", sign, size(more, change));
		sl_top_line(lines, grew && change > place->bytes / 10 ? TONE_BOLD : TONE_PLAIN, (int)index,
			    "%4s %9s %7llu %10s%*s %s  %s", rank_of(rank, &followed->process), size(bytes, place->bytes),
			    (unsigned long long)place->blocks, signed_more, wide ? 13 : 0, wide ? speed : "", place->line,
			    strcmp(place->line, place->library) ? place->library : "");
	}
	sl_live_places_free(&places);
}

static void places(struct sl_top *top, struct sl_top_lines *lines, unsigned columns)
{
	bool wide = columns >= 110;

	snprintf(lines->header, sizeof(lines->header), "%4s %9s %7s %10s%s %s", "rank", "live", "blocks", "since mark",
		 wide ? "        per s" : "", "place");
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++)
		if (shown(top, i))
			places_of(top, lines, i, wide);
}

#define CHART_MAX 512

/* Columns as bars, their height in `rows` lines, and how long they took. */
static void chart(struct sl_top *top, struct sl_top_lines *lines, int process, const double *column, unsigned rows,
		  unsigned columns, uint64_t span_ns)
{
	char top_text[SL_FORMAT_BYTES], span[SL_FORMAT_BYTES];
	double max = 0;

	for (unsigned c = 0; c < columns; c++)
		max = fmax(max, column[c]);
	for (unsigned row = rows; row--;) {
		char text[CHART_MAX * 4 + 1], *at = text;

		for (unsigned c = 0; c < columns; c++) {
			double low = max * row / rows, level = max > 0 ? (column[c] - low) / (max / rows) : 0;
			const char *cell = level <= 0 ? " " : level >= 0.5 ? (top->ascii ? "#" : "█") : (top->ascii ? "." : "▄");

			at = stpcpy(at, cell);
		}
		*at = 0;
		sl_top_line(lines, TONE_PLAIN, process, "%10s %s", row + 1 == rows ? size(top_text, (uint64_t)max) : "", text);
	}
	sl_format_duration(span, span_ns);
	sl_top_line(lines, TONE_DIM, process, "%10s 0 .. %s", "", span);
}

static void chart_process(struct sl_top *top, struct sl_top_lines *lines, unsigned index, unsigned rows, unsigned columns)
{
	const struct sl_process *process = &sl_top_process(top, index)->process;
	const struct sl_timeline *timeline = &process->model->timeline;
	double column[CHART_MAX] = {0};
	char rank[24];

	for (unsigned i = 0; i < timeline->line_count; i++)
		if (timeline->lines[i]->what == SL_LINE_KNOWN) {
			double one[CHART_MAX] = {0};

			columns_of(process->model, timeline->lines[i], one, columns);
			for (unsigned c = 0; c < columns; c++)
				column[c] += one[c];
		}
	if (sl_window_shows(process))
		chart(top, lines, (int)index, column, rows, columns, span_of(process->model));
	else
		sl_top_line(lines, TONE_DIM, (int)index, "the file has no window: it is the state at its end");
	snprintf(lines->header, sizeof(lines->header), "rank %s, pid %lld: memory held%s", rank_of(rank, process),
		 (long long)process->trace->header.pid, sl_devices_held(process) > 1 ? ", at most" : "");
}

static void chart_session(struct sl_top *top, struct sl_top_lines *lines, unsigned index, unsigned rows, unsigned columns)
{
	const struct sl_session *session = &top->telemetry->sessions.item[index];
	double column[CHART_MAX] = {0};
	uint64_t span = sl_top_session_columns(session, column, columns);
	char pid[32];

	chart(top, lines, ALL, column, rows, columns, span);
	snprintf(pid, sizeof(pid), ", pid %lld", (long long)session->summary.pid);
	snprintf(lines->header, sizeof(lines->header), "session %s%s: memory of its allocator", session->summary.session_id,
		 session->summary.pid < 0 ? "" : pid);
}

/* The chosen session or process, else the process with the highest peak. */
static void time_line(struct sl_top *top, struct sl_top_lines *lines, unsigned rows, unsigned columns)
{
	unsigned chosen = top->process != ALL ? (unsigned)top->process : sl_follow_count(top->follow);
	uint64_t peak = 0;

	rows = rows > 3 ? rows - 1 : 2;
	columns = columns > 14 ? columns - 14 : 1;
	columns = columns < CHART_MAX ? columns : CHART_MAX;
	if (top->session != ALL) {
		chart_session(top, lines, (unsigned)top->session, rows, columns);
		return;
	}
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		struct sl_figures f[TOP_DEVICES];
		unsigned count = shown(top, i) ? sl_figures_of(&sl_top_process(top, i)->process, f, TOP_DEVICES) : 0;

		if (shown(top, i) && chosen == sl_follow_count(top->follow))
			chosen = i;
		for (unsigned d = 0; d < count; d++)
			if (f[d].peak > peak) {
				peak = f[d].peak;
				chosen = i;
			}
	}
	if (chosen < sl_follow_count(top->follow))
		chart_process(top, lines, chosen, rows, columns);
}

static void pytorch(struct sl_top *top, struct sl_top_lines *lines)
{
	char t[6][SL_FORMAT_BYTES], rank[24];

	snprintf(lines->header, sizeof(lines->header), "%7s %4s %3s %9s %9s %9s %6s %9s %9s %9s", "pid", "rank", "dev", "tensors",
		 "reserved", "unused", "of it", "largest", "peak", "peak res.");
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		const struct sl_process *process = &sl_top_process(top, i)->process;
		struct sl_figures f[TOP_DEVICES];
		unsigned count = sl_top_shown(top, i) ? sl_figures_of(process, f, TOP_DEVICES) : 0;

		for (unsigned d = 0; d < count; d++) {
			uint64_t unused;

			if (f[d].reserved == SL_UNKNOWN || !f[d].of_pytorch)
				continue;
			unused = f[d].reserved > f[d].allocated ? f[d].reserved - f[d].allocated : 0;
			sl_top_line(lines, TONE_PLAIN, (int)i, "%7lld %4s %3d %9s %9s %9s %5.1f%% %9s %9s %9s",
				    (long long)process->trace->header.pid, rank_of(rank, process), f[d].device,
				    size(t[0], f[d].allocated), size(t[1], f[d].reserved), size(t[2], unused),
				    f[d].reserved ? 100.0 * (double)unused / (double)f[d].reserved : 0.0,
				    size(t[5], sl_torch_largest_cached(process->model, f[d].device)),
				    size(t[3], f[d].peak_allocated), size(t[4], f[d].peak_reserved));
		}
	}
	put_pools(top, lines);
	if (!lines->line.count)
		sl_top_line(lines, TONE_DIM, ALL, "no PyTorch allocator and no framework's pool has reported");
}

struct standing {
	const char *run;
	unsigned process;
	uint64_t live, peak;
	double away; /* distance from the median in deviations (1.4826 x MAD) */
};

static int by_away(const void *a, const void *b)
{
	const struct standing *x = a, *y = b;

	return x->away != y->away ? (fabs(x->away) < fabs(y->away) ? 1 : -1) : SL_RISING(x->process, y->process);
}

/* The distance of each from the median, outliers first. */
static void compare(struct standing *standing, unsigned count)
{
	double *live = sl_memory_must(calloc(count + 1, 2 * sizeof(*live))), *away = live + count + 1;

	for (unsigned i = 0; i < count; i++)
		live[i] = (double)standing[i].live;
	sl_figures_away(live, count, away);
	for (unsigned i = 0; i < count; i++)
		standing[i].away = away[i];
	qsort(standing, count, sizeof(*standing), by_away);
	free(live);
}

static int by_run(const void *a, const void *b)
{
	const struct standing *x = a, *y = b;
	int order = strcmp(x->run, y->run);

	return order ? order : SL_RISING(x->process, y->process);
}

/* Ranks of one run, outliers first. */
static void ranks_of(const struct sl_top *top, struct sl_top_lines *lines, struct standing *standing, unsigned count)
{
	char live[SL_FORMAT_BYTES], peak[SL_FORMAT_BYTES], rank[24];

	compare(standing, count);
	for (unsigned i = 0; i < count; i++) {
		const struct sl_followed *followed = sl_top_process(top, standing[i].process);
		bool unlike = count >= SL_RANKS_COMPARED && fabs(standing[i].away) > SL_RANKS_UNLIKE;

		sl_top_line(lines, unlike ? TONE_WARN : TONE_PLAIN, (int)standing[i].process,
			    "%5s %8lld %-20.20s %10s %2s%9s %+11.1fd %s %s", rank_of(rank, &followed->process),
			    (long long)followed->process.trace->header.pid,
			    followed->process.trace->header.host ? followed->process.trace->header.host : "-",
			    size(live, standing[i].live), sl_devices_held(&followed->process) > 1 ? "<=" : "",
			    size(peak, standing[i].peak), standing[i].away, unlike ? "unlike" : "", state_of(followed));
	}
}

/* Only ranks of one run are compared with each other. */
static void ranks(struct sl_top *top, struct sl_top_lines *lines)
{
	unsigned all = sl_follow_count(top->follow), count = 0;
	struct standing *standing = sl_memory_must(calloc(all + 1, sizeof(*standing)));

	for (unsigned i = 0; i < all; i++) {
		const char *run = sl_top_process(top, i)->process.trace->header.run_id;
		struct sl_figures f[TOP_DEVICES];
		unsigned devices = sl_figures_of(&sl_top_process(top, i)->process, f, TOP_DEVICES);

		if (!sl_top_shown(top, i))
			continue;
		standing[count] = (struct standing){.run = run ? run : "", .process = i};
		for (unsigned d = 0; d < devices; d++) {
			standing[count].live += f[d].live;
			standing[count].peak += f[d].peak;
		}
		count++;
	}
	if (count)
		qsort(standing, count, sizeof(*standing), by_run);
	snprintf(lines->header, sizeof(lines->header), "%5s %8s %-20s %10s %11s %12s", "rank", "pid", "host", "live", "peak",
		 "from median");
	for (unsigned first = 0, next; first < count; first = next) {
		for (next = first; next < count && !strcmp(standing[next].run, standing[first].run); next++)
			;
		if (next - first < count)
			sl_top_line(lines, TONE_BOLD, ALL, "run %s", *standing[first].run ? standing[first].run : "unknown");
		ranks_of(top, lines, standing + first, next - first);
	}
	free(standing);
}

/* The first of `columns` bytes at a blank, and the rest behind four of them. */
static void wrapped(struct sl_top_lines *lines, enum sl_top_tone tone, char *text, unsigned columns)
{
	const char *margin = "";

	while (strlen(margin) + strlen(text) > columns) {
		char *blank = memrchr(text, ' ', columns - strlen(margin));

		if (!blank || blank == text)
			break;
		*blank = 0;
		sl_top_line(lines, tone, ALL, "%s%s", margin, text);
		text = blank + 1;
		margin = "    ";
	}
	sl_top_line(lines, tone, ALL, "%s%s", margin, text);
}

static void findings(struct sl_top *top, struct sl_top_lines *lines, unsigned columns)
{
	char *copy = strdup(top->findings.text ? top->findings.text : ""), *at = copy, *text, ago[SL_FORMAT_BYTES];

	if (top->findings.text && top->now_ns - top->findings.told_ns >= 2000000000)
		snprintf(lines->header, sizeof(lines->header), "findings of a report %s ago",
			 sl_format_duration(ago, top->now_ns - top->findings.told_ns));
	else
		snprintf(lines->header, sizeof(lines->header), "findings of a report of this moment");
	while ((text = strsep(&at, "\n")))
		if (*text)
			wrapped(lines, *text == '!' ? TONE_WARN : TONE_PLAIN, text + 1, columns);
	if (!lines->line.count)
		sl_top_line(lines, TONE_DIM, ALL, top->findings.text ? "nothing to report" : "asking...");
	if (top->alerts.count)
		sl_top_line(lines, TONE_BOLD, ALL, "alerts, the last first");
	for (size_t i = top->alerts.count; i--;)
		sl_top_line(lines, TONE_PLAIN, ALL, "%s", top->alerts.item[i]);
	free(copy);
}

static void calls(struct sl_top *top, struct sl_top_lines *lines)
{
	char bytes[SL_FORMAT_BYTES], since[SL_FORMAT_BYTES], events[SL_FORMAT_BYTES], rank[24];
	uint64_t unix_ns = sl_now_ns(CLOCK_REALTIME);

	snprintf(lines->header, sizeof(lines->header), "%8s %5s %-10s %14s  %s", "pid", "rank", "", "events",
		 "command, and calls in flight");
	for (unsigned i = 0; i < sl_follow_count(top->follow); i++) {
		const struct sl_followed *followed = sl_top_process(top, i);
		const struct sl_process *process = &followed->process;
		const struct sl_model *model = process->model;

		if (!sl_top_shown(top, i))
			continue;
		sl_top_line(lines, followed->ended ? TONE_DIM : TONE_PLAIN, (int)i, "%8lld %5s %-10s %14s  %s",
			    (long long)process->trace->header.pid, rank_of(rank, process),
			    followed->ended ? state_of(followed) : "running", sl_format_count(events, model->events),
			    sl_stacks_program(&process->trace->header));
		for (size_t c = 0; c < model->in_flight.count; c++) {
			const struct sl_in_flight *call = &model->in_flight.item[c];
			const struct sl_hook *hook = sl_header_hook(model->header, call->api);
			uint64_t begun = sl_process_unix(process, call->since_ns);

			sl_top_line(lines, TONE_BOLD, (int)i, "%42s%s of %s since %s", "", hook ? hook->plain : "a call",
				    size(bytes, call->bytes), sl_format_duration(since, unix_ns > begun ? unix_ns - begun : 0));
		}
	}
}

void sl_top_view(struct sl_top *top, struct sl_top_lines *lines, unsigned rows, unsigned columns)
{
	static void (*const views[VIEW_COUNT])(struct sl_top * top, struct sl_top_lines * lines) = {overview, NULL, NULL, pytorch,
												    ranks,    NULL, calls};
	size_t kept_count = 0;

	if (top->view == VIEW_TIME) {
		time_line(top, lines, rows, columns);
		return;
	}
	if (top->view == VIEW_PLACES)
		places(top, lines, columns);
	else if (top->view == VIEW_FINDINGS)
		findings(top, lines, *top->filter ? UINT_MAX : columns); /* the filter looks at whole findings */
	else
		views[top->view](top, lines);
	for (size_t i = 0; i < lines->line.count; i++)
		if (!*top->filter || top_passes(top, &lines->line.item[i]))
			lines->line.item[kept_count++] = lines->line.item[i];
		else
			free(lines->line.item[i].text);
	lines->line.count = kept_count;
}
