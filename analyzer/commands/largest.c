/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --largest: the largest value of an option of the program that fits each card.  The search aims at the card's size by
 * two runs, and where that does not help it doubles the value and then halves.  The replay of a run on the largest card answers for
 * the others.  But each value in the answer ran on its card, and so did the next one, which failed.
 */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/answer/largest.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/commands/commands.h"
#include "analyzer/commands/trial.h"
#include "analyzer/faces/faces.h"

#define FAILED	   125 /* the launcher's own failure */
#define NEIGHBOURS 4   /* values beyond the first that fails, tried where memory does not rise */
#define ROWS	   8
#define AIMS	   6

struct range {
	char name[40]; /* 39 in read_range */
	long low, high;
};

struct search {
	struct range range[SL_TRIAL_RANGES];
	unsigned ranges, recorder;
	struct sl_trials *all;
	long other; /* the second name's value */
	SL_VECTOR(struct sl_trial *) trial;
	size_t begin;		       /* of the trials of this row */
	const struct sl_trial *broken; /* the first run failed, and not for memory */
};

/* ---- the runs so far */

/* The run of a value that tells of the card; one on the card itself, if there is one. */
static const struct sl_trial *trial_of(const struct search *s, unsigned card, long value)
{
	const struct sl_trial *found = NULL;

	for (size_t i = s->begin; i < s->trial.count; i++) {
		const struct sl_trial *t = s->trial.item[i];

		if (t->value == value && t->card == card)
			return t;
		if (t->value == value && t->on[card])
			found = t;
	}
	return found;
}

static enum sl_trial_fit fit_of(const struct search *s, unsigned card, long value)
{
	const struct sl_trial *t = trial_of(s, card, value);

	return t ? t->on[card] : SL_TRIAL_UNKNOWN;
}

static bool ran_on(const struct search *s, unsigned card, long value)
{
	const struct sl_trial *t = trial_of(s, card, value);

	return t && t->card == card;
}

/* True: the job asks the card how much memory is free, as its first run showed. */
static bool asks_free(const struct search *s)
{
	return s->trial.count > s->begin && s->trial.item[s->begin]->asks;
}

/* How memory goes with the value over the runs on one card: 1 it rises, 0 it stays, -1 it also falls. */
static int course_of(const struct search *s)
{
	bool rises = false, whole = false;

	for (size_t i = s->begin; i < s->trial.count; i++)
		for (size_t k = s->begin; k < s->trial.count; k++) {
			const struct sl_trial *a = s->trial.item[i], *b = s->trial.item[k];

			if (a->card != b->card || a->value >= b->value || a->fit < SL_TRIAL_MAY || b->fit < SL_TRIAL_MAY)
				continue;
			whole = true;
			rises |= a->held < b->held;
			if (a->held > b->held)
				return -1;
		}
	return rises || !whole;
}

/*
 * The value above low at which the card is full, by a line through two runs.  They are those beside the bounds, or the largest two
 * that fit.  Most programs need more by the same step.  high: the line meets the card's size at `high` or above it.  0: two such
 * runs are missing, or the card's size is not known.
 */
static long aim(const struct search *s, unsigned card, enum sl_trial_fit level, long low, long high)
{
	const struct sl_largest_device *is = &s->all->card[card];
	const struct sl_trial *a = NULL, *b = NULL, *before = NULL;
	unsigned from = asks_free(s) ? card : s->recorder;
	double at;

	for (size_t i = s->begin; i < s->trial.count; i++) {
		const struct sl_trial *t = s->trial.item[i];

		if (t->card != from || t->fit < SL_TRIAL_MAY)
			continue;
		if (t->value >= high)
			b = b && b->value < t->value ? b : t;
		else if (!a || t->value > a->value)
			before = a, a = t;
		else if (!before || t->value > before->value)
			before = t;
	}
	if (!b)
		b = a, a = before;
	if (!a || !b || a->held >= b->held || !is->memory)
		return 0;
	at = (double)(is->memory - (level == SL_TRIAL_FITS ? is->high : is->low)) - (double)a->held;
	at = (double)a->value + at * (double)(b->value - a->value) / (double)(b->held - a->held);
	return at >= (double)high ? high : at < (double)low + 1 ? low + 1 : (long)at;
}

