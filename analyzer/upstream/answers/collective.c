/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <math.h>

#include "analyzer/base/stats.h"
#include "analyzer/base/search.h"

#define MIB 1048576.0
#define MS  INT64_C(1000000)

const struct sl_collective_preset sl_collective_presets[SL_COLLECTIVE_PRESETS] = {
	{"low", 8, 256 * MIB, .06, 3.0, 120 * MS, 100 * MS, 100 * MS, .6, .7},
	{"medium", 6, 128 * MIB, .04, 2.5, 150 * MS, 120 * MS, 120 * MS, .5, .5},
	{"high", 5, 64 * MIB, .025, 1.8, 180 * MS, 160 * MS, 180 * MS, .34, .35},
};

/* Bits of `reasons`, in the order of their names, which is the order of the report. */
enum { DIVERGENCE = 1, SYNCHRONY = 2, OUTLIER = 4, TOKEN = 8, OVERLAP = 16, SINGLE_RANK = 32, WEAK_MARKER = 64 };
static const char *const reason_names[] = {"allocator_device_divergence", "cross_rank_synchrony", "gap_spike_statistical_outlier",
					   "marker_collective_token",	  "marker_spike_overlap", "single_rank_only",
					   "weak_marker_signal"};
static const char *const class_names[] = {"collective_suspect", "collective_likely", "collective_confident"};

/* --- markers ------------------------------------------------------------------------------------------------ */

/* True: the text has one of upstream's words. Both are compared without - and _, so all_reduce is allreduce. */
static bool has_token(const char *text)
{
	static const char *const tokens[] = {"nccl",	  "collective",	   "communication", "allreduce",
					     "allgather", "reducescatter", "broadcast",	    "barrier"};
	char small[256], *compact = small, *end;
	size_t length = strlen(text);
	bool hit = false;

	if (length >= sizeof(small) && !(compact = malloc(length + 1)))
		return false;
	end = compact;
	for (; *text; text++)
		if (*text != '-' && *text != '_')
			*end++ = (char)(*text >= 'A' && *text <= 'Z' ? *text + 32 : *text);
	*end = 0;
	for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens) && !hit; i++)
		hit = strstr(compact, tokens[i]) != NULL;
	if (compact != small)
		free(compact);
	return hit;
}

static bool value_has_token(const struct sl_value *value)
{
	if (!value)
		return false;
	if (value->kind == SL_VALUE_STRING)
		return has_token(value->text);
	for (uint32_t i = 0; value->kind == SL_VALUE_ARRAY && i < value->count; i++)
		if (value_has_token(&value->items[i]))
			return true;
	for (uint32_t i = 0; value->kind == SL_VALUE_OBJECT && i < value->count; i++)
		if (value_has_token(&value->members[i].value))
			return true;
	return false;
}

/* Does an event say that a collective runs: in its type, its context or a text of its metadata? */
static bool is_marker(const struct sl_v3_event *event)
{
	return has_token(event->event_type) || (event->context && has_token(event->context)) || value_has_token(event->metadata);
}

/* --- spikes ------------------------------------------------------------------------------------------------- */

struct spike {
	const struct sl_v3_event *event;
	size_t rank; /* place in the series */
	double gap_bytes, ratio /* below zero: unknown */, zscore;
	int64_t marker_hits, first_marker_ns, last_marker_ns;
	int64_t synchronized_ranks;
};

struct spikes {
	SL_VECTOR(struct spike) list;
};

struct marks {
	int64_t *times_ns; /* sorted */
	size_t count;
};

static void collect_marks(const struct sl_series *all, struct sl_arena *arena, struct marks *marks)
{
	marks->times_ns = sl_arena_alloc(arena, (all->count + 1) * sizeof(*marks->times_ns));
	marks->count = 0;
	for (size_t i = 0; i < all->count; i++)
		if (is_marker(all->events[i]))
			marks->times_ns[marks->count++] = all->events[i]->timestamp_ns;
}

static size_t first_at_or_after(const struct marks *marks, int64_t time_ns)
{
	return SL_FIRST(i, marks->count, marks->times_ns[i] >= time_ns);
}

