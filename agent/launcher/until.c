/* SPDX-License-Identifier: MIT */
/*
 * --until TEXT: a server has no end of its own.  A process of ours passes on what the command prints, and once the text is there it
 * ends the command's group.
 */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UP	   "Application startup complete"
#define PATIENCE_S 60 /* in which a server ends after SIGTERM */

/* Words of the command, of which the first may be a path, and what the server prints when it is up. */
static const struct {
	const char *words[2], *text;
} servers[] = {
	{{"vllm", "serve"}, UP},
	{{"vllm.entrypoints.openai.api_server"}, UP},
	{{"sglang", "serve"}, UP},
	{{"sglang.launch_server"}, UP},
};

static struct stream {
	int pipe[2];
	char text[SL_UNTIL_MAX + 4096]; /* the end of what was printed, as much as a text needs, and what is new */
	size_t text_used;
} streams[2]; /* of standard output and error */

static int life[2] = {-1, -1}; /* closed by the launcher when the command has ended */
static pid_t reader = -1;
static bool seen;

const char *sl_until_known(char *const *command)
{
	for (size_t i = 0; i < SL_COUNT(servers); i++)
		for (char *const *at = command; *at; at++) {
			const char *slash = strrchr(*at, '/'), *second = servers[i].words[1];

			if (!strcmp(slash ? slash + 1 : *at, servers[i].words[0]) && (!second || (at[1] && !strcmp(at[1], second))))
				return servers[i].text;
		}
	return NULL;
}

bool sl_until_begin(const struct sl_launch *run)
{
	if (!run->until)
		return true;
	if (!pipe2(streams[0].pipe, O_CLOEXEC) && !pipe2(streams[1].pipe, O_CLOEXEC) && !pipe2(life, O_CLOEXEC))
		return true;
	return sl_launcher_fail(false, "--until: %s", strerror(errno));
}

void sl_until_enter(const struct sl_launch *run)
{
	if (!run->until)
		return;
	setpgid(0, 0);
	setenv("PYTHONUNBUFFERED", "1", 0); /* a pipe has no lines of its own */
	setenv("STORMLOG_DRY_UNTIL", run->until, 1);
	for (int i = 0; i < 2; i++)
		dup2(streams[i].pipe[1], 1 + i);
}

/* False: nobody reads it any more, or it has ended. */
static bool pass_on(struct stream *stream, int to, const char *text, bool *found)
{
	size_t length = strlen(text), keep;
	ssize_t got = read(stream->pipe[0], stream->text + stream->text_used, sizeof(stream->text) - stream->text_used), put;

	if (got <= 0)
		return got < 0 && errno == EINTR;
	for (ssize_t at = 0; at < got; at += put) {
		put = write(to, stream->text + stream->text_used + at, (size_t)(got - at));
		if (put < 0 && errno != EINTR)
			return false;
		put = put < 0 ? 0 : put;
	}
	stream->text_used += (size_t)got;
	*found |= memmem(stream->text, stream->text_used, text, length) != NULL;
	keep = stream->text_used < length ? stream->text_used : length - 1;
	memmove(stream->text, stream->text + stream->text_used - keep, keep);
	stream->text_used = keep;
	return true;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns the exit status of the reader: 0: the text was there. */
static int read_all(const struct sl_launch *run, pid_t child)
{
	struct pollfd polls[3] = {{streams[0].pipe[0], POLLIN, 0}, {streams[1].pipe[0], POLLIN, 0}, {life[0], POLLIN, 0}};
	int64_t deadline = 0;
	bool found = false;

	while (polls[0].fd >= 0 || polls[1].fd >= 0) {
		int64_t left = deadline - now_ms();
		bool before = found;

		if (deadline && left <= 0) {
			kill(-child, SIGKILL);
			return 0;
		}
		if (poll(polls, 3, deadline ? (int)left : -1) <= 0)
			continue;
		if (polls[2].revents && !polls[0].revents && !polls[1].revents) { /* what it left running goes on without us */
			if (!found)
				return 1;
			polls[2].fd = -1;
		}
		for (int i = 0; i < 2; i++)
			if (polls[i].fd >= 0 && polls[i].revents && !pass_on(&streams[i], 1 + i, run->until, &found)) {
				close(polls[i].fd);
				polls[i].fd = -1;
			}
		if (before || !found)
			continue;
		sl_recorded_end(run, 0, 0);
		kill(-child, SIGTERM);
		deadline = now_ms() + PATIENCE_S * 1000;
	}
	return !found;
}

void sl_until_watch(const struct sl_launch *run, pid_t child)
{
	pid_t launcher = getpid();

	if (!run->until)
		return;
	setpgid(child, child); /* as the child does: whoever is first */
	reader = fork();
	if (!reader) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != launcher)
			_exit(1);
	}
	for (int i = 0; i < 2; i++)
		close(streams[i].pipe[1]);
	close(life[!reader]);
	if (!reader)
		_exit(read_all(run, child));
	for (int i = 0; i < 2; i++)
		close(streams[i].pipe[0]);
}

void sl_until_ended(pid_t pid, int status)
{
	if (pid != reader)
		return;
	seen = WIFEXITED(status) && !WEXITSTATUS(status);
	reader = -1;
}

bool sl_until_wait(const struct sl_launch *run)
{
	int status;

	if (run->until)
		close(life[1]);
	while (reader > 0 && waitpid(reader, &status, 0) < 0 && errno == EINTR)
		;
	if (reader > 0)
		sl_until_ended(reader, status);
	if (run->until && !run->options.quiet)
		sl_launcher_say(seen ? "ended the command, which had printed \"%s\"" : "the command never printed \"%s\"",
				run->until);
	return seen;
}

bool sl_until_missed(const struct sl_launch *run)
{
	return run->until && !seen;
}
