/* SPDX-License-Identifier: MIT */
/* stormlog-analyze watch PATH: checks rules against running programs, and runs a command when one is raised. */
#include <poll.h>

#include "analyzer/base/ini.h"
#include "analyzer/base/save.h"
#include "analyzer/commands/commands.h"
#include "analyzer/watch/watch.h"
#include "common/now.h"

static const char about[] =
	"NAME: used, live, reserved, hidden, free (SIZE, or % of the device); growth (SIZE/hour, SIZE/step); full-in, call-age\n"
	"(10min); ooms; unlike (deviations of a rank from the median).  OP: < <= > >=.  The command gets the alert as JSON on its\n"
	"input.  Without PATH: every recording on this node that you may read.  Exit status 1: a rule was broken; 3: no\n"
	"recording was found.";

static const char *const usual[] = {"full-in < 10min for 5s", "ooms > 0"};

struct settings {
	SL_VECTOR(struct sl_rule) rules;
	double interval, duration;
	const char *config, *run;
	bool quiet, json, node, found; /* found: the file of rules was not named by the user */
	int refused;		       /* exit status for an invalid rule; -1: all are valid */
	struct sl_follow *follow;
	SL_VECTOR(const char *) later; /* paths that do not exist yet */
	struct sl_runner *runner;
	unsigned raised;
};

#define INTO struct settings
static const struct sl_option table[] = {
	{"--rule", 0, "RULE",
	 "NAME OP VALUE [for TIME] [=> command LINE]; may be repeated (default: [watch] of .stormlog.ini, else full-in < 10min and "
	 "ooms > 0)"},
	{"--interval", 0, "SECONDS", "time between two updates, 0.1 to 3600 (default: 1)", SL_TO_REAL(interval, 0.1, 3600)},
	{"--duration", 0, "SECONDS", "how long it goes on (default: until every process has ended)", SL_TO_REAL(duration, 0, 1e9)},
	{"--config", 0, "FILE", "rules from this file's [watch], which may then run commands", SL_TO_TEXT(config)},
	{"--run", 0, "ID", "watch only processes of this run; wait for it if it has not begun", SL_TO_TEXT(run)},
	{"--quiet", 'q', NULL, "run the commands, print no messages", SL_TO_FLAG(quiet)},
	{"--json", 0, NULL, "each alert as a line of JSON on stdout too (schemas/alert.schema.json)", SL_TO_FLAG(json)},
	{0},
};

static const char *add_rule(struct settings *settings, const char *text)
{
	return sl_rule_parse(SL_PUSH(&settings->rules), text);
}

static const char *add_usual(struct settings *settings)
{
	for (size_t i = 0; i < SL_COUNT(usual); i++)
		add_rule(settings, usual[i]);
	return NULL;
}

static const char *take_key(void *context, const char *name, const char *value)
{
	struct settings *settings = context;
	const char *wrong;

	if (strcmp(name, "rule") != 0)
		return "is no \"rule = NAME OP VALUE [for TIME] [=> command LINE]\"";
	wrong = add_rule(settings, value);
	if (!wrong && settings->found && settings->rules.item[settings->rules.count - 1].command)
		return "runs a command: name the file with --config if you trust it";
	return wrong;
}

static bool add_path(struct settings *settings, const char *what)
{
	if (sl_recordings_add(settings->follow, what))
		return true;
	if (!what[strspn(what, "0123456789")])
		return false;
	*SL_PUSH(&settings->later) = what;
	return true;
}

static int refuse(const char *word, const char *why)
{
	return sl_command_fail(SL_EXIT_USAGE, "\"%s\" %s", word, why);
}

static bool take(void *context, int option, const char *value)
{
	struct settings *settings = context;
	const char *wrong = strcmp(value, "default") ? add_rule(settings, value) : add_usual(settings);

	(void)option; /* --rule */
	if (wrong && settings->refused < 0)
		settings->refused = refuse(value, wrong);
	return true;
}

static int rules_of_file(struct settings *settings)
{
	char path[PATH_MAX], why[PATH_MAX + 600];

	if (!settings->config && !settings->rules.count && sl_ini_find(path, sizeof(path))) {
		if (sl_ini_is_strangers(path))
			return sl_command_fail(SL_EXIT_USAGE, SL_INI_STRANGERS, path, path);
		settings->config = path;
		settings->found = true;
	}
	if (settings->config && !sl_ini_read(settings->config, "watch", take_key, settings, why, sizeof(why)))
		return sl_command_fail(SL_EXIT_USAGE, "%s", why);
	if (!settings->rules.count)
		add_usual(settings);
	return -1;
}

