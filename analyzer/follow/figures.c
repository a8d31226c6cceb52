/* SPDX-License-Identifier: MIT */
#include "analyzer/follow/follow.h"

#include <math.h>

#include "analyzer/analyses/analysis.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/window_facts.h"

#define GROWING_EACH 8
#define PIECES	     SL_FORECAST_PIECES
#define LEAST_S	     20.0 /* seconds of evidence: a shorter rise may be start-up */
#define AHEAD	     3.0  /* the evidence must span this many times the time that is left */
#define RISING	     0.75 /* share of pairs of pieces with the later above the earlier, minus those with the earlier above */
#define STILL	     0.5  /* the last pieces must contribute at least this share of the rise */
#define LAST_FEW     4

void sl_forecast_add(struct sl_forecast *forecast, uint64_t ns, uint64_t min, uint64_t max)
{
	bool first = !forecast->begin_ns;

	if (first)
		forecast->begin_ns = ns;
	if (ns < forecast->last_ns)
		ns = forecast->last_ns;
	forecast->last_ns = ns;
	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++) {
		uint64_t piece = (ns - forecast->begin_ns) / (1000000000ull << s), passed = piece - forecast->scale[s].piece;
		struct sl_forecast_piece *filling = &forecast->scale[s].filling;

		/* A piece without a look repeats the one before. */
		for (uint64_t i = 0; i < passed && i < PIECES + 1; i++)
			forecast->scale[s].filled[forecast->scale[s].count++ % PIECES] = *filling;
		if (first || passed)
			*filling = (struct sl_forecast_piece){(double)min, (double)max};
		filling->min = fmin(filling->min, (double)min);
		filling->max = fmax(filling->max, (double)max);
		forecast->scale[s].piece = piece;
	}
}

/* Slope of a straight line, as the median over pairs of pieces half the span apart, which one odd piece does not change. */
static double slope_of(const double *at, unsigned from, unsigned count)
{
	unsigned apart = count / 2, n = count - apart;
	double slope[PIECES];

	for (unsigned i = 0; i < n; i++) {
		double value = (at[from + i + apart] - at[from + i]) / apart;
		unsigned place = i;

		for (; place && slope[place - 1] > value; place--)
			slope[place] = slope[place - 1];
		slope[place] = value;
	}
	return n % 2 ? slope[n / 2] : (slope[n / 2 - 1] + slope[n / 2]) / 2;
}

/* The count of pairs of the Mann-Kendall test, as a share. */
static double rising(const double *at)
{
	int sum = 0;

	for (unsigned i = 0; i < PIECES; i++)
		for (unsigned k = i + 1; k < PIECES; k++)
			sum += SL_RISING(at[k], at[i]);
	return sum / (PIECES * (PIECES - 1) / 2.0);
}

/* Bytes per piece, of the minima or the maxima; 0: they do not rise, or too little is known. */
static double rise_of(const struct sl_forecast *forecast, unsigned s, bool minima)
{
	double at[PIECES], whole, last;
	unsigned count = forecast->scale[s].count;

	if (count < PIECES || PIECES * (double)(1ull << s) < LEAST_S)
		return 0;
	for (unsigned i = 0; i < PIECES; i++) {
		const struct sl_forecast_piece *piece = &forecast->scale[s].filled[(count + i) % PIECES];

		at[i] = minima ? piece->min : piece->max;
	}
	whole = slope_of(at, 0, PIECES);
	last = slope_of(at, PIECES - LAST_FEW, LAST_FEW);
	return whole <= 0 || rising(at) < RISING || last < STILL * whole ? 0 : fmin(whole, fmax(last, STILL * whole));
}

static double full_by(const struct sl_forecast *forecast, unsigned s, bool minima, double total)
{
	double now = forecast->scale[s].filling.max, rise = rise_of(forecast, s, minima), width = (double)(1ull << s), left;

	for (unsigned i = 0; i < PIECES; i++)
		now = fmax(now, forecast->scale[s].filled[i].max);
	left = rise > 0 ? fmax(0, total - now) / rise * width : INFINITY;
	return left * AHEAD <= PIECES * width ? left : INFINITY;
}

/* True: at some scale the maxima or the minima rise and are still rising, however long it takes to fill the device. */
static bool forecast_rises(const struct sl_forecast *forecast)
{
	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++)
		if (rise_of(forecast, s, false) > 0 || rise_of(forecast, s, true) > 0)
			return true;
	return false;
}

double sl_forecast_full(const struct sl_forecast *forecast, uint64_t total)
{
	double soonest = INFINITY;

	for (unsigned s = 0; s < SL_FORECAST_SCALES; s++)
		soonest =
			fmin(soonest, fmin(full_by(forecast, s, false, (double)total), full_by(forecast, s, true, (double)total)));
	return soonest;
}

