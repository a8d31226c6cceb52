/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"

#define TRIES 100 /* to take a place that others take too */
#define MARK  "report.json"

/* Every name that this version or an earlier one writes below its folder; folders end in a slash. */
static const char *const ours[] = {
	MARK,
	"report.html",
	"summary.md",
	"stormlog_run.json",
	"timeline.png",
	"timeline.svg",
	"ranks.png",
	"telemetry/",
	"telemetry/*/",
	"telemetry/*/manifest.json",
	"telemetry/*/rollups.json",
	"telemetry/*/segment-*.jsonl",
	"oom/",
	"oom/oom_dump_*/",
	"oom/oom_dump_*/manifest.json",
	"oom/oom_dump_*/events.json",
	"oom/oom_dump_*/metadata.json",
	"oom/oom_dump_*/environment.json",
	"oom/oom_dump_*/live_blocks.json",
};

static bool is_ours(const char *path)
{
	for (size_t i = 0; i < SL_COUNT(ours); i++)
		if (!fnmatch(ours[i], path, FNM_PATHNAME))
			return true;
	return false;
}

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

struct walk {
	bool removing, syncing;
	int error;	     /* of the disk while it is synced; 0: none */
	bool foreign, bytes; /* it holds a file that we did not write; one of ours has a byte */
};

static void walk_folder(struct walk *walk, int folder, const char *path);

static void walk_one(struct walk *walk, int folder, const char *name, const char *path)
{
	struct stat st;
	char inside[PATH_MAX];
	bool is_folder = !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);

	if (snprintf(inside, sizeof(inside), "%s%s%s", path, name, is_folder ? "/" : "") >= (int)sizeof(inside) ||
	    !is_ours(inside) || !(is_folder || S_ISREG(st.st_mode))) {
		walk->foreign = true;
		return;
	}
	if (is_folder)
		walk_folder(walk, open_folder(folder, name), inside);
	else
		walk->bytes |= st.st_size > 0;
	if (walk->syncing && !sl_save_sync(folder, name))
		walk->error = errno;
	if (walk->removing)
		unlinkat(folder, name, is_folder ? AT_REMOVEDIR : 0);
}

/* Closes `folder`. path: relative to the output folder, ending in a slash unless it is empty. */
static void walk_folder(struct walk *walk, int folder, const char *path)
{
	DIR *list = folder < 0 ? NULL : fdopendir(folder);

	if (!list) {
		walk->foreign = true;
		if (folder >= 0)
			close(folder);
		return;
	}
	for (struct dirent *entry; (entry = readdir(list));)
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			walk_one(walk, dirfd(list), entry->d_name, path);
	closedir(list);
}

static bool has_mark(int folder)
{
	char head[256] = "";
	int fd = openat(folder, MARK, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool marked = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && read(fd, head, sizeof(head) - 1) > 0 &&
		      strstr(head, "\"schema\": \"stormlog.report\"");

	if (fd >= 0)
		close(fd);
	return marked;
}

enum look { LOOK_OURS, LOOK_FOREIGN, LOOK_GONE, LOOK_FAILED };

/* Gone: another process that makes the same analysis has taken it away, or removes it. */
static enum look look_at(struct sl_destination *place)
{
	int folder = open_folder(AT_FDCWD, place->folder);
	struct stat was = {0}, now;
	struct walk walk = {0};
	bool marked;

	if (folder < 0)
		return errno == ENOENT ? LOOK_GONE : LOOK_FAILED;
	fstat(folder, &was);
	marked = has_mark(folder);
	walk_folder(&walk, folder, "");
	if (lstat(place->folder, &now) || now.st_ino != was.st_ino || now.st_dev != was.st_dev)
		return LOOK_GONE;
	place->shared = walk.foreign;
	return marked || !(walk.bytes || walk.foreign) ? LOOK_OURS : LOOK_FOREIGN;
}

/* True: we wrote the folder, or it is empty.  A machine that died may have left our files without a byte in them. */
static bool may_replace(struct sl_destination *place)
{
	enum look look = LOOK_GONE;

	for (unsigned tries = 0; tries < TRIES && look == LOOK_GONE; tries++)
		look = look_at(place);
	if (look == LOOK_FAILED)
		snprintf(place->why, sizeof(place->why), "%s: %s", place->folder, strerror(errno));
	if (look == LOOK_FOREIGN)
		snprintf(place->why, sizeof(place->why),
			 "%s has no report.json of stormlog's, and stays as it is; -o DIR names another place", place->folder);
	return look == LOOK_OURS || look == LOOK_GONE;
}

/* True: `folder` is `path` or one of the folders above it. */
static bool holds(const struct stat *folder, const char *path)
{
	char at[PATH_MAX];
	struct stat st;

	if (!realpath(path, at))
		return false;
	for (char *slash;;) {
		if (!stat(*at ? at : "/", &st) && st.st_dev == folder->st_dev && st.st_ino == folder->st_ino)
			return true;
		slash = strrchr(at, '/');
		if (!slash)
			return false;
		*slash = 0;
	}
}

static bool ends_in_dots(const char *folder)
{
	const char *name = sl_paths_name(folder);

	return !*name || !strcmp(name, ".") || !strcmp(name, "..");
}

static bool fail(struct sl_destination *place)
{
	snprintf(place->why, sizeof(place->why), "%s: %s", place->folder, strerror(errno));
	return false;
}

bool sl_destination_choose(struct sl_destination *place, const char *folder, char *const *inputs)
{
	size_t length = strlen(folder);
	struct stat st;

	*place = (struct sl_destination){0};
	while (length > 1 && folder[length - 1] == '/')
		length--;
	errno = length ? ENAMETOOLONG : ENOENT;
	if (!length || snprintf(place->folder, PATH_MAX, "%.*s", (int)length, folder) >= PATH_MAX) {
		snprintf(place->why, sizeof(place->why), "%.64s: %s", folder, strerror(errno));
		return false;
	}
	if (ends_in_dots(place->folder))
		snprintf(place->why, sizeof(place->why), "%s is no name of a new folder; -o DIR names another place",
			 place->folder);
	else if (lstat(place->folder, &st))
		return true; /* it does not exist yet; another obstacle is reported when it is made */
	else if (!S_ISDIR(st.st_mode))
		snprintf(place->why, sizeof(place->why), "%s is %s, and stays as it is; -o DIR names another place", place->folder,
			 S_ISLNK(st.st_mode) ? "a symbolic link" : "no folder");
	for (char *const *input = inputs; *input && !*place->why; input++)
		if (holds(&st, *input))
			snprintf(place->why, sizeof(place->why),
				 "%s is what is read, or holds it, and stays as it is; -o DIR names another place", place->folder);
	return !*place->why && may_replace(place);
}

bool sl_destination_begin(struct sl_destination *place)
{
	if (!sl_paths_make_parents(place->folder))
		return fail(place);
	return sl_save_make_beside(place->folder, place->made, sizeof(place->made)) || fail(place);
}

/* Removes our files in `path`, and the folder itself if nothing is left.  The mark goes first: a half removed folder has none. */
static void clear(const char *path)
{
	struct walk walk = {.removing = true};
	int folder = open_folder(AT_FDCWD, path);

	if (folder >= 0)
		unlinkat(folder, MARK, 0);
	walk_folder(&walk, folder, "");
	rmdir(path);
}

void sl_destination_drop(struct sl_destination *place)
{
	int before = errno;

	clear(place->made);
	sl_save_finished(place->made);
	errno = before;
}

/* Moves the entries of a folder into another one, and closes both.  A folder that is there already gets what ours has. */
static bool move_all(int from, int to)
{
	DIR *list = from < 0 ? NULL : fdopendir(from);
	bool fine = list && to >= 0;

	for (struct dirent *entry; fine && (entry = readdir(list));) {
		const char *name = entry->d_name;

		if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, MARK) || !renameat(from, name, to, name))
			continue;
		fine = (errno == ENOTEMPTY || errno == EEXIST) && move_all(open_folder(from, name), open_folder(to, name));
	}
	fine = fine && (!renameat(from, MARK, to, MARK) || errno == ENOENT);
	if (list)
		closedir(list);
	if (to >= 0)
		close(to);
	return fine;
}

