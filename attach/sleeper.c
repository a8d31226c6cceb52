/* SPDX-License-Identifier: MIT */
#include "attach/attach.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "common/tracefile.h"

#define ANSWER_MS  10000
#define LOOK_MS	   5
#define HEAD_BYTES offsetof(struct sl_ringfile, segment)

static const char *const no_ring = "it has no recording: it was not started with the agent, or has not called the GPU yet",
			 *const no_rights = "its recording may not be written to by this user",
			 *const too_old = "its agent is of an older version, which cannot be woken";

static bool is_ring(const char *path)
{
	size_t size = strlen(path), suffix = strlen(SL_RING_SUFFIX);

	return size > suffix && !strcmp(path + size - suffix, SL_RING_SUFFIX);
}

/* The process holds a lock on its ring while it lives.  Locks of this program itself would not show, but it takes none. */
static bool is_alive(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return !fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/*
 * Opens a ring and reads its header, without the segments.  Its owner may cut or replace the file at any time, so it is never
 * mapped.  -1: it may not be written to (errno is EACCES or EPERM), or it is no regular file, or too short.
 */
static int open_ring(const char *path, struct stat *st, struct sl_ringfile *head)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || (!fstat(fd, st) && S_ISREG(st->st_mode) && pread(fd, head, HEAD_BYTES, 0) == (ssize_t)HEAD_BYTES))
		return fd;
	close(fd);
	errno = ENOEXEC;
	return -1;
}

static bool obeys(const struct sl_ringfile *head)
{
	return !memcmp(head->magic, SL_RINGFILE_MAGIC, sizeof(head->magic)) && atomic_load(&head->obeys);
}

/* Adds the recording of a ring.  NULL, or why not. */
static const char *add(struct sl_sleepers *list, const char *path)
{
	struct sl_ringfile head;
	struct sl_sleeper *sleeper;
	struct stat st;
	int fd = open_ring(path, &st, &head);
	bool alive = fd >= 0 && is_alive(fd);

	if (fd < 0)
		return errno == EACCES || errno == EPERM ? no_rights : no_ring;
	close(fd);
	if (!alive)
		return no_ring;
	if (!obeys(&head))
		return too_old;
	list->item = sl_attach_room(list->item, list->count, &list->capacity, sizeof(*list->item));
	sleeper = &list->item[list->count++];
	*sleeper = (struct sl_sleeper){.pid = (long)head.pid, .device = st.st_dev, .inode = st.st_ino};
	snprintf(sleeper->path, sizeof(sleeper->path), "%s", path);
	return NULL;
}

/* The process's number in each pid namespace that /proc shows.  A ring that a fork left mapped belongs to the parent. */
static bool is_number_of(long pid, long number)
{
	char path[64], line[360], *at = line;
	uint64_t found = 0;

	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	sl_procfile_find(path, "NSpid:", line, sizeof(line));
	while ((long)found != number && sl_procfile_digits(at, &found))
		at += strcspn(at, " \t") + strspn(at + strcspn(at, " \t"), " \t");
	return number > 0 && (long)found == number;
}

/* A path of a container is looked at from inside it. */
static const char *add_mapped(struct sl_sleepers *list, long pid, const char *path)
{
	char inside[4096 + 64];
	const char *why;

	snprintf(inside, sizeof(inside), "/proc/%ld/root%s", pid, path);
	why = add(list, access(inside, F_OK) ? path : inside);
	if (!why && !is_number_of(pid, list->item[list->count - 1].pid)) {
		list->count--;
		why = no_ring;
	}
	return why;
}

bool sl_sleepers_add_process(struct sl_sleepers *list, long pid, const char **why)
{
	char path[64], line[8192], *at;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
	file = fopen(path, "re");
	*why = file ? no_ring : errno == ENOENT ? "there is no such process" : "its memory map may not be read by this user";
	while (file && !found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		at = strchr(line, '/');
		if (at && is_ring(at))
			found = !(*why = add_mapped(list, pid, at));
	}
	if (file)
		fclose(file);
	return found;
}

int sl_sleepers_add_folder(struct sl_sleepers *list, const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	size_t before = list->count;
	char ring[4096];

	if (!folder && errno == ENOTDIR && is_ring(path))
		return !add(list, path);
	if (!folder)
		return -1;
	while ((entry = readdir(folder)))
		if (is_ring(entry->d_name) && snprintf(ring, sizeof(ring), "%s/%s", path, entry->d_name) < (int)sizeof(ring))
			add(list, ring);
	closedir(folder);
	return (int)(list->count - before);
}

/* The ring of a sleeper, with its header.  -1: it is gone, or another file, or cut. */
static int open_again(const struct sl_sleeper *sleeper, struct sl_ringfile *head)
{
	struct stat st;
	int fd = open_ring(sleeper->path, &st, head);

	if (fd < 0 || (st.st_dev == sleeper->device && st.st_ino == sleeper->inode && obeys(head)))
		return fd;
	close(fd);
	return -1;
}

static void ask(const struct sl_sleeper *sleeper, uint32_t wish)
{
	struct sl_ringfile head;
	int fd = open_again(sleeper, &head);

	if (fd < 0)
		return;
	/* a wish that cannot be written has no answer, which is told */
	(void)!pwrite(fd, &wish, sizeof(wish), offsetof(struct sl_ringfile, asked));
	close(fd);
}

static enum sl_answer answer_of(const struct sl_sleeper *sleeper, bool wake)
{
	struct sl_ringfile head;
	int fd = open_again(sleeper, &head);
	bool lives = fd >= 0 && is_alive(fd) && atomic_load(&head.state) != SL_PROCESS_COMPLETED;

	if (fd >= 0)
		close(fd);
	return !lives ? SL_ANSWER_ENDED : !atomic_load(&head.asleep) == wake ? SL_ANSWER_DONE : SL_ANSWER_NONE;
}

unsigned sl_sleepers_turn(struct sl_sleepers *list, bool wake)
{
	const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
	unsigned silent = 0;

	for (size_t i = 0; i < list->count; i++)
		ask(&list->item[i], wake ? SL_ASKED_TO_WAKE : SL_ASKED_TO_REST);
	for (unsigned ms = 0; ms < ANSWER_MS; ms += LOOK_MS) {
		silent = 0;
		for (size_t i = 0; i < list->count; i++) {
			list->item[i].answer = answer_of(&list->item[i], wake);
			silent += list->item[i].answer == SL_ANSWER_NONE;
		}
		if (!silent)
			return 0;
		nanosleep(&look, NULL);
	}
	return silent;
}

bool sl_sleepers_has(const struct sl_sleepers *list, long pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_number_of(pid, list->item[i].pid))
			return true;
	return false;
}

void sl_sleepers_free(struct sl_sleepers *list)
{
	free(list->item);
	*list = (struct sl_sleepers){0};
}
