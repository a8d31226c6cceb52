/* SPDX-License-Identifier: MIT */
/*
 * --host: samples of processes that have called no GPU yet.  Their recording has files and no thread.  The ring says who they are;
 * a sample is appended to the trace as the writer's are, until the process takes the file (enum sl_outside).
 */
#include "launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "agent/process/file.h"
#include "agent/process/hostmem.h"
#include "agent/process/identity.h"
#include "agent/process/procfile.h"
#include "common/now.h"
#include "common/ringfile.h"
#include "common/tracefile.h"

#define LOOKS 20

struct process {
	char *ring; /* its path */
	int ring_fd, trace_fd;
	uint32_t header_bytes;
	struct sl_ringfile *head;
	struct sl_hostmem_process memory;
};

struct folder {
	struct timespec changed;
	unsigned looks; /* since it changed */
};

static struct process *all;
static unsigned count;
static char run_id[256], boot_id[40];

/* The pid by which our /proc knows the process; 0: it has ended. */
static uint64_t pid_of(const struct process *process)
{
	const struct sl_ringfile *head = process->head;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (!fcntl(process->ring_fd, F_GETLK, &lock) && lock.l_type != F_UNLCK)
		return lock.l_pid > 0 ? (uint64_t)lock.l_pid : 0;
	return sl_procfile_start(head->pid) == head->process_start ? head->pid : 0; /* no lock: it has closed its descriptors */
}

static void append(const struct process *process, enum sl_frame_kind kind, const void *bytes, size_t size)
{
	static char frame[sizeof(struct sl_frame_index) + ZSTD_COMPRESSBOUND(SL_RINGFILE_HEAD)];
	struct sl_frame_index index = {.magic = SL_FRAME_MAGIC, .size = sizeof(index) - 8, .kind = kind, .count = 1};
	size_t compressed = ZSTD_compress(frame + sizeof(index), sizeof(frame) - sizeof(index), bytes, size, 1);
	uint64_t end = sl_file_size(process->trace_fd);

	if (ZSTD_isError(compressed))
		return;
	index.compressed = (uint32_t)compressed;
	index.check = sl_frame_index_check(&index);
	memcpy(frame, &index, sizeof(index));
	if (sl_file_write(process->trace_fd, &(struct iovec){frame, sizeof(index) + compressed}, 1, end) &&
	    atomic_load(&process->head->outside) == SL_OUTSIDE_WRITES && ftruncate(process->trace_fd, (off_t)end))
		return; /* the reader takes what is whole */
}

/* False: the process has ended, or writes itself.  If it did not wait for us, SL_OUTSIDE_MAY tells it that the file has grown. */
static bool sample(struct process *process)
{
	uint64_t now_ns = sl_now_kernel_ns(CLOCK_MONOTONIC), pid = pid_of(process);
	uint32_t may = SL_OUTSIDE_MAY;
	struct sl_definition map;
	struct sl_hostmem memory;
	char bytes[512];

	if (!pid || !atomic_compare_exchange_strong(&process->head->outside, &may, SL_OUTSIDE_WRITES))
		return false;
	snprintf(process->memory.proc, sizeof(process->memory.proc), "/proc/%llu", (unsigned long long)pid);
	sl_hostmem_follow(&process->memory);
	sl_hostmem_read(&process->memory, &memory);
	if (memory.vm_bytes && memory.vm_bytes != SL_HOSTMEM_UNKNOWN) { /* else a zombie */
		if (!sl_file_size(process->trace_fd))
			append(process, SL_FRAME_HEADER, (char *)process->head + SL_RINGFILE_HEADER_AT, process->header_bytes);
		map = sl_hostmem_sample(bytes, sizeof(bytes), &memory, now_ns);
		if (sl_definition_end(&map))
			append(process, SL_FRAME_DEFS, bytes, map.pack.used);
	}
	return atomic_exchange(&process->head->outside, SL_OUTSIDE_MAY) == SL_OUTSIDE_WRITES;
}

static void forget(struct process *process)
{
	if (process->head)
		munmap(process->head, SL_RINGFILE_HEAD);
	if (process->trace_fd >= 0)
		close(process->trace_fd);
	close(process->ring_fd);
	free(process->ring);
	*process = all[--count];
}

/* Anybody may put a ring where we look.  It names a file that is written to: so both must be files of the user whom we run as. */
static bool is_ours(int fd, off_t least)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 && st.st_size >= least;
}

