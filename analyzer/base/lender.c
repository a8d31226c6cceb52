/* SPDX-License-Identifier: MIT */
#include "analyzer/base/lender.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/confine.h"
#include "analyzer/base/paths.h"
#include "common/buildid.h"

#define FILE_MAX (16ll << 30) /* a library with its debug information has been seen at 5 GB */

struct question {
	char build_id[SL_BUILDID_TEXT];
	char path[PATH_MAX];
};

static int channel = -1; /* to the lender */
static const char *extra;

static int open_matching(const char *path, const char *build_id)
{
	char found[SL_BUILDID_TEXT];
	struct stat st;
	int fd = sl_paths_open_regular(path, &st), why = 0;

	if (fd < 0)
		return -1;
	if (st.st_size > FILE_MAX)
		why = EFBIG;
	else if (!sl_buildid_read(fd, found))
		why = ENOEXEC;
	else if (strcasecmp(found, build_id))
		why = ESTALE;
	if (!why)
		return fd;
	close(fd);
	errno = why;
	return -1;
}

static void answer(int to, int fd, int why)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec said = {&why, sizeof(why)};
	struct msghdr message = {.msg_iov = &said, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	sendmsg(to, &message, MSG_NOSIGNAL);
}

__attribute__((noreturn)) static void lend(int from)
{
	static const char *const nothing[] = {NULL};
	struct question question;
	ssize_t got;

	for (int fd = 0; fd < 3; fd++) /* who waits for the end of our output does not wait for us */
		close(fd);
	signal(SIGINT, SIG_IGN); /* the analyzer clears up first; its end is ours */
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	sl_confine(NULL, nothing);
	while ((got = recv(from, &question, sizeof(question), 0)) > 0) {
		bool whole = got == sizeof(question) && !question.path[PATH_MAX - 1] && !question.build_id[2 * SL_BUILDID_MAX];
		int fd = whole ? open_matching(question.path, question.build_id) : -1;

		answer(from, fd, fd < 0 ? errno : 0);
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

void sl_lender_start(const char *symbols)
{
	int ends[2];
	pid_t child;

	extra = symbols;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return;
	child = fork();
	if (!child) {
		close(ends[0]);
		lend(ends[1]);
	}
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	else
		channel = ends[0];
}

static int ask(const struct question *question)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	int why = EIO, fd;
	struct iovec said = {&why, sizeof(why)};
	struct msghdr message = {.msg_iov = &said, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *head;

	if (send(channel, question, sizeof(*question), MSG_NOSIGNAL) != sizeof(*question) ||
	    recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != sizeof(why))
		return -1;
	head = CMSG_FIRSTHDR(&message);
	if (why || !head) {
		errno = why ? why : EMFILE;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

static int open_one(const char *path, const char *build_id)
{
	struct question question = {0};

	if (channel < 0)
		return open_matching(path, build_id);
	if (snprintf(question.path, sizeof(question.path), "%s", path) >= (int)sizeof(question.path) ||
	    snprintf(question.build_id, sizeof(question.build_id), "%s", build_id) >= (int)sizeof(question.build_id)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return ask(&question);
}

/* Where DIR of --symbols may have it. */
static int open_extra(const char *path, const char *build_id)
{
	const char *slash = strrchr(path, '/'), *tails[] = {path, slash ? slash + 1 : path};
	char place[2 * PATH_MAX];
	int fd = -1;

	for (unsigned i = 0; i < 2 && fd < 0; i++) {
		snprintf(place, sizeof(place), "%s/%s", extra, tails[i]);
		fd = open_one(place, build_id);
	}
	if (fd < 0 && strlen(build_id) > 2) {
		snprintf(place, sizeof(place), "%s/.build-id/%.2s/%s.debug", extra, build_id, build_id + 2);
		fd = open_one(place, build_id);
	}
	return fd;
}

int sl_lender_open(const char *path, const char *build_id, struct stat *st)
{
	int fd = open_one(path, build_id), why = errno;

	if (fd < 0 && extra && *build_id)
		fd = open_extra(path, build_id);
	if (fd >= 0 && fstat(fd, st)) {
		close(fd);
		return -1;
	}
	if (fd < 0)
		errno = why;
	return fd;
}
