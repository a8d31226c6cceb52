/* SPDX-License-Identifier: MIT */
/*
 * stormlog-run --largest and --against: dry runs of a command, each with other values or in another environment, and what they show
 * together.  The process that reads traces starts no program: it asks another one, which reads nothing, and names the run by
 * numbers.  One thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/answer/trial.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/commands/commands.h"
#include "analyzer/faces/faces.h"
#include "analyzer/fit/recording.h"
#include "analyzer/report/devices.h"
#include "analyzer/source/source.h"
#include "common/now.h"

#define FAILED	   125 /* the launcher's own failure */
#define ROOMY	   1   /* --against: another card with the traits of the one that was asked for (agent/launcher/dry.c) */
#define NEIGHBOURS 4   /* values beyond the first that fails, tried where memory does not rise */
#define AIMS	   6

/* What stormlog-run asks for. */
struct trials {
	const char *output;
	const char *other; /* --against: another environment's Python; NULL: --largest */
	struct range {
		const char *text;	/* --largest: NAME=LOW..HIGH */
		char name[40], *wanted; /* wanted: {NAME} */
		long low, high;
	} range[SL_TRIAL_NAMES];
	unsigned ranges, cards, words_count;
	bool quiet;
	char **words, **command;	  /* of the launcher, up to its "--"; of the program */
	const char *card[SL_TRIAL_CARDS]; /* an id, or a file of a card */
	int door;			  /* to the process that starts runs */
};

/* ---- the process that starts runs */

/* "traces/batch-48-seq-512-4090", "traces/there-roomy" */
static char *name_traces(const struct trials *all, const struct sl_trial *t)
{
	char second[80] = "";

	if (all->other)
		return sl_memory_print("%s/%s%s", all->output, t->value[0] ? "here" : "there", t->card == ROOMY ? "-roomy" : "");
	if (all->ranges > 1)
		snprintf(second, sizeof(second), "-%s-%ld", all->range[1].name, t->value[1]);
	return sl_memory_print("%s/%s-%ld%s-%s", all->output, all->range[0].name, t->value[0], second,
			       sl_paths_name(all->card[t->card]));
}

/* The program's words with values in place of {NAME}, and each value as metadata. */
static void put_values(const struct trials *all, const struct sl_trial *t, char **to)
{
	for (unsigned i = 0; i < all->ranges; i++)
		*to++ = sl_memory_print("--meta=%s=%ld", all->range[i].name, t->value[i]);
	*to++ = "--";
	for (char **word = all->command, *at; *word; word++, to++) {
		*to = *word;
		for (const struct range *range = all->range; range < all->range + all->ranges; range++)
			while ((at = strstr(*to, range->wanted)))
				*to = sl_memory_print("%.*s%ld%s", (int)(at - *to), *to, t->value[range - all->range],
						      at + strlen(range->wanted));
	}
}

/* There, programs by name and the first word are those of the other environment, as far as it has them. */
static void put_side(const struct trials *all, bool there, char **to)
{
	char **word = all->command;

	*to++ = "--";
	if (there) {
		const char *name = sl_paths_name(*word), *path = getenv("PATH") ?: "/usr/local/bin:/usr/bin:/bin";
		int folder = (int)(sl_paths_name(all->other) - all->other);
		char *same = sl_memory_print("%.*s%s", folder, all->other, name);
		bool python = !strncmp(name, "python", strlen("python"));

		*to++ = python ? (char *)all->other : access(same, X_OK) ? *word : same;
		word++;
		setenv("PATH", sl_memory_print("%.*s:%s", folder, all->other, path), 1);
	}
	while (*word)
		*to++ = *word++;
}

/* Becomes the launcher, with its output in the file beside the folder. */
static _Noreturn void become(const struct trials *all, const struct sl_trial *t)
{
	char *traces = name_traces(all, t), *log = sl_memory_print("%s.txt", traces);
	char **words = sl_memory_must(calloc(all->words_count + 8, sizeof(*words))), **to = words;
	int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);

	if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(SL_EXIT_UNSAVED);
	for (char **word = all->words; word < all->command - 1; word++)
		*to++ = *word;
	*to++ = sl_memory_print("--dry=%s", all->card[t->card]);
	*to++ = "--output";
	*to++ = traces;
	if (all->other)
		put_side(all, !t->value[0], to);
	else
		put_values(all, t, to);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execv(*words, words);
	_exit(SL_EXIT_USAGE);
}