/*
 * Replaces our files in the folder by the new ones, the mark last.  For a folder that holds files of others, and for file systems
 * that cannot exchange two folders, such as NFS and the lower layers of overlayfs.
 */
static bool replace_inside(struct sl_destination *place)
{
	clear(place->folder);
	if ((mkdir(place->folder, 0700) && errno != EEXIST) ||
	    !move_all(open_folder(AT_FDCWD, place->made), open_folder(AT_FDCWD, place->folder))) {
		snprintf(place->why, sizeof(place->why), "%s: %s; the new analysis is in %s", place->folder, strerror(errno),
			 place->made);
		return false;
	}
	clear(place->made);
	return true;
}

/*
 * Puts the new folder in place.  Signals wait, since one would leave the old folder under its temporary name.  Where two folders
 * cannot be exchanged the old one is moved aside first, and other processes may take the place in between.
 */
static bool take_place(struct sl_destination *place)
{
	char aside[PATH_MAX + 24];
	bool placed = false;

	snprintf(aside, sizeof(aside), "%s.old", place->made);
	sl_save_finished(place->made); /* after the exchange the old folder has that name */
	for (unsigned tries = 0; tries < TRIES && !placed; tries++) {
		if (!rename(place->made, place->folder)) /* no old folder, or an empty one */
			placed = true;
		if (placed || access(place->folder, F_OK))
			continue;
		if (!may_replace(place)) /* another process put a folder there meanwhile */
			break;
		if (place->shared)
			return replace_inside(place);
		if (!renameat2(AT_FDCWD, place->made, AT_FDCWD, place->folder, RENAME_EXCHANGE)) {
			placed = true;
			clear(place->made);
		} else if (errno == EXDEV) {
			return replace_inside(place);
		} else if (!rename(place->folder, aside)) {
			placed = !rename(place->made, place->folder);
			if (placed || rename(aside, place->folder))
				clear(aside); /* an older analysis than that of another process that took the place */
		}
	}
	if (!placed && !*place->why)
		fail(place);
	if (!placed)
		sl_destination_drop(place);
	return placed;
}

/* Waits until the new folder is on the disk: a machine that dies is to leave the former one or the new one. */
static bool sync_made(struct sl_destination *place)
{
	struct walk walk = {.syncing = true};

	walk_folder(&walk, open_folder(AT_FDCWD, place->made), "");
	if (!walk.error && !sl_save_sync(AT_FDCWD, place->made))
		walk.error = errno;
	errno = walk.error;
	return !walk.error || fail(place);
}

bool sl_destination_end(struct sl_destination *place)
{
	bool placed;

	*place->why = 0;
	if (!access(place->folder, F_OK) && !sync_made(place)) {
		sl_destination_drop(place);
		return false;
	}
	sl_save_hold();
	placed = take_place(place);
	sl_save_release();
	return placed;
}
