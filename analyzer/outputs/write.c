/* SPDX-License-Identifier: MIT */
/* Writes analysis/: each output that list.c names, in a new folder that then replaces the old one (destination.c). */
#include <errno.h>

#include "analyzer/base/save.h"
#include "analyzer/outputs/output.h"

static bool write_one(struct sl_report *report, const struct sl_output *output, const char *folder)
{
	char path[PATH_MAX + 64];
	FILE *out;
	bool fine;

	snprintf(path, sizeof(path), "%s/%s", folder, output->name);
	if (output->folder)
		return output->folder(report, path);
	out = sl_save_private(path);
	if (!out)
		return false;
	fine = output->file(report, out);
	return !fclose(out) && fine;
}

void sl_outputs_prepare(void)
{
	for (const struct sl_output *const *o = sl_outputs; *o; o++)
		if ((*o)->prepare)
			(*o)->prepare();
}

bool sl_outputs_write(struct sl_report *report, struct sl_destination *place)
{
	if (!sl_destination_begin(place))
		return false;
	for (const struct sl_output *const *o = sl_outputs; *o; o++)
		if (!write_one(report, *o, place->made)) {
			snprintf(place->why, sizeof(place->why), "%s: %s: %s", place->folder, (*o)->name, strerror(errno));
			sl_destination_drop(place);
			return false;
		}
	return sl_destination_end(place);
}
