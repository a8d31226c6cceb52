/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <math.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/stats.h"

static int by_size(const void *a, const void *b, void *terms)
{
	const double *all = terms;
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return SL_FALLING(fabs(all[x]), fabs(all[y])) ?: SL_RISING(x, y);
}

/* Their numbers, largest change first. */
static void sort(unsigned order[SL_BECAUSE_TERMS], const struct sl_because *because)
{
	for (unsigned t = 0; t < SL_BECAUSE_TERMS; t++)
		order[t] = t;
	qsort_r(order, SL_BECAUSE_TERMS, sizeof(*order), by_size, (void *)because->terms);
}

static void put_row(struct sl_cells *table, unsigned level, double change, const char *what, double before, double after)
{
	sl_cells_put(table, SL_COLOUR_NONE, "%*s%c%s", (int)level * 2, "", change < 0 ? '-' : '+',
		     SL_SIZE(sl_stats_bytes(fabs(change))));
	sl_cells_put(table, SL_COLOUR_NONE, "%s", what);
	if (before < 0)
		sl_cells_put(table, SL_COLOUR_NONE, "%s", "");
	else
		sl_cells_put(table, SL_COLOUR_NONE, "%s -> %s", SL_SIZE(sl_stats_bytes(before)), SL_SIZE(sl_stats_bytes(after)));
}

static void put_lines(struct sl_cells *table, const struct sl_because *because, unsigned rows)
{
	unsigned shown = 0, more = 0;

	for (size_t i = 0; i < because->lines.list.count; i++) {
		const struct sl_difference *d = &because->lines.list.item[i];

		if (d->bytes != 0 && shown++ < rows)
			put_row(table, 2, d->bytes, d->what, d->before.mean, d->after.mean);
		else
			more += d->bytes != 0;
	}
	if (more)
		sl_cells_under(table, "and %u more lines: --all or --json", more);
}

void sl_because_print(const struct sl_because *because, unsigned rows, bool windows, const struct sl_terminal *to)
{
	const struct sl_because_parts *is = because->replayed ? &because->after->own : because->is;
	double change = (double)is->bytes - (double)because->was->bytes;
	struct sl_cells table = {.columns = "lwl"};
	unsigned order[SL_BECAUSE_TERMS];
	char text[600];

	if (change == 0)
		return;
	sort(order, because);
	sl_escape_print(stdout, "\nBECAUSE, at the peak of %s\n",
			windows ? "what was reserved" : "the process and device that held most");
	put_row(&table, 0, change, "in all", (double)because->was->bytes, (double)is->bytes);
	for (unsigned i = 0; i < SL_BECAUSE_TERMS && because->terms[order[i]] != 0; i++) {
		unsigned t = order[i];

		put_row(&table, 1, because->terms[t], sl_because_text(text, sizeof(text), because, t),
			t == SL_BECAUSE_SETTINGS ? -1 : (double)because->was->terms[t], (double)because->is->terms[t]);
		if (t == SL_BECAUSE_REQUESTS)
			put_lines(&table, because, rows);
	}
	if (!because->replayed && (because->before->settings || because->after->settings))
		sl_cells_under(&table, "no replay tells cache from fragments: %s",
			       because->before->replays ? because->after->why : because->before->why);
	sl_cells_print(&table, to, 2);
}

static void put_term(struct sl_json *j, const struct sl_because *because, unsigned t)
{
	sl_json_object(j, NULL);
	sl_json_string(j, "term", sl_because_names[t]);
	sl_json_double(j, "change_bytes", because->terms[t]);
	sl_json_known_uint(j, "before_bytes", t == SL_BECAUSE_SETTINGS ? SL_UNKNOWN : because->was->terms[t]);
	sl_json_known_uint(j, "after_bytes", t == SL_BECAUSE_SETTINGS ? SL_UNKNOWN : because->is->terms[t]);
	sl_json_array(j, "lines");
	for (size_t i = 0; t == SL_BECAUSE_REQUESTS && i < because->lines.list.count; i++) {
		const struct sl_difference *d = &because->lines.list.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "what", d->what);
		sl_json_double(j, "change_bytes", d->bytes);
		sl_json_uint(j, "before_bytes", sl_stats_bytes(d->before.mean));
		sl_json_uint(j, "after_bytes", sl_stats_bytes(d->after.mean));
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

static void put_run(struct sl_json *j, const char *key, const struct sl_because_run *run, uint64_t bytes)
{
	char release[24];

	snprintf(release, sizeof(release), "%u.%u", run->release / 100, run->release % 100);
	sl_json_object(j, key);
	sl_json_string(j, "process", run->who);
	sl_json_uint(j, "peak_bytes", bytes);
	sl_json_string(j, "torch", run->release ? release : NULL);
	sl_json_string(j, "settings", run->settings);
	sl_json_string(j, "no_replay", run->replays ? NULL : run->why);
	sl_json_end(j);
}

void sl_because_json(struct sl_json *j, const struct sl_because *because)
{
	unsigned order[SL_BECAUSE_TERMS];

	if (!because) {
		sl_json_null(j, "because");
		return;
	}
	sort(order, because);
	sl_json_object(j, "because");
	sl_json_bool(j, "replayed", because->replayed);
	put_run(j, "before", because->before, because->was->bytes);
	put_run(j, "after", because->after, because->replayed ? because->after->own.bytes : because->is->bytes);
	sl_json_array(j, "terms");
	for (unsigned i = 0; i < SL_BECAUSE_TERMS; i++)
		put_term(j, because, order[i]);
	sl_json_end(j);
	sl_json_end(j);
}