#define SITES_NAMED 400 /* only the largest sites have their names looked up */
#define LEAKS_MOST  2	/* leaks that need longer than this times the forecast are less than half of the growth */

static void fill(struct sl_figures *f, const struct sl_process *process, const struct sl_device_state *state)
{
	const struct sl_device *device = sl_defs_device(&process->trace->defs, state->device);
	const struct sl_torch *torch = &state->torch;

	*f = (struct sl_figures){
		.device = state->device,
		.uuid = device ? device->uuid : NULL,
		.name = device ? device->name : NULL,
		.live = state->known_bytes,
		.peak = process->model->recording.lists_tensors ? torch->peak_reserved_bytes : state->known_peak,
		.allocated = torch->used ? torch->allocated_bytes : SL_UNKNOWN,
		.reserved = torch->used ? torch->reserved_bytes : SL_UNKNOWN,
		.peak_allocated = torch->used ? torch->peak_allocated_bytes : SL_UNKNOWN,
		.peak_reserved = torch->used ? torch->peak_reserved_bytes : SL_UNKNOWN,
		.of_pytorch = torch->reported,
		.used = state->used_last_bytes,
		.total = state->total_bytes && state->total_bytes != SL_UNKNOWN ? state->total_bytes
			 : device && device->total_bytes			? device->total_bytes
										: SL_UNKNOWN,
		.hidden = state->hidden_last_bytes,
		.others = sl_device_state_others(state),
		.own = state->figure > SL_FIGURE_DEVICE,
		.shares_host = sl_device_state_shares_host(state),
		.sampled_unix_ns = sl_process_unix(process, state->last_sample_ns),
	};
	if (sl_header_limit(process->model->header) < f->total) {
		f->shares_host = false;
		f->total = sl_header_limit(process->model->header);
		f->hidden = state->context_bytes + state->module_bytes;
		f->used = f->live + f->hidden;
	}
}

unsigned sl_figures_of(const struct sl_process *process, struct sl_figures *out, unsigned capacity)
{
	const struct sl_device_state *unknown = process->model->devices[0];
	unsigned count = 0;

	for (unsigned d = 1; d <= SL_DEVICES_MAX && count < capacity; d++)
		if (process->model->devices[d] && process->model->devices[d]->used)
			fill(&out[count++], process, process->model->devices[d]);
	/* The unknown device comes last: stormlog-attach cannot ask the driver which one it is. */
	if (unknown && unknown->used && unknown->known_peak && count < capacity)
		fill(&out[count++], process, unknown);
	return count;
}

unsigned sl_figures_met(struct sl_met *met, int device)
{
	unsigned at = 0;

	while (at < met->count && met->device[at] != device)
		at++;
	if (at == met->count && at < SL_FIGURES_DEVICES)
		met->device[met->count++] = device;
	return at;
}

uint64_t sl_figures_used(const struct sl_figures *f)
{
	return f->used != SL_UNKNOWN && f->used > f->live ? f->used : f->live;
}

/* Bytes in use on the device beside the process's calls. `used` is as old as its sample; the process may hold less by now. */
static uint64_t outside_bytes(const struct sl_figures *f)
{
	return f->hidden != SL_UNKNOWN ? f->hidden + f->others : sl_figures_used(f) - f->live;
}

/* Passes the forecast the maximum of each bin of the process's time line since the last call. */
static void tell(struct sl_outlook *outlook, const struct sl_process *process, const struct sl_figures *f, uint64_t now_ns)
{
	const struct sl_timeline *timeline = &process->model->timeline;
	const struct sl_line *line = sl_timeline_find(timeline, SL_LINE_KNOWN, f->device, 0);
	/* the clock of a living process of this machine is ours */
	uint64_t to_now = process->trace->ring.alive ? 0 : now_ns - process->model->now_ns;
	bool fresh = line && line->begun && process->model->now_ns > outlook->told_ns;

	for (uint32_t i = fresh ? line->first : 1; fresh && i <= line->bin; i++) {
		uint64_t begin = timeline->begin_ns + ((uint64_t)i << timeline->shift),
			 since = begin > outlook->told_ns ? begin : outlook->told_ns;

		if (begin + (1ull << timeline->shift) > outlook->told_ns)
			sl_forecast_add(&outlook->forecast, (line->bins[i].max_ns > since ? line->bins[i].max_ns : since) + to_now,
					line->bins[i].min + outside_bytes(f), line->bins[i].max + outside_bytes(f));
	}
	outlook->told_ns = process->model->now_ns;
}

