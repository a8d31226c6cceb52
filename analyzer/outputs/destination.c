/* SPDX-License-Identifier: MIT */
#include "analyzer/outputs/destination.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "common/base.h"

#define TRIES 100 /* to take a place that others take too */
#define NS    1000000000ll
#define ASIDE ".old"
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

/* The part of `path` behind one of our names and "/analysis/": an analysis of our own bundle or telemetry.  NULL: it is none. */
static const char *nested(const char *path)
{
	static const char name[] = "/analysis/";
	const char *at = strstr(path, name);
	char outer[PATH_MAX];

	if (!at || snprintf(outer, sizeof(outer), "%.*s/", (int)(at - path), path) >= (int)sizeof(outer))
		return NULL;
	for (size_t i = 0; i < SL_COUNT(ours); i++)
		if (!fnmatch(ours[i], outer, FNM_PATHNAME))
			return at + strlen(name);
	return NULL;
}

static bool is_ours(const char *path)
{
	for (const char *inner; (inner = nested(path)); path = inner)
		if (!*inner)
			return true;
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
	unsigned count;
	int error; /* of the disk while it is synced; 0: none */
	off_t bytes;
	char foreign[PATH_MAX]; /* path of the first entry that we did not write; "": none */
};

static void walk_folder(struct walk *walk, int folder, const char *path);

static void walk_one(struct walk *walk, int folder, const char *name, const char *path)
{
	struct stat st;
	char inside[PATH_MAX];
	bool is_folder = !fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);

	walk->count++;
	if (snprintf(inside, sizeof(inside), "%s%s%s", path, name, is_folder ? "/" : "") >= (int)sizeof(inside) ||
	    !is_ours(inside) || !(is_folder || S_ISREG(st.st_mode))) {
		if (!*walk->foreign)
			snprintf(walk->foreign, sizeof(walk->foreign), "%s%s", path, name);
		return;
	}
	if (is_folder)
		walk_folder(walk, open_folder(folder, name), inside);
	else
		walk->bytes += st.st_size;
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
		snprintf(walk->foreign, sizeof(walk->foreign), "%s", *path ? path : ".");
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

