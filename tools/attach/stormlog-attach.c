/* SPDX-License-Identifier: MIT */
/* stormlog-attach TARGET...: wakes the recordings that sleep in running processes, and watches those without one by BPF. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "common/arguments.h"
#include "analyzer/base/escape.h"
#include "tools/attach/attach.h"
#include "common/standard.h"
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

struct sl_sleeper {
	char path[4096]; /* of the ring */
	dev_t device;	 /* and its file */
	ino_t inode;
	long pid;	       /* as the recording numbers it */
	enum sl_answer answer; /* to the last turn */
};

struct sl_sleepers {
	struct sl_sleeper *item;
	size_t count, capacity;
};

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

/* The living recording of this process.  False: it has none that obeys; *why says what it has instead. */
static bool add_sleeping(struct sl_sleepers *list, long pid, const char **why)
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

/* Finds every living process whose ring lies in the folder, or whose ring is this file.  Returns how many; -1: no such folder. */
static int add_sleeping_of(struct sl_sleepers *list, const char *path)
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

/* Asks all of them and waits until each has answered or ended.  Returns how many did neither within 10 s. */
static unsigned turn_sleepers(struct sl_sleepers *list, bool wake)
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

static bool has_sleepers(const struct sl_sleepers *list, long pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_number_of(pid, list->item[i].pid))
			return true;
	return false;
}

static void free_sleepers(struct sl_sleepers *list)
{
	free(list->item);
	*list = (struct sl_sleepers){0};
}

enum { FINE, USAGE = 2, NOTHING = 3, FAILED = 4 };
#define ID_BYTES 6 /* shorter prefixes would match many containers */

static const char about[] =
	"Look into running programs. A recording that sleeps (stormlog-run --asleep) is woken: of each PID, or of all that record "
	"into DIR; that needs no right but to write to its files. A process without one is watched by BPF, as root, until an "
	"interrupt: its calls go into a trace of DIR.\n"
	"\n"
	"Says `ready` on stderr when all have answered and all probes are in place. Exit status: 0 fine, 2 usage or a target that "
	"does not exist, 3 no process there can be woken or watched, 4 one did not answer within 10 s, or a trace could not be "
	"written.";

struct request {
	bool rest, yes;	 /* yes: --all does not ask */
	double duration; /* seconds; 0: none */
	enum sl_group group;
	const char *group_name, *folder, *seconds;
	struct sl_texts pids;
	struct sl_sleepers sleepers;
	struct sl_attach_watch *watch;
	bool wakes_only; /* the kernel does not let us watch */
	struct refused {
		long pid;
		const char *why;
	} * refused; /* members of the group that cannot be watched so far, each reported once */
	size_t refused_count, refused_capacity;
	int status;
};

#define INTO struct request
static const struct sl_option table[] = {
	{"--all", 0, NULL, "every process of this node that uses a GPU, now or later; says how many, and asks"},
	{"--cgroup", 0, "PATH", "every such process of a cgroup (a path as in /proc/PID/cgroup) and of those below it"},
	{"--container", 0, "ID", "every such process of a container, by its id or the beginning of it"},
	{"--pid", 'p', "PID", "the same as naming it without -p", SL_TO_TEXTS(pids)},
	{"--yes", 0, NULL, "do not ask", SL_TO_FLAG(yes)},
	{"--output", 'o', "DIR", "where traces of watched processes go (default: traces)", SL_TO_TEXT(folder)},
	{"--rest", 0, NULL, "put recordings back to rest: from then on their calls are only counted", SL_TO_FLAG(rest)},
	{"--duration", 0, "SECONDS", "stay so long; then, or at an interrupt, remove the probes and put to rest what was woken",
	 SL_TO_TEXT(seconds)},
	SL_OPTION_HELP,
	{0},
};

static void say(const char *target, const char *why)
{
	sl_escape_print(stderr, "stormlog-attach: %s: %s\n", target, why);
}

static void fail(struct request *request, int status)
{
	if (request->status == FINE || status < request->status)
		request->status = status;
}

static void refuse_target(struct request *request, int status, const char *target, const char *why)
{
	say(target, why);
	fail(request, status);
}

/* NULL: the process will be woken, or is watched; else why not. */
static const char *add_pid(struct request *request, long pid)
{
	const char *why, *why_not;

	if (sl_watch_has(request->watch, pid))
		return NULL;
	if (add_sleeping(&request->sleepers, pid, &why) || request->rest)
		return request->rest ? why : NULL;
	why_not = sl_watch_add(request->watch, pid);
	if (why_not)
		sl_escape_print(stderr, "stormlog-attach: %ld: no recording to wake: %s\n", pid, why);
	return why_not;
}

static void add_process(struct request *request, const char *target)
{
	char *end;
	long pid = strtol(target, &end, 10);
	const char *why;

	if (*end || pid <= 0)
		refuse_target(request, USAGE, target, "is no process and no folder");
	else if (kill((pid_t)pid, 0) && errno == ESRCH)
		refuse_target(request, USAGE, target, "there is no such process");
	else if ((why = add_pid(request, pid)))
		refuse_target(request, sl_watch_failed(request->watch) ? FAILED : NOTHING, target, why);
}