void sl_figures_look(struct sl_outlook *outlook, const struct sl_process *process, const struct sl_figures *f, uint64_t now_ns)
{
	uint64_t used = process ? f->live + outside_bytes(f) : f->used;

	if (process && !process->model->recording.has_times)
		return;
	if (process)
		tell(outlook, process, f, now_ns);
	sl_trend_add(&outlook->trend, now_ns, process ? f->live : f->used);
	sl_forecast_add(&outlook->forecast, now_ns, used, used);
}

/* The report's answer (report/leak_words.h), from a copy that holds the analysis's findings.  *leak: the place that leaks most. */
static double full_by_leaks(const struct sl_process *process, const struct sl_figures *f, const struct sl_track **leak)
{
	struct sl_process now = *process;
	unsigned places;
	double left;

	memset(&now.leaks_by_line, 0, sizeof(now.leaks_by_line));
	sl_analysis_leaks_by_line.process(&now);
	left = sl_leak_words_full_in(&now, f->device, &places);
	for (size_t i = now.leaks_by_line.count; i--;)
		if (now.leaks_by_line.item[i].verdict == SL_KEPT_GROWING && now.leaks_by_line.item[i].track->device == f->device)
			*leak = now.leaks_by_line.item[i].track;
	free(now.leaks_by_line.item);
	return left >= 0 ? left : INFINITY;
}

/* *leak: the leaking place behind the answer; NULL: leaks do not explain it. */
static double full_in(const struct sl_outlook *outlook, const struct sl_process *process, const struct sl_figures *f,
		      const struct sl_track **leak)
{
	double left, by_leaks = INFINITY;

	*leak = NULL;
	if (f->total == SL_UNKNOWN)
		return NAN;
	left = sl_forecast_full(&outlook->forecast, f->total);
	if (process && forecast_rises(&outlook->forecast))
		by_leaks = full_by_leaks(process, f, leak);
	left = fmin(left, by_leaks);
	if (by_leaks > LEAKS_MOST * left)
		*leak = NULL;
	return left;
}

double sl_figures_full_in(const struct sl_outlook *outlook, const struct sl_process *process, const struct sl_figures *f)
{
	const struct sl_track *leak;

	return full_in(outlook, process, f, &leak);
}

void sl_figures_full_by(const struct sl_outlook *outlook, const struct sl_growing *growing, struct sl_followed *followed,
			const struct sl_figures *f, char *out, size_t size)
{
	const struct sl_track *leak;

	full_in(outlook, &followed->process, f, &leak);
	if (leak)
		sl_owners_line(&followed->process, leak->stack, 2, out, size);
	else
		sl_growing_place(growing, followed, true, out, size);
}

/* Who holds memory of one device. */
struct holders {
	struct holder {
		const struct sl_process *process;
		const struct sl_device_state *state;
	} * item;
	size_t count, capacity;
};

static void add_holder(struct sl_holders *all, const char *uuid, const struct sl_process *process,
		       const struct sl_device_state *state)
{
	uintptr_t *at = sl_map_at(&all->devices, uuid);

	if (!*at)
		*at = (uintptr_t)sl_memory_must(calloc(1, sizeof(struct holders)));
	*SL_PUSH((struct holders *)*at) = (struct holder){process, state};
}

void sl_figures_holders(const struct sl_follow *follow, struct sl_holders *holders)
{
	*holders = (struct sl_holders){0};
	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		const struct sl_followed *followed = sl_follow_process(follow, i);
		const struct sl_process *process = &followed->process;

		for (unsigned d = 0; !followed->ended && process->model && d < SL_DEVICES_MAX; d++) {
			const struct sl_device *def = sl_defs_device(&process->trace->defs, (int)d);

			if (def && def->uuid && process->model->devices[d + 1])
				add_holder(holders, def->uuid, process, process->model->devices[d + 1]);
		}
	}
}

void sl_holders_free(struct sl_holders *holders)
{
	const char *uuid;

	for (size_t at = 0; (uuid = sl_map_next(&holders->devices, &at));) {
		struct holders *of = (struct holders *)sl_map_find(&holders->devices, uuid);

		SL_DROP(of);
		free(of);
	}
	sl_map_free(&holders->devices);
}

