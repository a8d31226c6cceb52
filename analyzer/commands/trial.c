/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/source/source.h"

static char *name_traces(const struct sl_trials *trials, const struct sl_trial *t)
{
	char *name = trials->name(trials, t), *traces = sl_memory_print("%s/%s", trials->output, name);

	free(name);
	return traces;
}

/* Becomes the launcher, with its output in the file beside the folder. */
static _Noreturn void become(const struct sl_trials *trials, const struct sl_trial *t)
{
	char *traces = name_traces(trials, t), *log = sl_memory_print("%s.txt", traces);
	int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);
	struct sl_words words = {0};

	if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
		_exit(SL_EXIT_UNSAVED);
	for (char **word = trials->words; word < trials->command - 1; word++)
		*SL_PUSH(&words.list) = *word;
	*SL_PUSH(&words.list) = sl_memory_print("--dry=%s", trials->card[t->card].id);
	*SL_PUSH(&words.list) = "--output";
	*SL_PUSH(&words.list) = traces;
	trials->rest(trials, t, &words);
	*SL_PUSH(&words.list) = NULL;
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execv(words.list.item[0], words.list.item);
	_exit(SL_EXIT_USAGE);
}

/* Starts a run for each trial that comes, of which only the numbers are read, and answers with its wait status. */
static _Noreturn void serve(const struct sl_trials *trials, int door)
{
	struct sl_trial t;

	while (read(door, &t, sizeof(t)) == sizeof(t) && t.card < SL_TRIAL_CARDS) {
		int status = SL_EXIT_USAGE << 8;
		pid_t child = fork();

		if (!child)
			become(trials, &t);
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (write(door, &status, sizeof(status)) != sizeof(status))
			break;
	}
	_exit(SL_EXIT_FINE);
}

bool sl_trials_begin(struct sl_trials *trials)
{
	int ends[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) || (child = fork()) < 0)
		return false;
	trials->door = ends[child > 0];
	close(ends[!child]);
	if (!child)
		serve(trials, trials->door);
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = (char *[]){(char *)trials->output, NULL}});
	return true;
}

/* The verdict, and its own line. */
static void take_failure(struct sl_trial *t, const struct sl_answer *answer)
{
	const struct sl_answer_line *line = answer->frames ? &answer->stack[answer->frames - 1] : NULL;

	t->fit = SL_TRIAL_FAILS;
	t->why = answer->headline;
	for (unsigned i = 0; i < answer->frames; i++)
		if (answer->stack[i].mark && !strncmp(answer->stack[i].mark, "asks", 4))
			line = &answer->stack[i];
	if (line && line->file)
		t->line = *line;
}

/* A server refuses a start in words of its own, before it asks for the memory. */
static void read_log(struct sl_trial *t, const char *path)
{
	struct sl_log *log = sl_log_of((char *const[]){(char *)path, NULL}, true);
	struct sl_answers *answers = log ? sl_answer_log(log, path) : sl_answers_new();
	const struct sl_answer *answer = answers->item.count ? answers->item.item[0] : NULL;
	char line[300], last[300] = "";
	FILE *file;

	t->said[1] = answers;
	if (answer && answer->word <= SL_WORD_DOES_NOT_START) {
		take_failure(t, answer);
		return;
	}
	t->fit = SL_TRIAL_OTHER;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (line[strspn(line, " \n")] && !strchr(line, '\r'))
			snprintf(last, sizeof(last), "%.*s", (int)strcspn(line, "\n"), line);
	if (file)
		fclose(file);
	t->why = sl_answers_text(answers, "%s", last);
}

/* The verdict of a replay of PyTorch's requests on a device of that size. */
static enum sl_fits_verdict replay(struct sl_trial *t, struct sl_report *report, uint64_t capacity)
{
	unsigned count;
	struct sl_fits *fits = sl_fits_of(report, capacity, &count);
	enum sl_fits_verdict worst = count ? SL_FITS_YES : SL_FITS_UNKNOWN;

