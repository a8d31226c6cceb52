/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define HIGH	  1000	      /* few programs have as many descriptors */
#define LIMIT_MAX (64u << 10) /* the kernel makes a table up to the highest number, of 8 bytes each */

/* A system call, because old glibc exports no fstat (it was inline over __fxstat). */
static bool status(int fd, struct stat *st)
{
#ifdef SYS_newfstatat
	return !syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH);
#else
	return !syscall(SYS_fstat, fd, st);
#endif
}

static int open_once(const char *path, int flags)
{
	long fd;

	do
		fd = syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	return (int)fd;
}

/*
 * A file that is written must not be a standard descriptor, not even until it is moved: where the program has closed one, its
 * output would go into ours.  Until ours is open a descriptor that cannot be written is there, with the same error for a write.
 */
static int open_beyond_standard(const char *path, int flags)
{
	int placeholders[STDERR_FILENO + 1], count = 0, fd, saved;
	uint64_t device = 0, inode = 0;

	while (count <= STDERR_FILENO && (fd = open_once("/", O_PATH)) >= 0) {
		if (fd > STDERR_FILENO) {
			sl_file_close(fd);
			break;
		}
		sl_file_identity(fd, &device, &inode);
		placeholders[count++] = fd;
	}
	fd = open_once(path, flags);
	saved = errno;
	while (count)
		sl_file_close_own(placeholders[--count], device, inode);
	errno = saved;
	return fd;
}

int sl_file_open(const char *path, int flags)
{
	return (flags & O_ACCMODE) == O_RDONLY ? open_once(path, flags) : open_beyond_standard(path, flags);
}

void sl_file_close(int fd)
{
	syscall(SYS_close, fd);
}

static __thread bool no_signals __attribute__((tls_model("initial-exec")));

void sl_file_no_signals(bool none)
{
	no_signals = none;
}

bool sl_file_fits(uint64_t bytes)
{
	struct rlimit limit;

	return no_signals || getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

bool sl_file_can_open(unsigned count)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return true;
	for (rlim_t fd = 0; fd < limit.rlim_cur && count; fd++)
		count -= syscall(SYS_fcntl, (int)fd, F_GETFD) < 0;
	return !count;
}

/*
 * Raises the limit for the moment of the call: the program neither gets a number beyond its limit nor can dup2 to one, unless it
 * raises the limit.  The number is high, because the program may have had lower ones before it lowered the limit.  -1: the limit
 * cannot be raised.
 */
static int move_beyond_limit(int fd)
{
	struct rlimit was, more, now;
	rlim_t from;
	int high;

	if (getrlimit(RLIMIT_NOFILE, &was) || was.rlim_cur > LIMIT_MAX || was.rlim_cur + SL_FILE_OURS > was.rlim_max)
		return -1;
	from = was.rlim_cur < HIGH && HIGH + SL_FILE_OURS <= was.rlim_max ? HIGH : was.rlim_cur;
	more = (struct rlimit){from + SL_FILE_OURS, was.rlim_max};
	if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, &was))
		return -1;
	high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, (int)from); /* fcntl64 is new in glibc 2.28 */
	/* What another thread set meanwhile stays.  Where it lowered the hard limit, ours is refused: nothing is put back. */
	if (!syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &was, &now) &&
	    (now.rlim_cur != more.rlim_cur || now.rlim_max != more.rlim_max))
		syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &now, NULL);
	return high;
}

int sl_file_move_high(int fd)
{
	int high = move_beyond_limit(fd);

	for (int low = HIGH; high < 0 && low > STDERR_FILENO; low = low * 2 / 3)
		high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, low);
	if (high < 0 && fd > STDERR_FILENO)
		return fd;
	/* No number is left but that of a standard descriptor, which the program has closed: its output would go into our file. */
	sl_file_close(fd);
	if (high < 0)
		errno = EMFILE;
	return high;
}

bool sl_file_identity(int fd, uint64_t *device, uint64_t *inode)
{
	struct stat st;

	if (!status(fd, &st))
		return false;
	*device = st.st_dev;
	*inode = st.st_ino;
	return true;
}

bool sl_file_is(int fd, uint64_t device, uint64_t inode)
{
	struct stat st;

	return fd >= 0 && status(fd, &st) && st.st_dev == device && st.st_ino == inode && st.st_nlink;
}

void sl_file_close_own(int fd, uint64_t device, uint64_t inode)
{
	uint64_t its_device, its_inode;

	if (fd >= 0 && sl_file_identity(fd, &its_device, &its_inode) && its_device == device && its_inode == inode)
		sl_file_close(fd);
}

int sl_file_reopen(const char *path, uint64_t device, uint64_t inode)
{
	int fd = sl_file_open(path, O_RDWR | O_NOFOLLOW);

	if (fd < 0)
		return -1;
	if (sl_file_is(fd, device, inode)) {
		fd = sl_file_move_high(fd);
		if (sl_file_is(fd, device, inode)) /* the program may have taken the number before the move */
			return fd;
	}
	sl_file_close(fd);
	errno = ESTALE;
	return -1;
}

void sl_file_lock(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	syscall(SYS_fcntl, fd, F_SETLK, &lock);
}

int sl_file_write(int fd, const struct iovec *parts, int count, uint64_t at)
{
	uint64_t end = at;

	for (int p = 0; p < count; p++)
		end += parts[p].iov_len;
	if (!sl_file_fits(end))
		return EFBIG;
	for (int p = 0; p < count; p++) {
		const char *bytes = parts[p].iov_base;
		size_t left = parts[p].iov_len;

		while (left) {
			long n = syscall(SYS_pwrite64, fd, bytes, left, (off_t)at);

			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return n < 0 ? errno : ENOSPC;
			bytes += n;
			left -= (size_t)n;
			at += (uint64_t)n;
		}
	}
	return 0;
}

int sl_file_remove(const char *path)
{
	return syscall(SYS_unlinkat, AT_FDCWD, path, 0) ? errno : 0;
}

ssize_t sl_file_link(const char *path, char *text, size_t size)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, text, size);
}

ssize_t sl_file_read(const char *path, char *text, size_t size)
{
	int fd = sl_file_open(path, O_RDONLY);
	size_t have = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -1;
	while (have < size - 1) {
		n = syscall(SYS_read, fd, text + have, size - 1 - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	sl_file_close(fd);
	text[have] = 0;
	return n < 0 ? -1 : (ssize_t)have;
}