/* True: the folder `path` is empty, or we wrote it.  A machine that died may have left our files without a byte in them. */
static bool may_replace(struct sl_destination *place, const char *path)
{
	struct walk walk = {0};
	int folder = open_folder(AT_FDCWD, path);
	bool marked;

	if (folder < 0) {
		snprintf(place->why, sizeof(place->why), "%s: %s", place->folder, strerror(errno));
		return false;
	}
	marked = has_mark(folder);
	walk_folder(&walk, folder, "");
	if (*walk.foreign)
		snprintf(place->why, sizeof(place->why),
			 "%s holds %s, which is not stormlog's, and stays as it is; -o DIR names another place", place->folder,
			 walk.foreign);
	else if (walk.bytes && !marked && *place->made) /* who is confined may not read what another analysis put there since */
		snprintf(place->why, sizeof(place->why), "another process wrote %s meanwhile, and it stays", place->folder);
	else if (walk.bytes && !marked)
		snprintf(place->why, sizeof(place->why),
			 "%s has no report.json of stormlog's, and stays as it is; -o DIR names another place", place->folder);
	return !*place->why;
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

/* Without trailing slashes.  False: errno. */
static bool copy_name(char *copy, const char *folder)
{
	size_t length = strlen(folder);

	while (length > 1 && folder[length - 1] == '/')
		length--;
	errno = length ? ENAMETOOLONG : ENOENT;
	return length && snprintf(copy, PATH_MAX, "%.*s", (int)length, folder) < PATH_MAX;
}

bool sl_destination_choose(struct sl_destination *place, const char *folder, char *const *inputs)
{
	struct stat st;

	*place = (struct sl_destination){0};
	if (!copy_name(place->folder, folder)) {
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
	return !*place->why && may_replace(place, place->folder);
}

static bool fail(struct sl_destination *place)
{
	snprintf(place->why, sizeof(place->why), "%s: %s", place->folder, strerror(errno));
	return false;
}

/* The folder that `path` lies in. */
static const char *parent_of(const char *path, char parent[PATH_MAX])
{
	snprintf(parent, PATH_MAX, "%.*s", (int)(sl_paths_name(path) - path), path);
	return *parent ? parent : ".";
}

/* Removes our files in `path`, and the folder itself if nothing is left.  The mark goes first: what is half removed has none. */
static bool clear(const char *path)
{
	struct walk walk = {.removing = true};
	int folder = open_folder(AT_FDCWD, path);
	struct stat st;

	if (!fstatat(folder, MARK, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
		unlinkat(folder, MARK, 0);
	walk_folder(&walk, folder, "");
	return !rmdir(path) || errno == ENOENT;
}

/* What a killed process, or one that lives, has beside the place. */
struct left {
	char path[PATH_MAX + NAME_MAX + 2]; /* "": nothing */
	int64_t changed_ns;
	bool marked; /* it holds a whole analysis */
};

/* True: the folder left->path is this user's, and holds our names alone. */
static bool look_at(struct left *left)
{
	int folder = open_folder(AT_FDCWD, left->path);
	struct walk walk = {0};
	struct stat st;

	if (folder < 0)
		return false;
	if (fstat(folder, &st) || st.st_uid != geteuid()) {
		close(folder);
		return false;
	}
	left->changed_ns = st.st_mtim.tv_sec * NS + st.st_mtim.tv_nsec;
	left->marked = has_mark(folder);
	walk_folder(&walk, folder, "");
	return !*walk.foreign;
}

/* Nobody writes into it any more: locks would tell sooner, but some network file systems keep them to one host. */
static bool is_old(const struct left *left)
{
	return *left->path && left->changed_ns < (time(NULL) - SL_SAVE_LEFT_S) * NS;
}

/* An analysis of ours is there.  Whatever else holds the place may be refused, and what was put aside is then the last one. */
static bool holds_analysis(const char *path)
{
	int folder = open_folder(AT_FDCWD, path);
	bool marked = folder >= 0 && has_mark(folder);

	if (folder >= 0)
		close(folder);
	return marked;
}

void sl_destination_clear_left(const char *folder)
{
	struct left left, newest = {0};
	char place[PATH_MAX], parent[PATH_MAX];
	DIR *list;

	if (!copy_name(place, folder))
		return;
	list = opendir(parent_of(place, parent));
	for (struct dirent *entry; list && (entry = readdir(list));) {
		bool aside = sl_paths_is_temporary(entry->d_name, place, SL_SAVE_FOLDER ASIDE);

		if (!aside && !sl_paths_is_temporary(entry->d_name, place, SL_SAVE_FOLDER))
			continue;
		snprintf(left.path, sizeof(left.path), "%s%s", parent, entry->d_name);
		if (!look_at(&left))
			continue;
		if (aside && left.marked && (!*newest.path || newest.changed_ns < left.changed_ns)) {
			struct left other = newest;

			newest = left;
			left = other;
		}
		if (is_old(&left))
			clear(left.path);
	}
	if (list)
		closedir(list);
	if (is_old(&newest) && rename(newest.path, place) && holds_analysis(place))
		clear(newest.path);
}

bool sl_destination_begin(struct sl_destination *place)
{
	if (!sl_paths_make_parents(place->folder))
		return fail(place);
	return sl_save_make_beside(place->folder, place->made, sizeof(place->made)) || fail(place);
}

void sl_destination_drop(struct sl_destination *place)
{
	int before = errno;

	clear(place->made);
	sl_save_finished(place->made);
	errno = before;
}

static void tell_kept(struct sl_destination *place, const char *aside)
{
	snprintf(place->why, sizeof(place->why), "what somebody else put into %s meanwhile is kept in %s", place->folder, aside);
}

/* Removes a former analysis, once the disk knows that another one has its place. */
static bool clear_former(const struct sl_destination *place, const char *path)
{
	char parent[PATH_MAX];

	(void)sl_save_sync(AT_FDCWD, parent_of(place->folder, parent));
	return clear(path);
}

/* The old folder and the new one have changed their places in one step. */
static bool settle(struct sl_destination *place)
{
	bool fine = may_replace(place, place->made); /* else another process put a folder there meanwhile */

	if (!fine && !renameat2(AT_FDCWD, place->made, AT_FDCWD, place->folder, RENAME_EXCHANGE))
		return false;
	if (!fine || !clear_former(place, place->made))
		tell_kept(place, place->made);
	return true;
}

/* The same where the file system cannot exchange: others may do so too, and each takes the place between our two steps. */
static bool take_in_two_steps(struct sl_destination *place)
{
	char aside[PATH_MAX + 24];

	snprintf(aside, sizeof(aside), "%s" ASIDE, place->made);
	for (unsigned tries = 0; tries < TRIES; tries++) {
		bool moved = !rename(place->folder, aside), fine;

		if (!moved && errno != ENOENT)
			break;
		fine = !moved || may_replace(place, aside); /* else somebody put a folder there meanwhile */
		if (fine && !rename(place->made, place->folder)) {
			if (moved && !clear_former(place, aside))
				tell_kept(place, aside);
			return true;
		}
		if (!fine || (errno != EEXIST && errno != ENOTEMPTY)) {
			if (fine)
				fail(place);
			if (moved && rename(aside, place->folder))
				snprintf(place->why + strlen(place->why), sizeof(place->why) - strlen(place->why),
					 "%swhat was there is in %s", *place->why ? "; " : "", aside);
			return false;
		}
		if (moved)
			clear(aside); /* an older analysis than that of whoever took the place */
	}
	return fail(place);
}

/*
 * The same where the old folder cannot be moved, as one in a lower layer of overlayfs: it is emptied.  Until then the new one has
 * the name of what was put aside, so that sl_destination_clear_left gives it the place if this process is killed.
 */
static bool take_emptied(struct sl_destination *place)
{
	char aside[PATH_MAX + 24];

	snprintf(aside, sizeof(aside), "%s" ASIDE, place->made);
	if (!may_replace(place, place->folder))
		return false;
	if (rename(place->made, aside))
		return fail(place);
	clear_former(place, place->folder);
	if (!rename(aside, place->folder))
		return true;
	fail(place);
	snprintf(place->why + strlen(place->why), sizeof(place->why) - strlen(place->why), "; the new analysis is in %s", aside);
	return false;
}

/* Puts the new folder in place.  Signals wait, since one would leave the old folder under its temporary name. */
static bool take_place(struct sl_destination *place)
{
	bool taken;

	*place->why = 0;
	sl_save_finished(place->made);		 /* after the exchange the old folder has that name */
	if (!rename(place->made, place->folder)) /* no old folder, or an empty one */
		return true;
	/* it keeps its date under a temporary name, and who looks for what was left is to pass it over */
	(void)!utimensat(AT_FDCWD, place->folder, NULL, AT_SYMLINK_NOFOLLOW);
	if (!renameat2(AT_FDCWD, place->made, AT_FDCWD, place->folder, RENAME_EXCHANGE))
		taken = settle(place);
	else
		taken = errno == EXDEV ? take_emptied(place) : take_in_two_steps(place);
	if (!taken)
		sl_destination_drop(place);
	return taken;
}

/*
 * Puts the new folder on the disk, whole if it replaces one: a machine that dies is to leave the former one or the new one.
 * Else the mark alone, without which nothing may replace what the machine leaves.  False: the disk failed or is full.
 */
static bool sync_made(struct sl_destination *place)
{
	struct walk walk = {.syncing = true};
	int folder = open_folder(AT_FDCWD, place->made);

	if (access(place->folder, F_OK)) {
		walk_one(&walk, folder, MARK, "");
		close(folder);
	} else {
		walk_folder(&walk, folder, "");
		if (!walk.error && !sl_save_sync(AT_FDCWD, place->made))
			walk.error = errno;
	}
	errno = walk.error;
	return !walk.error || fail(place);
}

bool sl_destination_end(struct sl_destination *place)
{
	bool taken;

	if (!sync_made(place)) {
		sl_destination_drop(place);
		return false;
	}
	sl_save_hold();
	taken = take_place(place);
	sl_save_release();
	return taken;
}
