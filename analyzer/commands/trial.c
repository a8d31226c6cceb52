/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/commands/commands.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/dry.h"
#include "analyzer/source/source.h"

static uint64_t started_unix_ns; /* the last run */

int sl_trial_start(char *const *argv, const char *log)
{
	int status = SL_EXIT_USAGE << 8;
	struct timespec now;
	pid_t child;

	clock_gettime(CLOCK_REALTIME, &now);
	started_unix_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	child = fork();
	if (!child) {
		int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0666);

		if (in < 0 || out < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
			_exit(SL_EXIT_UNSAVED);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		execv(argv[0], argv);
		_exit(SL_EXIT_USAGE);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM))
		exit(128 + WTERMSIG(status));
	return status;
}

#define KEEP(member, text) snprintf(member, sizeof(member), "%s", (text) ?: "")

/* The verdict's own line. */
static void take_line(struct sl_trial *t, const struct sl_answer *answer)
{
	const struct sl_answer_line *line = answer->frames ? &answer->stack[answer->frames - 1] : NULL;

	for (unsigned i = 0; i < answer->frames; i++)
		if (answer->stack[i].mark && !strncmp(answer->stack[i].mark, "asks", 4))
			line = &answer->stack[i];
	if (!line || !line->file)
		return;
	KEEP(t->file, line->file);
	KEEP(t->path, line->path);
	KEEP(t->source, line->source);
	KEEP(t->mark, line->mark);
	t->line = line->line;
}

/* A server refuses a start in words of its own, before it asks for the memory. */
static void read_log(struct sl_trial *t, const char *path)
{
	struct sl_log *log = sl_log_of((char *const[]){(char *)path, NULL}, true);
	struct sl_answers *answers = log ? sl_answer_log(log, path) : NULL;
	const struct sl_answer *answer = answers && answers->item.count ? answers->item.item[0] : NULL;
	char line[sizeof(t->why)];
	FILE *file;

	if (answer && answer->word <= SL_WORD_DOES_NOT_START) {
		t->fit = SL_TRIAL_FAILS;
		KEEP(t->why, answer->headline);
		take_line(t, answer);
		return;
	}
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (line[strspn(line, " \n")]) {
			line[strcspn(line, "\n")] = 0;
			snprintf(t->why, sizeof(t->why), "%s", line);
		}
	if (file)
		fclose(file);
	t->fit = SL_TRIAL_OTHER;
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
static enum sl_trial_fit judge(struct sl_trial *t, struct sl_report *report, const struct sl_largest_device *card,
			       const struct sl_dry_need *need, bool torch)
{
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

static const struct sl_answer *find_dry(const struct sl_answers *answers)
{
	for (size_t i = 0; i < answers->item.count; i++)
		if (!strcmp(answers->item.item[i]->id, "dry.fits") || !strcmp(answers->item.item[i]->id, "server.start"))
			return answers->item.item[i];
	return NULL;
}

/* A verdict with the bounds of a dry run rests on this. */
static const char *rests_on(const struct sl_answer *answer, const char *until)
{
	return until				   ? "it started, and served no request"
	       : answer->word == SL_WORD_FITS	   ? ""
	       : answer->label[SL_LABEL_WHY].count ? answer->label[SL_LABEL_WHY].item[0]
	       : answer->label[SL_LABEL_RAN].count ? answer->label[SL_LABEL_RAN].item[0]
						   : "";
}

/* False: the folder has an earlier run, as this one recorded nothing. */
static bool is_this_run(const struct sl_report *report)
{
	return report->process_count && report->processes[0].trace->header.started_ns >= started_unix_ns;
}

static void take_report(struct sl_trial *t, struct sl_report *report, const struct sl_trials *trials)
{
	const struct sl_process *process = sl_devices_fullest_process(report);
	const struct sl_device_state *device = process ? sl_devices_fullest(process) : NULL;
	const struct sl_answers *answers = sl_answer_report(report);
	const struct sl_answer *dry = find_dry(answers);
	struct sl_dry_need need = {0};

	KEEP(t->program, sl_stacks_program(&report->processes[0].trace->header));
	KEEP(t->card_name, sl_dry_report(report));
	sl_dry_need(report, &need);
	t->low = need.job + need.low;
	t->high = need.job + need.unsure + need.high;
	t->capacity = need.capacity;
	t->held = !device ? 0 : device->torch.peak_allocated_bytes ?: device->known_peak;
	if (sl_dry_ran_out(report) && answers->item.count) {
		t->fit = SL_TRIAL_FAILS;
		KEEP(t->why, answers->item.item[0]->headline);
		take_line(t, answers->item.item[0]);
	} else if (dry) {
		t->fit = sl_dry_depends(&need) ? SL_TRIAL_MAY : SL_TRIAL_FITS;
		KEEP(t->why, t->fit == SL_TRIAL_MAY ? "" : rests_on(dry, sl_dry_until(report)));
	}
	for (unsigned c = 0; c < trials->cards; c++)
		t->on[c] = judge(t, report, &trials->card[c], &need, device && device->torch.events);
	for (unsigned c = 0; c < trials->cards && t->asks; c++)
		t->on[c] = SL_TRIAL_UNKNOWN;
}

/* In the child: nothing that it reads can start a program. */
static void look(struct sl_trial *t, const struct sl_trials *trials, const char *log, int status)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1};
	char *paths[] = {t->traces, (char *)log, NULL};
	struct sl_report report = {0};

	sl_sandbox_setup(&(struct sl_verb_files){.inputs = paths});
	if (!access(t->traces, F_OK) && sl_pipeline_run(&report, paths, 1, &options) == SL_PIPELINE_FINE && is_this_run(&report)) {
		report.source = sl_source_new();
		take_report(t, &report, trials);
	}
	if (status && t->fit != SL_TRIAL_FAILS)
		read_log(t, log);
	else if (!t->fit)
		KEEP(t->why, "this job used no GPU");
}