static void refuse(struct request *request, long pid, const char *why)
{
	for (size_t i = 0; i < request->refused_count; i++)
		if (request->refused[i].pid == pid && request->refused[i].why == why)
			return;
	request->refused =
		sl_attach_room(request->refused, request->refused_count, &request->refused_capacity, sizeof(*request->refused));
	request->refused[request->refused_count++] = (struct refused){pid, why};
	sl_escape_print(stderr, "stormlog-attach: %ld: %s\n", pid, why);
}

/* Takes the members of a group that have a recording or a GPU library; passes over the others. */
static void add_member(void *data, long pid)
{
	struct request *request = data;
	const char *why;

	if (!sl_watch_has(request->watch, pid) && !has_sleepers(&request->sleepers, pid) &&
	    !add_sleeping(&request->sleepers, pid, &why) && !request->rest && !request->wakes_only && sl_watch_uses_gpu(pid) &&
	    (why = sl_watch_add(request->watch, pid)))
		refuse(request, pid, why);
}

#define ROOT "/sys/fs/cgroup"

static bool is_below(const char *path, const char *name)
{
	size_t length = strlen(name);

	while (length && name[length - 1] == '/')
		length--;
	return !strncmp(path, name, length) && (!path[length] || path[length] == '/' || path[length] == '\n');
}

/*
 * Version 2 has "0::/system.slice/docker-0123.scope", older hierarchies "4:cpu,cpuacct:/job": the path follows the second
 * colon. An older hierarchy has a folder of its own below ROOT: "cpu,cpuacct", "systemd" for name=systemd, and "unified" where
 * both versions are mounted.
 */
static bool is_in(enum sl_group group, const char *name, const char *line)
{
	const char *which = strchr(line, ':'), *path = which ? strchr(which + 1, ':') : NULL;
	char folder[256];
	bool is_second;

	if (!path++)
		return false;
	if (group == SL_GROUP_CONTAINER)
		return strstr(path, name) != NULL;
	if (strncmp(name, ROOT, sizeof(ROOT) - 1))
		return is_below(path, name);
	name += sizeof(ROOT) - 1;
	which += 1 + (strncmp(which + 1, "name=", 5) ? 0 : 5);
	is_second = path - 1 == which;
	if (is_second)
		snprintf(folder, sizeof(folder), "/unified");
	else
		snprintf(folder, sizeof(folder), "/%.*s", (int)(path - 1 - which), which);
	if (is_below(name, folder))
		return is_below(path, name + strlen(folder));
	return is_second && is_below(path, name);
}

static bool belongs(enum sl_group group, const char *name, long pid)
{
	char path[64], line[4096];
	bool found = group == SL_GROUP_ALL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/cgroup", pid);
	file = found ? NULL : fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = is_in(group, name, line);
	if (file)
		fclose(file);
	return found;
}

/*
 * Every process of the group except this one.  A group is the whole node; a cgroup with those below it, named by its path under
 * /sys/fs/cgroup or as in /proc/PID/cgroup; or a container, named by a part of its id.  Returns how many.
 */
static unsigned targets_each(enum sl_group group, const char *name, void (*each)(void *data, long pid), void *data)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	while (proc && (entry = readdir(proc))) {
		long pid = atol(entry->d_name);

		if (pid > 0 && pid != getpid() && belongs(group, name, pid)) {
			each(data, pid);
			count++;
		}
	}
	if (proc)
		closedir(proc);
	return count;
}

static void search(void *data)
{
	struct request *request = data;

	targets_each(request->group, request->group_name, add_member, request);
	turn_sleepers(&request->sleepers, true);
}

static void add_target(struct request *request, const char *target)
{
	int found;

	if (strspn(target, "0123456789") == strlen(target)) {
		add_process(request, target);
		return;
	}
	found = add_sleeping_of(&request->sleepers, target);
	if (found < 0)
		refuse_target(request, USAGE, target, strerror(errno));
	else if (!found)
		refuse_target(request, NOTHING, target, "no running program records into it");
}

static void print_sleepers(const struct sl_sleepers *list, bool wake)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct sl_sleeper *sleeper = &list->item[i];

		sl_escape_print(stderr, "stormlog-attach: %ld %s (%s)\n", sleeper->pid,
				sleeper->answer == SL_ANSWER_ENDED  ? "has ended"
				: sleeper->answer == SL_ANSWER_NONE ? "is silent"
				: wake				    ? "is awake"
								    : "is at rest",
				sleeper->path);
	}
}

static void turn(struct request *request, bool wake)
{
	unsigned silent = turn_sleepers(&request->sleepers, wake);

	print_sleepers(&request->sleepers, wake);
	if (silent) {
		sl_escape_print(stderr, "stormlog-attach: %u did not answer within 10 s: stopped, or its disk hangs\n", silent);
		fail(request, FAILED);
	}
}