/* Starts a run for each trial that comes, of which only the numbers are read, and answers with its wait status. */
static _Noreturn void serve(const struct trials *all, int door)
{
	struct sl_trial t;

	while (read(door, &t, sizeof(t)) == sizeof(t) && t.card < SL_TRIAL_CARDS) {
		int status = SL_EXIT_USAGE << 8;
		pid_t child = fork();

		if (!child)
			become(all, &t);
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (write(door, &status, sizeof(status)) != sizeof(status))
			break;
	}
	_exit(SL_EXIT_FINE);
}

/* Before the first run: from here on this process starts no program, and writes no file. */
static bool begin(struct trials *all)
{
	int ends[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || (child = fork()) < 0)
		return false;
	all->door = ends[child > 0];
	close(ends[!child]);
	if (!child)
		serve(all, all->door);
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = (char *[]){(char *)all->output, NULL}});
	return true;
}

/* ---- a run */

/* The verdict, and its own line. */
static void take_failure(struct sl_trial *t, const struct sl_answer *answer)
{
	t->fit = SL_TRIAL_FAILS;
	t->why = answer->headline;
	for (unsigned i = 0; i < answer->frames; i++)
		if (!t->line || (answer->stack[i].mark && !strncmp(answer->stack[i].mark, "asks", 4)))
			t->line = &answer->stack[i];
}

/* A server refuses a start in words of its own, before it asks for the memory. */
static void read_log(struct sl_trial *t)
{
	char *path = sl_memory_print("%s.txt", t->traces), line[300], last[300] = "";
	struct sl_log *log = sl_log_of((char *const[]){path, NULL}, true);
	struct sl_answers *answers = log ? sl_answer_log(log, path) : sl_answers_new();
	const struct sl_answer *answer = answers->item.count ? answers->item.item[0] : NULL;
	FILE *file;

	if (answer && answer->word <= SL_WORD_DOES_NOT_START) {
		take_failure(t, answer);
		return;
	}
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (line[strspn(line, " \n")] && !strchr(line, '\r'))
			snprintf(last, sizeof(last), "%.*s", (int)strcspn(line, "\n"), line);
	if (file)
		fclose(file);
	t->why = sl_answers_text(answers, "%s", last);
}

/* A verdict of a dry run that ended, and what its bounds rest on. */
static void take_fit(struct sl_trial *t, const struct sl_answer *answer, const char *until)
{
	t->fit = sl_dry_depends(&t->need) ? SL_TRIAL_MAY : SL_TRIAL_FITS;
	if (t->fit == SL_TRIAL_FITS && (until || answer->word != SL_WORD_FITS))
		t->why = until				     ? "it started, and served no request"
			 : answer->label[SL_LABEL_WHY].count ? answer->label[SL_LABEL_WHY].item[0]
			 : answer->label[SL_LABEL_RAN].count ? answer->label[SL_LABEL_RAN].item[0]
							     : NULL;
}

static void take_report(struct sl_trial *t, struct sl_report *report)
{
	const struct sl_process *process = sl_devices_fullest_process(report);
	const struct sl_device_state *device = process ? sl_devices_fullest(process) : NULL;
	struct sl_answers *answers = (struct sl_answers *)sl_answer_report(report);

	report->answers = NULL; /* the trial's texts are there */
	t->program = sl_answers_text(answers, "%s", sl_stacks_program(&report->processes[0].trace->header));
	t->card_name = sl_answers_text(answers, "%s", sl_dry_report(report) ?: "");
	sl_dry_need(report, &t->need);
	t->peak = !device ? 0 : device->torch.peak_allocated_bytes ?: device->known_peak;
	t->fullest_unix_ns = process ? sl_process_unix(process, sl_devices_tensors_peak(process)) : 0;
	for (unsigned i = 0; i < report->process_count; i++)
		t->asks_free |= sl_fit_asks_free(report->processes[i].model);
	for (size_t i = answers->item.count; i--;)
		if (!strcmp(answers->item.item[i]->id, "dry.fits") || !strcmp(answers->item.item[i]->id, "server.start"))
			take_fit(t, answers->item.item[i], sl_dry_until(report));
	if (sl_dry_ran_out(report) && answers->item.count)
		take_failure(t, answers->item.item[0]);
}