static void find_markers(const struct marks *marks, int64_t window_ns, struct spike *spike)
{
	int64_t at_ns = spike->event->timestamp_ns;
	size_t begin = first_at_or_after(marks, at_ns - window_ns);
	size_t end = at_ns > INT64_MAX - window_ns - 1 ? marks->count : first_at_or_after(marks, at_ns + window_ns + 1);

	spike->marker_hits = (int64_t)(end - begin);
	spike->first_marker_ns = end > begin ? marks->times_ns[begin] : at_ns;
	spike->last_marker_ns = end > begin ? marks->times_ns[end - 1] : at_ns;
}

struct spread {
	double median, mad, mean, deviation;
};

/* gaps: positive gaps of the samples; sorted: room for as many. */
static struct spread spread_of(const double *gaps, double *sorted, size_t count)
{
	struct spread s;

	memcpy(sorted, gaps, count * sizeof(*gaps));
	s.median = sl_stats_median(sorted, count);
	for (size_t i = 0; i < count; i++)
		sorted[i] = fabs(gaps[i] - s.median);
	s.mad = sl_stats_median(sorted, count);
	s.mean = sl_stats_mean(gaps, count);
	s.deviation = sl_stats_deviation(gaps, count, s.mean);
	return s;
}

static double zscore(const struct spread *s, double gap)
{
	double z = s->mad > 0 ? 0.6745 * (gap - s->median) / s->mad : s->deviation > 0 ? (gap - s->mean) / s->deviation : 0;

	return z > 0 ? z : 0;
}

static void find_spikes(const struct sl_rank_series *rank, size_t place, const struct sl_collective_preset *preset,
			const struct marks *marks, struct spikes *spikes)
{
	const struct sl_series *samples = &rank->samples;
	struct sl_arena arena = {0};

	if (samples->count < preset->min_samples)
		return;
	double *gaps = sl_arena_alloc(&arena, samples->count * sizeof(*gaps));
	double *sorted = sl_arena_alloc(&arena, samples->count * sizeof(*sorted));

	for (size_t i = 0; i < samples->count; i++) {
		int64_t gap = sl_event_hidden_gap(samples->events[i]);

		gaps[i] = gap > 0 ? (double)gap : 0;
	}
	struct spread s = spread_of(gaps, sorted, samples->count);

	for (size_t i = 0; i < samples->count; i++) {
		const struct sl_v3_event *event = samples->events[i];
		double ratio = event->total_bytes > 0 ? gaps[i] / (double)event->total_bytes : -1;
		double z = zscore(&s, gaps[i]);

		if (!(ratio >= preset->min_ratio || gaps[i] >= preset->min_gap_bytes) || z < preset->zscore)
			continue;
		struct spike *spike = SL_PUSH(&spikes->list);

		*spike = (struct spike){.event = event, .rank = place, .gap_bytes = gaps[i], .ratio = ratio};
		spike->zscore = sl_stats_round(z, 4);
		find_markers(marks, preset->marker_window_ns, spike);
	}
	sl_arena_free(&arena);
}

static int by_time(const void *a, const void *b)
{
	const struct spike *x = *(const struct spike *const *)a, *y = *(const struct spike *const *)b;

	return SL_RISING(x->event->timestamp_ns, y->event->timestamp_ns);
}

/* For each spike, how many ranks spike within the window: one walk with a window over all of them. */
static void count_synchronous(struct spikes *spikes, size_t ranks, int64_t window_ns)
{
	struct sl_arena arena = {0};
	struct spike **sorted = sl_arena_alloc(&arena, (spikes->list.count + 1) * sizeof(*sorted));
	size_t *inside = sl_arena_alloc(&arena, (ranks + 1) * sizeof(*inside)), begin = 0, end = 0;
	int64_t distinct = 0;

	for (size_t i = 0; i < spikes->list.count; i++)
		sorted[i] = &spikes->list.item[i];
	if (spikes->list.count)
		qsort(sorted, spikes->list.count, sizeof(*sorted), by_time);
	for (size_t i = 0; i < spikes->list.count; i++) {
		int64_t at_ns = sorted[i]->event->timestamp_ns;

		for (; end < spikes->list.count && sorted[end]->event->timestamp_ns - at_ns <= window_ns; end++)
			distinct += inside[sorted[end]->rank]++ == 0;
		for (; at_ns - sorted[begin]->event->timestamp_ns > window_ns; begin++)
			distinct -= --inside[sorted[begin]->rank] == 0;
		sorted[i]->synchronized_ranks = distinct;
	}
	sl_arena_free(&arena);
}

