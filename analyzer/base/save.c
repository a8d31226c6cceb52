/* SPDX-License-Identifier: MIT */
#include "analyzer/base/save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/utf8.h"
#include "common/base.h"
#include "common/fnv.h"

#define UNFINISHED     ".part"
#define UNFINISHED_MAX 128 /* unfinished files and folders at one time */
#define TRIES	       100 /* of names that are taken */
#define PASSED_MAX     64  /* descriptors whose file's size is looked at */
#define RESERVE	       (256 << 10)
#define HOLDER_S       10 /* within which any step that takes several is done */

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char *unfinished[UNFINISHED_MAX];
static void *reserve; /* given back where memory ran out, for the walk through a folder */
static pid_t owner;   /* of the list: a process that was forked has a copy of it */
static sigset_t ending_signals;
static atomic_int asked = -1; /* descriptor of the verb that handles the first signal itself */

void sl_save_hold(void)
{
	pthread_mutex_lock(&lock);
}

void sl_save_release(void)
{
	pthread_mutex_unlock(&lock);
}

bool sl_save_unfinished(const char *path)
{
	bool listed = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < UNFINISHED_MAX; i++)
		if (!unfinished[i]) {
			listed = (unfinished[i] = strdup(path));
			break;
		}
	pthread_mutex_unlock(&lock);
	return listed;
}

void sl_save_finished(const char *path)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < UNFINISHED_MAX; i++)
		if (unfinished[i] && !strcmp(unfinished[i], path)) {
			free(unfinished[i]);
			unfinished[i] = NULL;
			break;
		}
	pthread_mutex_unlock(&lock);
}

bool sl_save_make_folder(char *pattern)
{
	bool made;

	sl_save_hold();
	made = mkdtemp(pattern);
	if (made)
		sl_save_unfinished(pattern);
	sl_save_release();
	return made;
}

#define SHOWN_MAX 64 /* bytes of a name within a temporary one; some file systems have room for 143 */
#define SALT	  11 /* letters of which there are 32 */

static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";

/* What a temporary name shows of `name`: whole characters, as some file systems demand, and a hash of it where it is cut. */
static void show(const char *name, char shown[SHOWN_MAX + 18])
{
	size_t size = strnlen(name, SHOWN_MAX);

	for (size_t back = 1; back < SL_UTF8_SEQUENCE && back <= size; back++)
		if (sl_utf8_sequence(name + size - back, SL_UTF8_SEQUENCE) > back) {
			size -= back;
			break;
		}
	if (name[size])
		sprintf(shown, "%.*s.%016" PRIx64, (int)size, name, sl_fnv_text(name));
	else
		strcpy(shown, name);
}

/*
 * A name beside `path` for a file that is made first and then renamed to it.  It is a dot, the path's name, random letters and
 * `end`; a name too long for a file system is cut and gets a hash.  The caller makes it with O_EXCL or mkdir, and asks again after
 * EEXIST.  False: ENAMETOOLONG.
 */
