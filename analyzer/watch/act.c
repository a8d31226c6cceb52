/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/act.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/door.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"

/* A process to start, or that was started. */
struct task {
	char **argv, **envp;
	char *json, *what; /* what: for people, if it fails */
	pid_t pid;
	time_t until;
};

struct sl_act {
	struct task *running[SL_ACT_AT_ONCE];
	SL_VECTOR(struct task *) waiting;
	unsigned dropped;
	bool quiet;
};

struct sl_act *sl_act_new(bool quiet)
{
	struct sl_act *act = sl_memory_must(calloc(1, sizeof(*act)));

	act->quiet = quiet;
	return act;
}

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

void sl_act_free(struct sl_act *act)
{
	for (unsigned i = 0; i < SL_ACT_AT_ONCE; i++)
		if (act->running[i]) {
			sl_door_print(stderr, "stormlog-analyze: %s: not done at the end, ended\n", act->running[i]->what);
			if (act->running[i]->pid > 0)
				kill(-act->running[i]->pid, SIGTERM);
			free_task(act->running[i]);
		}
	for (size_t i = 0; i < act->waiting.count; i++)
		free_task(act->waiting.item[i]);
	free(act->waiting.item);
	free(act);
}

/* ---- what is told */

static char *json_of(const struct sl_alert *alert)
{
	const struct sl_process *process = &alert->followed->process;
	const struct sl_header *header = &process->trace->header;
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	char condition[512], *copy;

	snprintf(condition, sizeof(condition), "%.*s", (int)alert->rule->condition, alert->rule->text);
	sl_json_object(j, NULL);
	sl_json_string(j, "schema", "stormlog.alert");
	sl_json_int(j, "schema_version", 1);
	sl_json_string(j, "state", alert->state);
	sl_json_string(j, "rule", condition);
	sl_json_string(j, "metric", sl_metric_name(alert->rule->metric));
	if (isfinite(alert->value))
		sl_json_double(j, "value", alert->value);
	else
		sl_json_null(j, "value");
	sl_json_double(j, "threshold", alert->rule->value);
	sl_json_uint(j, "timestamp_ns", alert->unix_ns);
	sl_json_string(j, "session_id", process->session_id);
	sl_json_string(j, "run_id", header->run_id);
	sl_json_string(j, "job_id", header->job_id);
	sl_json_string(j, "host", header->host);
	sl_json_int(j, "pid", header->pid);
	sl_json_known(j, "rank", header->rank);
	sl_json_known(j, "device_id", alert->device);
	sl_json_string(j, "device_uuid", alert->uuid);
	sl_json_string(j, "place", *alert->place ? alert->place : NULL);
	sl_json_string(j, "trace", process->trace->name);
	sl_json_string(j, "text", alert->text);
	sl_json_end(j);
	copy = strdup(sl_json_text(j, NULL));
	sl_json_close(j);
	return copy;
}

static void say(const struct sl_act *act, const char *text)
{
	if (!act->quiet)
		sl_door_print(stderr, "stormlog: %s\n", text);
}

static void put_in_file(const char *path, const char *json)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	size_t length = strlen(json);
	char *line = sl_memory_must(malloc(length + 1));

	memcpy(line, json, length);
	line[length] = '\n';
	if (fd < 0 || write(fd, line, length + 1) != (ssize_t)length + 1)
		sl_door_print(stderr, "stormlog-analyze: %s: %m\n", path);
	if (fd >= 0)
		close(fd);
	free(line);
}

/* ---- processes */

/* A program beside this one: in libexec of an installation, or where it is built. */
static char *beside(const char *name)
{
	char own[PATH_MAX], *path;
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[length > 0 ? length : 0] = 0;
	own[strrchr(own, '/') ? strrchr(own, '/') - own : 0] = 0;
	path = sl_memory_print("%s/../libexec/stormlog/%s", own, name);
	if (access(path, X_OK)) {
		free(path);
		path = sl_memory_print("%s/../push/%s", own, name);
	}
	return path;
}

static char **argv_of(const struct sl_alert *alert)
{
	const struct sl_process *process = &alert->followed->process;
	char **argv = sl_memory_must(calloc(8, sizeof(*argv)));

	switch (alert->rule->action) {
	case SL_ACTION_BUNDLE:
		argv[0] = strdup("/proc/self/exe");
		argv[1] = strdup("report");
		argv[2] = strdup("--quiet");
		argv[3] = strdup("-o");
		argv[4] = sl_memory_print("%s/%s-%llu", alert->rule->target, process->session_id,
					  (unsigned long long)(alert->unix_ns / SL_NS_PER_S));
		argv[5] = strdup(process->trace->name);
		break;
	case SL_ACTION_WEBHOOK:
		argv[0] = beside("stormlog-post");
		argv[1] = strdup(alert->rule->target);
		break;
	default:
		argv[0] = strdup("/bin/sh");
		argv[1] = strdup("-c");
		argv[2] = strdup(alert->rule->target);
	}
	return argv;
}

