/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/doer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/vector.h"
#include "analyzer/trace/names.h"
#include "common/base.h"

#define ERRAND_MAX  (256 << 10)
#define ENVIRONMENT "STORMLOG_ALERT_"

/* An errand as received: pointers into the message. */
struct errand {
	const struct sl_rule *rule;
	bool raised;
	const char *name, *trace, *json; /* trace: for the action wake it is the ring */
	const char *environment[16];
	unsigned environment_count;
};

/* A process that waits to be started, or is running. */
struct task {
	char **argv, **envp;
	char *json, *what; /* what: a phrase for people, printed if it fails */
	pid_t pid;
	time_t until;
};

struct doer {
	struct task *running[SL_DOER_AT_ONCE];
	SL_VECTOR(struct task *) waiting;
	unsigned dropped;
	size_t files; /* bytes written in this hour */
	time_t hour, said;
};

static void free_list(char **list)
{
	for (char **at = list; at && *at; at++)
		free(*at);
	free(list);
}

static void free_task(struct task *task)
{
	free_list(task->argv);
	free_list(task->envp);
	free(task->json);
	free(task->what);
	free(task);
}

/* Appends a text without control characters, and `end`. */
static char *plain(const char *text, const char *end)
{
	char *copy = NULL;
	size_t size;
	FILE *out = sl_memory_must(open_memstream(&copy, &size));

	sl_escape_put(out, SL_ESCAPE_LINE, text);
	fputs(end, out);
	fclose(out);
	return sl_memory_must(copy);
}

static void put_in_file(struct doer *doer, const char *path, const char *json)
{
	char *line = plain(json, "\n");
	size_t length = strlen(line);
	time_t hour = time(NULL) / 3600;
	int fd;

	doer->files = hour == doer->hour ? doer->files + length : length;
	doer->hour = hour;
	if (doer->files > SL_DOER_FILES) {
		doer->dropped++;
	} else {
		fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
		if (fd < 0 || write(fd, line, length) != (ssize_t)length)
			sl_escape_print(stderr, "stormlog-analyze: %s: %m\n", path);
		if (fd >= 0)
			close(fd);
	}
	free(line);
}

/* ---- messages come from a process that reads traces, so everything in them is checked */

static const char *next_word(const char **at, const char *end)
{
	const char *word = *at < end ? *at : NULL;

	*at += word ? strlen(word) + 1 : 0;
	return word;
}

static bool read_errand(struct errand *errand, const char *bytes, size_t size, const struct sl_rule *rules, size_t count)
{
	const char *end = bytes + size, *number, *state, *word;
	char *rest = NULL;
	size_t rule;

	*errand = (struct errand){0};
	if (!size || end[-1])
		return false;
	number = next_word(&bytes, end);
	state = next_word(&bytes, end);
	errand->name = next_word(&bytes, end);
	errand->trace = next_word(&bytes, end);
	errand->json = next_word(&bytes, end);
	rule = strtoul(number, &rest, 10);
	if (!errand->json || rest == number || *rest || rule >= count || strchr(errand->name, '/') || !*errand->name ||
	    *errand->name == '.' ||
	    (rules[rule].action == SL_ACTION_WAKE ? !sl_names_is_ring(errand->trace) : !sl_names_is_trace(errand->trace)))
		return false;
	while ((word = next_word(&bytes, end)) && errand->environment_count < SL_COUNT(errand->environment)) {
		if (strncmp(word, ENVIRONMENT, strlen(ENVIRONMENT)) || !strchr(word, '='))
			return false;
		errand->environment[errand->environment_count++] = word;
	}
	errand->rule = &rules[rule];
	errand->raised = !strcmp(state, "raised");
	return true;
}

/* ---- processes */

/* A program's path in an installation or a build folder, relative to this program's folder. */
static char *beside(const char *installed, const char *built)
{
	char own[PATH_MAX], *path;
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[length > 0 ? length : 0] = 0;
	own[strrchr(own, '/') ? strrchr(own, '/') - own : 0] = 0;
	path = sl_memory_print("%s/%s", own, installed);
	if (access(path, X_OK)) {
		free(path);
		path = sl_memory_print("%s/%s", own, built);
	}
	return path;
}

static char **argv_of(const struct errand *errand)
{
	char **argv = sl_memory_must(calloc(8, sizeof(*argv)));

	switch (errand->rule->action) {
	case SL_ACTION_BUNDLE:
		argv[0] = strdup("/proc/self/exe");
		argv[1] = strdup("report");
		argv[2] = strdup("--quiet");
		argv[3] = strdup("-o");
		argv[4] = sl_memory_print("%s/%s", errand->rule->target, errand->name);
		argv[5] = sl_memory_copy("--");
		argv[6] = sl_memory_copy(errand->trace);
		break;
	case SL_ACTION_WEBHOOK:
		argv[0] = beside("../libexec/stormlog/stormlog-post", "../push/stormlog-post");
		argv[1] = strdup(errand->rule->target);
		break;
	case SL_ACTION_WAKE:
		argv[0] = beside("stormlog-attach", "../attach/stormlog-attach");
		argv[1] = sl_memory_copy("--");
		argv[2] = sl_memory_copy(errand->trace);
		break;
	default:
		argv[0] = strdup("/bin/sh");
		argv[1] = strdup("-c");
		argv[2] = strdup(errand->rule->target);
	}
	return argv;
}

static char **environment_of(const struct errand *errand)
{
	size_t count = 0, at = 0;
	char **envp;

	while (environ[count])
		count++;
	envp = sl_memory_must(calloc(count + errand->environment_count + 1, sizeof(*envp)));
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) /* programs that it starts are not to be recorded */
			envp[at++] = sl_memory_copy(environ[i]);
	for (unsigned i = 0; i < errand->environment_count; i++)
		envp[at++] = plain(errand->environment[i], "");
	return envp;
}

