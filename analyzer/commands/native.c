/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include <errno.h>
#include <sys/stat.h>

#include "analyzer/base/paths.h"
#include "analyzer/base/save.h"

#define SAID_MAX 200 /* most warnings printed; report.json has all */

void sl_native_say(const struct sl_report *report, size_t first, size_t end)
{
	for (size_t i = first; i < end && i < first + SAID_MAX; i++)
		sl_escape_print(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
	if (end > first + SAID_MAX)
		sl_escape_print(stderr, "stormlog-analyze: %zu lines like these more\n", end - first - SAID_MAX);
}

static int run(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options, bool again)
{
	switch (sl_pipeline_run(report, paths, count, options)) {
	case SL_PIPELINE_FINE:
		sl_native_say(report, 0, again ? 0 : report->damage_lines);
		return SL_EXIT_FINE;
	case SL_PIPELINE_NO_PATH:
		sl_paths_failed(report->path);
		return SL_EXIT_USAGE;
	case SL_PIPELINE_NO_RUN:
		return SL_EXIT_USAGE;
	case SL_PIPELINE_NONE_SUCH:
		if (options->only->pid >= 0)
			return sl_command_fail(SL_EXIT_USAGE, "there is no process %ld%s in %s", options->only->pid,
					       options->only->rank >= 0 ? " of that rank" : "", report->path);
		return sl_command_fail(SL_EXIT_USAGE, "there is no rank %ld in %s", options->only->rank, report->path);
	default:
		if (!report->images.image_count && sl_foreign_tell(paths, count))
			return SL_EXIT_UNREADABLE;
		sl_native_say(report, 0, report->warnings.count);
		if (!report->images.image_count)
			sl_paths_empty(paths, count, "trace");
		return SL_EXIT_UNREADABLE;
	}
}

int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options)
{
	return run(report, paths, count, options, false);
}

int sl_native_again(struct sl_report *report, char **paths, unsigned count, const struct sl_pipeline_options *options)
{
	sl_report_free(report);
	return run(report, paths, count, options, true);
}

bool sl_native_suppressions(struct sl_suppressions *suppressions, const char *path)
{
	unsigned line = 0;

	if (sl_suppressions_read(suppressions, path, &line))
		return true;
	if (errno == E2BIG)
		sl_escape_print(stderr, "stormlog-analyze: %s:%u: more than %d patterns\n", path, line, SL_SUPPRESSIONS_MAX);
	else if (errno)
		sl_paths_failed(path);
	else
		sl_escape_print(stderr, "stormlog-analyze: %s:%u: a line is leak:PATTERN\n", path, line);
	return false;
}

int sl_native_images(struct sl_images *images, char **paths)
{
	unsigned count = 0;

	for (char **path = paths; *path; path++, count++)
		if (!sl_images_add(images, *path)) {
			sl_paths_failed(*path);
			return SL_EXIT_USAGE;
		}
	if (images->summaries.count)
		return sl_command_fail(SL_EXIT_UNREADABLE, "%s: a summary has no events: this needs the traces",
				       images->summaries.item[0]);
	if (images->image_count) {
		sl_images_group(images);
		sl_damage_print(&images->copies);
		return -1;
	}
	if (sl_foreign_tell(paths, count))
		return SL_EXIT_UNREADABLE;
	sl_damage_print(&images->copies);
	sl_paths_empty(paths, count, "trace");
	return SL_EXIT_UNREADABLE;
}

int sl_native_pack(const struct sl_images *images, int run, const char *path, const uint8_t *key, struct sl_archived *packed)
{
	struct sl_save save;

	packed->read = 1; /* until the first is to be read */
	if (sl_save_begin(&save, path, false) &&
	    sl_save_end(&save, sl_archive_write(save.out, images, run, key, packed) && packed->read))
		return SL_EXIT_FINE;
	if (!packed->read)
		return SL_EXIT_UNREADABLE;
	sl_paths_failed(path);
	return SL_EXIT_UNSAVED;
}

void sl_native_tell_file(struct sl_json *j, const char *path)
{
	struct stat st;

	sl_json_string(j, "output", path);
	sl_json_known(j, "bytes", stat(path, &st) ? -1 : (int64_t)st.st_size);
}

int sl_native_left_out(const struct sl_images *images, const struct sl_archived *packed, const char *path)
{
	if (!sl_images_lacks(images) && !packed->left_out)
		return SL_EXIT_FINE;
	return sl_native_partly(path);
}

int sl_native_partly(const char *path)
{
	return sl_command_fail(SL_EXIT_UNREADABLE, "%s may not be the whole run: the parts named above are missing", path);
}