static char **environment_of(const struct sl_alert *alert, const char *json)
{
	const struct sl_header *header = &alert->followed->process.trace->header;
	size_t count = 0, at = 0;
	char **envp;

	while (environ[count])
		count++;
	envp = sl_memory_must(calloc(count + 12, sizeof(*envp)));
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0) /* nothing of ours is to be recorded */
			envp[at++] = strdup(environ[i]);
	envp[at++] = sl_memory_print("STORMLOG_ALERT_STATE=%s", alert->state);
	envp[at++] = sl_memory_print("STORMLOG_ALERT_METRIC=%s", sl_metric_name(alert->rule->metric));
	envp[at++] = sl_memory_print("STORMLOG_ALERT_VALUE=%.17g", alert->value);
	envp[at++] = sl_memory_print("STORMLOG_ALERT_PID=%lld", (long long)header->pid);
	envp[at++] = header->rank < 0 ? strdup("STORMLOG_ALERT_RANK=")
				      : sl_memory_print("STORMLOG_ALERT_RANK=%lld", (long long)header->rank);
	envp[at++] =
		alert->device < 0 ? strdup("STORMLOG_ALERT_DEVICE=") : sl_memory_print("STORMLOG_ALERT_DEVICE=%d", alert->device);
	envp[at++] = sl_memory_print("STORMLOG_ALERT_TRACE=%s", alert->followed->process.trace->name);
	envp[at++] = sl_memory_print("STORMLOG_ALERT_TEXT=%s", alert->text);
	envp[at++] = sl_memory_print("STORMLOG_ALERT_JSON=%s", json);
	return envp;
}

/* stdin is the alert as JSON, stdout our stderr: rows and reports of others stay what they are. */
static void start(struct task *task)
{
	int in = memfd_create("alert", MFD_CLOEXEC);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int error;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attributes, &none);
	if (in >= 0 && write(in, task->json, strlen(task->json)) >= 0)
		lseek(in, 0, SEEK_SET);
	posix_spawn_file_actions_adddup2(&files, in < 0 ? STDIN_FILENO : in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
	error = posix_spawn(&task->pid, task->argv[0], &files, &attributes, task->argv, task->envp);
	if (error) {
		errno = error;
		sl_door_print(stderr, "stormlog-analyze: %s: %s: %m\n", task->what, task->argv[0]);
		task->pid = -1;
	}
	task->until = time(NULL) + SL_ACT_LONGEST_S;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	if (in >= 0)
		close(in);
}

/* True: it has ended, however. */
static bool has_ended(struct task *task)
{
	int status = 0;
	pid_t got = task->pid > 0 ? waitpid(task->pid, &status, WNOHANG) : -1;

	if (!got && time(NULL) > task->until) {
		sl_door_print(stderr, "stormlog-analyze: %s: not done after %d s, ended\n", task->what, SL_ACT_LONGEST_S);
		kill(-task->pid, SIGKILL);
		got = waitpid(task->pid, NULL, 0);
	} else if (got > 0 && WIFSIGNALED(status)) {
		sl_door_print(stderr, "stormlog-analyze: %s: ended by signal %d\n", task->what, WTERMSIG(status));
	} else if (got > 0 && WEXITSTATUS(status)) {
		sl_door_print(stderr, "stormlog-analyze: %s: exit status %d\n", task->what, WEXITSTATUS(status));
	}
	return got != 0;
}

unsigned sl_act_tend(struct sl_act *act)
{
	unsigned busy = 0;

	for (unsigned i = 0; i < SL_ACT_AT_ONCE; i++) {
		if (act->running[i] && has_ended(act->running[i])) {
			free_task(act->running[i]);
			act->running[i] = NULL;
		}
		if (!act->running[i] && act->waiting.count) {
			act->running[i] = act->waiting.item[0];
			memmove(act->waiting.item, act->waiting.item + 1, --act->waiting.count * sizeof(*act->waiting.item));
			start(act->running[i]);
		}
		busy += act->running[i] != NULL;
	}
	if (act->dropped)
		sl_door_print(stderr, "stormlog-analyze: %u actions left out: those before are not done\n", act->dropped);
	act->dropped = 0;
	return busy + (unsigned)act->waiting.count;
}

static void process_for(struct sl_act *act, const struct sl_alert *alert, char *json)
{
	struct task *task = sl_memory_must(calloc(1, sizeof(*task)));

	*task = (struct task){.argv = argv_of(alert), .envp = environment_of(alert, json), .json = json};
	task->what = sl_memory_print("%s %s", sl_action_name(alert->rule->action), alert->rule->target);
	*SL_PUSH(&act->waiting) = task;
	sl_act_tend(act);
}

void sl_act_on(struct sl_act *act, const struct sl_alert *alert)
{
	bool raised = !strcmp(alert->state, "raised");
	char *json = json_of(alert);

	say(act, alert->text);
	switch (alert->rule->action) {
	case SL_ACTION_FILE:
		put_in_file(alert->rule->target, json);
		break;
	case SL_ACTION_BUNDLE:
	case SL_ACTION_COMMAND:
		if (!raised)
			break;
		/* fall through */
	case SL_ACTION_WEBHOOK:
		if (act->waiting.count < SL_ACT_WAITING) {
			process_for(act, alert, json);
			return;
		}
		act->dropped++;
		break;
	default:
		break;
	}
	free(json);
}