/* stdin is the alert as JSON; stdout goes to our stderr, so that tables and reports stay clean */
static void start(struct task *task)
{
	int in = memfd_create("alert", MFD_CLOEXEC);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, ignored;
	int error;

	sigemptyset(&none);
	sigemptyset(&ignored);
	sigaddset(&ignored, SIGINT);
	sigaddset(&ignored, SIGTERM);
	sigaddset(&ignored, SIGHUP);
	sigaddset(&ignored, SIGPIPE);
	sigaddset(&ignored, SIGXFSZ);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &ignored);
	if (in >= 0 && write(in, task->json, strlen(task->json)) >= 0)
		lseek(in, 0, SEEK_SET);
	posix_spawn_file_actions_adddup2(&files, in < 0 ? STDIN_FILENO : in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	error = posix_spawn(&task->pid, task->argv[0], &files, &attributes, task->argv, task->envp);
	if (error) {
		errno = error;
		sl_escape_print(stderr, "stormlog-analyze: %s: %s: %m\n", task->what, task->argv[0]);
		task->pid = -1;
	}
	task->until = time(NULL) + SL_DOER_LONGEST_S;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	if (in >= 0)
		close(in);
}

/* True: the process has ended, in whatever way. */
static bool has_ended(struct task *task)
{
	int status = 0;
	pid_t got = task->pid > 0 ? waitpid(task->pid, &status, WNOHANG) : -1;

	if (!got && time(NULL) > task->until) {
		sl_escape_print(stderr, "stormlog-analyze: %s: not done after %d s, ended\n", task->what, SL_DOER_LONGEST_S);
		kill(-task->pid, SIGKILL);
		got = waitpid(task->pid, NULL, 0);
	} else if (got > 0 && WIFSIGNALED(status)) {
		sl_escape_print(stderr, "stormlog-analyze: %s: ended by signal %d\n", task->what, WTERMSIG(status));
	} else if (got > 0 && WEXITSTATUS(status)) {
		sl_escape_print(stderr, "stormlog-analyze: %s: exit status %d\n", task->what, WEXITSTATUS(status));
	}
	return got != 0;
}

/* Called once a second at most. */
static void say_dropped(struct doer *doer)
{
	if (doer->dropped)
		sl_escape_print(stderr,
				"stormlog-analyze: %u actions left out: those before are not done, or files had their share\n",
				doer->dropped);
	doer->dropped = 0;
	doer->said = time(NULL);
}

/* Number of processes that run or wait. */
static unsigned tend(struct doer *doer)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < SL_DOER_AT_ONCE; i++) {
		if (doer->running[i] && has_ended(doer->running[i])) {
			free_task(doer->running[i]);
			doer->running[i] = NULL;
		}
		if (!doer->running[i] && doer->waiting.count) {
			doer->running[i] = doer->waiting.item[0];
			memmove(doer->waiting.item, doer->waiting.item + 1, --doer->waiting.count * sizeof(*doer->waiting.item));
			start(doer->running[i]);
		}
		busy += doer->running[i] != NULL;
	}
	if (time(NULL) != doer->said)
		say_dropped(doer);
	return busy + (unsigned)doer->waiting.count;
}

static void take(struct doer *doer, const struct errand *errand)
{
	const struct sl_rule *rule = errand->rule;
	struct task *task;

	if (rule->action == SL_ACTION_FILE)
		put_in_file(doer, rule->target, errand->json);
	if (rule->action == SL_ACTION_FILE || rule->action == SL_ACTION_MESSAGE ||
	    (!errand->raised && rule->action != SL_ACTION_WEBHOOK))
		return;
	if (doer->waiting.count == SL_DOER_WAITING) {
		doer->dropped++;
		return;
	}
	task = sl_memory_must(calloc(1, sizeof(*task)));
	*task = (struct task){.argv = argv_of(errand), .envp = environment_of(errand), .json = plain(errand->json, "")};
	task->what = sl_memory_print("%s %s", sl_action_name(rule->action), rule->target);
	*SL_PUSH(&doer->waiting) = task;
}

static void end_all(struct doer *doer)
{
	for (unsigned i = 0; i < SL_DOER_AT_ONCE; i++)
		if (doer->running[i]) {
			sl_escape_print(stderr, "stormlog-analyze: %s: not done at the end, ended\n", doer->running[i]->what);
			if (doer->running[i]->pid > 0)
				kill(-doer->running[i]->pid, SIGTERM);
		}
}

_Noreturn void sl_doer(int from, const struct sl_rule *rules, size_t count)
{
	static char bytes[ERRAND_MAX];
	struct pollfd line = {.fd = from, .events = POLLIN};
	struct doer doer = {0};
	struct errand errand;
	time_t until = 0;

	signal(SIGINT, SIG_IGN); /* the watcher looks once more and then ends; this process ends with it */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	for (;;) {
		bool busy = tend(&doer) > 0;

		if (until && (!busy || time(NULL) > until))
			break;
		if (poll(&line, 1, busy ? 20 : -1) <= 0)
			continue;

		ssize_t got = recv(from, bytes, sizeof(bytes), MSG_TRUNC);

		if (got <= 0) {
			until = time(NULL) + SL_DOER_LAST_S;
			line.fd = -1;
		} else if ((size_t)got <= sizeof(bytes) && read_errand(&errand, bytes, (size_t)got, rules, count)) {
			take(&doer, &errand);
		}
	}
	say_dropped(&doer);
	end_all(&doer);
	_exit(0);
}