static void stay(double seconds)
{
	struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	while (sigtimedwait(&ends, NULL, &left) < 0 && errno == EINTR)
		;
}

static bool is_duration(struct request *request)
{
	char *end;

	request->duration = strtod(request->seconds, &end);
	if (!*end && end != request->seconds && request->duration > 0 && request->duration < 1e9)
		return true;
	say(request->seconds, "is no duration: seconds must be more than 0 and less than 1000000000");
	return false;
}

/* The first rows of the table, in the order of enum sl_group. */
static bool choose_group(void *context, int option, const char *name)
{
	struct request *request = context;
	enum sl_group group = (enum sl_group)(SL_GROUP_ALL + option);

	if (request->group) {
		fputs("stormlog-attach: --all, --cgroup and --container exclude each other\n", stderr);
		request->status = USAGE;
	}
	if (group == SL_GROUP_CONTAINER && strlen(name) < ID_BYTES)
		refuse_target(request, USAGE, name, "an id has 6 characters at least");
	if (group == SL_GROUP_CGROUP && *name != '/')
		refuse_target(request, USAGE, name, "the path of a cgroup begins with / (/proc/PID/cgroup has it)");
	request->group = group;
	request->group_name = name ? name : "--all";
	return true;
}

/* -1: go on; else the exit status. */
static int parse(struct request *request, struct sl_arguments *parsed)
{
	int status = sl_arguments_parse(parsed, choose_group, request);

	if (status >= 0)
		return status;
	if (request->seconds && !is_duration(request))
		return USAGE;
	if (!parsed->path_count && !request->pids.count && !request->group)
		return fputs("stormlog-attach: which process? stormlog-attach PID (stormlog-top shows them)\n", stderr), USAGE;
	if (request->rest && request->duration > 0)
		return fputs("stormlog-attach: --rest and --duration exclude each other\n", stderr), USAGE;
	request->watch = sl_watch_new(request->folder);
	for (size_t i = 0; i < request->pids.count; i++)
		add_process(request, request->pids.item[i]);
	for (unsigned i = 0; i < parsed->path_count; i++)
		add_target(request, parsed->paths[i]);
	return request->status == USAGE ? USAGE : -1;
}

struct members {
	struct sl_sleepers sleepers;
	unsigned watched;
};

static void count_member(void *data, long pid)
{
	struct members *members = data;
	const char *why;

	members->watched += !add_sleeping(&members->sleepers, pid, &why) && sl_watch_uses_gpu(pid);
}

/* True: the user agrees to what --all would do.  Without a terminal there is nobody to ask, and --yes must be given. */
static bool is_agreed(struct request *request)
{
	struct members members = {0};
	char answer[8] = "";

	if (request->group != SL_GROUP_ALL || request->yes)
		return true;
	targets_each(SL_GROUP_ALL, "", count_member, &members);
	sl_escape_print(stderr, "stormlog-attach: --all %s %zu recordings and %s %u other processes of this node",
			request->rest ? "puts to rest" : "wakes", members.sleepers.count, request->rest ? "passes over" : "watches",
			members.watched);
	free_sleepers(&members.sleepers);
	if (!isatty(STDIN_FILENO)) {
		fputs(": add --yes\n", stderr);
		return false;
	}
	fputs(". Go on? [y/N] ", stderr);
	return fgets(answer, sizeof(answer), stdin) && (*answer == 'y' || *answer == 'Y');
}

static void work(struct request *request)
{
	const char *why = request->group && !request->rest ? sl_watch_open(request->watch) : NULL;

	request->wakes_only = why;
	if (request->group && !targets_each(request->group, request->group_name, add_member, request))
		say(request->group_name, "no process belongs to it so far");
	if (why)
		refuse_target(request, NOTHING, request->group_name, why);
	if (!request->sleepers.count && !sl_watch_count(request->watch) && (!request->group || why))
		return;
	turn(request, !request->rest);
	fputs("ready\n", stderr);
	if (sl_watch_count(request->watch) || (request->group && !request->rest && !why)) {
		if (!sl_watch_run(request->watch, request->duration, request->group ? search : NULL, request))
			fail(request, FAILED);
	} else if (request->duration > 0) {
		stay(request->duration);
	}
	if (request->duration > 0)
		turn(request, false);
}

int main(int argc, char **argv)
{
	struct request request = {.folder = "traces"};
	struct sl_arguments parsed = {"stormlog-attach", "[options] PID|DIR|RING...", about, table, SL_PATHS_OPTIONAL, argc, argv,
				      sl_escape_refuse};
	sigset_t ends;
	int status;

	sl_standard_hold(0);
	/* an interrupt ends the attachment, not this program */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	status = parse(&request, &parsed);
	if (status < 0 && !is_agreed(&request)) {
		status = USAGE;
	} else if (status < 0) {
		work(&request);
		status = request.status;
	}
	free_sleepers(&request.sleepers);
	sl_watch_free(request.watch);
	free(request.refused);
	free(request.pids.item);
	sl_arguments_free(&parsed);
	return sl_standard_told("stormlog-attach", status, FAILED);
}