/* ---- runs */

/* The word with values in place of {NAME}; malloc'ed. */
static char *fill_in(const struct search *s, const char *word, long value)
{
	char *out = sl_memory_copy(word);

	for (unsigned i = 0; i < s->ranges; i++) {
		char *wanted = sl_memory_print("{%s}", s->range[i].name);

		for (char *at; (at = strstr(out, wanted));) {
			char *next = sl_memory_print("%.*s%ld%s", (int)(at - out), out, i ? s->other : value, at + strlen(wanted));

			free(out);
			out = next;
		}
		free(wanted);
	}
	return out;
}

/* "batch-48-seq-512-4090", for files. */
static char *name_trial(const struct search *s, unsigned card, long value)
{
	const char *slash = strrchr(s->all->card[card].id, '/');
	char *second = s->ranges > 1 ? sl_memory_print("-%s-%ld", s->range[1].name, s->other) : sl_memory_copy("");
	char *name = sl_memory_print("%s-%ld%s-%s", s->range[0].name, value, second, slash ? slash + 1 : s->all->card[card].id);

	free(second);
	for (char *at = name; *at; at++)
		*at = *at == '%' ? '_' : *at;
	return name;
}

static char **make_rest(const struct search *s, long value)
{
	SL_VECTOR(char *) rest = {0};

	for (unsigned i = 0; i < s->ranges; i++) {
		*SL_PUSH(&rest) = sl_memory_copy("--meta");
		*SL_PUSH(&rest) = sl_memory_print("%s=%ld", s->range[i].name, i ? s->other : value);
	}
	*SL_PUSH(&rest) = sl_memory_copy("--");
	for (char **word = s->all->command; *word; word++)
		*SL_PUSH(&rest) = fill_in(s, *word, value);
	*SL_PUSH(&rest) = NULL;
	return rest.item;
}

static void say_trial(const struct search *s, const struct sl_trial *t)
{
	static const char *const words[] = {[SL_TRIAL_UNKNOWN] = "no answer",
					    [SL_TRIAL_OTHER] = "failed",
					    [SL_TRIAL_FAILS] = "does not fit",
					    [SL_TRIAL_MAY] = "may fit",
					    [SL_TRIAL_FITS] = "fits"};
	char other[80] = "";

	if (s->all->quiet)
		return;
	if (s->ranges > 1)
		snprintf(other, sizeof(other), ", %s %ld", s->range[1].name, s->other);
	sl_escape_print(stderr, "stormlog: %s %ld%s on %s: %s%s%s\n", s->range[0].name, t->value, other, s->all->card[t->card].id,
			words[t->fit], t->fit >= SL_TRIAL_MAY ? ", held " : "",
			t->fit >= SL_TRIAL_MAY ? SL_ANSWER_SIZE(t->held) : "");
}

/* --limit holds for all cards. */
static void limit_cards(struct search *s, const struct sl_trial *t)
{
	if (!t->capacity || t->capacity >= s->all->card[t->card].memory)
		return;
	for (unsigned c = 0; c < s->all->cards; c++)
		if (s->all->card[c].memory > t->capacity)
			s->all->card[c].memory = t->capacity;
}

/* Runs a value on a card, and keeps what it showed. */
static void try(struct search *s, unsigned card, long value)
{
	struct sl_trial *t = sl_memory_must(calloc(1, sizeof(*t)));
	char *name = name_trial(s, card, value), **rest = make_rest(s, value);

	t->value = value;
	t->card = card;
	sl_trial_run(t, s->all, name, rest);
	*SL_PUSH(&s->trial) = t;
	limit_cards(s, t);
	say_trial(s, t);
	if (s->trial.count == 1 && t->fit < SL_TRIAL_FAILS)
		s->broken = t;
	for (char **word = rest; *word; word++)
		free(*word);
	free(rest);
	free(name);
}

