/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include "analyzer/base/stats.h"

/* The samples of one rank that count, by time, pid and host. */
struct participant {
	int32_t rank;
	struct sl_series samples;
	int64_t offset_ns;
};

struct candidate {
	int64_t aligned_ns, delta_bytes, window_samples;
	const struct sl_v3_event *event;
};

/* Upstream folds the case here, but does not trim. */
static bool is_sample(const struct sl_v3_event *event)
{
	return strcasecmp(event->event_type, "sample") == 0;
}

static void note(struct sl_cross_rank *result, const char *text)
{
	if (result->note_count < sizeof(result->notes) / sizeof(*result->notes))
		result->notes[result->note_count++] = text;
}

static bool counts_here(const struct sl_v3_event *event, const char *only_job)
{
	return is_sample(event) && (!only_job || (event->job_id && strcmp(event->job_id, only_job) == 0));
}

static const char *job_of(const struct sl_v3_event *event, char text[16])
{
	return event->job_id;
}

static const char *world_of(const struct sl_v3_event *event, char text[16])
{
	snprintf(text, 16, "%d", event->world_size);
	return event->world_size > 1 ? text : NULL;
}

/* The event whose text is the most common of all, of equals the first; NULL: none has one. */
static const struct sl_v3_event *most_common(const struct sl_series *all, const char *only_job,
					     const char *(*text_of)(const struct sl_v3_event *event, char text[16]), size_t *texts)
{
	const struct sl_v3_event *best = NULL;
	struct sl_map counts = {0};
	uintptr_t highest = 0;
	char room[16];
	const char *text;

	for (size_t i = 0; i < all->count; i++)
		if (counts_here(all->events[i], only_job) && (text = text_of(all->events[i], room)))
			++*sl_map_at(&counts, text);
	for (size_t i = 0; i < all->count; i++)
		if (counts_here(all->events[i], only_job) && (text = text_of(all->events[i], room)) &&
		    sl_map_find(&counts, text) > highest) {
			highest = sl_map_find(&counts, text);
			best = all->events[i];
		}
	*texts = counts.count;
	sl_map_free(&counts);
	return best;
}

static int by_time_pid_host(const void *a, const void *b)
{
	const struct sl_v3_event *x = *(const struct sl_v3_event *const *)a, *y = *(const struct sl_v3_event *const *)b;

	return SL_RISING(x->timestamp_ns, y->timestamp_ns) ?: SL_RISING(x->pid, y->pid) ?: strcmp(x->host, y->host)
	       ?: SL_RISING(x, y); /* in file order */
}

static struct participant *collect(const struct sl_session_series *series, const char *only_job, struct sl_arena *arena,
				   size_t *count)
{
	struct participant *list = sl_arena_alloc(arena, (series->rank_count + 1) * sizeof(*list));

	*count = 0;
	for (size_t r = 0; r < series->rank_count; r++) {
		const struct sl_series *samples = &series->ranks[r].samples;
		struct participant *p = &list[*count];

		*p = (struct participant){.rank = series->ranks[r].rank};
		p->samples.events = sl_arena_alloc(arena, (samples->count + 1) * sizeof(*p->samples.events));
		for (size_t i = 0; i < samples->count; i++)
			if (counts_here(samples->events[i], only_job))
				p->samples.events[p->samples.count++] = samples->events[i];
		if (p->samples.count == 0)
			continue;
		qsort(p->samples.events, p->samples.count, sizeof(*p->samples.events), by_time_pid_host);
		++*count;
	}
	return list;
}

/* Median time between samples, or of the intervals they claim; 0 when neither is known. */
static int64_t median_interval(const struct participant *list, size_t count)
{
	struct sl_arena arena = {0};
	size_t all = 0, used = 0;

	for (size_t i = 0; i < count; i++)
		all += list[i].samples.count;
	double *values = sl_arena_alloc(&arena, (all + 1) * sizeof(*values));

	for (size_t i = 0; i < count; i++)
		for (size_t k = 1; k < list[i].samples.count; k++) {
			int64_t delta = list[i].samples.events[k]->timestamp_ns - list[i].samples.events[k - 1]->timestamp_ns;

			if (delta > 0)
				values[used++] = (double)delta;
		}
	for (size_t i = 0; used == 0 && i < count; i++)
		for (size_t k = 0; k < list[i].samples.count; k++)
			if (list[i].samples.events[k]->interval_ms > 0)
				values[used++] = (double)list[i].samples.events[k]->interval_ms * 1e6;
	double median = used ? sl_stats_median(values, used) : 0;

	sl_arena_free(&arena);
	return sl_stats_whole(median);
}

/* The first run of rising samples that gains enough: 64 MiB, or a tenth of the rank's peak. */
static bool find_spike(const struct participant *p, struct candidate *candidate)
{
	int64_t peak = 0, gained = 0, samples = 0, least = INT64_C(64) << 20;

	for (size_t i = 0; i < p->samples.count; i++)
		peak = p->samples.events[i]->used_bytes > peak ? p->samples.events[i]->used_bytes : peak;
	if ((double)peak * 0.10 > (double)least)
		least = (int64_t)((double)peak * 0.10);
	for (size_t i = 1; i < p->samples.count; i++) {
		const struct sl_v3_event *event = p->samples.events[i];
		int64_t delta = event->used_bytes - p->samples.events[i - 1]->used_bytes;

		gained = delta > 0 ? gained + delta : 0;
		samples = delta > 0 ? samples + 1 : 0;
		if (gained > 0 && gained >= least) {
			*candidate = (struct candidate){event->timestamp_ns - p->offset_ns, gained, samples, event};
			return true;
		}
	}
	return false;
}

