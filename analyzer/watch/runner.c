/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"

#define MESSAGE_MAX (256 << 10)
#define ENVIRONMENT "STORMLOG_ALERT_"
#define LONGEST_S   60 /* for one command */
#define LAST_S	    5  /* for all commands after the watch has ended */

struct sl_runner {
	const struct sl_rule *rules;
	int line; /* socket to the process that runs commands; -1: none */
	pid_t process;
};

/* ---- in the process that runs commands: a message comes from one that reads traces, so all of it is checked */

/* True: there is time left for a command that began at `begun`. */
static bool has_time(int line, time_t begun)
{
	static time_t closed;
	struct pollfd other = {.fd = line, .events = POLLRDHUP};

	if (!closed && poll(&other, 1, 20) > 0)
		closed = time(NULL);
	else if (closed)
		poll(NULL, 0, 20);
	return time(NULL) <= begun + LONGEST_S && (!closed || time(NULL) <= closed + LAST_S);
}

/* A message that has been checked. */
struct errand {
	const char *command;
	char *alert, *settings, *end; /* settings: of the environment, one after the other, up to end */
};

/* stdin is the alert; stdout goes to our stderr, so that tables stay clean. */
_Noreturn static void become(const struct errand *errand)
{
	static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
	int in = memfd_create("alert", MFD_CLOEXEC);

	setpgid(0, 0);
	for (size_t i = 0; i < SL_COUNT(ours); i++)
		signal(ours[i], SIG_DFL);
	for (char *at = errand->settings; at < errand->end; at += strlen(at) + 1)
		putenv(at);
	if (in >= 0 && write(in, errand->alert, strlen(errand->alert)) >= 0)
		lseek(in, 0, SEEK_SET);
	dup2(in, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	unsetenv("LD_PRELOAD"); /* programs that it starts are not to be recorded */
	execl("/bin/sh", "sh", "-c", errand->command, NULL);
	_exit(127);
}

static void run(int line, const struct errand *errand)
{
	const char *command = errand->command;
	time_t begun = time(NULL);
	int status = 0;
	pid_t child = fork();

	if (!child)
		become(errand);
	while (child > 0 && !waitpid(child, &status, WNOHANG)) {
		if (has_time(line, begun))
			continue;
		sl_escape_print(stderr, "stormlog-analyze: command %s: not done in time, ended\n", command);
		kill(-child, SIGKILL);
		waitpid(child, NULL, 0);
		return;
	}
	if (child < 0)
		sl_escape_print(stderr, "stormlog-analyze: command %s: %m\n", command);
	else if (WIFSIGNALED(status))
		sl_escape_print(stderr, "stormlog-analyze: command %s: ended by signal %d\n", command, WTERMSIG(status));
	else if (WEXITSTATUS(status))
		sl_escape_print(stderr, "stormlog-analyze: command %s: exit status %d\n", command, WEXITSTATUS(status));
}

/* Replaces control characters, which a text of a trace may contain. */
static void make_plain(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

/* The rule's number, the alert as JSON and settings of the environment, each ended by a NUL.  False: it is none of ours. */
static bool read_message(struct errand *errand, char *message, size_t size, const struct sl_rule *rules, size_t count)
{
	char *end = message + size, *rest = NULL;
	size_t rule = end[-1] ? count : strtoul(message, &rest, 10);

	if (rule >= count || !rules[rule].command || rest == message || *rest || rest + 1 == end)
		return false;
	*errand = (struct errand){.command = rules[rule].command, .alert = rest + 1, .end = end};
	errand->settings = errand->alert + strlen(errand->alert) + 1;
	make_plain(errand->alert);
	for (char *at = errand->settings; at < end; at += strlen(at) + 1) {
		if (strncmp(at, ENVIRONMENT, strlen(ENVIRONMENT)) || !strchr(at, '='))
			return false;
		make_plain(at);
	}
	return true;
}

_Noreturn static void serve(int line, const struct sl_rule *rules, size_t count)
{
	static char message[MESSAGE_MAX];
	struct errand errand;
	ssize_t got;

	signal(SIGINT, SIG_IGN); /* the watch looks once more and then ends, and this process with it */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	while ((got = recv(line, message, sizeof(message), MSG_TRUNC)) > 0 || (got < 0 && errno == EINTR))
		if (got > 0 && (size_t)got <= sizeof(message) && read_message(&errand, message, (size_t)got, rules, count))
			run(line, &errand);
	_exit(0);
}

/* ---- in the process that reads traces */

struct sl_runner *sl_runner_new(const struct sl_rule *rules, size_t count)
{
	struct sl_runner *runner = sl_memory_must(calloc(1, sizeof(*runner)));
	int ends[2];

	*runner = (struct sl_runner){.rules = rules, .line = -1, .process = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return runner;
	runner->process = fork();
	if (!runner->process) {
		close(ends[0]);
		serve(ends[1], rules, count);
	}
	close(ends[1]);
	runner->line = ends[0];
	return runner;
}

void sl_runner_free(struct sl_runner *runner)
{
	if (runner->line >= 0)
		shutdown(runner->line, SHUT_RDWR); /* closes it even though processes forked since still have it open */
	while (runner->process > 0 && waitpid(runner->process, NULL, 0) < 0 && errno == EINTR)
		;
	if (runner->line >= 0)
		close(runner->line);
	free(runner);
}

void sl_alert_write(FILE *out, const struct sl_alert *alert)
{
	const struct sl_process *process = &alert->followed->process;
	const struct sl_header *header = &process->trace->header;
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	char condition[512];

	snprintf(condition, sizeof(condition), "%.*s", (int)alert->rule->condition, alert->rule->text);
	sl_json_document(j, "stormlog.alert", 1);
	sl_json_string(j, "state", alert->state);
	sl_json_string(j, "rule", condition);
	sl_json_string(j, "metric", sl_metric_name(alert->rule->metric));
	sl_json_double(j, "value", alert->value);
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
	fputs(sl_json_text(j, NULL), out);
	sl_json_close(j);
}

static void put_setting(FILE *out, const char *name, const char *format, ...) SL_PRINTF(3, 4);

static void put_setting(FILE *out, const char *name, const char *format, ...)
{
	va_list arguments;

	fprintf(out, ENVIRONMENT "%s=", name);
	va_start(arguments, format);
	vfprintf(out, format, arguments);
	va_end(arguments);
	fputc(0, out);
}

void sl_runner_send(struct sl_runner *runner, const struct sl_alert *alert)
{
	const struct sl_header *header = &alert->followed->process.trace->header;
	char *message = NULL, rank[24], device[24];
	size_t size = 0;
	FILE *out;

	if (!alert->rule->command || strcmp(alert->state, "raised"))
		return;
	snprintf(rank, sizeof(rank), "%lld", (long long)header->rank);
	snprintf(device, sizeof(device), "%d", alert->device);
	out = sl_memory_must(open_memstream(&message, &size));
	fprintf(out, "%td%c", alert->rule - runner->rules, 0);
	sl_alert_write(out, alert);
	fputc(0, out);
	put_setting(out, "STATE", "%s", alert->state);
	put_setting(out, "METRIC", "%s", sl_metric_name(alert->rule->metric));
	put_setting(out, "VALUE", "%.17g", alert->value);
	put_setting(out, "PID", "%lld", (long long)header->pid);
	put_setting(out, "RANK", "%.*s", header->rank < 0 ? 0 : 24, rank);
	put_setting(out, "DEVICE", "%.*s", alert->device < 0 ? 0 : 24, device);
	put_setting(out, "TRACE", "%s", alert->followed->process.trace->name);
	put_setting(out, "TEXT", "%s", alert->text);
	fprintf(out, ENVIRONMENT "JSON=");
	sl_alert_write(out, alert);
	fputc(0, out);
	fclose(out);
	if (send(runner->line, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) /* a command that hangs delays no look */
		sl_escape_print(stderr, "stormlog-analyze: command %s left out: %m\n", alert->rule->command);
	free(message);
}
