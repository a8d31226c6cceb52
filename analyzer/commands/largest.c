/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --largest: the largest value of an option of the program that fits each card.  A card's search begins where the one
 * before it ended.  It aims at the card's size by two runs of any card, and where that does not help it doubles the value and then
 * halves.  Each value in the answer ran on its card, and so did the next one, which failed.
 */
#include <limits.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trial.h"
#include "analyzer/faces/faces.h"

#define FAILED	   125 /* the launcher's own failure */
#define NEIGHBOURS 4   /* values beyond the first that fails, tried where memory does not rise */
#define AIMS	   6

struct search {
	struct sl_trials *all;
	long start, other; /* the first value of the next card; the second name's value */
	SL_VECTOR(struct sl_trial *) trial;
	size_t begin; /* of the trials of this row */
	bool falls;   /* memory, over two runs on one card */
	struct sl_largest found;
};

/* ---- the runs so far */

/* The run of a value on the card; NULL: none. */
static const struct sl_trial *trial_on(const struct search *s, unsigned card, long value)
{
	for (size_t i = s->begin; i < s->trial.count; i++)
		if (s->trial.item[i]->value[0] == value && s->trial.item[i]->card == card)
			return s->trial.item[i];
	return NULL;
}

static bool is_other(const struct search *s, unsigned card, long value)
{
	const struct sl_trial *t = trial_on(s, card, value);

	return t && t->fit == SL_TRIAL_OTHER;
}

/* ---- a run */

/* "batch-48-seq-512-4090" */
static char *name_trial(const struct sl_trials *all, const struct sl_trial *t)
{
	const char *card = sl_paths_name(all->card[t->card]);
	char second[80] = "";

	if (all->ranges > 1)
		snprintf(second, sizeof(second), "-%s-%ld", all->range[1].name, t->value[1]);
	return sl_memory_print("%s-%ld%s-%s", all->range[0].name, t->value[0], second, card);
}

/* The program's words with values in place of {NAME}, and each value as metadata. */
static void fill_in(const struct sl_trials *all, const struct sl_trial *t, struct sl_words *words)
{
	char **first, *wanted, *at;

	for (unsigned i = 0; i < all->ranges; i++)
		*SL_PUSH(&words->list) = sl_memory_print("--meta=%s=%ld", all->range[i].name, t->value[i]);
	*SL_PUSH(&words->list) = "--";
	for (char **word = all->command; *word; word++) {
		*SL_PUSH(&words->list) = *word;
		first = &words->list.item[words->list.count - 1];
		for (unsigned i = 0; i < all->ranges; i++) {
			wanted = sl_memory_print("{%s}", all->range[i].name);
			while ((at = strstr(*first, wanted)))
				*first = sl_memory_print("%.*s%ld%s", (int)(at - *first), *first, t->value[i], at + strlen(wanted));
		}
	}
}

/* Runs a value on a card, once. */
static void try(struct search *s, unsigned card, long value)
{
	struct sl_trial *t;

	if (trial_on(s, card, value))
		return;
	t = sl_trial_run(s->all, card, (long[]){value, s->other});
	if (!s->trial.count && t->fit < SL_TRIAL_FAILS)
		exit(sl_trial_fail(t, sl_memory_print("the first run, %s=%ld,", s->found.name, value)));
	for (size_t i = s->begin; i < s->trial.count; i++) {
		const struct sl_trial *before = s->trial.item[i];

		s->falls |= before->card == card && before->fit >= SL_TRIAL_MAY && t->fit >= SL_TRIAL_MAY &&
			    ((double)t->peak - (double)before->peak) * (double)(value - before->value[0]) < 0;
	}
	*SL_PUSH(&s->trial) = t;
	if (t->card_name)
		s->found.card_name[card] = t->card_name;
}

/* ---- the search */

/*
 * The value above low at which the card is full, by a line through the two runs nearest to high.  Most programs need more by the
 * same step.  0: two such runs are missing, or the line meets the card's size at a value that fails.
 */
static long aim(const struct search *s, unsigned card, enum sl_trial_fit level, long low, long high)
{
	const struct sl_trial *own = NULL, *a = NULL, *b = NULL;
	double at, rise;

	for (size_t i = s->begin; i < s->trial.count; i++) {
		const struct sl_trial *t = s->trial.item[i];

		own = t->card == card && t->need.capacity ? t : own;
		if (t->fit < SL_TRIAL_MAY || (a && t->value[0] == a->value[0]))
			continue;
		if (!a || labs(t->value[0] - high) < labs(a->value[0] - high))
			b = a, a = t;
		else if (!b || labs(t->value[0] - high) < labs(b->value[0] - high))
			b = t;
	}
	rise = own && b ? ((double)b->peak - (double)a->peak) / (double)(b->value[0] - a->value[0]) : 0;
	if (rise <= 0)
		return 0;
	at = (double)own->need.capacity - (double)(level == SL_TRIAL_FITS ? own->need.high : own->need.low) - (double)a->peak;
	at = (double)a->value[0] + at / rise;
	if (at >= (double)high)
		return high > s->all->range[0].high ? s->all->range[0].high : 0;
	return at < (double)low + 1 ? low + 1 : (long)at;
}

/* The value to try where no line aims: the double one up to the first that fails, and then the middle. */
static long step(const struct sl_trial_range *range, long low, long high)
{
	return high <= range->high ? low + (high - low) / 2 : low > range->high / 2 ? range->high : low ? 2 * low : 1;
}

