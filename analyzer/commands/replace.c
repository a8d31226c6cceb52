/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/replace.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"
#include "analyzer/trace/archive.h"
#include "analyzer/trace/frames.h"
#include "analyzer/trace/names.h"
#include "common/base.h"
#include "common/ringfile.h"
#include "common/tracefile.h"

/* Names of files that are read when their folder is an input. */
static const char *const read_by_name[] = {"*" SL_TRACE_SUFFIX, "*" SL_RING_SUFFIX, "*" SL_PACK_SUFFIX,	 "*.summary",
					   "manifest.json",	"rollups.json",	    "stormlog_run.json", "segment-*.jsonl"};

struct target {
	const char *path;
	const struct sl_stamp *stamp;
	bool exists;
	struct stat st;
	char head[512], tail[64]; /* the file's first and last bytes */
	size_t got, got_last;
};

static bool is_at(const struct target *target, const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && st.st_dev == target->st.st_dev && st.st_ino == target->st.st_ino;
}

static bool begins_with(const struct target *target, const char *begin)
{
	return target->got >= strlen(begin) && !memcmp(target->head, begin, strlen(begin));
}

/* True: the last of these bytes, a line feed aside, are a blank and a number. */
static bool end_with_number(const char *bytes, size_t size)
{
	size_t at = size && bytes[size - 1] == '\n' ? size - 1 : size, end = at;

	while (at && bytes[at - 1] >= '0' && bytes[at - 1] <= '9')
		at--;
	return at && at < end && bytes[at - 1] == ' ';
}

/*
 * first: a character that the first line has; NULL: any.  The end of a first line that is longer than what was read is not
 * seen.
 */
static bool are_stacks(const struct target *target, const char *first)
{
	const char *line = memchr(target->head, '\n', target->got);

	return (line ? end_with_number(target->head, (size_t)(line - target->head)) : target->got == sizeof(target->head)) &&
	       (!first || memchr(target->head, *first, line ? (size_t)(line - target->head) : target->got)) &&
	       end_with_number(target->tail, target->got_last);
}

static bool is_former(const struct target *target)
{
	const struct sl_stamp *stamp = target->stamp;
	size_t size = stamp->then ? strlen(stamp->then) : 0;

	if (stamp->stacks)
		return are_stacks(target, stamp->then);
	return stamp->begins && begins_with(target, stamp->begins) && target->got >= stamp->at + size &&
	       (!size || !memcmp(target->head + stamp->at, stamp->then, size));
}

static bool is_recording(const struct target *target)
{
	return sl_names_is_trace(sl_paths_name(target->path)) || sl_frame_index_valid(target->head, target->got) ||
	       begins_with(target, SL_RINGFILE_MAGIC) || begins_with(target, SL_PACK_MAGIC);
}

/* False: the folder in which `path` lies does not exist yet. */
static bool find_folder(const char *path, char real[PATH_MAX])
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
	return realpath(folder, real);
}

/* True: both name one file, which need not exist yet. */
static bool are_one_place(const char *a, const char *b)
{
	char of_a[PATH_MAX], of_b[PATH_MAX];

	return !strcmp(sl_paths_name(a), sl_paths_name(b)) && find_folder(a, of_a) && find_folder(b, of_b) && !strcmp(of_a, of_b);
}

bool sl_replace_lies_inside(const char *path, char *const *inputs)
{
	char real[PATH_MAX], input[PATH_MAX];

	if (!find_folder(path, real))
		return false;
	for (; inputs && *inputs; inputs++) {
		size_t size = realpath(*inputs, input) ? strlen(input) : 0;

		if (size && !strncmp(real, input, size) && (!real[size] || real[size] == '/' || size == 1))
			return true;
	}
	return false;
}

bool sl_replace_is_read(const char *path, char *const *inputs)
{
	for (size_t i = 0; i < SL_COUNT(read_by_name); i++)
		if (!fnmatch(read_by_name[i], sl_paths_name(path), 0))
			return sl_replace_lies_inside(path, inputs);
	return false;
}

/*
 * True: the target is a file that the verb reads: an input, a file named by an option, or a file with a name of read_by_name in a
 * folder of the inputs.  former: the target is a former output, which the verb may change in place if rights->changes says so.
 */
static bool is_input(const struct sl_rights *rights, const struct target *target, bool former)
{
	for (char *const *input = rights->inputs; input && *input; input++)
		if (is_at(target, *input))
			return true;
	for (size_t i = 0; i < SL_COUNT(rights->reads); i++)
		if (rights->reads[i] != target->path &&
		    is_at(target, rights->reads[i])) /* the same option is read and written: the verb updates its file */
			return true;
	return !(former && rights->changes) && sl_replace_is_read(target->path, rights->inputs);
}

static bool is_stamped(const struct sl_stamp *stamp)
{
	return stamp->begins || stamp->stacks;
}

/* Why the target may not be replaced; NULL: it may. */
static const char *refusal(const struct sl_rights *rights, struct target *target)
{
	int file = target->path == rights->open ? -1 : sl_paths_open_regular(target->path, &target->st);
	off_t last = target->st.st_size > (off_t)sizeof(target->tail) ? target->st.st_size - (off_t)sizeof(target->tail) : 0;
	bool former;

	target->got = file < 0 ? 0 : sl_frames_read_at(file, target->head, sizeof(target->head), 0);
	target->got_last = file < 0 ? 0 : sl_frames_read_at(file, target->tail, sizeof(target->tail), (uint64_t)last);
	if (file >= 0)
		close(file);
	former = is_former(target);
	if (is_input(rights, target, former))
		return "is what is read";
	if (!former && is_recording(target))
		return "is a recording";
	return former || !is_stamped(target->stamp) || !target->st.st_size ? NULL : "is no former output of this kind and version";
}

/* True: an earlier one of rights->writes is the same file, under whatever name, or will be. */
static bool is_written_before(const struct sl_rights *rights, size_t at, const struct target *target)
{
	for (size_t i = 0; i < at; i++)
		if (rights->writes[i] && !sl_save_is_standard(rights->writes[i]) &&
		    (target->exists ? is_at(target, rights->writes[i]) : are_one_place(target->path, rights->writes[i])))
			return true;
	return false;
}

/* True: the target is a link, which a file would replace.  Verbs that write a folder may reach it through one. */
static bool is_link(const struct sl_rights *rights, const struct target *target)
{
	struct stat st;

	return target->path != rights->through && !lstat(target->path, &st) && S_ISLNK(st.st_mode) &&
	       !sl_save_is_open(target->path) && (is_stamped(target->stamp) || !target->exists || S_ISREG(target->st.st_mode));
}

bool sl_replace_may(const struct sl_rights *rights, char *why, size_t size)
{
	for (size_t i = 0; i < SL_COUNT(rights->writes); i++) {
		static const struct sl_stamp none;
		struct target target = {.path = rights->writes[i], .stamp = &rights->stamps[i]};
		const char *refused;
		bool link;

		if (!target.path || sl_save_is_standard(target.path))
			continue;
		target.exists = !stat(target.path, &target.st);
		if (sl_save_is_open(target.path))
			target.stamp = &none;
		link = is_link(rights, &target);
		if (target.exists && !S_ISREG(target.st.st_mode) && !link)
			continue;
		if (link)
			refused = "is a symbolic link";
		else if (is_written_before(rights, i, &target))
			refused = "is written twice";
		else
			refused = target.exists ? refusal(rights, &target) : NULL;
		if (refused) {
			snprintf(why, size, "%s %s%s; name another place", target.path, refused,
				 target.exists ? ", and stays as it is" : "");
			return false;
		}
	}
	return true;
}