/* ---- the search */

/* Learns whether the value fits the card: from a run on the largest card, if its replay tells, and else from one on the card. */
static void probe(struct search *s, unsigned card, long value, bool directly)
{
	if (!directly && !asks_free(s) && !ran_on(s, s->recorder, value))
		try(s, s->recorder, value);
	if (directly || !fit_of(s, card, value))
		if (!ran_on(s, card, value))
			try(s, card, value);
}

/* The bounds that are known: `low` fits, and no value between it and `high` was tried.  A bound outside of the range is none. */
static void bound(const struct search *s, unsigned card, enum sl_trial_fit level, long *low, long *high)
{
	*low = s->range[0].low - 1;
	*high = s->range[0].high + 1;
	for (size_t i = s->begin; i < s->trial.count; i++) {
		long value = s->trial.item[i]->value;

		if (fit_of(s, card, value) >= level && value > *low)
			*low = value;
	}
	for (size_t i = s->begin; i < s->trial.count; i++) {
		long value = s->trial.item[i]->value;

		if (fit_of(s, card, value) && value > *low && value < *high)
			*high = value;
	}
}

/* The value to try where no line aims: the double one up to the first that fails, and then the middle. */
static long step(const struct range *range, long low, long high)
{
	return high <= range->high ? low + (high - low) / 2 : low > range->high / 2 ? range->high : low ? 2 * low : 1;
}

/* The line says that a value fits which fails: so much below it, and twice as much the next time. */
static long back_off(long low, long high, long misses)
{
	return high - low > 1L << misses ? high - (1L << misses) : low + 1;
}

/* Searches until the largest value of that level and the one above it ran on the card.  Returns it; below the range: none. */
static long settle(struct search *s, unsigned card, enum sl_trial_fit level, long *above)
{
	const struct range *range = &s->range[0];

	for (long neighbours = 0, aims = 0, misses = 0; !s->broken;) {
		long low, at, *high = above;

		bound(s, card, level, &low, high);
		if (low < range->low && !ran_on(s, card, range->low))
			probe(s, card, range->low, fit_of(s, card, range->low));
		else if (low < range->low && !fit_of(s, card, range->high))
			probe(s, card, range->high, false);
		else if (low < range->low)
			return low;
		else if (*high - low > 1 && aims++ < AIMS && (at = aim(s, card, level, low, *high)))
			probe(s, card, at < *high ? at : back_off(low, *high, misses++), false);
		else if (*high - low > 1)
			probe(s, card, step(range, low, *high), false);
		else if (!ran_on(s, card, low))
			probe(s, card, low, true);
		else if (*high <= range->high && !ran_on(s, card, *high))
			probe(s, card, *high, true);
		else if (neighbours < NEIGHBOURS && *high + ++neighbours <= range->high && course_of(s) < 0)
			probe(s, card, *high + neighbours, false);
		else
			return low;
	}
	return range->low - 1;
}

/* One card at one value of the other name. */
static void search_card(struct search *s, unsigned card, struct sl_largest_card *out)
{
	long above, most = settle(s, card, SL_TRIAL_FITS, &above);

	out->name = s->all->card[card].id;
	if (s->broken)
		return;
	out->most = most < s->range[0].low ? NULL : trial_of(s, card, most);
	if (out->most)
		out->name = out->most->card_name;
	if (fit_of(s, card, out->most ? above : s->range[0].low) == SL_TRIAL_MAY) {
		most = settle(s, card, SL_TRIAL_MAY, &above);
		out->maybe = most < s->range[0].low ? NULL : trial_of(s, card, most);
	}
	out->next = above > s->range[0].high ? NULL : trial_of(s, card, out->most || out->maybe ? above : s->range[0].low);
	if (out->next && *out->next->card_name)
		out->name = out->next->card_name;
}