/* A folder may have an earlier run's recording, which began before `begun_unix_ns`. */
static void look(struct sl_trial *t, int status, uint64_t begun_unix_ns)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1};
	struct sl_report report = {0};

	if (!access(t->traces, F_OK) && sl_pipeline_run(&report, &t->traces, 1, &options) == SL_PIPELINE_FINE &&
	    report.process_count && report.processes[0].trace->header.started_ns >= begun_unix_ns) {
		report.source = sl_source_new();
		take_report(t, &report);
	}
	if (status && t->fit != SL_TRIAL_FAILS) {
		t->fit = SL_TRIAL_OTHER;
		read_log(t);
	} else if (!t->fit) {
		t->why = "this job used no GPU";
	}
	sl_report_free(&report);
}

static void say_trial(const struct sl_trial *t)
{
	sl_escape_print(stderr, "stormlog: %s: %s%s%s\n", t->traces, sl_trial_words[t->fit], t->fit < SL_TRIAL_MAY ? "" : ", held ",
			t->fit < SL_TRIAL_MAY ? "" : SL_ANSWER_SIZE(t->peak));
}

/*
 * Runs the launcher for the card and values, and tells what it showed.  A file beside its folder has its output.
 * what: ends this program where the run, which is called that, has no answer; NULL: does not.
 */
static struct sl_trial *run_trial(const struct trials *all, unsigned card, const long value[SL_TRIAL_NAMES], const char *what)
{
	struct sl_trial *t = sl_memory_must(calloc(1, sizeof(*t)));
	uint64_t begun_unix_ns;
	int status;

	*t = (struct sl_trial){.card = card, .value = {value[0], value[1]}};
	t->traces = name_traces(all, t);
	begun_unix_ns = sl_now_ns(CLOCK_REALTIME);
	if (write(all->door, t, sizeof(*t)) != sizeof(*t) || read(all->door, &status, sizeof(status)) != sizeof(status))
		exit(SL_EXIT_UNREADABLE);
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM))
		exit(128 + WTERMSIG(status));
	look(t, status, begun_unix_ns);
	if (!all->quiet)
		say_trial(t);
	if (what && t->fit < SL_TRIAL_FAILS) {
		sl_escape_print(stderr, "stormlog-run: %s has no answer: %s\nstormlog-run: its output is in %s.txt\n", what,
				t->why ?: "", t->traces);
		exit(SL_EXIT_UNREADABLE);
	}
	return t;
}

/* ---- --against: the command with another environment's Python and with its own, and which line asks for more */

static int tell_against(struct sl_trial *trial[2][2], bool roomy)
{
	struct sl_trial **ran = trial[roomy];
	struct sl_report report[2] = {{0}};
	struct sl_answers *answers;

	for (unsigned side = 0; side < 2; side++) {
		struct sl_pipeline_options options = {.quiet = true, .threads = 1, .until_unix_ns = ran[side]->fullest_unix_ns};

		sl_pipeline_run(&report[side], &ran[side]->traces, 1, &options);
		report[side].source = sl_source_new();
	}
	answers = sl_answer_against(trial[0], ran, report);
	sl_answer_next(answers->item.item[0], "every line that changed", "stormlog-analyze diff %s %s", ran[0]->traces,
		       ran[1]->traces);
	sl_terminal_show(answers);
	return fflush(stdout) ? SL_EXIT_UNSAVED : SL_EXIT_FINE;
}