static int by_aligned_time(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return SL_RISING(x->aligned_ns, y->aligned_ns) ?: SL_FALLING(x->delta_bytes, y->delta_bytes)
	       ?: SL_RISING(x->event->rank, y->event->rank);
}

static void describe_ranks(struct sl_cross_rank *result, struct sl_arena *arena, struct participant *list, size_t count,
			   int64_t interval_ns)
{
	const struct participant *anchor = &list[0]; /* by rank: rank 0 or the lowest */
	int64_t first_ns = anchor->samples.events[0]->timestamp_ns;
	size_t at = 0;

	result->ranks = sl_arena_alloc(arena, (count + 1) * sizeof(*result->ranks));
	result->rank_count = count;
	for (size_t i = 0; i < count; i++) {
		list[i].offset_ns = list[i].samples.events[0]->timestamp_ns - first_ns;
		result->ranks[i] = (struct sl_cross_participant){list[i].rank, list[i].samples.count, list[i].offset_ns};
		if (interval_ns > 0 && llabs(list[i].offset_ns) > 5 * interval_ns)
			note(result,
			     sl_arena_printf(arena,
					     "Rank %d starts %lld ns from the anchor; first-sample alignment may be approximate.",
					     list[i].rank, (long long)list[i].offset_ns));
	}
	size_t absent = (size_t)(result->world_size - (int64_t)count);
	size_t listed = absent < SL_CROSS_RANK_MISSING_MAX ? absent : SL_CROSS_RANK_MISSING_MAX;

	result->missing = sl_arena_alloc(arena, (listed + 1) * sizeof(*result->missing));
	for (int64_t rank = 0; rank < result->world_size && result->missing_count < listed; rank++) {
		if (at < count && list[at].rank == rank)
			at++;
		else
			result->missing[result->missing_count++] = (int32_t)rank;
	}
	if (absent)
		note(result, sl_arena_printf(arena, "%zu of %lld ranks have no samples.", absent, (long long)result->world_size));
}

static void accuse(struct sl_cross_rank *result, struct sl_phases *phases, const struct candidate *list, size_t count, bool sparse,
		   int64_t interval_ns)
{
	int64_t cut_ns = count >= 2 ? list[1].aligned_ns : list[0].aligned_ns;
	bool alone = count < 2 || list[1].aligned_ns != list[0].aligned_ns;

	result->has_onset = count >= 2;
	result->onset_ns = cut_ns;
	result->suspects = sl_arena_alloc(phases->arena, count * sizeof(*result->suspects));
	for (size_t i = 0; i < count && list[i].aligned_ns <= cut_ns; i++) {
		struct sl_cross_suspect *suspect = &result->suspects[result->suspect_count++];
		int64_t lead_ns = result->has_onset ? cut_ns - list[i].aligned_ns : 0;
		bool earliest = count >= 2 && list[i].aligned_ns == list[0].aligned_ns && !sparse;

		*suspect = (struct sl_cross_suspect){
			.rank = list[i].event->rank,
			.spike_ns = list[i].event->timestamp_ns,
			.aligned_ns = list[i].aligned_ns,
			.delta_bytes = list[i].delta_bytes,
			.window_samples = list[i].window_samples,
			.lead_ns = lead_ns,
			.confidence = !earliest						      ? "low"
				      : alone && (interval_ns <= 0 || lead_ns >= interval_ns) ? "high"
											      : "medium",
			.phase = sl_phases_at(phases, list[i].event->rank, list[i].event->timestamp_ns, NULL),
		};
	}
}

void sl_cross_rank_analyze(const struct sl_session_series *series, struct sl_phases *phases, struct sl_cross_rank *result)
{
	struct sl_arena scratch = {0};
	bool sparse, other_events = false;
	size_t count, texts, candidates = 0;

	memset(result, 0, sizeof(*result));
	for (size_t i = 0; i < series->all.count && !other_events; i++)
		other_events = !is_sample(series->all.events[i]);
	if (other_events)
		note(result, "Ignored non-sample events during cross-rank analysis.");
	const struct sl_v3_event *common = most_common(&series->all, NULL, job_of, &texts);
	const char *job = common ? common->job_id : NULL, *only_job = texts > 1 ? job : NULL;
	struct participant *list = collect(series, only_job, &scratch, &count);

	if (only_job)
		note(result, "Multiple job_id values were observed; filtering to the most common value.");
	if (count == 0) {
		note(result, "No sample telemetry events were available for distributed analysis.");
		sl_arena_free(&scratch);
		return;
	}
	int64_t interval_ns = median_interval(list, count), world, last = list[count - 1].rank;

	result->job_id = job;
	common = most_common(&series->all, only_job, world_of, &texts);
	world = common ? common->world_size : 1;
	result->world_size = world > last ? world : last + 1;
	describe_ranks(result, phases->arena, list, count, interval_ns);
	sparse = result->missing_count > 0;

	struct candidate *found = sl_arena_alloc(&scratch, count * sizeof(*found));

	for (size_t i = 0; i < count; i++) {
		sparse = sparse || list[i].samples.count < 2;
		candidates += find_spike(&list[i], &found[candidates]);
	}
	if (count == 1)
		note(result, "At least two ranks are required for cross-rank first-cause analysis.");
	else if (candidates == 0)
		note(result, "No rank's device memory rose enough to be a cause.");
	if (count > 1 && candidates > 0) {
		qsort(found, candidates, sizeof(*found), by_aligned_time);
		accuse(result, phases, found, candidates, sparse, interval_ns);
	}
	sl_arena_free(&scratch);
}