static void search_row(struct search *s, struct sl_largest *found)
{
	struct sl_largest_row *row;

	s->begin = s->trial.count;
	*SL_PUSH(&found->row) = (struct sl_largest_row){.other = s->other};
	row = &found->row.item[found->row.count - 1];
	for (unsigned card = 0; card < s->all->cards && !s->broken; card++)
		search_card(s, card, &row->card[card]);
}

/* ---- the command line */

static bool read_range(struct range *range, const char *text)
{
	int end = 0;

	return sscanf(text, "%39[A-Za-z0-9_]=%ld..%ld%n", range->name, &range->low, &range->high, &end) == 3 && !text[end] &&
	       range->low >= 0 && range->low <= range->high && range->high <= INT_MAX;
}

static int fail(const char *before, const char *text, const char *behind)
{
	sl_escape_print(stderr, "stormlog-run: %s%s%s\n", before, text, behind);
	return FAILED;
}

/* True: a word of the command has the name in it. */
static bool is_used(const struct search *s, const struct range *range)
{
	char wanted[sizeof(range->name) + 2];
	bool used = false;

	snprintf(wanted, sizeof(wanted), "{%s}", range->name);
	for (char **word = s->all->command; *word; word++)
		used |= strstr(*word, wanted) != NULL;
	return used;
}

static int search(struct search *s)
{
	static const char *const courses[] = {
		"memory also falls with larger values: values beside the first that fails were tried too",
		"memory does not change with it"};
	struct sl_largest found = {
		.name = s->range[0].name, .other = s->ranges > 1 ? s->range[1].name : NULL, .cards = s->all->cards};
	struct sl_answers *answers;
	int course = 1;

	s->other = s->range[1].low;
	for (unsigned rows = 0; rows < ROWS && !s->broken; rows++) {
		search_row(s, &found);
		course = course_of(s) < course ? course_of(s) : course;
		if (s->ranges < 2 || s->other == s->range[1].high)
			break;
		s->other = s->other > s->range[1].high / 2 ? s->range[1].high : s->other ? 2 * s->other : 1;
	}
	if (s->broken) {
		sl_escape_print(stderr,
				"stormlog-run: the first run, %s=%ld, has no answer: %s\nstormlog-run: its output is in %s.txt\n",
				s->range[0].name, s->broken->value, s->broken->why, s->broken->traces);
		return SL_EXIT_UNREADABLE;
	}
	for (size_t r = 0; r < found.row.count; r++)
		for (unsigned c = 0; c < s->all->cards; c++)
			found.any |= found.row.item[r].card[c].most != NULL;
	found.program = s->trial.item[0]->program;
	found.runs = (unsigned)s->trial.count;
	found.steady = course > 0 ? NULL : courses[course + 1];
	answers = sl_answer_largest(&found);
	sl_terminal_show(answers);
	sl_answers_free(answers);
	SL_DROP(&found.row);
	SL_DROP_EACH(&s->trial);
	return fflush(stdout) ? SL_EXIT_UNSAVED : found.any ? SL_EXIT_FINE : SL_EXIT_LIMIT;
}

int sl_trials_largest(struct sl_trials *trials)
{
	struct search s = {.all = trials, .ranges = trials->ranges};

	for (unsigned c = 1; c < trials->cards; c++)
		if (trials->card[c].memory > trials->card[s.recorder].memory)
			s.recorder = c;
	for (unsigned i = 0; i < s.ranges; i++)
		if (!read_range(&s.range[i], trials->range[i]))
			return fail("--largest ", trials->range[i], ": wants NAME=LOW..HIGH, as batch=1..512");
		else if (!is_used(&s, &s.range[i]))
			return fail("--largest: no word of the command has {", s.range[i].name, "} in it");
	return search(&s);
}