/* If one of them does not fit the card, it compares two further runs on a card with room for both. */
static int run_against(struct trials *all)
{
	struct sl_trial *trial[2][2]; /* on each card, of each side */
	bool roomy = false;

	all->card[ROOMY] = sl_memory_print("roomy:%s", all->card[0]);
	if (!begin(all))
		return sl_command_fail(SL_EXIT_UNSAVED, "%s: no run can be started", all->output);
	for (unsigned card = 0; card <= roomy; card++) {
		for (long side = 0; side < 2; side++) {
			trial[card][side] =
				run_trial(all, card, (long[]){side, 0},
					  side ? "the run with this environment" : "the run with the other environment");
			roomy |= trial[card][side]->fit == SL_TRIAL_FAILS;
		}
		roomy &= !trial[0][0]->asks_free && !trial[0][1]->asks_free;
	}
	return tell_against(trial, roomy);
}

/* ---- --largest: the largest value of an option of the program that fits each card */

/*
 * A card's search begins where the one before it ended.  It aims at the card's size by two runs of any card, and where that does
 * not help it doubles the value and then halves.  Each value in the answer ran on its card, and so did the next one, which failed.
 */
struct search {
	struct trials *all;
	long start, other;    /* the first value of the next card; the second name's value */
	struct sl_trial *row; /* the last run for that value */
	struct sl_largest found;
};

/* The run of a value on the card; NULL: none. */
static const struct sl_trial *trial_on(const struct search *s, unsigned card, long value)
{
	const struct sl_trial *t = s->row;

	while (t && (t->value[0] != value || t->card != card))
		t = t->before;
	return t;
}

static bool is_other(const struct search *s, unsigned card, long value)
{
	const struct sl_trial *t = trial_on(s, card, value);

	return t && t->fit == SL_TRIAL_OTHER;
}

/* Runs a value on a card, once. */
static void try(struct search *s, unsigned card, long value)
{
	const char *what = s->found.runs ? NULL : sl_memory_print("the first run, %s=%ld,", s->found.name, value);
	struct sl_trial *t;

	if (trial_on(s, card, value))
		return;
	t = run_trial(s->all, card, (long[]){value, s->other}, what);
	s->found.runs++;
	for (const struct sl_trial *before = s->row; before; before = before->before) {
		double rise = ((double)t->peak - (double)before->peak) * (double)(value - before->value[0]);
		bool fit = before->card == card && before->fit >= SL_TRIAL_MAY && t->fit >= SL_TRIAL_MAY;

		s->found.falls |= fit && rise < 0;
		s->found.rises |= fit && rise > 0;
		s->found.stays |= fit && rise == 0;
	}
	t->before = s->row;
	s->row = t;
	s->found.card_name[card] = t->card_name ?: s->found.card_name[card];
	s->found.program = t->program ?: s->found.program;
}

/*
 * The value above low at which the card is full, by a line through the two runs nearest to high.  Most programs need more by the
 * same step.  0: two such runs are missing, or the line meets the card's size at a value that fails.
 */