static bool paths_temporary(const char *path, const char *end, char *made, size_t size)
{
	const char *name = sl_paths_name(path);
	char salt[SALT + 1] = "", shown[SHOWN_MAX + 18];

	(void)!getrandom(salt, SALT, 0);
	for (size_t i = 0; i < SALT; i++)
		salt[i] = letters[(unsigned char)salt[i] % 32];
	show(name, shown);
	if (snprintf(made, size, "%.*s.%s.%s%s", (int)(name - path), path, shown, salt, end) < (int)size)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

bool sl_save_make_beside(const char *path, char *made, size_t size)
{
	bool fine = false;

	sl_save_hold();
	for (unsigned tries = 0; tries < TRIES && !fine && paths_temporary(path, SL_SAVE_FOLDER, made, size); tries++) {
		/* It is on the list before it is there, since memory may run out at the list. */
		fine = sl_save_unfinished(made) && !mkdir(made, 0700);
		if (!fine)
			sl_save_finished(made);
		if (!fine && errno != EEXIST)
			break;
	}
	sl_save_release();
	return fine;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	remove(path);
	return 0;
}

/* Other threads may still write into the folder, so it is emptied until it can be removed. */
static void remove_unfinished(void)
{
	free(reserve);
	reserve = NULL;
	for (unsigned i = 0; i < UNFINISHED_MAX; i++)
		for (unsigned tries = 0; unfinished[i] && tries < 100 && !access(unfinished[i], F_OK); tries++)
			nftw(unfinished[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void *watch(void *unused)
{
	int number, first;

	if (sigwait(&ending_signals, &number))
		return unused;
	first = atomic_load(&asked);
	if (first >= 0 && (eventfd_write(first, 1) || sigwait(&ending_signals, &number)))
		return unused;
	pthread_mutex_lock(&lock); /* never unlocked: the program ends */
	remove_unfinished();
	signal(number, SIG_DFL);
	pthread_sigmask(SIG_UNBLOCK, &ending_signals, NULL);
	raise(number);
	return unused;
}

/* The program ends in the midst of its work, as without memory. */
static void at_exit(void)
{
	struct timespec until;

	if (getpid() != owner)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += HOLDER_S;
	pthread_mutex_timedlock(&lock, &until); /* who holds it may have no memory either; never unlocked */
	remove_unfinished();
}

void sl_save_watch_signals(void)
{
	/* SIGALRM is the launcher's patience, SIGXCPU a limit's */
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGQUIT, SIGXCPU};
	struct sigaction now;
	pthread_t thread;

	if (!owner) { /* else a child of who has the list, which removes all of it in the end */
		owner = getpid();
		reserve = malloc(RESERVE);
		atexit(at_exit);
	}
	sigemptyset(&ending_signals);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		/* signals that are ignored, as under nohup, stay ignored */
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_DFL)
			sigaddset(&ending_signals, numbers[i]);
	pthread_sigmask(SIG_BLOCK, &ending_signals, NULL);
	if (pthread_create(&thread, NULL, watch, NULL))
		pthread_sigmask(SIG_UNBLOCK, &ending_signals, NULL);
	else
		pthread_detach(thread);
}

int sl_save_ask_first(void)
{
	atomic_store(&asked, eventfd(0, EFD_CLOEXEC));
	return atomic_load(&asked);
}

/* Signals wait until the file exists and is listed.  Otherwise one could come in between, and the file would stay. */
static FILE *make_file(struct sl_save *save)
{
	FILE *made = NULL;

	sl_save_hold();
	for (unsigned tries = 0; tries < TRIES && !made && paths_temporary(save->path, UNFINISHED, save->made, sizeof(save->made));
	     tries++) {
		made = fopen(save->made, "wxe"); /* O_EXCL follows no link */
		if (!made && errno != EEXIST)
			break;
	}
	if (made)
		sl_save_unfinished(save->made);
	sl_save_release();
	return made;
}

static int number_of(const char *path)
{
	static const char *const folders[] = {"/proc/self/fd/", "/dev/fd/"};

	for (size_t i = 0; i < SL_COUNT(folders); i++) {
		const char *number = path + strlen(folders[i]);
		size_t digits;

		if (strncmp(path, folders[i], strlen(folders[i])))
			continue;
		digits = strspn(number, "0123456789");
		if (digits && digits < 10 && !number[digits])
			return atoi(number);
	}
	return -1;
}

/*
 * The descriptor that a path names; -1: none.  A link counts if it leads to standard output or error, as /dev/stdout does: another
 * may be anybody's.
 */
static int descriptor_of(const char *path)
{
	char to[32] = "";
	int number = strcmp(path, "-") ? number_of(path) : STDOUT_FILENO;

	if (number >= 0 || readlink(path, to, sizeof(to) - 1) <= 0)
		return number;
	number = number_of(to);
	return number == STDOUT_FILENO || number == STDERR_FILENO ? number : -1;
}

bool sl_save_is_standard(const char *path)
{
	return descriptor_of(path) == STDOUT_FILENO;
}

bool sl_save_is_open(const char *path)
{
	return descriptor_of(path) >= 0;
}

/* Descriptors of our own are closed on exec, and those that we were started with are not. */
static bool is_passed(int descriptor)
{
	int flags = fcntl(descriptor, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* By a duplicate, since a confined process may not open what the descriptor leads to. */
static FILE *stream_of(int descriptor)
{
	FILE *out;
	int fd;

	if (!is_passed(descriptor)) {
		errno = EBADF;
		return NULL;
	}
	fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out && fd >= 0)
		close(fd);
	return out;
}

bool sl_save_begin(struct sl_save *save, const char *path, bool by_name)
{
	int descriptor = path ? descriptor_of(path) : STDOUT_FILENO;
	struct stat st;

	*save = (struct sl_save){.path = path, .out = stdout};
	if (descriptor == STDOUT_FILENO)
		return true;
	if (descriptor == STDERR_FILENO) {
		errno = EINVAL; /* messages go there */
		return false;
	}
	if (descriptor >= 0) {
		save->out = stream_of(descriptor);
		return save->out;
	}
	if (lstat(path, &st) || S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		save->out = make_file(save);
	else
		save->out = by_name ? NULL : fopen(path, "we");
	if (!by_name)
		return save->out;
	if (save->made[0] && (!save->out || fclose(save->out)))
		return false;
	save->out = NULL;
	return true;
}

bool sl_save_sync(int at, const char *name)
{
	int file = openat(at, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), error;
	bool lost;

	if (file < 0 && errno == EISDIR)
		file = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return true;
	lost = fsync(file) && (errno == EIO || errno == ENOSPC || errno == EDQUOT); /* others: the file system has no such call */
	error = errno;
	close(file);
	errno = error;
	return !lost;
}

bool sl_save_end(struct sl_save *save, bool fine)
{
	struct stat st;
	int before;

	if (save->out == stdout)
		return !fflush(stdout) && fine;
	if (save->out)
		fine = !fclose(save->out) && fine;
	if (!save->made[0])
		return fine;
	if (fine && !lstat(save->path, &st)) /* a machine that dies is to leave the former one or the new one */
		fine = sl_save_sync(AT_FDCWD, save->made);
	sl_save_hold(); /* blocks for ever if a signal's handler has removed the file: the signal ends the program, not an error */
	fine = fine && !rename(save->made, save->path);
	before = errno;
	if (!fine)
		unlink(save->made);
	sl_save_finished(save->made);
	sl_save_release();
	errno = before;
	return fine;
}

FILE *sl_save_open(const char *path)
{
	struct sl_save save;
	FILE *out = sl_save_begin(&save, path, false) ? save.out : NULL;
	int before;

	if (!out || !save.made[0])
		return out;
	sl_save_hold();
	if (rename(save.made, save.path)) {
		before = errno;
		fclose(out);
		unlink(save.made);
		out = NULL;
		errno = before;
	}
	sl_save_finished(save.made);
	sl_save_release();
	return out;
}

void sl_save_limit(uint64_t bytes)
{
	struct rlimit limit;
	struct stat st;
	uint64_t before = 0; /* size of a log to which our output is appended */

	for (int fd = STDOUT_FILENO; fd < PASSED_MAX; fd++)
		if (is_passed(fd) && !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size > before)
			before = (uint64_t)st.st_size;
	if (!getrlimit(RLIMIT_FSIZE, &limit) && before + bytes < limit.rlim_cur) {
		limit.rlim_cur = before + bytes;
		setrlimit(RLIMIT_FSIZE, &limit);
	}
}

FILE *sl_save_private(const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *out = file < 0 ? NULL : fdopen(file, "w");

	if (file >= 0 && !out)
		close(file);
	return out;
}
