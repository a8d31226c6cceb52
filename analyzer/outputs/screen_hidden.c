/* SPDX-License-Identifier: MIT */
/* Hidden memory: memory in use on a device that no recorded call asked for. */

#include "analyzer/analyses/hidden.h"
#include "analyzer/base/format.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/devices.h"

#define RIGHT	    40
#define NAMES_SHOWN 4

static bool has_pools(const struct sl_report *report, const struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (state && sl_model_row(report->processes[device->processes[i]].model, SL_KIND_pool, state->device + 1)->frees)
			return true;
	}
	return false;
}

/* True: a program had the stack of its kernels' threads raised, whose number is not recorded. */
static bool has_stacks(const struct sl_report *report, const struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (state && state->limit_each)
			return true;
	}
	return false;
}

/* Sums the contexts of several processes, and the code of one library. */
static bool is_alike(const struct sl_hidden_name *one, const struct sl_hidden_name *other)
{
	const char *a = one->library ? one->library : "", *b = other->library ? other->library : "";

	return !strcmp(one->what, other->what) && !strcmp(a, b);
}

/* "8 contexts of 300 MiB", "code of libcublas.so 120 MiB (step 3)" */
static size_t put_name(char *out, size_t size, const struct sl_hidden *hidden, size_t first, const char *rest)
{
	const struct sl_hidden_name *name = &hidden->item[first];
	uint64_t bytes = 0, most = 0;
	unsigned count = 0;
	const char *bound = "";
	size_t at;

	for (size_t i = first; i < hidden->count; i++) {
		if (i != first && !is_alike(name, &hidden->item[i]))
			continue;
		bytes += hidden->item[i].bytes;
		most = hidden->item[i].bytes > most ? hidden->item[i].bytes : most;
		if (hidden->item[i].bound && strcmp(bound, "about") != 0)
			bound = hidden->item[i].bound;
		count++;
	}
	if (count > 1 && !strcmp(name->what, "context"))
		return (size_t)snprintf(out, size, "%u contexts%s%s%s %s", count, bytes == most * count ? " of" : ", together",
					*bound ? " " : "", bound, SL_SIZE(bytes == most * count ? most : bytes));
	if (!strcmp(name->what, "rounding"))
		return (size_t)snprintf(out, size, "about %s rounding to 2 MiB", SL_SIZE(bytes));
	at = (size_t)snprintf(out, size, "%s",
			      !strcmp(name->what, "unexplained") ? rest
			      : !strcmp(name->what, "limit")	 ? "set aside by its limit"
								 : name->what);
	if (name->library)
		at += (size_t)snprintf(out + at, size - at, " of %s", name->library);
	if (at < size)
		at += (size_t)snprintf(out + at, size - at, "%s%s %s", *bound ? " " : "", bound, SL_SIZE(bytes));
	if (at < size && name->step != SL_UNKNOWN)
		at += (size_t)snprintf(out + at, size - at, " (step %llu)", (unsigned long long)name->step);
	return at;
}

/* "contexts, kept by pools or unexplained": other parts of the rest. */
static void name_rest(char *out, size_t size, bool contexts, bool pools, bool stacks, bool others)
{
	const char *const may_be[] = {contexts ? "contexts" : NULL, pools ? "kept by pools" : NULL,
				      stacks ? "stacks of its kernels" : NULL, others ? "other programs" : NULL};
	size_t at = 0;

	for (size_t i = 0; i < SL_COUNT(may_be); i++)
		if (may_be[i])
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", may_be[i]);
	snprintf(out + at, size - at, "%sunexplained", at ? " or " : "");
}