/* A value that the program refuses, as an odd batch, tells nothing of those beside it, unless its neighbour is refused too. */
static bool is_refused(const struct search *s, unsigned card, long value)
{
	return is_other(s, card, value) && !is_other(s, card, value - 1) && !is_other(s, card, value + 1);
}

/* The bounds by runs on the card: `low` fits, and `high` does not.  A bound outside of the range is none. */
static void bound(const struct search *s, unsigned card, enum sl_trial_fit level, long *low, long *high)
{
	*low = s->all->range[0].low - 1;
	*high = s->all->range[0].high + 1;
	for (size_t i = s->begin; i < s->trial.count; i++)
		if (s->trial.item[i]->card == card && s->trial.item[i]->fit >= level && s->trial.item[i]->value[0] > *low)
			*low = s->trial.item[i]->value[0];
	for (size_t i = s->begin; i < s->trial.count; i++) {
		long value = s->trial.item[i]->value[0];

		if (s->trial.item[i]->card == card && value > *low && value < *high && !is_refused(s, card, value))
			*high = value;
	}
}

/* The value between the bounds to try next; 0: none is left. */
static long pick(const struct search *s, unsigned card, enum sl_trial_fit level, long low, long high, unsigned *aims)
{
	long at = 0;

	if (high - low <= 1)
		return 0;
	if (!is_other(s, card, high) && ++*aims <= AIMS) /* a bound that the program refuses tells nothing of memory */
		at = aim(s, card, level, low, high);
	at = at ?: step(&s->all->range[0], low, high);
	if (!trial_on(s, card, at))
		return at;
	return at - 1 > low && !trial_on(s, card, at - 1) ? at - 1 : at + 1 < high && !trial_on(s, card, at + 1) ? at + 1 : 0;
}

/* Searches until the largest value of that level and the one above it ran on the card.  Returns it; below the range: none. */
static long settle(struct search *s, unsigned card, enum sl_trial_fit level, long *high)
{
	const struct sl_trial_range *range = &s->all->range[0];
	unsigned aims = 0, neighbours = 0;

	for (long low, at;; try(s, card, at)) {
		bound(s, card, level, &low, high);
		at = pick(s, card, level, low, *high, &aims);
		if (!at && low < range->low && !trial_on(s, card, range->high))
			at = range->high;
		else if (!at && low >= range->low && s->falls && neighbours < NEIGHBOURS && *high + ++neighbours <= range->high)
			at = *high + neighbours;
		if (!at)
			return low;
	}
}

/* One card at one value of the other name. */
static void search_card(struct search *s, unsigned card, struct sl_largest_card *out)
{
	long high;

	try(s, card, s->start);
	out->fits = trial_on(s, card, settle(s, card, SL_TRIAL_FITS, &high));
	out->next = trial_on(s, card, high);
	if (out->next && out->next->fit == SL_TRIAL_MAY) {
		out->may = trial_on(s, card, settle(s, card, SL_TRIAL_MAY, &high));
		out->next = trial_on(s, card, high);
	}
	s->start = out->fits ? out->fits->value[0] : s->start;
	s->found.any |= out->fits != NULL;
}

static void search(struct search *s)
{
	const struct sl_trial_range *other = &s->all->range[1];

	s->start = s->all->range[0].low;
	for (s->other = other->low; s->found.rows < SL_LARGEST_ROWS; s->other = step(other, s->other, other->high + 1)) {
		s->begin = s->trial.count;
		s->found.at[s->found.rows] = s->other;
		for (unsigned card = 0; card < s->all->cards; card++)
			search_card(s, card, &s->found.row[s->found.rows][card]);
		s->found.rows++;
		if (s->other == other->high)
			break;
	}
}

static int tell(struct search *s)
{
	s->found.program = s->trial.item[0]->program;
	s->found.runs = (unsigned)s->trial.count;
	s->found.falls = s->falls;
	sl_terminal_show(sl_answer_largest(&s->found));
	return fflush(stdout) ? SL_EXIT_UNSAVED : s->found.any ? SL_EXIT_FINE : SL_EXIT_LIMIT;
}

/* ---- the command line */

/* NULL: it is fine, and some word of the command has the name in it; else what is wrong, malloc'ed. */
static char *read_range(const struct sl_trials *all, struct sl_trial_range *range)
{
	char wanted[sizeof(range->name) + 2];
	int end = 0;

	if (sscanf(range->text, "%39[A-Za-z0-9_]=%ld..%ld%n", range->name, &range->low, &range->high, &end) != 3 ||
	    range->text[end] || range->low < 0 || range->low > range->high || range->high > INT_MAX)
		return sl_memory_print(" %s: wants NAME=LOW..HIGH, as batch=1..512", range->text);
	snprintf(wanted, sizeof(wanted), "{%s}", range->name);
	for (char **word = all->command; *word; word++)
		if (strstr(*word, wanted))
			return NULL;
	return sl_memory_print(": no word of the command has %s in it", wanted);
}

int sl_trials_largest(struct sl_trials *all)
{
	struct search s = {.all = all, .found = {.name = all->range[0].name, .cards = all->cards}};
	char *why = NULL;

	all->name = name_trial;
	all->rest = fill_in;
	for (unsigned i = 0; i < all->ranges && !why; i++)
		why = read_range(all, &all->range[i]);
	if (why || !sl_trials_begin(all))
		return sl_escape_fail("stormlog-run", FAILED, "--largest%s", why ?: ": no process can be started");
	memcpy(s.found.card_name, all->card, sizeof(all->card));
	s.found.other = all->ranges > 1 ? all->range[1].name : NULL;
	search(&s);
	return tell(&s);
}
