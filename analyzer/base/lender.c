/* SPDX-License-Identifier: MIT */
#include "analyzer/base/lender.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/confine.h"
#include "analyzer/base/paths.h"
#include "common/base.h"
#include "common/buildid.h"

#define FILE_MAX (16ll << 30) /* a library with debug information can have 5 GB */

struct question {
	char build_id[SL_BUILDID_TEXT];
	char path[PATH_MAX];
};

static int channel = -1; /* socket to the lender */
static const char *extra;
static bool refuses;
static int unstarted; /* errno: there should be a lender, and there is none */
static int lacked;
static unsigned lacks; /* how often */

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

union rights {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Sends a message, with the descriptor unless it is -1. */
static bool tell(int to, const void *said, size_t size, int fd)
{
	union rights rights = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec bytes = {(void *)said, size};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};

	if (fd >= 0) {
		memcpy(CMSG_DATA(&rights.head), &fd, sizeof(fd));
		message.msg_control = &rights;
		message.msg_controllen = sizeof(rights);
	}
	return TEMP_FAILURE_RETRY(sendmsg(to, &message, MSG_NOSIGNAL)) == (ssize_t)size;
}

/* Returns the bytes received, and the descriptor that came with them, or -1. */
static ssize_t hear(int from, void *said, size_t size, int *fd)
{
	union rights rights;
	struct iovec bytes = {said, size};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &rights,
				 .msg_controllen = CMSG_LEN(sizeof(int))}; /* room for one descriptor */
	ssize_t got = TEMP_FAILURE_RETRY(recvmsg(from, &message, MSG_CMSG_CLOEXEC));
	const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	*fd = -1;
	if (head && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	return got;
}

__attribute__((noreturn)) static void lend(int from)
{
	static const char *const nothing[] = {NULL};
	struct question question;
	sigset_t all;
	ssize_t got;
	int to;

	for (int fd = 0; fd < 3; fd++) /* a process that waits for the end of our output must not wait for this one */
		close(fd);
	sigfillset(&all); /* the analyzer cleans up first; this process ends with it */
	sigprocmask(SIG_SETMASK, &all, NULL);
	sl_confine(NULL, nothing, SL_CONFINE_ALL);
	while ((got = hear(from, &question, sizeof(question), &to)) > 0) {
		bool whole = got == sizeof(question) && !question.path[PATH_MAX - 1] && !question.build_id[2 * SL_BUILDID_MAX];
		int fd = whole ? open_matching(question.path, question.build_id) : -1, why = fd < 0 ? errno : 0;

		if (to >= 0) {
			fcntl(to, F_SETFL, O_NONBLOCK); /* a caller that does not read its answer must not block others */
			tell(to, &why, sizeof(why), fd);
			close(to);
		}
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
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		unstarted = errno;
		return;
	}
	child = fork();
	if (!child) {
		close(ends[0]);
		lend(ends[1]);
	}
	unstarted = child < 0 ? errno : 0;
	close(ends[1]);
	if (child < 0)
		close(ends[0]);
	else
		channel = ends[0];
}

void sl_lender_lack(int why)
{
	static const int reasons[] = {EAGAIN, EMFILE, ENFILE, ENOMEM, ENOBUFS, ETOOMANYREFS, EIO};

	for (size_t i = 0; i < SL_COUNT(reasons); i++)
		if (why == reasons[i]) {
			lacked = lacked ? lacked : why;
			lacks++;
		}
}

unsigned sl_lender_lacks(void)
{
	return lacks;
}

int sl_lender_lacked(void)
{
	return lacked;
}

void sl_lender_refuse(void)
{
	refuses = true;
}

/* Each question carries its own socket for the answer, since processes and threads ask at the same time. */
static int ask(const struct question *question)
{
	int line[2], why = EIO, fd = -1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line))
		return -1;
	bool asked = tell(channel, question, sizeof(*question), line[1]);

	close(line[1]);
	if (asked && hear(line[0], &why, sizeof(why), &fd) != sizeof(why))
		why = EIO; /* the lender has ended */
	close(line[0]);
	if (fd < 0)
		errno = why ? why : EMFILE;
	return fd;
}

static int open_one(const char *path, const char *build_id)
{
	struct question question = {0};

	if (unstarted) {
		errno = unstarted;
		return -1;
	}
	if (channel < 0)
		return open_matching(path, build_id);
	if (snprintf(question.path, sizeof(question.path), "%s", path) >= (int)sizeof(question.path) ||
	    snprintf(question.build_id, sizeof(question.build_id), "%s", build_id) >= (int)sizeof(question.build_id)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return ask(&question);
}

/* Opens the file from the folder of --symbols. */
static int open_extra(const char *path, const char *build_id)
{
	const char *tails[] = {path, sl_paths_name(path)};
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
	int fd, why, last;

	if (refuses) {
		errno = ENOTSUP;
		return -1;
	}
	fd = open_one(path, build_id);
	why = errno;
	if (fd < 0 && extra && *build_id)
		fd = open_extra(path, build_id);
	last = errno;
	if (fd >= 0 && fstat(fd, st)) {
		close(fd);
		return -1;
	}
	if (fd < 0) {
		sl_lender_lack(why);
		sl_lender_lack(last);
		errno = why;
	}
	return fd;
}