/*
 * The lock: another launcher of this run may see the same rings.  O_APPEND: where a write takes so long that the process no longer
 * waits for it, it ends up behind what the process has written.
 */
static bool open_trace(struct process *process, const char *name)
{
	int folder = *name == '/' ? 0 : (int)(strrchr(process->ring, '/') + 1 - process->ring);
	char path[8192];

	snprintf(path, sizeof(path), "%.*s%s", folder, process->ring, name);
	process->trace_fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return process->trace_fd >= 0 && is_ours(process->trace_fd, 0) && !flock(process->trace_fd, LOCK_EX | LOCK_NB);
}

static bool is_wanted(int fd, struct sl_ringfile *head)
{
	static char header[SL_RINGFILE_HEAD - SL_RINGFILE_HEADER_AT];

	return sl_recorded_names(header, sl_recorded_in_ring(fd, head, header, sizeof(header)), run_id) &&
	       !memcmp(head->boot_id, boot_id, strlen(boot_id)) && atomic_load(&head->outside) == SL_OUTSIDE_MAY;
}

static void add(const char *path)
{
	static struct sl_ringfile head;
	struct process *process, *more;
	void *map;

	for (unsigned i = 0; i < count; i++)
		if (!strcmp(all[i].ring, path))
			return;
	more = realloc(all, (count + 1) * sizeof(*all));
	if (!more)
		return;
	all = more;
	process = &all[count];
	*process = (struct process){.ring_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), .trace_fd = -1};
	if (process->ring_fd < 0)
		return;
	process->memory.read = sl_procfile_read;
	process->ring = strdup(path);
	count++;
	if (process->ring && is_ours(process->ring_fd, SL_RINGFILE_HEAD) && is_wanted(process->ring_fd, &head) &&
	    open_trace(process, head.trace)) {
		process->header_bytes = head.header_bytes;
		map = mmap(NULL, SL_RINGFILE_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, process->ring_fd, 0);
		process->head = map == MAP_FAILED ? NULL : map;
	}
	if (!process->head)
		forget(process);
}

/* Looks into a folder while it changes and a few times after: the ring of a process that just begins may not be whole yet. */
static void look(const char *folder, const char *name, struct folder *seen)
{
	char pattern[8192];
	struct stat now = {0};
	glob_t found;

	if (stat(folder, &now) || now.st_mtim.tv_sec != seen->changed.tv_sec || now.st_mtim.tv_nsec != seen->changed.tv_nsec)
		*seen = (struct folder){.changed = now.st_mtim};
	else if (seen->looks++ > LOOKS)
		return;
	snprintf(pattern, sizeof(pattern), "%s%s" SL_RING_SUFFIX, folder, name);
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		add(found.gl_pathv[i]);
	globfree(&found);
}

static void sample_all(const struct sl_launch *run)
{
	static struct folder home, remote;
	char folder[8192 - 64];

	sl_recorded_pattern(run->directory, folder, sizeof(folder));
	look(folder, "/rank-*", &home);
	look(SL_REMOTE_RING, "/" SL_REMOTE_RING_PREFIX "*", &remote);
	for (unsigned i = count; i--;)
		if (!sample(&all[i]))
			forget(&all[i]);
}

void sl_outside_begin(const struct sl_launch *run)
{
	strcpy(run_id, run->run_id);
	if (!*run_id)
		sl_identity_run_named(run_id, sizeof(run_id));
	sl_procfile_read("/proc/sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
	boot_id[strcspn(boot_id, "\n")] = 0;
}

int sl_outside_wait(const struct sl_launch *run, const sigset_t *set, siginfo_t *info)
{
	static uint64_t due_ns;
	uint64_t interval_ns = run->options.device_interval * 1000000ull, now_ns = sl_now_kernel_ns(CLOCK_MONOTONIC), left_ns;

	if (!run->options.host || !interval_ns)
		return sigwaitinfo(set, info);
	if (now_ns >= due_ns) {
		sample_all(run);
		due_ns = now_ns + interval_ns;
		now_ns = sl_now_kernel_ns(CLOCK_MONOTONIC);
	}
	left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
	return sigtimedwait(set, info, &(struct timespec){(time_t)(left_ns / SL_NS_PER_S), (long)(left_ns % SL_NS_PER_S)});
}
