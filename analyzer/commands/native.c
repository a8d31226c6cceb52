/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/native.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int sl_native_open(struct sl_report *report, char **paths, unsigned count, const struct sl_drive_options *options)
{
	switch (sl_drive(report, paths, count, options)) {
	case SL_DRIVE_FINE:
		for (unsigned i = 0; i < report->damage_lines; i++)
			fprintf(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
		return SL_EXIT_FINE;
	case SL_DRIVE_NO_PATH:
		fprintf(stderr, "stormlog-analyze: %s: %s\n", report->path, strerror(errno));
		return SL_EXIT_USAGE;
	case SL_DRIVE_NO_RUN:
		fprintf(stderr, "stormlog-analyze: %s has no run %s; it has:\n", report->path, options->run);
		for (unsigned i = 0; i < report->images.run_count; i++)
			fprintf(stderr, "  %s\n", report->images.runs[i].id);
		return SL_EXIT_USAGE;
	default:
		for (size_t i = 0; i < report->warnings.count; i++)
			fprintf(stderr, "stormlog-analyze: %s\n", report->warnings.item[i]);
		if (!report->images.image_count)
			fprintf(stderr, "stormlog-analyze: %s is not a trace, a telemetry file or a bundle\n", report->path);
		return SL_EXIT_UNREADABLE;
	}
}

int sl_native_images(struct sl_images *images, char **paths)
{
	for (char **path = paths; *path; path++)
		if (!sl_images_add(images, *path)) {
			fprintf(stderr, "stormlog-analyze: %s: %s\n", *path, strerror(errno));
			return SL_EXIT_USAGE;
		}
	if (images->image_count)
		return -1;
	fprintf(stderr, "stormlog-analyze: %s holds no trace\n", paths[0]);
	return SL_EXIT_UNREADABLE;
}
