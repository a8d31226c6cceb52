/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --largest: the largest value of an option of the program that fits each card.  The search doubles the value, then
 * aims at the card's size, then halves.  The replay of a run on the largest card answers for the others.  But each value in the
 * answer ran on its card, and so did the next one, which failed.
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
#define AIMS	   4

struct range {
	char name[40];
	long low, high;
};

struct search {
	struct range range[2];
	unsigned ranges, cards, recorder, runs;
	struct sl_largest_device card[SL_TRIAL_CARDS];
	const char *output, *wrong;
	bool quiet;
	char **words, **command; /* of the launcher, up to its "--"; of the program */
	long other;		 /* the second name's value */
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

	return !t ? SL_TRIAL_UNKNOWN : t->card == card ? t->fit : t->on[card];
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
 * A value between the bounds at which the card is full, by a line through two runs.  They are those beside the bounds, or the
 * largest two that fit.  Most programs need more by the same step.  0: two such runs are not there.
 */
static long aim(const struct search *s, unsigned card, bool asks, long low, long high)
{
	const struct sl_trial *a = NULL, *b = NULL, *before = NULL;
	unsigned from = asks ? card : s->recorder;
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
	if (!a || !b || a->held >= b->held || !s->card[card].memory)
		return 0;
	at = (double)(s->card[card].memory - s->card[card].high) - (double)a->held;
	at = (double)a->value + at * (double)(b->value - a->value) / (double)(b->held - a->held);
	return at <= (double)low ? low + 1 : at >= (double)high ? high - 1 : (long)at > low ? (long)at : low + 1;
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
	const char *slash = strrchr(s->card[card].id, '/');
	char *second = s->ranges > 1 ? sl_memory_print("-%s-%ld", s->range[1].name, s->other) : sl_memory_copy("");
	char *name = sl_memory_print("%s-%ld%s-%s", s->range[0].name, value, second, slash ? slash + 1 : s->card[card].id);

	free(second);
	for (char *at = name; *at; at++)
		*at = *at == '%' ? '_' : *at;
	return name;
}

static char **make_argv(const struct search *s, unsigned card, long value, const char *folder)
{
	SL_VECTOR(char *) argv = {0};

	for (char **word = s->words; word < s->command - 1; word++)
		*SL_PUSH(&argv) = sl_memory_copy(*word);
	*SL_PUSH(&argv) = sl_memory_print("--dry=%s", s->card[card].id);
	for (unsigned i = 0; i < s->ranges; i++) {
		*SL_PUSH(&argv) = sl_memory_copy("--meta");
		*SL_PUSH(&argv) = sl_memory_print("%s=%ld", s->range[i].name, i ? s->other : value);
	}
	*SL_PUSH(&argv) = sl_memory_copy("--output");
	*SL_PUSH(&argv) = sl_memory_copy(folder);
	*SL_PUSH(&argv) = sl_memory_copy("--");
	for (char **word = s->command; *word; word++)
		*SL_PUSH(&argv) = fill_in(s, *word, value);
	*SL_PUSH(&argv) = NULL;
	return argv.item;
}

static void say_trial(const struct search *s, const struct sl_trial *t)
{
	static const char *const words[] = {[SL_TRIAL_UNKNOWN] = "no answer",
					    [SL_TRIAL_OTHER] = "failed",
					    [SL_TRIAL_FAILS] = "does not fit",
					    [SL_TRIAL_MAY] = "may fit",
					    [SL_TRIAL_FITS] = "fits"};
	char other[80] = "";

	if (s->quiet)
		return;
	if (s->ranges > 1)
		snprintf(other, sizeof(other), ", %s %ld", s->range[1].name, s->other);
	sl_escape_print(stderr, "stormlog: %s %ld%s on %s: %s%s%s\n", s->range[0].name, t->value, other, s->card[t->card].id,
			words[t->fit], t->fit >= SL_TRIAL_MAY ? ", held " : "",
			t->fit >= SL_TRIAL_MAY ? SL_ANSWER_SIZE(t->held) : "");
}

/* Runs a value on a card, and keeps what it showed. */
static void try(struct search *s, unsigned card, long value)
{
	struct sl_trial *t = sl_memory_must(calloc(1, sizeof(*t)));
	char *name = name_trial(s, card, value), *log = sl_memory_print("%s/%s.txt", s->output, name), **argv;
	int status;

	t->value = value;
	t->card = card;
	snprintf(t->traces, sizeof(t->traces), "%s/%s", s->output, name);
	argv = make_argv(s, card, value, t->traces);
	status = sl_trial_start(argv, log);
	sl_trial_look(t, s->card, s->cards, log, status);
	*SL_PUSH(&s->trial) = t;
	s->runs++;
	say_trial(s, t);
	if (s->runs == 1 && t->fit < SL_TRIAL_FAILS)
		s->broken = t;
	for (char **word = argv; *word; word++)
		free(*word);
	free(argv);
	free(log);
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

/* The bounds that are known: `low` fits, and nothing between it and `high` is known; below, above the range: none. */
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

/* Searches until the largest value of that level and the one above it ran on the card.  Returns it; below the range: none. */
static long settle(struct search *s, unsigned card, enum sl_trial_fit level, long *above)
{
	const struct range *range = &s->range[0];

	for (long neighbours = 0, aims = 0; !s->broken;) {
		long low, *high = above;

		bound(s, card, level, &low, high);
		if (low < range->low && !ran_on(s, card, range->low))
			probe(s, card, range->low, fit_of(s, card, range->low));
		else if (low < range->low && !fit_of(s, card, range->high))
			probe(s, card, range->high, false);
		else if (low < range->low)
			return low;
		else if (*high > range->high && low < range->high)
			probe(s, card, low > range->high / 2 ? range->high : low ? 2 * low : 1, false);
		else if (*high - low > 1)
			probe(s, card, (aims++ < AIMS ? aim(s, card, asks_free(s), low, *high) : 0) ?: low + (*high - low) / 2,
			      false);
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

	out->name = s->card[card].id;
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
	for (unsigned card = 0; card < s->cards && !s->broken; card++)
		search_card(s, card, &row->card[card]);
}

/* ---- the command line */

static bool read_range(struct range *range, const char *text)
{
	size_t size = strcspn(text, "=");
	char *end = NULL;

	if (!size || size >= sizeof(range->name) || text[size] != '=' ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789_") < size)
		return false;
	snprintf(range->name, size + 1, "%s", text);
	text += size + 1;
	range->low = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || strncmp(end, "..", 2) || end[2] < '0' || end[2] > '9')
		return false;
	range->high = strtol(end + 2, &end, 10);
	return !*end && range->low <= range->high && range->high <= INT_MAX;
}

enum { CARDS, OUTPUT, RANGE, QUIET };

static bool take(void *context, int option, const char *value)
{
	struct search *s = context;
	char *cards = (char *)value; /* a word of the command line, which is cut into its cards */

	if (option == RANGE) {
		if (s->ranges == 2 || !read_range(&s->range[s->ranges++], value))
			s->wrong = value;
		return true;
	}
	for (char *card; (card = strsep(&cards, ",")) && s->cards < SL_TRIAL_CARDS;) {
		s->card[s->cards] = sl_largest_device(card);
		if (s->card[s->cards].memory > s->card[s->recorder].memory)
			s->recorder = s->cards;
		s->cards++;
	}
	return true;
}

#define INTO struct search
static const struct sl_option table[] = {{"--cards", 0, "CARD,...", "those of stormlog-run --dry"},
					 {"--output", 0, "DIR", "where each run has a folder", SL_TO_TEXT(output)},
					 {"--range", 0, "NAME=LOW..HIGH", "values to try for {NAME}"},
					 {"--quiet", 'q', NULL, "no line for each run", SL_TO_FLAG(quiet)},
					 {0}};

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
	for (char **word = s->command; *word; word++)
		used |= strstr(*word, wanted) != NULL;
	return used;
}

static int search(struct search *s)
{
	static const char *const courses[] = {
		"memory also falls with larger values: values beside the first that fails were tried too",
		"memory does not change with it"};
	struct sl_largest found = {.name = s->range[0].name, .other = s->ranges > 1 ? s->range[1].name : NULL, .cards = s->cards};
	struct sl_answers *answers;
	bool any = false;
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
		for (unsigned c = 0; c < s->cards; c++)
			any |= found.row.item[r].card[c].most != NULL;
	found.runs = s->runs;
	found.steady = course > 0 ? NULL : courses[course + 1];
	answers = sl_answer_largest(&found);
	sl_terminal_show(answers);
	sl_answers_free(answers);
	SL_DROP(&found.row);
	SL_DROP_EACH(&s->trial);
	return fflush(stdout) ? SL_EXIT_UNSAVED : any ? SL_EXIT_FINE : SL_EXIT_LIMIT;
}

static int run(struct sl_arguments *parsed)
{
	struct search s = {0};
	int status = sl_arguments_parse(parsed, take, &s);

	if (status >= 0)
		return status;
	s.words = parsed->paths;
	s.command = sl_trial_command(parsed->paths);
	if (s.wrong || !s.ranges || !s.cards || !s.output || !s.command)
		return fail("--largest ", s.wrong ?: "", ": wants NAME=LOW..HIGH with --dry=CARD, as batch=1..512, and a command");
	for (unsigned i = 0; i < s.ranges; i++)
		if (!is_used(&s, &s.range[i]))
			return fail("--largest: no word of the command has {", s.range[i].name, "} in it");
	return search(&s);
}

const struct sl_command sl_command_largest = {
	"largest",
	"what stormlog-run --largest starts",
	"largest --cards CARD,... --output DIR --range NAME=LOW..HIGH -- LAUNCHER [options] -- COMMAND",
	NULL,
	table,
	run};