static void put_names(char *out, size_t size, const struct sl_hidden *hidden, uint64_t least, bool pools, bool stacks, bool others)
{
	bool contexts = false;
	unsigned names = 0;
	char rest[96];
	size_t at = 0;

	out[0] = 0;
	for (size_t i = 0; i < hidden->count; i++)
		contexts |= !strcmp(hidden->item[i].what, "context");
	name_rest(rest, sizeof(rest), !contexts, pools, stacks, others);
	for (size_t i = 0; i < hidden->count && at + 2 < size; i++) {
		bool told = hidden->item[i].bytes < least;

		for (size_t k = 0; k < i && !told; k++)
			told = is_alike(&hidden->item[k], &hidden->item[i]);
		if (told || names++ >= NAMES_SHOWN)
			continue;
		if (names > 1)
			at += (size_t)snprintf(out + at, size - at, ", ");
		at += put_name(out + at, size - at, hidden, i, rest);
	}
	if (names > NAMES_SHOWN && at < size)
		snprintf(out + at, size - at, ", and %u more", names - NAMES_SHOWN);
}

/* The figure that was read, after the bytes. */
static const char *figure_of(const struct sl_shared_device *device)
{
	return device->figure == SL_FIGURE_OWN		 ? ", highest own figure"
	       : device->figure == SL_FIGURE_LESS_OTHERS ? ", the device's less others'"
							 : ", the device's highest sample";
}

/* "34 other processes hold 16.9 GiB of this device" */
static void put_others(struct sl_screen_page *page, const struct sl_shared_device *device)
{
	if (!device->others)
		return;
	sl_screen_say(page, "      %u other %s %s of this device", device->others,
		      device->others == 1 ? "process holds" : "processes hold", SL_SIZE(device->others_bytes));
}

/* "121 GiB by the host and device 0, 97.3 GiB of it in use at most" */
static void put_shared(struct sl_screen_page *page)
{
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES];

	for (unsigned i = 0; i < page->report->device_count; i++) {
		const struct sl_shared_device *device = &page->report->devices[i];

		if (!device->source || strcmp(device->source, "meminfo") != 0 || device->used_peak_bytes == SL_UNKNOWN)
			continue;
		sl_screen_head(page, "SHARED", SL_SCREEN_PLAIN);
		sl_screen_say(page, "   %s by the host and device %d, %s of it in use at most",
			      sl_format_size(a, device->total_bytes), device->device, sl_format_size(b, device->used_peak_bytes));
	}
}

void sl_screen_hidden(struct sl_screen_page *page)
{
	const struct sl_shared_device *most = NULL;
	struct sl_hidden hidden;
	uint64_t least = UINT64_MAX;
	unsigned count = 0;
	char a[SL_FORMAT_BYTES], b[SL_FORMAT_BYTES], text[160], right[512];

	put_shared(page);
	for (unsigned i = 0; i < page->report->device_count; i++) {
		const struct sl_shared_device *device = &page->report->devices[i];

		if (device->hidden_peak_bytes == SL_UNKNOWN || !device->hidden_peak_bytes)
			continue;
		least = device->hidden_peak_bytes < least ? device->hidden_peak_bytes : least;
		if (!most || device->hidden_peak_bytes > most->hidden_peak_bytes)
			most = device;
		count++;
	}
	if (!most)
		return;
	sl_screen_head(page, "HIDDEN", SL_SCREEN_PLAIN);
	if (count > 1 && strcmp(sl_format_size(a, least), sl_format_size(b, most->hidden_peak_bytes)))
		snprintf(text, sizeof(text), "   %s .. %s per device", a, b);
	else
		snprintf(text, sizeof(text), "   %s%s%s%s", most->figure == SL_FIGURE_DEVICE ? "at most " : "",
			 sl_format_size(b, most->hidden_peak_bytes), count > 1 ? " per device" : "", figure_of(most));
	sl_hidden_split(page->report, most, &hidden);
	put_names(right, sizeof(right), &hidden, most->hidden_peak_bytes / 100, has_pools(page->report, most),
		  has_stacks(page->report, most), most->figure == SL_FIGURE_DEVICE);
	sl_screen_line(page, RIGHT, text, right);
	put_others(page, most);
	sl_screen_said(page, "hidden.place", -1, most->device);
	sl_hidden_free(&hidden);
}