/* --- attribution -------------------------------------------------------------------------------------------- */

static double at_most_one(double x)
{
	return x < 1 ? x : 1;
}

static double confidence_of(const struct spike *spike, const struct sl_collective_preset *preset, int64_t world, double sync_ratio,
			    unsigned *reasons)
{
	double by_bytes = at_most_one(spike->gap_bytes / preset->min_gap_bytes);
	double by_ratio = at_most_one((spike->ratio > 0 ? spike->ratio : 0) / preset->min_ratio);
	double divergence = by_bytes > by_ratio ? by_bytes : by_ratio, confidence = 0;

	/* The additions are in upstream's order, down to the last digit. */
	confidence += spike->marker_hits ? 0.34 : 0;
	confidence += 0.34 * sync_ratio;
	confidence += 0.16 * at_most_one(spike->zscore / preset->zscore);
	confidence += 0.16 * divergence;
	*reasons = OUTLIER;
	if (spike->marker_hits) {
		*reasons |= TOKEN | OVERLAP;
	} else {
		*reasons |= WEAK_MARKER;
		confidence -= 0.15;
	}
	if (sync_ratio >= preset->min_sync_ratio)
		*reasons |= SYNCHRONY;
	if (divergence >= 0.5)
		*reasons |= DIVERGENCE;
	if (world <= 1 || spike->synchronized_ranks <= 1) {
		*reasons |= SINGLE_RANK;
		confidence -= 0.15;
	}
	if (spike->ratio < 0)
		confidence -= 0.05;
	return confidence < 0 ? 0 : at_most_one(confidence);
}

static bool attribute(const struct spike *spike, const struct sl_collective_preset *preset, int64_t world, int64_t trace_start_ns,
		      struct sl_collective_interval *interval)
{
	int64_t at_ns = spike->event->timestamp_ns;
	int64_t from_ns = spike->first_marker_ns < at_ns ? spike->first_marker_ns : at_ns;
	int64_t to_ns = spike->last_marker_ns > at_ns ? spike->last_marker_ns : at_ns;
	double sync_ratio = world <= 1 ? 0 : at_most_one((double)(spike->synchronized_ranks - 1) / (double)(world - 1));

	memset(interval, 0, sizeof(*interval));
	double confidence = confidence_of(spike, preset, world, sync_ratio, &interval->reasons);

	interval->confidence = sl_stats_round(confidence, 3);
	if (confidence <= 0 || interval->confidence < preset->min_confidence)
		return false;
	interval->rank = spike->event->rank;
	interval->start_ns = from_ns - preset->padding_ns > trace_start_ns ? from_ns - preset->padding_ns : trace_start_ns;
	interval->end_ns = to_ns > INT64_MAX - preset->padding_ns ? INT64_MAX : to_ns + preset->padding_ns;
	interval->class = confidence >= 0.8 ? 2 : confidence >= 0.6 ? 1 : 0;
	interval->marker_hits = spike->marker_hits;
	interval->synchronized_ranks = spike->synchronized_ranks;
	interval->world_size = world;
	interval->peak_gap_bytes = sl_stats_whole(spike->gap_bytes);
	interval->synchrony_ratio = sl_stats_round(sync_ratio, 4);
	interval->peak_gap_ratio = spike->ratio < 0 ? -1 : sl_stats_round(spike->ratio, 6);
	interval->zscore = spike->zscore;
	return true;
}

#define KEEP_LARGER(field) (into->field = from->field > into->field ? from->field : into->field)
static void merge(struct sl_phases *phases, struct sl_collective_interval *into, const struct sl_collective_interval *from)
{
	KEEP_LARGER(end_ns);
	KEEP_LARGER(class);
	KEEP_LARGER(confidence);
	KEEP_LARGER(marker_hits);
	KEEP_LARGER(synchronized_ranks);
	KEEP_LARGER(world_size);
	KEEP_LARGER(peak_gap_bytes);
	KEEP_LARGER(synchrony_ratio);
	KEEP_LARGER(peak_gap_ratio);
	KEEP_LARGER(zscore);
	into->reasons |= from->reasons;
	into->phase = sl_phases_merge(phases, &into->phase, &from->phase);
}

