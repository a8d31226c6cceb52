/* SPDX-License-Identifier: MIT */
#include "analyzer/watch/act.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/json.h"
#include "analyzer/base/memory.h"
#include "analyzer/trace/cursor.h"
#include "analyzer/watch/doer.h"

struct sl_act {
	const struct sl_rule *rules;
	int line; /* socket to the doer; -1: none */
	pid_t doer;
	bool quiet;
};

struct sl_act *sl_act_new(const struct sl_rule *rules, size_t count, bool quiet)
{
	struct sl_act *act = sl_memory_must(calloc(1, sizeof(*act)));
	int ends[2];

	*act = (struct sl_act){.rules = rules, .line = -1, .doer = -1, .quiet = quiet};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return act;
	act->doer = fork();
	if (!act->doer) {
		close(ends[0]);
		sl_doer(ends[1], rules, count);
	}
	close(ends[1]);
	act->line = ends[0];
	return act;
}

void sl_act_free(struct sl_act *act)
{
	if (act->line >= 0)
		shutdown(act->line, SHUT_RDWR); /* closes it even though processes forked since still have it open */
	while (act->doer > 0 && waitpid(act->doer, NULL, 0) < 0 && errno == EINTR)
		;
	if (act->line >= 0)
		close(act->line);
	free(act);
}

/* ---- what an alert says */

static char *json_of(const struct sl_alert *alert)
{
	const struct sl_process *process = &alert->followed->process;
	const struct sl_header *header = &process->trace->header;
	struct sl_json *j = sl_json_new(NULL, SL_JSON_COMPACT);
	char condition[512], *copy;

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
	copy = strdup(sl_json_text(j, NULL));
	sl_json_close(j);
	return copy;
}

static void say(const struct sl_act *act, const char *text)
{
	if (!act->quiet)
		sl_escape_print(stderr, "stormlog: %s\n", text);
}

/* Builds an errand: its words, each ended by a NUL (doer.h). */
struct words {
	SL_VECTOR(char) bytes;
};

static void add(struct words *words, char *word)
{
	for (size_t i = 0; i <= strlen(word); i++)
		*SL_PUSH(&words->bytes) = word[i];
	free(word);
}

static void add_environment(struct words *words, const struct sl_alert *alert, const char *json)
{
	const struct sl_header *header = &alert->followed->process.trace->header;

	add(words, sl_memory_print("STORMLOG_ALERT_STATE=%s", alert->state));
	add(words, sl_memory_print("STORMLOG_ALERT_METRIC=%s", sl_metric_name(alert->rule->metric)));
	add(words, sl_memory_print("STORMLOG_ALERT_VALUE=%.17g", alert->value));
	add(words, sl_memory_print("STORMLOG_ALERT_PID=%lld", (long long)header->pid));
	add(words, header->rank < 0 ? sl_memory_copy("STORMLOG_ALERT_RANK=")
				    : sl_memory_print("STORMLOG_ALERT_RANK=%lld", (long long)header->rank));
	add(words, alert->device < 0 ? sl_memory_copy("STORMLOG_ALERT_DEVICE=")
				     : sl_memory_print("STORMLOG_ALERT_DEVICE=%d", alert->device));
	add(words, sl_memory_print("STORMLOG_ALERT_TRACE=%s", alert->followed->process.trace->name));
	add(words, sl_memory_print("STORMLOG_ALERT_TEXT=%s", alert->text));
	add(words, sl_memory_print("STORMLOG_ALERT_JSON=%s", json));
}

/* What a bundle is called: a session's id may be a path, as a launcher's id of a run may. */
static char *name_of(const char *session, uint64_t unix_ns)
{
	char *name = sl_memory_print("%.160s-%llu", session, (unsigned long long)(unix_ns / SL_NS_PER_S));

	if (*name == '.')
		*name = '_';
	for (char *at = name; (at = strchr(at, '/'));)
		*at = '_';
	return name;
}

static void send_errand(struct sl_act *act, const struct sl_alert *alert)
{
	const struct sl_process *process = &alert->followed->process;
	struct words words = {0};
	char *json = json_of(alert);

	add(&words, sl_memory_print("%td", alert->rule - act->rules));
	add(&words, sl_memory_copy(alert->state));
	add(&words, name_of(process->session_id, alert->unix_ns));
	add(&words, sl_memory_copy(alert->rule->action == SL_ACTION_WAKE ? process->trace->cursor->ring : process->trace->name));
	add(&words, sl_memory_copy(json));
	add_environment(&words, alert, json);
	/* A doer that is held up, by a disk that hangs, delays nobody: what has no room on the line is left out. */
	if (send(act->line, words.bytes.item, words.bytes.count, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		sl_escape_print(stderr, "stormlog-analyze: %s %s: %m\n", sl_action_name(alert->rule->action), alert->rule->target);
	free(words.bytes.item);
	free(json);
}

/* Only a sleeping recording that has a ring can be woken. */
static bool has_errand(const struct sl_alert *alert)
{
	const struct sl_trace *trace = alert->followed->process.trace;

	return alert->rule->action != SL_ACTION_MESSAGE &&
	       (alert->rule->action != SL_ACTION_WAKE || (trace->folded.slept.now_ns && trace->cursor->ring));
}

void sl_act_on(struct sl_act *act, const struct sl_alert *alert)
{
	say(act, alert->text);
	if (has_errand(alert))
		send_errand(act, alert);
}
