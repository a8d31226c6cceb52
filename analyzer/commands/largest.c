/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --largest: the largest value of an option of the program that fits each card.  The search aims at the card's size by
 * two runs, and where that does not help it doubles the value and then halves.  The replay of a run on the largest card answers for
 * the others.  But each value in the answer ran on its card, and so did the next one, which failed.
 */
#include <limits.h>

#include "analyzer/base/memory.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trial.h"
#include "analyzer/faces/faces.h"

#define FAILED	   125 /* the launcher's own failure */
#define NEIGHBOURS 4   /* values beyond the first that fails, tried where memory does not rise */
#define AIMS	   6

struct search {
	struct sl_trials *all;
	unsigned recorder; /* the largest card */
	long other;	   /* the second name's value */
	SL_VECTOR(struct sl_trial *) trial;
	size_t begin;		  /* of the trials of this row */
	bool pairs, rises, falls; /* memory, over two runs on one card; pairs: there were two */
	bool broken;		  /* the first run failed, and not for memory */
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

/* From a run on the card, or by replay. */
static enum sl_trial_fit fit_of(const struct search *s, unsigned card, long value)
{
	enum sl_trial_fit fit = SL_TRIAL_UNKNOWN;

	for (size_t i = s->begin; i < s->trial.count; i++)
		fit = s->trial.item[i]->value[0] == value ? s->trial.item[i]->on[card] ?: fit : fit;
	return fit;
}

/* The card whose runs tell of a card: the largest one, but if the job asks how much memory is free, the card itself. */
static unsigned recorder_of(const struct search *s, unsigned card)
{
	return s->trial.count > s->begin && s->trial.item[s->begin]->asks ? card : s->recorder;
}

/* ---- a run */

/* "batch-48-seq-512-4090" */
static char *name_trial(const struct sl_trials *all, const struct sl_trial *t)
{
	const char *slash = strrchr(all->card[t->card].id, '/');
	char second[80] = "", *name;

	if (all->ranges > 1)
		snprintf(second, sizeof(second), "-%s-%ld", all->range[1].name, t->value[1]);
	name = sl_memory_print("%s-%ld%s-%s", all->range[0].name, t->value[0], second, slash ? slash + 1 : all->card[t->card].id);
	for (char *at = name; *at; at++)
		*at = *at == '%' ? '_' : *at;
	return name;
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

/* Keeps a run: its card is known for its value, and two runs on one card tell how memory goes with the value. */
static void keep(struct search *s, struct sl_trial *t)
{
	for (size_t i = s->begin; i < s->trial.count; i++) {
		struct sl_trial *before = s->trial.item[i];

		if (before->value[0] == t->value[0]) {
			before->on[t->card] = t->fit;
			t->on[before->card] = before->fit;
		} else if (before->card == t->card && before->fit >= SL_TRIAL_MAY && t->fit >= SL_TRIAL_MAY) {
			bool rises = (before->held < t->held) == (before->value[0] < t->value[0]);

			s->pairs = true;
			s->rises |= before->held != t->held && rises;
			s->falls |= before->held != t->held && !rises;
		}
	}
	*SL_PUSH(&s->trial) = t;
}

/* Runs a value on a card. */
static void try(struct search *s, unsigned card, long value)
{
	struct sl_trial *t = sl_trial_run(s->all, card, (long[]){value, s->other});

	s->broken |= !s->trial.count && t->fit < SL_TRIAL_FAILS;
	keep(s, t);
	if (t->card_name && *t->card_name)
		s->found.card_name[card] = t->card_name;
	for (unsigned c = 0; c < s->all->cards; c++) /* --limit holds for all cards */
		if (t->need.limited && s->all->card[c].memory > t->need.capacity)
			s->all->card[c].memory = t->need.capacity;
}

/* Learns whether the value fits the card: from a run on the largest card, if its replay tells, and else from one on the card. */
static void probe(struct search *s, unsigned card, long value)
{
	unsigned recorder = recorder_of(s, card);

	if (!trial_on(s, recorder, value))
		try(s, recorder, value);
	if (!s->broken && !fit_of(s, card, value))
		try(s, card, value);
}

/* ---- the search */

/*
 * The value above low at which the card is full, by a line through the two runs nearest to high.  Most programs need more by the
 * same step.  high: the line meets the card's size there or above it.  0: two such runs are missing, or the size is not known.
 */
static long aim(const struct search *s, unsigned card, enum sl_trial_fit level, long low, long high)
{
	const struct sl_largest_device *is = &s->all->card[card];
	const struct sl_trial *a = NULL, *b = NULL;
	double full = (double)(is->memory - (level == SL_TRIAL_FITS ? is->high : is->low)), at;

	for (size_t i = s->begin; i < s->trial.count; i++) {
		const struct sl_trial *t = s->trial.item[i];

		if (t->card != recorder_of(s, card) || t->fit < SL_TRIAL_MAY)
			continue;
		if (!a || labs(t->value[0] - high) < labs(a->value[0] - high))
			b = a, a = t;
		else if (!b || labs(t->value[0] - high) < labs(b->value[0] - high))
			b = t;
	}
	if (!b || !is->memory || a->held == b->held || (a->held < b->held) != (a->value[0] < b->value[0]))
		return 0;
	at = (full - (double)a->held) * (double)(b->value[0] - a->value[0]) / ((double)b->held - (double)a->held);
	at += (double)a->value[0];
	return at >= (double)high ? high : at < (double)low + 1 ? low + 1 : (long)at;
}

/* The value to try where no line aims: the double one up to the first that fails, and then the middle. */
static long step(const struct sl_trial_range *range, long low, long high)
{
	return high <= range->high ? low + (high - low) / 2 : low > range->high / 2 ? range->high : low ? 2 * low : 1;
}

/* A value that the program refuses, as an odd batch, tells nothing of those beside it, unless its neighbour is refused too. */
static bool is_refused(const struct search *s, unsigned card, long value)
{
	return fit_of(s, card, value) == SL_TRIAL_OTHER && fit_of(s, card, value - 1) != SL_TRIAL_OTHER &&
	       fit_of(s, card, value + 1) != SL_TRIAL_OTHER;
}

/* The bounds that are known: `low` fits, and `high` does not.  A bound outside of the range is none. */
static void bound(const struct search *s, unsigned card, enum sl_trial_fit level, long *low, long *high)
{
	*low = s->all->range[0].low - 1;
	*high = s->all->range[0].high + 1;
	for (size_t i = s->begin; i < s->trial.count; i++)
		if (s->trial.item[i]->on[card] >= level && s->trial.item[i]->value[0] > *low)
			*low = s->trial.item[i]->value[0];
	for (size_t i = s->begin; i < s->trial.count; i++) {
		long value = s->trial.item[i]->value[0];

		if (s->trial.item[i]->on[card] && value > *low && value < *high && !is_refused(s, card, value))
			*high = value;
	}
}

struct aims {
	unsigned count;
	long missed; /* how far below a bound the next aim at it goes */
};

/* The value between the bounds to try next; 0: none is left. */
static long pick(const struct search *s, unsigned card, enum sl_trial_fit level, long low, long high, struct aims *aims)
{
	const struct sl_trial_range *range = &s->all->range[0];
	long at;

	if (high - low <= 1)
		return 0;
	if (low < range->low && !fit_of(s, card, range->low))
		return range->low;
	/* a bound that the program refuses tells nothing of memory */
	at = fit_of(s, card, high) != SL_TRIAL_OTHER && aims->count++ < AIMS ? aim(s, card, level, low, high) : 0;
	if (at == high) { /* which fails: so much below it, and twice as much the next time */
		at = high - low > aims->missed ? high - aims->missed : low + 1;
		aims->missed *= 2;
	}
	at = at ?: step(range, low, high);
	if (!fit_of(s, card, at))
		return at;
	return at - 1 > low && !fit_of(s, card, at - 1) ? at - 1 : at + 1 < high && !fit_of(s, card, at + 1) ? at + 1 : 0;
}

/* Searches until the largest value of that level and the one above it ran on the card.  Returns it; below the range: none. */
static long settle(struct search *s, unsigned card, enum sl_trial_fit level, long *high)
{
	const struct sl_trial_range *range = &s->all->range[0];
	struct aims aims = {.missed = 1};
	long low = range->low - 1, at, neighbours = 0;

	for (*high = range->high + 1; !s->broken;) {
		bound(s, card, level, &low, high);
		at = pick(s, card, level, low, *high, &aims);
		if (at)
			probe(s, card, at);
		else if (low >= range->low && !trial_on(s, card, low))
			try(s, card, low);
		else if (*high <= range->high && !trial_on(s, card, *high))
			try(s, card, *high);
		else if (low < range->low && !fit_of(s, card, range->high))
			probe(s, card, range->high);
		else if (low >= range->low && s->falls && neighbours < NEIGHBOURS && *high + ++neighbours <= range->high)
			probe(s, card, *high + neighbours);
		else
			break;
	}
	return low;
}

/* One card at one value of the other name. */
static void search_card(struct search *s, unsigned card, struct sl_largest_card *out)
{
	long high, most = settle(s, card, SL_TRIAL_FITS, &high);

	out->most = trial_on(s, card, most);
	if (fit_of(s, card, high) == SL_TRIAL_MAY)
		out->maybe = trial_on(s, card, settle(s, card, SL_TRIAL_MAY, &high));
	out->next = trial_on(s, card, high);
	s->found.any |= out->most != NULL;
}

static void search(struct search *s)
{
	const struct sl_trial_range *other = &s->all->range[1];

	for (s->other = other->low; s->found.rows < SL_LARGEST_ROWS && !s->broken;) {
		s->begin = s->trial.count;
		s->found.at[s->found.rows] = s->other;
		for (unsigned card = 0; card < s->all->cards; card++)
			search_card(s, card, &s->found.row[s->found.rows][card]);
		s->found.rows++;
		if (s->other == other->high)
			break;
		s->other = step(other, s->other, other->high + 1);
	}
}

static int tell(struct search *s)
{
	struct sl_answers *answers;

	if (s->broken) {
		char *run = sl_memory_print("the first run, %s=%ld,", s->found.name, s->trial.item[0]->value[0]);

		return sl_trial_fail(s->trial.item[0], run);
	}
	s->found.program = s->trial.item[0]->program;
	s->found.runs = (unsigned)s->trial.count;
	s->found.course = s->falls ? "memory also falls with larger values: values beside the first that fails were tried too"
			  : s->pairs && !s->rises ? "memory does not change with it"
						  : NULL;
	answers = sl_answer_largest(&s->found);
	sl_terminal_show(answers);
	sl_answers_free(answers);
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
	int status;

	all->name = name_trial;
	all->rest = fill_in;
	for (unsigned i = 0; i < all->ranges && !why; i++)
		why = read_range(all, &all->range[i]);
	if (why || !sl_trials_begin(all))
		return sl_escape_fail("stormlog-run", FAILED, "--largest%s", why ?: ": no process can be started");
	for (unsigned c = 0; c < all->cards; c++) {
		s.found.card_name[c] = all->card[c].id;
		s.recorder = all->card[c].memory > all->card[s.recorder].memory ? c : s.recorder;
	}
	s.found.other = all->ranges > 1 ? all->range[1].name : NULL;
	search(&s);
	status = tell(&s);
	for (size_t i = 0; i < s.trial.count; i++)
		sl_trial_free(s.trial.item[i]);
	SL_DROP(&s.trial);
	return status;
}
