/* SPDX-License-Identifier: MIT */
#include "agent/process/process.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "common/fnv.h"

#define KEPT_MAX	12
#define DESCRIPTORS_MIN 256
#define OWN_STAT	"/proc/self/stat"
#define OWN_STATUS	"/proc/thread-self/status"
#define EXIT_CODE	52 /* the number of its field in /proc/PID/stat, from 1 on */

enum state { FREE, OPENING, OPEN };

static struct proc_file {
	_Atomic unsigned state; /* enum state */
	_Atomic uint64_t path;	/* hash of the path */
	_Atomic int fd;		/* -1: there is no such file */
	_Atomic uint64_t device, inode;
	_Atomic uint64_t read; /* number of the last reading */
} table[KEPT_MAX];

static _Atomic uint64_t readings;
static _Atomic bool sandboxed;
static bool deserted, outlived; /* deserted: only our threads are left; outlived: threads went on when the first one had ended */
static bool was_another;	/* a thread of ours that ended is counted for a moment longer */
static uint64_t filters_at_start, handled;

static long read_again(int fd, char *buffer, size_t size)
{
	size_t total = 0;
	long got;

	do {
		got = syscall(SYS_pread64, fd, buffer + total, size - 1 - total, (off_t)total);
		total += got > 0 ? (size_t)got : 0;
	} while ((got > 0 && total + 1 < size) || (got < 0 && errno == EINTR));
	buffer[total] = 0;
	return got < 0 && !total ? -1 : (long)total;
}

static struct proc_file *find(uint64_t path)
{
	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (atomic_load_explicit(&table[i].state, memory_order_acquire) == OPEN && table[i].path == path)
			return &table[i];
	return NULL;
}

/* Few descriptors are left for the program, unless ours lie beyond its limit. */
static bool has_descriptors(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) &&
	       (limit.rlim_cur >= DESCRIPTORS_MIN || limit.rlim_max >= limit.rlim_cur + SL_FILE_OURS);
}

/* The entry is OPENING. */
static void open_entry(struct proc_file *file, const char *path)
{
	int fd = sl_file_open(path, O_RDONLY | O_NOCTTY);
	bool absent = fd < 0 && (errno == ENOENT || errno == EACCES) && strncmp(path, "/proc/", 6);
	uint64_t device = 0, inode = 0;

	if (fd >= 0)
		fd = sl_file_move_high(fd);
	sl_file_identity(fd, &device, &inode);
	atomic_store(&file->device, device);
	atomic_store(&file->inode, inode);
	atomic_store(&file->fd, fd);
	atomic_store_explicit(&file->state, fd >= 0 || absent ? OPEN : FREE, memory_order_release);
}

static void forget(struct proc_file *file)
{
	unsigned open = OPEN;

	if (!atomic_compare_exchange_strong(&file->state, &open, OPENING))
		return;
	sl_file_close_own(file->fd, file->device, file->inode);
	atomic_store(&file->state, FREE);
}

/* Gives up the file that was read longest ago, such as one of a cgroup that was left; not the one that is read at the end. */
static void forget_oldest(void)
{
	uint64_t own_stat = sl_fnv_text(OWN_STAT);
	struct proc_file *oldest = NULL;

	for (unsigned i = 0; i < KEPT_MAX; i++)
		if (table[i].path != own_stat && (!oldest || atomic_load(&table[i].read) < atomic_load(&oldest->read)))
			oldest = &table[i];
	if (oldest && atomic_load(&readings) - atomic_load(&oldest->read) >= 4 * KEPT_MAX)
		forget(oldest);
}

static void keep(const char *path, uint64_t hash)
{
	if (!has_descriptors())
		return;
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		unsigned unused = FREE;

		if (!atomic_compare_exchange_strong(&table[i].state, &unused, OPENING))
			continue;
		table[i].path = hash;
		open_entry(&table[i], path);
		return;
	}
	forget_oldest(); /* there is room at the next reading */
}

/* The program has closed our descriptor, or has a file of its own there: opens it anew.  False: not now. */
static bool is_whole(struct proc_file *file, const char *path)
{
	unsigned open = OPEN;

	if (sl_file_is(file->fd, file->device, file->inode))
		return true;
	if (sl_open_proc_sandboxed() || !atomic_compare_exchange_strong(&file->state, &open, OPENING))
		return false;
	open_entry(file, path);
	return atomic_load(&file->state) == OPEN && file->fd >= 0;
}

