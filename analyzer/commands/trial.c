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
#include "analyzer/fit/recording.h"
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
	*SL_PUSH(&words.list) = sl_memory_print("--dry=%s", trials->card[t->card]);
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
	static const char *const words[] = {[SL_TRIAL_OTHER] = "no answer",
					    [SL_TRIAL_FAILS] = "does not fit",
					    [SL_TRIAL_MAY] = "may fit",
					    [SL_TRIAL_FITS] = "fits"};

	sl_escape_print(stderr, "stormlog: %s: %s%s%s\n", t->traces, words[t->fit], t->fit < SL_TRIAL_MAY ? "" : ", held ",
			t->fit < SL_TRIAL_MAY ? "" : SL_ANSWER_SIZE(t->peak));
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
	look(t, status, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	if (!trials->quiet)
		say_trial(t);
	return t;
}

int sl_trial_fail(const struct sl_trial *t, const char *run)
{
	sl_escape_print(stderr, "stormlog-run: %s has no answer: %s\nstormlog-run: its output is in %s.txt\n", run, t->why ?: "",
			t->traces);
	return SL_EXIT_UNREADABLE;
}

/* CARD,... OUTPUT QUIET OTHER [NAME=LOW..HIGH]... -- LAUNCHER [options] -- COMMAND; "" for what was not asked for */
enum { CARDS, OUTPUT, QUIET, OTHER, RANGES };

static int run(struct sl_arguments *parsed)
{
	struct sl_trials trials = {0};
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
	return trials.other ? sl_trials_against(&trials) : sl_trials_largest(&trials);
}

const struct sl_command sl_command_try = {"try",
					  "what stormlog-run --largest and --against start",
					  "try -- CARD,... OUTPUT QUIET OTHER [NAME=LOW..HIGH]... -- LAUNCHER [options] -- COMMAND",
					  NULL,
					  (const struct sl_option[]){{0}},
					  run};