uint64_t sl_figures_hidden(const struct sl_holders *holders, const struct sl_process *process, const struct sl_figures *f)
{
	const struct holders *of = f->uuid ? (const struct holders *)sl_map_find(&holders->devices, f->uuid) : NULL;
	uint64_t others = 0;

	if (f->hidden == SL_UNKNOWN || f->own)
		return f->hidden;
	for (size_t i = 0; of && i < of->count; i++) {
		const struct holder *other = &of->item[i];
		const struct sl_header *header = &other->process->trace->header;
		uint64_t theirs = f->sampled_unix_ns - header->started_ns + header->monotonic_ns;

		if (other->process != process)
			others += sl_timeline_max(&other->process->model->timeline, other->state->line, theirs, theirs);
	}
	return f->hidden > others ? f->hidden - others : 0;
}

uint64_t sl_figures_live(const struct sl_process *process)
{
	uint64_t live = 0;

	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++)
		if (process->model->devices[d] && process->model->devices[d]->used)
			live += process->model->devices[d]->known_bytes;
	return live;
}

void sl_figures_away(const double *values, unsigned count, double *away)
{
	double *sorted = sl_memory_must(calloc(count + 1, sizeof(*sorted))), median, spread;

	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), sl_stats_by_value);
	median = sorted[count / 2];
	for (unsigned i = 0; i < count; i++)
		sorted[i] = fabs(values[i] - median);
	qsort(sorted, count, sizeof(*sorted), sl_stats_by_value);
	spread = fmax(1.4826 * sorted[count / 2], fmax(0.02 * median / SL_RANKS_UNLIKE, 1));
	for (unsigned i = 0; i < count; i++)
		away[i] = (values[i] - median) / spread;
	free(sorted);
}

void sl_trend_add(struct sl_trend *trend, uint64_t ns, uint64_t bytes)
{
	trend->ns[trend->count % SL_TREND_POINTS] = ns;
	trend->bytes[trend->count++ % SL_TREND_POINTS] = bytes;
}

/*
 * The value of Student's t that chance exceeds once in ten thousand times, by Fisher's expansion.  It is this strict because a
 * reader tests at every look, at first over few values: with eight values, 3 standard errors are exceeded once in forty times.
 */
static double least_errors(unsigned freedom)
{
	const double z = 3.89, square = z * z;

	return z * (1 + (square + 1) / (4 * freedom) + (5 * square * square + 16 * square + 3) / (96.0 * freedom * freedom));
}

bool sl_trend_slope(const struct sl_trend *trend, double *per_second)
{
	unsigned n = trend->count < SL_TREND_POINTS ? trend->count : SL_TREND_POINTS;
	double x = 0, y = 0, xx = 0, xy = 0, yy = 0, slope, error;

	if (n < 8)
		return false;
	for (unsigned i = 0; i < n; i++) {
		double s = ((double)trend->ns[i] - (double)trend->ns[0]) / 1e9,
		       b = (double)trend->bytes[i] - (double)trend->bytes[0];

		x += s;
		y += b;
		xx += s * s;
		xy += s * b;
		yy += b * b;
	}
	xx -= x * x / n;
	xy -= x * y / n;
	yy -= y * y / n;
	if (xx <= 0)
		return false;
	slope = xy / xx;
	error = sqrt(fmax(0, yy - slope * xy) / (n - 2) / xx);
	*per_second = slope;
	return slope != 0 && fabs(slope) > least_errors(n - 2) * error;
}

static uint64_t key_of(const struct sl_site *site)
{
	uint64_t key = sl_map_mix(sl_stack_mix(site->stack) ^ ((uint64_t)site->label << 32 | site->thread));

	return sl_map_mix(key ^ ((uint64_t)site->api << 32 | (uint64_t)site->kind << 16 | (uint16_t)site->device));
}

static int by_key(const void *a, const void *b)
{
	const struct sl_marked *x = a, *y = b;

	return SL_RISING(x->site, y->site);
}

void sl_live_mark(struct sl_live_mark *mark, const struct sl_followed *followed)
{
	const struct sl_model *model = followed->process.model;

	mark->sites.count = 0;
	for (uint32_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];

		*SL_PUSH(&mark->sites) = (struct sl_marked){key_of(site), site->live_bytes};
	}
	if (mark->sites.count)
		qsort(mark->sites.item, mark->sites.count, sizeof(*mark->sites.item), by_key);
}

/* What the site held at the mark. */
static uint64_t held_then(const struct sl_live_mark *mark, const struct sl_site *site)
{
	struct sl_marked wanted = {.site = key_of(site)}, *found;

	found = mark->sites.count ? bsearch(&wanted, mark->sites.item, mark->sites.count, sizeof(wanted), by_key) : NULL;
	return found ? found->bytes : 0;
}

struct largest {
	uint32_t site;
	uint64_t bytes, then;
};

static int by_bytes(const void *a, const void *b)
{
	const struct largest *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: SL_RISING(x->site, y->site);
}

