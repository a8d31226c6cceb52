/* SPDX-License-Identifier: MIT */
#include "analyzer/trace/files.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/paths.h"

#define WANTED "; a memory snapshot is what torch.cuda.memory._dump_snapshot(FILE) writes"

static const struct {
	const char *magic;
	size_t size;
	const char *is;
} kinds[] = {
	{"PK\3\4", 4, "a zip file, as torch.save writes checkpoints" WANTED},
	{"BZh", 3, "packed by bzip2: unpack it first"},
	{"\x80\2", 2, "a pickle of something else, perhaps of a state_dict" WANTED},
	{"\x80\3", 2, "a pickle of something else, perhaps of a state_dict" WANTED},
	{"\x80\4", 2, "a pickle of something else, perhaps of a state_dict" WANTED},
	{"\x80\5", 2, "a pickle of something else, perhaps of a state_dict" WANTED},
};

static bool tell(const char *path)
{
	FILE *in = sl_paths_open_file(path);
	char head[4];
	size_t size = in ? fread(head, 1, sizeof(head), in) : 0;
	const char *is = in && !size && !ferror(in) ? "empty" : NULL, *torn = sl_archive_why(path);

	if (!in)
		return false;
	fclose(in);
	for (size_t i = 0; i < SL_COUNT(kinds) && !is; i++)
		if (size >= kinds[i].size && !memcmp(head, kinds[i].magic, kinds[i].size))
			is = kinds[i].is;
	if (!is && sl_images_may_be_snapshot(path))
		is = "no pickle" WANTED;
	if (torn)
		sl_escape_print(stderr, "stormlog-analyze: %s: %s\n", path, torn);
	else if (is)
		sl_escape_print(stderr, "stormlog-analyze: %s: it is %s\n", path, is);
	return is || torn;
}

bool sl_foreign_tell(char *const *paths, unsigned count)
{
	bool all = count > 0;

	for (unsigned i = 0; i < count; i++)
		all &= tell(paths[i]);
	return all;
}
