/* SPDX-License-Identifier: MIT */
#include "analyzer/upstream/answers/answers.h"

#include <math.h>
#include <string.h>

#include "analyzer/base/stats.h"

const struct sl_gap_thresholds sl_gap_defaults = {.gap_ratio = 0.05, .spike_zscore = 2.0, .drift_r2 = 0.6, .fragmentation = 0.3};

const char *const sl_gap_kind_names[] = {
	[SL_GAP_SPIKE] = "transient_spike",
	[SL_GAP_DRIFT] = "persistent_drift",
	[SL_GAP_FRAGMENTATION] = "fragmentation_like",
};

const char *const sl_gap_advice[] = {
	[SL_GAP_SPIKE] =
		"look at what is hidden on the time line: something other than the allocator took device memory for a moment",
	[SL_GAP_DRIFT] = "the device fills while the allocator does not: look for contexts, modules and other processes",
	[SL_GAP_FRAGMENTATION] = "much of what the allocator reserved is unused: try expandable segments, or fewer sizes",
};

/* The samples of a known device size. */
struct usable {
	const struct sl_v3_event **events;
	double *gaps, *times_ns;
	size_t count;
	double mean;
};

static bool collect(const struct sl_series *series, double least_ratio, struct sl_arena *arena, struct usable *u)
{
	double largest = 0;

	u->events = sl_arena_alloc(arena, (series->count + 1) * sizeof(*u->events));
	u->gaps = sl_arena_alloc(arena, (series->count + 1) * sizeof(*u->gaps));
	u->times_ns = sl_arena_alloc(arena, (series->count + 1) * sizeof(*u->times_ns));
	u->count = 0;
	for (size_t i = 0; i < series->count; i++) {
		const struct sl_v3_event *event = series->events[i];

		if (event->total_bytes <= 0 || !sl_event_is_any_sample(event))
			continue;
		u->events[u->count] = event;
		u->gaps[u->count] = (double)sl_event_hidden_gap(event);
		u->times_ns[u->count] = (double)event->timestamp_ns - (double)u->events[0]->timestamp_ns;
		double ratio = fabs(sl_stats_ratio(sl_event_hidden_gap(event), event->total_bytes));

		largest = ratio > largest ? ratio : largest;
		u->count++;
	}
	if (u->count < 3 || largest < least_ratio)
		return false;
	u->mean = sl_stats_mean(u->gaps, u->count);
	return true;
}

static struct sl_gap_finding *add(struct sl_gap_result *result, enum sl_gap_kind kind)
{
	struct sl_gap_finding *finding = &result->findings[result->count++];

	memset(finding, 0, sizeof(*finding));
	finding->kind = kind;
	return finding;
}

static void find_spike(const struct usable *u, double threshold, struct sl_gap_result *result)
{
	double deviation = sl_stats_deviation(u->gaps, u->count, u->mean);
	size_t top = 0;
	int64_t count = 0;

	if (deviation == 0)
		return;
	for (size_t i = 0; i < u->count; i++) {
		count += (u->gaps[i] - u->mean) / deviation > threshold;
		top = u->gaps[i] > u->gaps[top] ? i : top;
	}
	if (count == 0)
		return;
	double z = (u->gaps[top] - u->mean) / deviation;
	struct sl_gap_finding *finding = add(result, SL_GAP_SPIKE);

	finding->critical = z > 2 * threshold;
	finding->confidence = sl_stats_round(fmin(1, z / (3 * threshold)), 3);
	finding->event = u->events[top];
	finding->spike.count = count;
	finding->spike.max_gap = u->gaps[top];
	finding->spike.max_zscore = sl_stats_round(z, 3);
	finding->spike.mean_gap = sl_stats_round(u->mean, 1);
	finding->spike.std_gap = sl_stats_round(deviation, 1);
	snprintf(finding->description, sizeof(finding->description),
		 "Detected %lld transient spike(s) in the device-vs-allocator gap (max z-score %.1f).", (long long)count, z);
}

/* numpy's round of a scalar: scaled, to the nearest even, scaled back.  Differs from sl_stats_round on ties. */
static double stats_round_numpy(double x, int digits)
{
	double scale = pow(10, digits);

	return nearbyint(x * scale) / scale;
}

