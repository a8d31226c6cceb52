/* SPDX-License-Identifier: MIT */
/* Findings of a report on the state at this moment.  A child process makes it, so that the screen does not wait. */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyzer/answer/make.h"
#include "analyzer/base/escape.h"
#include "analyzer/base/memory.h"
#include "analyzer/faces/faces.h"
#include "analyzer/pipeline/pipeline.h"
#include "tools/top/top.h"

#define SHARE	 100 /* a report may take at most 1/SHARE of a core */
#define LEAST_NS 5000000000ull

/* True: an earlier verdict has the same words, whatever the process: 64 ranks that run out of memory at one line are one. */
static bool is_told(const struct sl_answers *answers, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (!strcmp(answers->item.item[i]->headline, answers->item.item[at]->headline))
			return true;
	return false;
}

static void say_one(FILE *out, const struct sl_report *report, const struct sl_answer *answer)
{
	char who[80] = "", *text = sl_face_line(answer);

	if (answer->process >= 0)
		sl_process_who(who, &report->processes[answer->process]);
	sl_escape_print(out, "%c%s%s%s\n", sl_answer_tone(answer->word) == SL_TONE_BAD ? '!' : ' ', who, *who ? ": " : "", text);
	free(text);
}

/* Ends the child when nobody reads its pipe any more; the screen may send no signal. */
static void *end_unread(void *pipe)
{
	struct pollfd unread = {.fd = *(int *)pipe}; /* an error is told always: the reader is gone */

	while (poll(&unread, 1, -1) < 0)
		;
	_exit(0);
}

/* In the child: prints one line for each verdict that is no good news; '!' is before the worst: "!rank 3: LEAK: ...". */
static void say(struct sl_top *top, int fd)
{
	struct sl_pipeline_options options = {.quiet = true, .threads = 1, .run = "all"};
	unsigned count = sl_follow_count(top->follow), shown = 0;
	char **traces = calloc(count + 1, sizeof(*traces));
	struct sl_report report = {0};
	FILE *out = fdopen(fd, "w");
	pthread_t watcher;

	if (pthread_create(&watcher, NULL, end_unread, &fd))
		_exit(0);
	for (unsigned i = 0; traces && i < count; i++)
		if (sl_top_shown(top, i))
			traces[shown++] = sl_top_process(top, i)->process.trace->name;
	if (out && traces && shown && sl_pipeline_run(&report, traces, shown, &options) == SL_PIPELINE_FINE) {
		const struct sl_answers *answers = sl_answer_report(&report);

		for (size_t i = 0; i < answers->item.count; i++)
			if (sl_answer_tone(answers->item.item[i]->word) != SL_TONE_GOOD && !is_told(answers, i))
				say_one(out, &report, answers->item.item[i]);
	}
	if (out)
		fclose(out);
	_exit(0);
}

void sl_top_findings_ask(struct sl_top *top)
{
	struct sl_top_findings *findings = &top->findings;
	int ends[2];

	if (findings->fd >= 0 || top->now_ns < findings->next_ns || pipe2(ends, O_CLOEXEC))
		return;
	findings->begun_ns = top->now_ns;
	findings->child = fork();
	if (!findings->child)
		say(top, ends[1]);
	close(ends[1]);
	findings->fd = ends[0];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	if (findings->child < 0)
		sl_top_findings_end(top);
}

void sl_top_findings_take(struct sl_top *top)
{
	struct sl_top_findings *findings = &top->findings;
	char bytes[4096];
	ssize_t got;

	while (findings->fd >= 0 && (got = read(findings->fd, bytes, sizeof(bytes))) != 0) {
		if (got < 0)
			return; /* try again later */
		findings->output = sl_memory_must(realloc(findings->output, findings->size + (size_t)got + 1));
		memcpy(findings->output + findings->size, bytes, (size_t)got);
		findings->size += (size_t)got;
	}
	if (findings->fd < 0)
		return;
	free(findings->text);
	findings->text = findings->output ? findings->output : strdup("");
	findings->text[findings->size] = 0;
	findings->output = NULL;
	findings->size = 0;
	findings->told_ns = findings->begun_ns;
	findings->next_ns = top->now_ns + SHARE * sl_top_findings_end(top);
	if (findings->next_ns < top->now_ns + LEAST_NS)
		findings->next_ns = top->now_ns + LEAST_NS;
}

uint64_t sl_top_findings_end(struct sl_top *top)
{
	struct sl_top_findings *findings = &top->findings;
	struct rusage took = {0};

	if (findings->fd < 0)
		return 0;
	close(findings->fd);
	findings->fd = -1;
	if (findings->child > 0) {
		wait4((pid_t)findings->child, NULL, 0, &took);
	}
	return (uint64_t)(took.ru_utime.tv_sec + took.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(took.ru_utime.tv_usec + took.ru_stime.tv_usec) * 1000;
}