static long aim(const struct search *s, unsigned card, enum sl_trial_fit level, long low, long high)
{
	const struct sl_trial *own = NULL, *a = NULL, *b = NULL;
	double at, rise;

	for (const struct sl_trial *t = s->row; t; t = t->before) {
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
static long step(const struct range *range, long low, long high)
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
	for (const struct sl_trial *t = s->row; t; t = t->before)
		if (t->card == card && t->fit >= level && t->value[0] > *low)
			*low = t->value[0];
	for (const struct sl_trial *t = s->row; t; t = t->before)
		if (t->card == card && t->value[0] > *low && t->value[0] < *high && !is_refused(s, card, t->value[0]))
			*high = t->value[0];
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
	const struct range *range = &s->all->range[0];
	unsigned aims = 0, neighbours = 0;

	for (long low, at;; try(s, card, at)) {
		bound(s, card, level, &low, high);
		at = pick(s, card, level, low, *high, &aims);
		if (!at && low < range->low && !trial_on(s, card, range->high))
			at = range->high;
		else if (!at && low >= range->low && s->found.falls && neighbours < NEIGHBOURS &&
			 *high + ++neighbours <= range->high)
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
	const struct range *other = &s->all->range[1];

	s->start = s->all->range[0].low;
	for (s->other = other->low; s->found.rows < SL_LARGEST_ROWS; s->other = step(other, s->other, other->high + 1)) {
		s->row = NULL;
		s->found.at[s->found.rows] = s->other;
		for (unsigned card = 0; card < s->all->cards; card++)
			search_card(s, card, &s->found.row[s->found.rows][card]);
		s->found.rows++;
		if (s->other == other->high)
			break;
	}
}

/* NULL: it is fine, and some word of the command has the name in it; else what is wrong, malloc'ed. */
static char *read_range(const struct trials *all, struct range *range)
{
	int end = 0;

	if (sscanf(range->text, "%39[A-Za-z0-9_]=%ld..%ld%n", range->name, &range->low, &range->high, &end) != 3 ||
	    range->text[end] || range->low < 0 || range->low > range->high || range->high > INT_MAX)
		return sl_memory_print(" %s: wants NAME=LOW..HIGH, as batch=1..512", range->text);
	range->wanted = sl_memory_print("{%s}", range->name);
	for (char **word = all->command; *word; word++)
		if (strstr(*word, range->wanted))
			return NULL;
	return sl_memory_print(": no word of the command has %s in it", range->wanted);
}

static int run_largest(struct trials *all)
{
	struct search s = {.all = all, .found = {.name = all->range[0].name, .cards = all->cards}};
	char *why = NULL;

	for (unsigned i = 0; i < all->ranges && !why; i++)
		why = read_range(all, &all->range[i]);
	if (why || !begin(all))
		return sl_escape_fail("stormlog-run", FAILED, "--largest%s", why ?: ": no process can be started");
	memcpy(s.found.card_name, all->card, sizeof(all->card));
	s.found.other = all->ranges > 1 ? all->range[1].name : NULL;
	search(&s);
	sl_terminal_show(sl_answer_largest(&s.found));
	return fflush(stdout) ? SL_EXIT_UNSAVED : s.found.any ? SL_EXIT_FINE : SL_EXIT_LIMIT;
}

/* ---- the command line */

/* CARD,... OUTPUT QUIET OTHER [NAME=LOW..HIGH]... -- LAUNCHER [options] -- COMMAND; "" for what was not asked for */
enum { CARDS, OUTPUT, QUIET, OTHER, RANGES };

static int run(struct sl_arguments *parsed)
{
	struct trials trials = {.words_count = (unsigned)parsed->argc};
	int status = sl_arguments_parse(parsed, NULL, NULL);
	char **word = parsed->paths;

	if (status >= 0)
		return status;
	if (parsed->path_count > RANGES) {
		trials.output = word[OUTPUT];
		trials.quiet = *word[QUIET];
		trials.other = *word[OTHER] ? word[OTHER] : NULL;
		for (char *card; (card = strsep(&word[CARDS], ",")) && trials.cards < SL_TRIAL_CARDS;)
			trials.card[trials.cards++] = card;
		for (word += RANGES; *word && strcmp(*word, "--") != 0 && trials.ranges < SL_TRIAL_NAMES; word++)
			trials.range[trials.ranges++].text = *word;
		trials.words = word = *word ? word + 1 : word;
		while (*word && strcmp(*word, "--") != 0)
			word++;
		trials.command = word + 1;
	}
	if (!trials.words || !*word || !*trials.command || (!trials.other && !trials.ranges))
		return sl_command_fail(SL_EXIT_USAGE, "try is what stormlog-run --largest and --against start");
	return trials.other ? run_against(&trials) : run_largest(&trials);
}

const struct sl_command sl_command_try = {"try",
					  "what stormlog-run --largest and --against start",
					  "try -- CARD,... OUTPUT QUIET OTHER [NAME=LOW..HIGH]... -- LAUNCHER [options] -- COMMAND",
					  NULL,
					  (const struct sl_option[]){{0}},
					  run};