static double away_from_zero(double x)
{
	return fabs(x) > 1e-300 ? x : 1e-300;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m < 20000; m++) {
		double terms[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
				   -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};

		for (int i = 0; i < 2; i++) {
			d = 1 / away_from_zero(1 + terms[i] * d);
			c = away_from_zero(1 + terms[i] / c);
			h *= c * d;
		}
		if (fabs(c * d - 1) < 1e-15)
			break;
	}
	return h;
}

/* Regularised incomplete beta function. */
static double beta(double a, double b, double x)
{
	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

struct stats_line {
	double slope, r, p_value; /* two-sided t test of no slope */
};

/* Least squares through n > 2 points; false when all x are equal. */
static bool stats_regress(const double *x, const double *y, size_t count, struct stats_line *line)
{
	double mean_x = sl_stats_mean(x, count), mean_y = sl_stats_mean(y, count), xx = 0, yy = 0, xy = 0;
	bool equal = true;

	for (size_t i = 0; i < count; i++) {
		equal = equal && x[i] == x[0];
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		yy += (y[i] - mean_y) * (y[i] - mean_y);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	if (equal)
		return false;
	xx /= (double)count;
	yy /= (double)count;
	xy /= (double)count;
	line->r = xx == 0 || yy == 0 ? 0 : xy / sqrt(xx * yy);
	line->r = line->r > 1 ? 1 : line->r < -1 ? -1 : line->r;
	line->slope = xy / xx;

	double freedom = (double)count - 2;
	double t = line->r * sqrt(freedom / ((1 - line->r + 1e-20) * (1 + line->r + 1e-20)));

	line->p_value = beta(freedom / 2, 0.5, freedom / (freedom + t * t));
	return true;
}

static void find_drift(const struct usable *u, double threshold, struct sl_gap_result *result)
{
	struct stats_line line;
	char rate[32];

	if (u->count < 5)
		return;
	if (!stats_regress(u->times_ns, u->gaps, u->count, &line)) {
		result->no_times = true;
		return;
	}
	double r2 = line.r * line.r;

	if (!(line.slope > 0) || r2 < threshold)
		return;
	struct sl_gap_finding *finding = add(result, SL_GAP_DRIFT);

	finding->critical = r2 > 0.85;
	finding->confidence = stats_round_numpy(fmin(1, r2), 3);
	finding->event = u->events[u->count - 1];
	finding->drift.bytes_per_second = stats_round_numpy(line.slope * 1e9, 1);
	finding->drift.r_squared = stats_round_numpy(r2, 4);
	finding->drift.p_value = stats_round_numpy(line.p_value, 6);
	finding->drift.start = sl_stats_round(u->gaps[0], 1);
	finding->drift.end = sl_stats_round(u->gaps[u->count - 1], 1);
	sl_utf8_format_bytes(trunc(line.slope * 1e9), rate);
	snprintf(finding->description, sizeof(finding->description),
		 "Device-vs-allocator gap is drifting upward at %s/s (R\u00b2=%.2f).", rate, r2);
}

static void find_fragmentation(const struct usable *u, double threshold, struct sl_gap_result *result)
{
	const struct sl_v3_event *worst = NULL;
	double sum = 0, max = -1;
	int64_t samples = 0;

	for (size_t i = 0; i < u->count; i++) {
		const struct sl_v3_event *event = u->events[i];
		int64_t unused = event->reserved_bytes - event->allocated_bytes;

		if (event->reserved_bytes == 0)
			continue;
		double ratio = sl_stats_ratio(unused > 0 ? unused : 0, event->reserved_bytes);

		sum += ratio;
		samples++;
		if (ratio > max) {
			max = ratio;
			worst = event;
		}
	}
	double average = samples ? sum / (double)samples : 0;

	if (!samples || average < threshold)
		return;
	struct sl_gap_finding *finding = add(result, SL_GAP_FRAGMENTATION);

	finding->critical = average > 0.5;
	finding->confidence = sl_stats_round(fmin(1, average / 0.6), 3);
	finding->event = worst;
	finding->fragmentation.average = sl_stats_round(average, 4);
	finding->fragmentation.max = sl_stats_round(max, 4);
	finding->fragmentation.average_gap = sl_stats_round(u->mean, 1);
	finding->fragmentation.samples = samples;
	snprintf(finding->description, sizeof(finding->description),
		 "Allocator fragmentation averaging %.0f%% suggests reserved-but-unused memory is inflating the device footprint.",
		 average * 100);
}

/* Insertion sort: three at most, stable. */
static void sort(struct sl_gap_result *result)
{
	for (size_t i = 1; i < result->count; i++) {
		struct sl_gap_finding moving = result->findings[i];
		size_t at = i;

		for (; at > 0; at--) {
			const struct sl_gap_finding *before = &result->findings[at - 1];

			if (before->critical != moving.critical ? before->critical : before->confidence >= moving.confidence)
				break;
			result->findings[at] = *before;
		}
		result->findings[at] = moving;
	}
}

void sl_gap_analyze(const struct sl_series *series, struct sl_phases *phases, const struct sl_gap_thresholds *thresholds,
		    struct sl_gap_result *result)
{
	struct sl_arena arena = {0};
	struct usable u;

	memset(result, 0, sizeof(*result));
	if (collect(series, thresholds->gap_ratio, &arena, &u)) {
		find_spike(&u, thresholds->spike_zscore, result);
		find_drift(&u, thresholds->drift_r2, result);
		find_fragmentation(&u, thresholds->fragmentation, result);
		sort(result);
		for (size_t i = 0; i < result->count; i++) {
			const struct sl_v3_event *event = result->findings[i].event;

			result->findings[i].phase = sl_phases_at(phases, event->rank, event->timestamp_ns, event);
		}
	}
	sl_arena_free(&arena);
}

static struct sl_session_answers *answer(const struct sl_session *session, const struct sl_gap_thresholds *thresholds,
					 struct sl_arena *arena)
{
	struct sl_session_answers *answers = sl_arena_alloc(arena, sizeof(*answers));

	sl_series_init(&answers->series, session, arena);
	sl_phases_init(&answers->phases, &answers->series, arena);
	sl_gap_analyze(&answers->series.all, &answers->phases, thresholds, &answers->gaps);
	for (int i = 0; i < SL_COLLECTIVE_PRESETS; i++)
		sl_collective_analyze(&answers->series, &answers->phases, &sl_collective_presets[i], &answers->collectives[i]);
	sl_cross_rank_analyze(&answers->series, &answers->phases, &answers->cross_rank);
	return answers;
}

void sl_session_answers_all(struct sl_telemetry *t, const struct sl_gap_thresholds *thresholds)
{
	for (size_t i = 0; i < t->sessions.count; i++)
		t->sessions.item[i].answers = answer(&t->sessions.item[i], thresholds, &t->arena);
}

void sl_gap_write_evidence(struct sl_json *j, const char *key, const struct sl_gap_finding *finding)
{
	sl_json_object(j, key);
	switch (finding->kind) {
	case SL_GAP_SPIKE:
		sl_json_int(j, "spike_count", finding->spike.count);
		sl_json_double(j, "max_gap_bytes", finding->spike.max_gap);
		sl_json_double(j, "max_zscore", finding->spike.max_zscore);
		sl_json_double(j, "mean_gap_bytes", finding->spike.mean_gap);
		sl_json_double(j, "std_gap_bytes", finding->spike.std_gap);
		break;
	case SL_GAP_DRIFT:
		sl_json_double(j, "slope_bytes_per_sec", finding->drift.bytes_per_second);
		sl_json_double(j, "r_squared", finding->drift.r_squared);
		sl_json_double(j, "p_value", finding->drift.p_value);
		sl_json_double(j, "gap_start_bytes", finding->drift.start);
		sl_json_double(j, "gap_end_bytes", finding->drift.end);
		break;
	case SL_GAP_FRAGMENTATION:
		sl_json_double(j, "avg_fragmentation_ratio", finding->fragmentation.average);
		sl_json_double(j, "max_fragmentation_ratio", finding->fragmentation.max);
		sl_json_double(j, "avg_gap_bytes", finding->fragmentation.average_gap);
		sl_json_int(j, "sample_count", finding->fragmentation.samples);
		break;
	}
	sl_json_end(j);
}