long sl_open_proc_read(const char *path, char *buffer, size_t size)
{
	uint64_t hash = sl_fnv_text(path);
	struct proc_file *file = find(hash);
	uint64_t reading = atomic_fetch_add(&readings, 1);
	int saved = errno;
	long got = -1;

	buffer[0] = 0;
	if (!file && !sl_open_proc_sandboxed()) {
		keep(path, hash);
		file = find(hash);
	}
	if (file)
		atomic_store(&file->read, reading);
	if (file && file->fd >= 0 && is_whole(file, path))
		got = read_again(file->fd, buffer, size);
	else if ((!file || file->fd >= 0) && !sl_open_proc_sandboxed())
		got = sl_procfile_read(path, buffer, size);
	errno = saved;
	return got;
}

/* The kernel's, of the process or a thread.  Of the writer, or the one thread that runs while there is none. */
static char status[8192];

/* "": not available */
static const char *read_status(void)
{
	sl_open_proc_read("/proc/self/status", status, sizeof(status));
	return status;
}

/* A set of signals as the kernel prints it, sixteen hexadecimal digits: number N is bit N - 1. */
static uint64_t procfile_signals(const char *digits)
{
	uint64_t set = 0;

	for (; (*digits >= '0' && *digits <= '9') || (*digits >= 'a' && *digits <= 'f'); digits++)
		set = set << 4 | (uint64_t)(*digits <= '9' ? *digits - '0' : *digits - 'a' + 10);
	return set;
}

static uint64_t signals_of(const char *status, const char *name)
{
	const char *at = sl_procfile_line(status, name);

	return at ? procfile_signals(at) : 0;
}

static uint64_t number_of(const char *status, const char *name)
{
	const char *at = sl_procfile_line(status, name);
	uint64_t number = 0;

	return at && sl_procfile_digits(at, &number) ? number : 0;
}

/* Mode and number of seccomp filters (since Linux 5.9) as one figure that only grows. */
static uint64_t filters(const char *status)
{
	return number_of(status, "Seccomp:") + (number_of(status, "Seccomp_filters:") << 8);
}

void sl_open_proc_look(bool (*another)(void))
{
	const char *status = read_status(), *state = sl_procfile_line(status, "State:");
	bool first_ended = state && *state == 'Z', is_another = another();
	uint64_t threads = number_of(status, "Threads:") - is_another;

	if (filters(status) > filters_at_start)
		atomic_store(&sandboxed, true);
	handled = *status ? signals_of(status, "SigCgt:") : UINT64_MAX;
	deserted = first_ended && threads == 2;
	outlived = outlived || (first_ended && threads > (was_another ? 3 : 2));
	was_another = is_another;
}

uint64_t sl_open_proc_handled(void)
{
	return handled;
}

void sl_open_proc_writer_begin(void)
{
	struct proc_file *before = find(sl_fnv_text(OWN_STATUS));

	if (before && !sl_open_proc_sandboxed())
		forget(before);
}

uint64_t sl_open_proc_own_pending(void)
{
	return sl_open_proc_read(OWN_STATUS, status, sizeof(status)) > 0 ? signals_of(status, "SigPnd:") : 0;
}

bool sl_open_proc_confined_alone(void)
{
	uint64_t own;

	if (sl_open_proc_sandboxed() || syscall(SYS_gettid) == syscall(SYS_getpid) ||
	    sl_procfile_read(OWN_STATUS, status, sizeof(status)) <= 0)
		return false;
	own = filters(status);
	return own > filters_at_start && own > filters(read_status());
}

bool sl_open_proc_deserted(void)
{
	return deserted;
}

/* Field 52 of the first thread's line: the last one, unless later kernels add more. */
int sl_open_proc_last_status(void)
{
	char stat[1024];
	const char *at;
	uint64_t code = 0;

	if (outlived || sl_open_proc_read(OWN_STAT, stat, sizeof(stat)) <= 0 || !(at = strrchr(stat, ')')))
		return 0;
	for (int field = 2; at && field < EXIT_CODE; field++)
		at = strchr(at + 1, ' ');
	return at && sl_procfile_digits(at + 1, &code) ? (int)(code & 0xffff) : 0;
}

bool sl_open_proc_sandboxed(void)
{
	return SL_UNLIKELY(atomic_load_explicit(&sandboxed, memory_order_relaxed));
}

bool sl_open_proc_filtered(void)
{
	return filters_at_start > 0;
}

void sl_open_proc_begin(void)
{
	for (unsigned i = 0; i < KEPT_MAX; i++) {
		if (atomic_load(&table[i].state) == OPEN)
			sl_file_close_own(table[i].fd, table[i].device, table[i].inode);
		atomic_store(&table[i].state, FREE);
	}
	atomic_store(&sandboxed, false);
	deserted = outlived = false;
	was_another = true;
	filters_at_start = filters(read_status()); /* of the first thread */
	keep(OWN_STAT, sl_fnv_text(OWN_STAT));	   /* read at the end, when files may no longer be opened */
}