static int by_size(const void *a, const void *b)
{
	const struct sl_live_place *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: strcmp(x->line, y->line);
}

static void add(struct sl_live_places *places, struct sl_map *lines, struct sl_followed *followed, const struct largest *one)
{
	const struct sl_site *site = &followed->process.model->sites.item[one->site];
	struct sl_live_place *place;
	char line[512];
	uintptr_t *at;
	int used = 0;

	if (sl_window_is_before(&followed->process, site->stack))
		used = snprintf(line, sizeof(line), "made before the window, ");
	sl_owners_line(&followed->process, site->stack, 2, line + used, sizeof(line) - (size_t)used);
	at = sl_map_at(lines, line);
	if (!*at) {
		*SL_PUSH(&places->place) = (struct sl_live_place){
			.line = strdup(line), .library = strdup(sl_model_library(followed->process.model, site))};
		*at = places->place.count;
	}
	place = &places->place.item[*at - 1];
	place->bytes += site->live_bytes;
	place->blocks += site->live_blocks;
	place->since_bytes += (int64_t)site->live_bytes - (int64_t)one->then;
}

void sl_live_places(struct sl_live_places *places, struct sl_followed *followed, const struct sl_live_mark *mark)
{
	const struct sl_model *model = followed->process.model;
	SL_VECTOR(struct largest) sites = {0};
	struct sl_map lines = {0};

	*places = (struct sl_live_places){0};
	for (uint32_t i = 0; i < model->sites.count; i++) {
		uint64_t bytes = model->sites.item[i].live_bytes, then = held_then(mark, &model->sites.item[i]);

		if ((bytes || then) && sl_owners_shows(&followed->process, &model->sites.item[i]))
			*SL_PUSH(&sites) = (struct largest){i, bytes > then ? bytes : then, then};
	}
	if (sites.count)
		qsort(sites.item, sites.count, sizeof(*sites.item), by_bytes);
	for (size_t i = 0; i < sites.count && i < SITES_NAMED; i++)
		add(places, &lines, followed, &sites.item[i]);
	if (places->place.count)
		qsort(places->place.item, places->place.count, sizeof(*places->place.item), by_size);
	free(sites.item);
	sl_map_free(&lines);
}

void sl_live_places_free(struct sl_live_places *places)
{
	for (size_t i = 0; i < places->place.count; i++) {
		free(places->place.item[i].line);
		free(places->place.item[i].library);
	}
	free(places->place.item);
	*places = (struct sl_live_places){0};
}

void sl_growing_look(struct sl_growing *growing, const struct sl_followed *followed)
{
	if (growing->looks++ % GROWING_EACH == 0)
		sl_live_mark(&growing->mark[(growing->looks - 1) / GROWING_EACH % SL_GROWING_MARKS], followed);
}

/* Growth since the oldest mark; *steady: without its largest jump. */
static int64_t grown(const struct sl_growing *growing, const struct sl_site *site, int64_t *steady)
{
	unsigned marks = (growing->looks + GROWING_EACH - 1) / GROWING_EACH,
		 first = marks > SL_GROWING_MARKS ? marks - SL_GROWING_MARKS : 0;
	int64_t oldest = 0, before = 0, jump = 0;

	for (unsigned m = first; m <= marks; m++) {
		int64_t now = (int64_t)(m == marks ? site->live_bytes : held_then(&growing->mark[m % SL_GROWING_MARKS], site));

		oldest = m == first ? now : oldest;
		jump = m > first && now - before > jump ? now - before : jump;
		before = now;
	}
	*steady = before - oldest - jump;
	return before - oldest;
}

void sl_growing_place(const struct sl_growing *growing, struct sl_followed *followed, bool grows, char *out, size_t size)
{
	const struct sl_model *model = followed->process.model;
	const struct sl_site *best = NULL;
	int64_t largest = 0, largest_steady = 0;

	for (uint32_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		int64_t steady = 0, bytes = grows ? grown(growing, site, &steady) : (int64_t)site->live_bytes;

		if (!sl_owners_shows(&followed->process, site) || bytes <= 0)
			continue;
		steady = steady > 0 ? steady : 0;
		if (steady > largest_steady || (steady == largest_steady && bytes > largest)) {
			best = site;
			largest = bytes;
			largest_steady = steady;
		}
	}
	out[0] = 0;
	if (best)
		sl_owners_line(&followed->process, best->stack, 2, out, size);
}

void sl_growing_free(struct sl_growing *growing)
{
	for (unsigned m = 0; m < SL_GROWING_MARKS; m++)
		free(growing->mark[m].sites.item);
	*growing = (struct sl_growing){0};
}