static int by_rank_and_start(const void *a, const void *b)
{
	const struct sl_collective_interval *x = a, *y = b;

	return SL_RISING(x->rank, y->rank) ?: SL_RISING(x->start_ns, y->start_ns) ?: SL_RISING(x->end_ns, y->end_ns);
}

static void merge_overlapping(struct sl_phases *phases, struct sl_collective_result *result)
{
	struct sl_collective_interval *list = result->intervals;
	size_t merged_count = 0;

	if (result->count)
		qsort(list, result->count, sizeof(*list), by_rank_and_start);
	for (size_t i = 0; i < result->count; i++) {
		if (merged_count && list[merged_count - 1].rank == list[i].rank &&
		    list[i].start_ns <= list[merged_count - 1].end_ns)
			merge(phases, &list[merged_count - 1], &list[i]);
		else
			list[merged_count++] = list[i];
	}
	result->count = merged_count;
}

void sl_collective_analyze(const struct sl_session_series *series, struct sl_phases *phases,
			   const struct sl_collective_preset *preset, struct sl_collective_result *result)
{
	struct sl_arena scratch = {0};
	struct spikes spikes = {0};
	int64_t world = 1, trace_start_ns = series->all.count ? series->all.events[0]->timestamp_ns : 0;

	memset(result, 0, sizeof(*result));
	for (size_t i = 0; i < series->all.count; i++)
		world = series->all.events[i]->world_size > world ? series->all.events[i]->world_size : world;
	for (size_t r = 0; r < series->rank_count; r++) {
		struct marks marks = {0};

		if (series->ranks[r].samples.count < preset->min_samples)
			continue;
		collect_marks(&series->ranks[r].all, &scratch, &marks);
		find_spikes(&series->ranks[r], r, preset, &marks, &spikes);
		sl_arena_reset(&scratch);
	}
	count_synchronous(&spikes, series->rank_count, preset->sync_window_ns);
	result->intervals = sl_arena_alloc(phases->arena, (spikes.list.count + 1) * sizeof(*result->intervals));
	for (size_t i = 0; i < spikes.list.count; i++) {
		struct sl_collective_interval *interval = &result->intervals[result->count];
		const struct sl_v3_event *event = spikes.list.item[i].event;

		if (!attribute(&spikes.list.item[i], preset, world, trace_start_ns, interval))
			continue;
		interval->phase = sl_phases_at(phases, event->rank, event->timestamp_ns, NULL);
		result->count++;
	}
	merge_overlapping(phases, result);
	free(spikes.list.item);
	sl_arena_free(&scratch);
}

static void write_interval(struct sl_json *j, const struct sl_collective_interval *interval)
{
	sl_json_object(j, NULL);
	sl_json_int(j, "rank", interval->rank);
	sl_json_int(j, "interval_start_ns", interval->start_ns);
	sl_json_int(j, "interval_end_ns", interval->end_ns);
	sl_json_string(j, "classification", class_names[interval->class]);
	sl_json_double(j, "confidence", interval->confidence);
	sl_json_array(j, "reason_codes");
	for (size_t i = 0; i < sizeof(reason_names) / sizeof(*reason_names); i++)
		if (interval->reasons & 1u << i)
			sl_json_string(j, NULL, reason_names[i]);
	sl_json_end(j);
	sl_json_object(j, "evidence");
	sl_json_int(j, "marker_hits", interval->marker_hits);
	sl_json_int(j, "synchronized_ranks", interval->synchronized_ranks);
	sl_json_int(j, "expected_world_size", interval->world_size);
	sl_json_double(j, "synchrony_ratio", interval->synchrony_ratio);
	sl_json_int(j, "peak_gap_bytes", interval->peak_gap_bytes);
	if (interval->peak_gap_ratio < 0)
		sl_json_null(j, "peak_gap_ratio");
	else
		sl_json_double(j, "peak_gap_ratio", interval->peak_gap_ratio);
	sl_json_double(j, "robust_zscore", interval->zscore);
	sl_json_end(j);
	sl_phases_write_attribution(j, "phase_attribution", &interval->phase);
	sl_json_end(j);
}

void sl_collective_write(struct sl_json *j, const char *key, const struct sl_collective_result *result)
{
	sl_json_array(j, key);
	for (size_t i = 0; i < result->count; i++)
		write_interval(j, &result->intervals[i]);
	sl_json_end(j);
}
