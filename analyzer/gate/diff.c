/* SPDX-License-Identifier: MIT */
#include "analyzer/gate/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/map.h"

const char *const sl_change_names[] = {"same", "noise", "unknown", "less", "more", "gone", "new"};

static void add_run(struct sl_spread *spread, uint64_t bytes)
{
	if (!spread->count || bytes < spread->min)
		spread->min = bytes;
	if (bytes > spread->max)
		spread->max = bytes;
	spread->mean += ((double)bytes - spread->mean) / ++spread->count;
}

/* A place that a run does not list held nothing; but growth and totals that are missing are unknown. */
static void add_absent(struct sl_spread *spread, unsigned runs, enum sl_measure_of of)
{
	while (of != SL_MEASURE_TOTAL && of != SL_MEASURE_GROWTH && spread->count < runs)
		add_run(spread, 0);
}

static void take(struct sl_differences *differences, struct sl_map *index, const struct sl_side *side, bool after)
{
	char name[600];

	for (size_t r = 0; r < side->runs.count; r++)
		for (size_t i = 0; i < side->runs.item[r].list.count; i++) {
			const struct sl_measure *m = &side->runs.item[r].list.item[i];
			struct sl_difference *d;
			uintptr_t *at;

			snprintf(name, sizeof(name), "%d %s", (int)m->of, m->key);
			at = sl_map_at(index, name);
			if (!*at) {
				*SL_PUSH(&differences->list) = (struct sl_difference){.of = m->of, .key = m->key, .what = m->what};
				*at = differences->list.count;
			}
			d = &differences->list.item[*at - 1];
			if (after)
				d->what = m->what;
			if (m->bytes != SL_UNKNOWN)
				add_run(after ? &d->after : &d->before, m->bytes);
		}
}

static enum sl_change judge(const struct sl_difference *d, bool spread)
{
	if (!d->before.count || !d->after.count)
		return SL_CHANGE_UNKNOWN;
	if (d->before.min == d->after.min && d->before.max == d->after.max)
		return SL_CHANGE_SAME;
	if (spread && d->before.min <= d->after.max && d->after.min <= d->before.max)
		return SL_CHANGE_NOISE;
	if (!d->before.max)
		return SL_CHANGE_NEW;
	if (!d->after.max)
		return SL_CHANGE_GONE;
	return d->bytes > 0 ? SL_CHANGE_MORE : SL_CHANGE_LESS;
}

static int by_change(const void *a, const void *b)
{
	const struct sl_difference *x = a, *y = b;
	bool x_real = x->change > SL_CHANGE_UNKNOWN, y_real = y->change > SL_CHANGE_UNKNOWN;

	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	if (x_real != y_real)
		return x_real ? -1 : 1;
	if (fabs(x->bytes) != fabs(y->bytes))
		return fabs(x->bytes) > fabs(y->bytes) ? -1 : 1;
	return strcmp(x->key, y->key);
}

void sl_diff(struct sl_differences *differences, const struct sl_side *before, const struct sl_side *after)
{
	bool spread = before->runs.count > 1 || after->runs.count > 1;
	struct sl_map index = {0};

	*differences = (struct sl_differences){0};
	take(differences, &index, before, false);
	take(differences, &index, after, true);
	sl_map_free(&index);
	for (size_t i = 0; i < differences->list.count; i++) {
		struct sl_difference *d = &differences->list.item[i];

		add_absent(&d->before, (unsigned)before->runs.count, d->of);
		add_absent(&d->after, (unsigned)after->runs.count, d->of);
		d->bytes = d->before.count && d->after.count ? d->after.mean - d->before.mean : 0;
		d->change = judge(d, spread);
	}
	if (differences->list.count)
		qsort(differences->list.item, differences->list.count, sizeof(*differences->list.item), by_change);
}
