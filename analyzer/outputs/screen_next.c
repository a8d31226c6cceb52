/* SPDX-License-Identifier: MIT */
/* The last line: a command that shows more and can be pasted as it is. */

#include "analyzer/base/escape.h"
#include "analyzer/outputs/screen_page.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/window_facts.h"
#include "common/text.h"

#define UNUSED_PART 2 /* if PyTorch used less than half of its peak, suggest `fit` */

/*
 * The kind of host memory to ask about: the kind that leaks most or, where no device memory was held, the kind that was held most.
 * NULL: a device's kind, or no kind.
 */
static const char *kind_of(const struct sl_screen_page *page)
{
	const struct sl_report *report = page->report;
	const struct sl_kept *kept = page->leaks_shown ? page->leaking.place.item[0].kept : NULL;
	const char *name = NULL;
	uint64_t most = 0;

	if (kept && kept->track->kind < SL_KIND_COUNT && !sl_model_is_known(kept->track->kind))
		return sl_event_kinds[kept->track->kind].name;
	if (sl_devices_fullest_process(report))
		return NULL;

	for (unsigned i = 0; i < report->process_count; i++)
		for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
			for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
				const struct sl_row *row = sl_model_row(report->processes[i].model, kind, d);

				if (row->peak_bytes > most) {
					most = row->peak_bytes;
					name = sl_event_kinds[kind].name;
				}
			}
	return name;
}

/* False: a summary was read, which has no moments except the peak and the end. */
static bool has_events(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->images.image_count; i++)
		if (!report->images.images[i].summary)
			return true;
	return false;
}

/* Commands are in one line as far as they fit, since a shell takes no line break; column 0: the first command. */
static unsigned put(struct sl_screen_page *page, unsigned column, const char *verb)
{
	static const char head[] = "next: ", gap[] = "   ";
	const struct sl_report *report = page->report;
	struct sl_arena arena = {0};
	char word[4096];
	const char *text = sl_arena_printf(&arena, "stormlog-analyze %s", verb);
	unsigned wide;

	if (report->options.run)
		text = sl_arena_printf(&arena, "%s --run %s", text, sl_shell_word(word, sizeof(word), report->options.run));
	for (unsigned i = 0; i < report->path_count; i++)
		text = sl_arena_printf(&arena, "%s %s", text, sl_shell_word(word, sizeof(word), report->paths[i]));
	wide = (unsigned)strlen(text);
	if (!column)
		column = (unsigned)sl_escape_print(page->out, "%s", head);
	else if (column + strlen(gap) + wide <= page->style->columns)
		column += (unsigned)sl_escape_print(page->out, "%s", gap);
	else
		column = (unsigned)sl_escape_print(page->out, "\n%*s", (int)strlen(head), "") - 1;
	sl_escape_print(page->out, "%s", text);
	sl_arena_free(&arena);
	return column + wide;
}

/* True: most of the peak was kept by PyTorch's allocator for nothing.  The screen of a snapshot says FIT itself. */
static bool is_mostly_unused(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		for (size_t d = 1; d < SL_COUNT(report->processes[i].model->devices); d++) {
			const struct sl_device_state *device = report->processes[i].model->devices[d];
			uint64_t bytes;

			if (device && device->torch.told && !device->peak_folded && !report->processes[i].model->snapshot &&
			    sl_model_rest_at_peak(report->processes[i].model, device, &bytes) &&
			    bytes > device->known_peak / UNUSED_PART)
				return true;
		}
	return false;
}

/* True: the figures of a process are those of several devices together. */
static bool has_devices(const struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		if (sl_devices_held(&report->processes[i]) > 1)
			return true;
	return false;
}

void sl_screen_go_on(struct sl_screen_page *page, const char *verb)
{
	struct sl_report *report = page->report;
	const struct sl_process *process;
	const struct sl_oom *oom = sl_report_first_oom(report, &process);
	bool devices = sl_screen_is_windows(report) && has_devices(report); /* the screen is of one */
	const char *kind;
	char text[64];
	unsigned column;

	if (!verb && has_events(report) && oom && !sl_oom_got_over(oom))
		verb = devices ? "tree --at oom --by device" : "tree --at oom";
	else if (!verb && has_events(report) && (kind = kind_of(page))) {
		snprintf(text, sizeof(text), "tree --kind %s", kind);
		verb = text;
	} else if (!verb && sl_devices_fullest_process(report) && !sl_window_shows(&report->processes[0])) {
		verb = devices ? "tree --at end --by device" : "tree --at end";
	} else if (!verb && sl_devices_fullest_process(report)) {
		verb = devices ? "tree --at peak --by device" : "tree --at peak";
	}
	column = put(page, 0, verb ? verb : "tree");
	if (report->process_count > 1)
		column = put(page, column, "ranks");
	if (has_events(report) && is_mostly_unused(report))
		put(page, column, "fit");
	fputc('\n', page->out);
}
