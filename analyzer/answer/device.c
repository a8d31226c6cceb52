/* SPDX-License-Identifier: MIT */
/* Notes of devices: what their processes held together, and what is hidden: in use there, and asked for by no recorded call. */
#include <stdio.h>
#include <string.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/answer/make.h"
#include "analyzer/report/devices.h"

#define NAMES_SHOWN 4
#define LITTLE	    100 /* a part with less than one of so many parts of what is hidden is not named */

static bool has_pools(const struct sl_report *report, const struct sl_shared_device *device, bool *stacks)
{
	bool pools = false;

	*stacks = false;
	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (!state)
			continue;
		pools |= sl_model_row(report->processes[device->processes[i]].model, SL_KIND_pool, state->device + 1)->frees > 0;
		*stacks |= state->limit_each > 0;
	}
	return pools;
}

/* Contexts of several processes are one part, and so is the code of one library. */
static bool is_alike(const struct sl_hidden_name *one, const struct sl_hidden_name *other)
{
	return !strcmp(one->what, other->what) && !strcmp(one->library ?: "", other->library ?: "");
}

/* "3 contexts, together at most 900 MiB", "code of libcublas.so 120 MiB (step 3)" */
static const char *name_part(struct sl_answers *to, const struct sl_hidden *hidden, size_t first, const char *rest)
{
	const struct sl_hidden_name *name = &hidden->item[first];
	const char *bound = "", *text;
	uint64_t bytes = 0;
	unsigned count = 0;

	for (size_t i = first; i < hidden->count; i++) {
		if (!is_alike(name, &hidden->item[i]))
			continue;
		bytes += hidden->item[i].bytes;
		if (hidden->item[i].bound && strcmp(hidden->item[i].bound, "about") != 0)
			bound = hidden->item[i].bound;
		count++;
	}
	if (!strcmp(name->what, "rounding"))
		return sl_answers_text(to, "about %s rounding to 2 MiB", SL_ANSWER_SIZE(bytes));
	if (count > 1 && !strcmp(name->what, "context"))
		return sl_answers_text(to, "%u contexts, together %s%s%s", count, bound, *bound ? " " : "", SL_ANSWER_SIZE(bytes));
	text = sl_answers_text(to, "%s%s%s%s%s %s",
			       !strcmp(name->what, "unexplained") ? rest
			       : !strcmp(name->what, "limit")	  ? "set aside by its limit"
								  : name->what,
			       name->library ? " of " : "", name->library ?: "", *bound ? " " : "", bound, SL_ANSWER_SIZE(bytes));
	return name->step == SL_UNKNOWN ? text : sl_answers_text(to, "%s (step %llu)", text, (unsigned long long)name->step);
}

/* "context at most 518 MiB, code of main.py 92 MiB" */
static const char *name_parts(struct sl_make *make, const struct sl_shared_device *device, const struct sl_hidden *hidden)
{
	bool contexts = false, stacks, pools = has_pools(make->report, device, &stacks);
	const char *text = "", *rest;
	unsigned names = 0;

	for (size_t i = 0; i < hidden->count; i++)
		contexts |= !strcmp(hidden->item[i].what, "context");
	rest = sl_answers_text(make->to, "%s%s%s%sunexplained", contexts ? "" : "contexts, or ", pools ? "kept by pools, or " : "",
			       stacks ? "stacks of its kernels, or " : "",
			       device->figure == SL_FIGURE_DEVICE ? "other programs, or " : "");
	for (size_t i = 0; i < hidden->count; i++) {
		bool told = hidden->item[i].bytes * LITTLE < device->hidden_peak_bytes;

		for (size_t k = 0; k < i && !told; k++)
			told = is_alike(&hidden->item[k], &hidden->item[i]);
		if (!told && names++ < NAMES_SHOWN)
			text = sl_answers_text(make->to, "%s%s%s", text, *text ? ", " : "", name_part(make->to, hidden, i, rest));
	}
	return names > NAMES_SHOWN ? sl_answers_text(make->to, "%s, and %u more", text, names - NAMES_SHOWN) : text;
}

static void note_hidden(struct sl_make *make, const struct sl_shared_device *device)
{
	struct sl_hidden hidden;

	sl_hidden_split(make->report, device, &hidden);
	sl_answers_note(make->to, "device %d: %s%s hidden, %s: %s", device->device,
			device->figure == SL_FIGURE_DEVICE ? "at most " : "", SL_ANSWER_SIZE(device->hidden_peak_bytes),
			device->figure == SL_FIGURE_OWN		  ? "highest own figure"
			: device->figure == SL_FIGURE_LESS_OTHERS ? "the device's figure less others'"
								  : "the device's highest sample",
			name_parts(make, device, &hidden));
	sl_hidden_free(&hidden);
}

/* True: no process alone held as much on the device. */
static bool is_of_several(const struct sl_report *report, const struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (state && state->known_peak >= device->known_peak_bytes)
			return false;
	}
	return device->process_count > 1 && device->known_peak_bytes != SL_UNKNOWN;
}

void sl_make_devices(struct sl_make *make)
{
	for (unsigned i = 0; i < make->report->device_count; i++) {
		const struct sl_shared_device *device = &make->report->devices[i];

		if (is_of_several(make->report, device))
			sl_answers_note(make->to, "device %d: %u processes held %s together at most", device->device,
					device->process_count, SL_ANSWER_SIZE(device->known_peak_bytes));
		if (device->source && !strcmp(device->source, "meminfo") && device->used_peak_bytes != SL_UNKNOWN)
			sl_answers_note(make->to, "device %d: its %s are the host's too, %s of them in use at most", device->device,
					SL_ANSWER_SIZE(device->total_bytes), SL_ANSWER_SIZE(device->used_peak_bytes));
		if (device->hidden_peak_bytes != SL_UNKNOWN && device->hidden_peak_bytes)
			note_hidden(make, device);
	}
}