	for (unsigned i = 0; i < count; i++) {
		t->asks |= fits[i].asks_free;
		if (fits[i].verdict == SL_FITS_NO || worst == SL_FITS_YES)
			worst = fits[i].verdict;
	}
	free(fits);
	return worst;
}

/* Whether the same requests fit another card. Without PyTorch's allocator what was held decides. */
static enum sl_trial_fit judge(struct sl_trial *t, struct sl_report *report, const struct sl_largest_device *card, bool torch)
{
	const struct sl_dry_need *need = &t->need;
	uint64_t most = need->job + need->unsure;
	enum sl_fits_verdict verdict;

	if (!card->memory)
		return SL_TRIAL_UNKNOWN;
	if (!torch)
		return t->fit == SL_TRIAL_FAILS		       ? SL_TRIAL_UNKNOWN
		       : most + card->high <= card->memory     ? SL_TRIAL_FITS
		       : need->job + card->low <= card->memory ? SL_TRIAL_MAY
							       : SL_TRIAL_FAILS;
	if (replay(t, report, card->memory + need->low - card->high) == SL_FITS_YES)
		return SL_TRIAL_FITS;
	verdict = replay(t, report, card->memory + need->low - card->low);
	return verdict == SL_FITS_NO ? SL_TRIAL_FAILS : verdict == SL_FITS_YES ? SL_TRIAL_MAY : SL_TRIAL_UNKNOWN;
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

static void take_report(struct sl_trial *t, struct sl_report *report, const struct sl_trials *trials)
{
	const struct sl_process *process = sl_devices_fullest_process(report);
	const struct sl_device_state *device = process ? sl_devices_fullest(process) : NULL;
	const struct sl_answers *answers = sl_answer_report(report);

	t->said[0] = report->answers;
	report->answers = NULL;
	t->program = sl_answers_text(t->said[0], "%s", sl_stacks_program(&report->processes[0].trace->header));
	t->card_name = sl_answers_text(t->said[0], "%s", sl_dry_report(report) ?: "");
	sl_dry_need(report, &t->need);
	t->held = !device ? 0 : device->torch.peak_allocated_bytes ?: device->known_peak;
	for (size_t i = answers->item.count; i--;)
		if (!strcmp(answers->item.item[i]->id, "dry.fits") || !strcmp(answers->item.item[i]->id, "server.start"))
			take_fit(t, answers->item.item[i], sl_dry_until(report));
	if (sl_dry_ran_out(report) && answers->item.count)
		take_failure(t, answers->item.item[0]);
	for (unsigned c = 0; c < trials->cards; c++)
		t->on[c] = judge(t, report, &trials->card[c], device && device->torch.events);
	for (unsigned c = 0; c < trials->cards && t->asks; c++)
		t->on[c] = SL_TRIAL_UNKNOWN;
}

/* A folder may have an earlier run's recording, which began before `begun_unix_ns`. */
static void look(struct sl_trial *t, const struct sl_trials *trials, int status, uint64_t begun_unix_ns)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1};
	struct sl_report report = {0};
	char *log = sl_memory_print("%s.txt", t->traces);

	if (!access(t->traces, F_OK) && sl_pipeline_run(&report, &t->traces, 1, &options) == SL_PIPELINE_FINE &&
	    report.process_count && report.processes[0].trace->header.started_ns >= begun_unix_ns) {
		report.source = sl_source_new();
		take_report(t, &report, trials);
	}
	if (status && t->fit != SL_TRIAL_FAILS) {
		read_log(t, log);
	} else if (!t->fit) {
		t->fit = SL_TRIAL_OTHER;
		t->why = "this job used no GPU";
	}
	t->on[t->card] = t->fit;
	sl_report_free(&report);
	free(log);
}