/* A child that died, or text that it made up, is no answer. */
static void check(struct sl_trial *t, const struct sl_trial *given, ssize_t got)
{
	if (got != sizeof(*t) || t->fit > SL_TRIAL_FITS || t->card != given->card || t->value != given->value) {
		*t = *given;
		KEEP(t->why, "its recording cannot be read");
	}
	for (unsigned c = 0; c < SL_TRIAL_CARDS; c++)
		t->on[c] = t->on[c] > SL_TRIAL_FITS ? SL_TRIAL_UNKNOWN : t->on[c];
	t->program[sizeof(t->program) - 1] = t->card_name[sizeof(t->card_name) - 1] = t->why[sizeof(t->why) - 1] = 0;
	t->file[sizeof(t->file) - 1] = t->path[sizeof(t->path) - 1] = t->source[sizeof(t->source) - 1] = 0;
	t->mark[sizeof(t->mark) - 1] = 0;
	memcpy(t->traces, given->traces, sizeof(t->traces));
}

/* Fills what the run into t->traces showed.  status: of sl_trial_start. */
static void look_apart(struct sl_trial *t, const struct sl_trials *trials, const char *log, int status)
{
	const struct sl_trial given = *t;
	ssize_t got = -1;
	int line[2];
	pid_t child;

	if (pipe2(line, O_CLOEXEC))
		return;
	fflush(NULL);
	child = fork();
	if (!child) {
		look(t, trials, log, status);
		_exit(write(line[1], t, sizeof(*t)) != sizeof(*t));
	}
	close(line[1]);
	got = read(line[0], t, sizeof(*t));
	close(line[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
	check(t, &given, got);
}

void sl_trial_run(struct sl_trial *t, const struct sl_trials *trials, const char *name, char *const *rest)
{
	char *dry = sl_memory_print("--dry=%s", trials->card[t->card].id), *log;
	SL_VECTOR(char *) argv = {0};

	snprintf(t->traces, sizeof(t->traces), "%s/%s", trials->output, name);
	log = sl_memory_print("%s.txt", t->traces);
	for (char **word = trials->words; word < trials->command - 1; word++)
		*SL_PUSH(&argv) = *word;
	for (char **word = (char *[]){dry, "--output", t->traces, NULL}; *word; word++)
		*SL_PUSH(&argv) = *word;
	for (; *rest; rest++)
		*SL_PUSH(&argv) = *rest;
	*SL_PUSH(&argv) = NULL;
	look_apart(t, trials, log, sl_trial_start(argv.item, log));
	t->on[t->card] = t->fit;
	SL_DROP(&argv);
	free(log);
	free(dry);
}

enum { CARDS, OUTPUT, OTHER, RANGE };

static bool take(void *context, int option, const char *value)
{
	struct sl_trials *trials = context;
	char *rest = (char *)value; /* a word of the command line, which is cut into its cards */

	if (option == RANGE && trials->ranges < SL_TRIAL_RANGES)
		trials->range[trials->ranges++] = value;
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
