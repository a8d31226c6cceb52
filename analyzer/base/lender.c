/* SPDX-License-Identifier: MIT */
#include "analyzer/base/lender.h"

#include <elf.h>
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

#define FILE_MAX  (16ll << 30) /* a library with its debug information has been seen at 5 GB */
#define PARTS_MAX 65535
#define ID_MAX	  64

struct question {
	char build_id[2 * ID_MAX + 1];
	char path[PATH_MAX];
};

static int channel = -1; /* to the lender */
static const char *extra;

/* The build id among the notes of a part of the file, in hexadecimal. */
static bool find_note(int fd, uint64_t offset, uint64_t size, uint64_t align, char *text)
{
	unsigned char bytes[4096];
	ssize_t got = pread(fd, bytes, size < sizeof(bytes) ? size : sizeof(bytes), (off_t)offset);
	uint64_t end = got > 0 ? (uint64_t)got : 0, step = align == 8 ? 8 : 4;
	Elf64_Nhdr note;

	for (uint64_t at = 0; at + sizeof(note) <= end;) {
		memcpy(&note, bytes + at, sizeof(note));
		uint64_t name = at + sizeof(note), value = name + ((note.n_namesz + 3ull) & ~3ull);

		if (value + note.n_descsz > end)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(bytes + name, "GNU", 4) && note.n_descsz &&
		    note.n_descsz <= ID_MAX) {
			for (unsigned i = 0; i < note.n_descsz; i++)
				snprintf(text + 2 * i, 3, "%02x", bytes[value + i]);
			return true;
		}
		at = value + ((note.n_descsz + step - 1) & ~(step - 1));
	}
	return false;
}

/* By segments, else by sections: what holds debug information alone has but these.  False: no ELF of this machine. */
static bool read_build_id(int fd, char *text)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	Elf64_Shdr section;
	uint64_t count;

	*text = 0;
	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++)
		if (pread(fd, &segment, sizeof(segment), (off_t)(head.e_phoff + i * sizeof(segment))) == sizeof(segment) &&
		    segment.p_type == PT_NOTE && find_note(fd, segment.p_offset, segment.p_filesz, segment.p_align, text))
			return true;
	count = head.e_shnum;
	if (!count && head.e_shoff && pread(fd, &section, sizeof(section), (off_t)head.e_shoff) == sizeof(section))
		count = section.sh_size < PARTS_MAX ? section.sh_size : PARTS_MAX;
	for (unsigned i = 0; i < count; i++)
		if (pread(fd, &section, sizeof(section), (off_t)(head.e_shoff + i * sizeof(section))) == sizeof(section) &&
		    section.sh_type == SHT_NOTE && find_note(fd, section.sh_offset, section.sh_size, section.sh_addralign, text))
			return true;
	return true;
}

static int open_matching(const char *path, const char *build_id)
{
	char found[2 * ID_MAX + 1];
	struct stat st;
	int fd = sl_paths_open_regular(path, &st), why = 0;

	if (fd < 0)
		return -1;
	if (st.st_size > FILE_MAX)
		why = EFBIG;
	else if (!read_build_id(fd, found))
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
		bool whole = got == sizeof(question) && !question.path[PATH_MAX - 1] && !question.build_id[2 * ID_MAX];
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