static void say_trial(const struct sl_trial *t)
{
	static const char *const words[] = {[SL_TRIAL_OTHER] = "no answer",
					    [SL_TRIAL_FAILS] = "does not fit",
					    [SL_TRIAL_MAY] = "may fit",
					    [SL_TRIAL_FITS] = "fits"};

	sl_escape_print(stderr, "stormlog: %s: %s%s%s\n", t->traces, words[t->fit], t->fit < SL_TRIAL_MAY ? "" : ", held ",
			t->fit < SL_TRIAL_MAY ? "" : SL_ANSWER_SIZE(t->held));
}

struct sl_trial *sl_trial_run(const struct sl_trials *trials, unsigned card, const long value[SL_TRIAL_NAMES])
{
	struct sl_trial *t = sl_memory_must(calloc(1, sizeof(*t)));
	struct timespec now;
	int status;

	*t = (struct sl_trial){.card = card, .value = {value[0], value[1]}};
	t->traces = name_traces(trials, t);
	clock_gettime(CLOCK_REALTIME, &now);
	if (write(trials->door, t, sizeof(*t)) != sizeof(*t) || read(trials->door, &status, sizeof(status)) != sizeof(status))
		exit(SL_EXIT_UNREADABLE);
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM))
		exit(128 + WTERMSIG(status));
	look(t, trials, status, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	if (!trials->quiet)
		say_trial(t);
	return t;
}

void sl_trial_free(struct sl_trial *t)
{
	sl_answers_free(t->said[0]);
	sl_answers_free(t->said[1]);
	free(t->traces);
	free(t);
}

int sl_trial_fail(const struct sl_trial *t, const char *run)
{
	sl_escape_print(stderr, "stormlog-run: %s has no answer: %s\nstormlog-run: its output is in %s.txt\n", run, t->why ?: "",
			t->traces);
	return SL_EXIT_UNREADABLE;
}

enum { CARDS, OUTPUT, OTHER, RANGE };

static bool take(void *context, int option, const char *value)
{
	struct sl_trials *trials = context;
	char *rest = (char *)value; /* a word of the command line, which is cut into its cards */

	if (option == RANGE && trials->ranges < SL_TRIAL_NAMES)
		trials->range[trials->ranges++].text = value;
	for (char *card; option == CARDS && (card = strsep(&rest, ",")) && trials->cards < SL_TRIAL_CARDS;)
		trials->card[trials->cards++] = sl_largest_device(card);
	return true;
}

#define INTO struct sl_trials
static const struct sl_option table[] = {{"--cards", 0, "CARD,...", "those of stormlog-run --dry"},
					 {"--output", 0, "DIR", "where each run has a folder", SL_TO_TEXT(output)},
					 {"--other", 0, "PYTHON", "of the other environment", SL_TO_TEXT(other)},
					 {"--range", 0, "NAME=LOW..HIGH", "values to try for {NAME}"},
					 {"--quiet", 'q', NULL, "no line for each run", SL_TO_FLAG(quiet)},
					 {0}};

static int run(struct sl_arguments *parsed)
{
	struct sl_trials trials = {0};
	int status = sl_arguments_parse(parsed, take, &trials);
	char **word = parsed->paths;

	if (status >= 0)
		return status;
	trials.words = word;
	while (word && *word && strcmp(*word, "--") != 0)
		word++;
	if (!word || !*word || !word[1] || !trials.cards || !trials.output || (!trials.other && !trials.ranges))
		return sl_command_fail(SL_EXIT_USAGE, "try is what stormlog-run --largest and --against start");
	trials.command = word + 1;
	return trials.other ? sl_trials_against(&trials) : sl_trials_largest(&trials);
}

const struct sl_command sl_command_try = {
	"try",
	"what stormlog-run --largest and --against start",
	"try --cards CARD,... --output DIR --range NAME=LOW..HIGH|--other PYTHON -- LAUNCHER [options] -- COMMAND",
	NULL,
	table,
	run};
