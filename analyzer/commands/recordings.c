/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/report/missing.h"

bool sl_recordings_is_node(const struct sl_arguments *options)
{
	for (unsigned i = 0; i < options->path_count; i++)
		if (access(options->paths[i], F_OK))
			return true;
	return !options->path_count;
}

bool sl_recordings_add(struct sl_follow *follow, const char *what)
{
	if (sl_follow_add(follow, what))
		return true;
	return *what && !what[strspn(what, "0123456789")] && sl_follow_node(follow, atol(what)) > 0;
}

static bool is_young(const char *path, const struct stat *file)
{
	return sl_images_is_trace(path) && time(NULL) - file->st_mtime < SL_FOLLOW_YOUNG_S;
}

static bool is_file(const char *path, const struct stat *file)
{
	struct stat st;

	return !stat(path, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* True: a process that is followed has this file. */
static bool is_followed(struct sl_follow *follow, const struct stat *file)
{
	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		const struct sl_trace *trace = sl_follow_process(follow, i)->process.trace;

		if (trace->ring.path && is_file(trace->ring.path, file))
			return true;
		for (unsigned k = 0; k < trace->file_count; k++)
			if (is_file(trace->files[k].path, file))
				return true;
	}
	return false;
}

bool sl_recordings_add_all(struct sl_follow *follow, const struct sl_arguments *options)
{
	bool warned = false, unread = false;

	for (unsigned i = 0; i < options->path_count; i++) {
		unsigned before = sl_follow_count(follow);
		struct stat st;

		if (!sl_recordings_add(follow, options->paths[i]))
			return sl_command_fail(false, "%s: no such path, nor a process that records", options->paths[i]);
		if (sl_follow_count(follow) == before && !stat(options->paths[i], &st) && S_ISREG(st.st_mode) &&
		    !is_young(options->paths[i], &st) && !is_followed(follow, &st)) {
			sl_escape_print(stderr, "stormlog-analyze: %s: no recording can be read there\n", options->paths[i]);
			unread = true;
		}
	}
	if (unread && !sl_follow_count(follow))
		return false;
	for (unsigned i = 0; i < sl_follow_count(follow); i++)
		sl_missing_say_newer(sl_follow_process(follow, i)->process.trace, &warned);
	if (options->path_count && !sl_follow_count(follow))
		sl_escape_print(stderr, "stormlog-analyze: %s: no recording there yet that you may read; waiting for one\n",
				options->paths[0]);
	return true;
}

void sl_recordings_poll(struct sl_follow *follow)
{
	sl_follow_poll(follow);
	for (unsigned i = 0; i < sl_follow_count(follow); i++) {
		struct sl_followed *followed = sl_follow_process(follow, i);
		const struct sl_damage *damage = &followed->process.trace->damage;

		if (followed->ended && !followed->damage_printed && damage->damaged)
			sl_damage_print(damage);
		followed->damage_printed |= followed->ended;
	}
}