static void turned(void *context, const struct sl_alert *alert)
{
	struct settings *settings = context;

	settings->raised += !strcmp(alert->state, "raised");
	if (!settings->quiet)
		sl_escape_print(stderr, "stormlog: %s\n", alert->text);
	if (settings->json) {
		sl_alert_write(stdout, alert);
		putchar('\n');
		fflush(stdout);
	}
	sl_runner_send(settings->runner, alert);
}

/*
 * Another process runs commands (watch/runner.c), so that the process that reads traces needs no right to start any.  Processes in
 * /proc, and folders that do not exist yet, cannot be given to Landlock as paths.
 */
static void confine(struct settings *settings, const struct sl_arguments *parsed)
{
	settings->runner = sl_runner_new(settings->rules.item, settings->rules.count);
	sl_sandbox_setup(&(struct sl_verb_files){.inputs = parsed->paths, .processes = sl_recordings_is_node(parsed)});
}

static int add_paths(struct settings *settings, const struct sl_arguments *options)
{
	char **paths = options->paths;

	settings->node = !options->path_count;
	if (!settings->run)
		return sl_recordings_add_all(settings->follow, options) ? -1 : SL_EXIT_USAGE;
	for (; *paths; paths++)
		if (!add_path(settings, *paths))
			return refuse(*paths, "is no such path, nor a process that records");
	return -1;
}

static void unseen(void *context, const struct sl_followed *followed)
{
	const struct sl_trace *trace = followed->process.trace;
	const struct settings *settings = context;
	char text[160];

	sl_trace_unseen(trace, text, sizeof(text));
	if (*text && !settings->quiet)
		sl_escape_print(stderr, "stormlog: pid %lld: %s\n", (long long)trace->header.pid, text);
}

static bool all_ended(const struct settings *settings)
{
	return !settings->node && !settings->run && sl_follow_all_ended(settings->follow);
}

/* True: a signal asked for the end. */
static bool sleep_until(uint64_t until, int signals)
{
	struct pollfd asked = {.fd = signals, .events = POLLIN};
	uint64_t now = sl_now_ns(CLOCK_MONOTONIC);

	return poll(&asked, 1, until > now ? (int)((until - now) / 1000000) + 1 : 0) > 0;
}

static void look(struct settings *settings, struct sl_watch *watch)
{
	for (size_t i = 0; i < settings->later.count; i++)
		if (sl_follow_add(settings->follow, settings->later.item[i]))
			settings->later.item[i--] = settings->later.item[--settings->later.count];
	if (settings->node)
		sl_follow_node(settings->follow, 0);
	sl_recordings_poll(settings->follow);
	sl_watch_look(watch, settings->follow, turned, unseen, settings);
}

/* Watches until the processes end or a signal comes; either way with one last look. */
static void go(struct settings *settings)
{
	struct sl_watch *watch = sl_watch_new(settings->rules.item, settings->rules.count);
	uint64_t begin = sl_now_ns(CLOCK_MONOTONIC), step = (uint64_t)(settings->interval * 1e9), next = begin;
	int signals = sl_save_ask_first();

	do {
		look(settings, watch);
		next += step;
	} while (!all_ended(settings) && !(settings->duration > 0 && (double)(next - begin) / 1e9 > settings->duration) &&
		 !sleep_until(next, signals));
	look(settings, watch);
	sl_watch_free(watch);
}

static int run(struct sl_arguments *options)
{
	struct settings settings = {.interval = 1, .node = true, .refused = -1, .follow = sl_follow_new()};
	int status = sl_arguments_parse(options, take, &settings);

	if (settings.refused >= 0) /* with --help, too, an invalid rule before it is an error */
		status = settings.refused;
	if (status < 0)
		status = rules_of_file(&settings);
	if (status < 0) {
		confine(&settings, options);
		if (settings.run)
			sl_follow_only(settings.follow, settings.run);
		status = add_paths(&settings, options);
		if (status < 0) {
			go(&settings);
			status = settings.raised						     ? SL_EXIT_LIMIT
				 : sl_follow_count(settings.follow) || settings.node || settings.run ? SL_EXIT_FINE
												     : SL_EXIT_UNREADABLE;
		}
		sl_runner_free(settings.runner);
	}
	for (size_t i = 0; i < settings.rules.count; i++)
		sl_rule_free(&settings.rules.item[i]);
	free(settings.rules.item);
	free(settings.later.item);
	sl_follow_free(settings.follow);
	return status;
}

const struct sl_command sl_command_watch = {"watch",
					    "check rules against running programs; run a command if one breaks",
					    "watch [options] [PATH|PID]...",
					    about,
					    table,
					    run,
					    SL_PATHS_OPTIONAL};
