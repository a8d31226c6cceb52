/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/library.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/sandbox.h"
#include "analyzer/base/save.h"

/* Names of files that are read when their folder is an input. */
static const char *const read_by_name[] = {"*" SL_TRACE_SUFFIX, "*" SL_RING_SUFFIX "*", "*" SL_PACK_SUFFIX,  "*.summary",
					   "manifest.json",	"rollups.json",		"stormlog_run.json", "segment-*.jsonl"};

bool sl_sandbox_is_inside(const char *path, char *const *inputs)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_MAX], real[PATH_MAX], input[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
	if (!realpath(folder, real))
		return false; /* it does not exist yet */
	for (; inputs && *inputs; inputs++) {
		size_t size = realpath(*inputs, input) ? strlen(input) : 0;

		if (size && !strncmp(real, input, size) && (!real[size] || real[size] == '/' || size == 1))
			return true;
	}
	return false;
}

bool sl_sandbox_is_read(const char *path, char *const *inputs)
{
	for (size_t i = 0; i < SL_COUNT(read_by_name); i++)
		if (!fnmatch(read_by_name[i], sl_paths_name(path), 0))
			return sl_sandbox_is_inside(path, inputs);
	return false;
}

static bool is_same(const struct stat *file, const char *path)
{
	struct stat st;

	return path && !stat(path, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static bool is_input(const struct sl_verb_files *files, const char *target, const struct stat *st)
{
	for (char *const *input = files->inputs; input && *input; input++)
		if (is_same(st, *input))
			return true;
	for (size_t i = 0; i < SL_COUNT(files->reads); i++)
		if (files->reads[i] != target && is_same(st, files->reads[i])) /* else the verb updates its own file */
			return true;
	return false;
}

enum kind { OTHER, PACK, RECORDING };

static enum kind kind_of(const char *path)
{
	struct stat st;
	char head[512];
	int file = sl_paths_open_regular(path, &st);
	size_t got = file < 0 ? 0 : sl_frames_read_at(file, head, sizeof(head), 0);

	if (file >= 0)
		close(file);
	if (got >= strlen(SL_PACK_MAGIC) && !memcmp(head, SL_PACK_MAGIC, strlen(SL_PACK_MAGIC)))
		return PACK;
	return sl_images_is_trace(sl_paths_name(path)) || sl_frame_index_valid(head, got) ||
			       (got >= strlen(SL_RINGFILE_MAGIC) && !memcmp(head, SL_RINGFILE_MAGIC, strlen(SL_RINGFILE_MAGIC)))
		       ? RECORDING
		       : OTHER;
}

/* Why `path` may not be replaced; NULL: it may, or does not exist. */
static const char *refusal(const struct sl_verb_files *files, const char *path)
{
	struct stat st;
	enum kind kind;

	if (sl_save_is_open(path))
		return NULL;
	if (path != files->through && !lstat(path, &st) && S_ISLNK(st.st_mode))
		return "is a symbolic link";
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	if (is_input(files, path, &st))
		return "is what is read";
	kind = path == files->open ? OTHER : kind_of(path);
	if (!(kind == PACK && files->packs && files->changes) && sl_sandbox_is_read(path, files->inputs))
		return "is what is read";
	return kind == RECORDING || (kind == PACK && !files->packs) ? "is a recording" : NULL;
}

bool sl_sandbox_may_write(const struct sl_verb_files *files, char *why, size_t size)
{
	for (size_t i = 0; i < SL_COUNT(files->writes); i++) {
		const char *refused = files->writes[i] ? refusal(files, files->writes[i]) : NULL;

		if (refused) {
			snprintf(why, size, "%s %s, and stays as it is; name another place", files->writes[i], refused);
			return false;
		}
	}
	return true;
}

static void give_up(const struct sl_verb_files *files)
{
	SL_VECTOR(const char *) writes = {0};

	for (char *const *input = files->changes ? files->inputs : NULL; input && *input; input++)
		*SL_PUSH(&writes) = sl_memory_print("%s/.", *input);
	for (size_t i = 0; i < SL_COUNT(files->writes); i++)
		if (files->writes[i] && *files->writes[i] && !sl_save_is_open(files->writes[i]))
			*SL_PUSH(&writes) = sl_memory_copy(files->writes[i]);
	*SL_PUSH(&writes) = NULL;
	sl_sandbox(NULL, writes.item, files->processes ? SL_SANDBOX_PROCESSES : 0);
	SL_DROP_EACH(&writes);
}

void sl_sandbox_setup(const struct sl_verb_files *files)
{
	char why[PATH_MAX + 100];

	if (!sl_sandbox_may_write(files, why, sizeof(why)))
		exit(sl_command_fail(SL_EXIT_USAGE, "%s", why));
	sl_library_search(files->symbols);
	give_up(files);
	sl_save_watch_signals();
}
