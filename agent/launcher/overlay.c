/* SPDX-License-Identifier: MIT */
/*
 * Writes of a dry run's job below its folder, its home and the folder for temporary files go to a layer over them, in a mount
 * namespace of the job's own: the job reads what it wrote, and the real files stay. Where the kernel has no such thing for this
 * user, Landlock refuses the writes (protect.c).
 */
#include "agent/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEPT = 40 };

static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return !strncmp(path, folder, length) && (!path[length] || path[length] == '/');
}

/* The layer would hide file systems that are mounted below the folder. */
static bool has_mounts(const char *folder)
{
	char line[8192], point[4096];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool found = !mounts;

	while (mounts && fgets(line, sizeof(line), mounts))
		if (sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1 && is_below(point, folder) && strcmp(point, folder))
			found = true;
	if (mounts)
		fclose(mounts);
	return found;
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = write(fd, text, strlen(text)) > 0;

	close(fd);
	return done;
}

static bool own_namespace(void)
{
	unsigned user = geteuid(), group = getegid();
	char map[64];

	if (user || unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			return false;
		snprintf(map, sizeof(map), "%u %u 1", user, user);
		if (!put("/proc/self/setgroups", "deny") || !put("/proc/self/uid_map", map))
			return false; /* AppArmor of Ubuntu 24.04 */
		snprintf(map, sizeof(map), "%u %u 1", group, group);
		if (!put("/proc/self/gid_map", map))
			return false;
	}
	return !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* Lays one layer, but not over the folders of `kept_paths` that are below the place. */
static bool lay(const char *place, const char *layers, int number, const char *const *kept_paths)
{
	char options[3 * 4096 + 64], upper[4200], work[4200];
	struct stat status;
	int fds[KEPT], count = 0;

	snprintf(upper, sizeof(upper), "%s/%d", layers, number);
	snprintf(work, sizeof(work), "%s-work", layers);
	mkdir(work, 0700);
	snprintf(work, sizeof(work), "%s-work/%d", layers, number);
	mkdir(layers, 0700);
	mkdir(upper, 0700);
	if (stat(place, &status) || chmod(upper, status.st_mode & 07777))
		return false;
	mkdir(work, 0700);
	snprintf(options, sizeof(options), "%s-of", upper); /* which --keep-writes keeps too */
	if (symlink(place, options) && errno != EEXIST)
		return false;
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s,userxattr", place, upper, work);
	for (; kept_paths[count] && count < KEPT; count++)
		fds[count] = strcmp(kept_paths[count], place) && is_below(kept_paths[count], place)
				     ? open(kept_paths[count], O_PATH | O_CLOEXEC)
				     : -1;
	if (mount("overlay", place, "overlay", 0, options))
		return false;
	for (int i = 0; i < count; i++) {
		char from[64];

		snprintf(from, sizeof(from), "/proc/self/fd/%d", fds[i]);
		if (fds[i] >= 0 && mount(from, kept_paths[i], NULL, MS_BIND | MS_REC, NULL))
			return false;
		close(fds[i]);
	}
	return true;
}

/* A layer cannot lie in the place that it is over; `memory` is in none. */
static bool lay_all(const char *const *places, const char *folder, const char *memory, const char *const *kept_paths)
{
	char layers[4160];

	if (!own_namespace())
		return false;
	for (int i = 0; places[i]; i++) {
		snprintf(layers, sizeof(layers), "%s/layers", is_below(folder, places[i]) ? memory : folder);
		if (!lay(places[i], layers, i, kept_paths))
			return false;
	}
	return true;
}

/* The same in a process that ends, so that a failure leaves this one as it was. */
static bool works(const char *const *places, const char *folder, const char *memory, const char *const *kept_paths)
{
	int status = 1;
	pid_t child = fork();

	if (!child)
		_exit(!lay_all(places, folder, memory, kept_paths));
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static bool is_below_any(const char *path, const char *const *folders)
{
	for (; *folders; folders++)
		if (is_below(path, *folders))
			return true;
	return false;
}

enum { TRACES, SCRATCH, SYSTEM, OWN = SYSTEM + 2 };

/*
 * Folders that stay the real ones, by their real paths, ended by NULL: those of every run, and from OWN on what the user allows.
 * The job's folder and home win over those of every run that they are below.
 */
static void take_kept(const struct sl_launch *run, const char *traces, const char *scratch, const char *kept_paths[KEPT + 1])
{
	const char *const own[OWN] = {[TRACES] = traces, [SCRATCH] = scratch, [SYSTEM] = "/dev", "/proc"};
	unsigned count = OWN;

	for (unsigned i = 0; i < OWN; i++)
		kept_paths[i] = realpath(own[i], NULL) ?: own[i];
	for (size_t i = 0; i < run->writes.count && count < KEPT; i++) {
		char *real = realpath(run->writes.item[i], NULL);

		if (real)
			kept_paths[count++] = real;
	}
	kept_paths[count] = NULL;
}

static bool is_fit(const char *place, const char *const *kept_paths)
{
	return *place == '/' && place[1] && !strpbrk(place, ",:\\") && !has_mounts(place) && strcmp(place, kept_paths[TRACES]) &&
	       !is_below_any(place, kept_paths + OWN);
}

/* Says so where the job could write into the real folder, though the user has not allowed it. */
static bool is_open(const char *path, const char *const *laid, const char *const *kept_paths)
{
	if (is_below_any(path, laid) || is_below_any(path, kept_paths + OWN) || !is_below_any(path, kept_paths))
		return false;
	sl_launcher_say("%s: the dry run would replace the job's files here, since no layer fits over this folder: "
			"name folders elsewhere by TMPDIR and -o, or run a copy of the job with --allow-writes %s",
			path, path);
	return true;
}

/* Adds a place to lay a layer over, in place of those that are below it. */
static int add(const char *place, int count, char places[SL_LAYERS][4096])
{
	int left = 0;

	for (int i = 0; i < count; i++) {
		if (is_below(place, places[i]))
			return count;
		if (!is_below(places[i], place) && left++ != i)
			strcpy(places[left - 1], places[i]);
	}
	strcpy(places[left], place);
	return left + 1;
}

int sl_overlay_enter(const struct sl_launch *run, const char *traces, const char *scratch, const char *memory,
		     char places[SL_LAYERS][4096])
{
	const char *kept_paths[KEPT + 1], *laid[SL_LAYERS + 1] = {0};
	char current[4096] = "", home[4096] = "", temporary[4096] = "";
	bool done = false;
	int count = 0;

	take_kept(run, traces, scratch, kept_paths);
	if (getcwd(current, sizeof(current)) && is_fit(current, kept_paths))
		count = add(current, count, places);
	if (getenv("HOME") && realpath(getenv("HOME"), home) && is_fit(home, kept_paths))
		count = add(home, count, places);
	if (realpath(sl_protect_temporary(), temporary) && is_fit(temporary, kept_paths) &&
	    !is_below_any(temporary, kept_paths + SYSTEM))
		count = add(temporary, count, places);
	for (int i = 0; i < count; i++)
		laid[i] = places[i];
	for (; count && !done; count -= !done) {
		laid[count] = NULL;
		for (int i = 0; i < 2 && !done; i++) {
			const char *folder = i ? memory : scratch;

			done = works(laid, folder, memory, kept_paths) && lay_all(laid, folder, memory, kept_paths) &&
			       !chdir(current);
		}
	}
	laid[count] = NULL;
	if (is_open(current, laid, kept_paths) || is_open(home, laid, kept_paths))
		return -1;
	for (int i = 0; i < 2; i++) {
		const char *path = i ? temporary : current;

		if (!is_below_any(path, laid) && !is_below_any(path, kept_paths))
			sl_launcher_say("no layer over %s is possible: the job's writes there fail with Permission denied. "
					"--allow-writes DIR opens a folder",
					path);
	}
	return count;
}

/* ---- what the job wrote */

static char upper[4200], real_place[4200]; /* of the layer that is walked; the same: it is over no folder */
static struct sl_writes *found;

/* True: PyTorch's pickle of a memory snapshot, whose first key is "segments". */
static bool is_snapshot(int fd)
{
	static const char key[] = "segments";
	char head[64];

	return pread(fd, head, sizeof(head), 0) == sizeof(head) && *head == '\x80' && memmem(head, sizeof(head), key, strlen(key));
}

static void keep(int from, char *to)
{
	ssize_t sent;
	int out;

	for (char *slash = to + strlen(real_place); (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = 0;
		mkdir(to, 0777);
	}
	out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	do
		sent = out < 0 ? -1 : sendfile(out, from, NULL, 1 << 30);
	while (sent > 0);
	if (sent)
		sl_launcher_say("%s: the memory snapshot of the dry run is not kept: %m", to);
	close(out);
}

static int take_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	bool over = strcmp(upper, real_place) != 0, there;
	int from = over && type == FTW_F && S_ISREG(status->st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char to[8400];

	snprintf(to, sizeof(to), "%s%s", real_place, path + strlen(upper));
	if (from >= 0 && is_snapshot(from)) {
		keep(from, to);
	} else if ((type == FTW_F || type == FTW_SL) && !strstr(path, "/__pycache__/")) {
		there = over && !faccessat(AT_FDCWD, to, F_OK, AT_SYMLINK_NOFOLLOW);
		if (!found->count++ || there > found->was_there)
			strcpy(found->one, to);
		found->was_there |= there;
	}
	close(from);
	return 0;
}

void sl_overlay_count(const char *layers, struct sl_writes *writes)
{
	char link[4300];

	found = writes;
	for (int i = 0; i < SL_LAYERS; i++) {
		ssize_t length;

		snprintf(link, sizeof(link), "%s/%d-of", layers, i);
		length = readlink(link, real_place, sizeof(real_place) - 1);
		if (length < 0)
			continue;
		real_place[length] = 0;
		snprintf(upper, sizeof(upper), "%s/%d", layers, i);
		nftw(upper, take_one, 8, FTW_PHYS);
	}
	snprintf(upper, sizeof(upper), "%s/" SL_LAYER_TEMPORARY, layers);
	strcpy(real_place, upper);
	nftw(upper, take_one, 8, FTW_PHYS);
}
