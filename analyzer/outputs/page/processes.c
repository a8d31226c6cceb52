/* SPDX-License-Identifier: MIT */
/* Processes and devices: what report.json says of them, and what the page needs beside. */

#include "analyzer/answer/make.h"
#include "analyzer/base/memory.h"
#include "analyzer/outputs/output.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/change.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_list.h"

/* The most on one device at the end. */
static uint64_t end_of(const struct sl_process *process)
{
	uint64_t bytes = 0;

	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++)
		if (process->model->devices[d] && process->model->devices[d]->known_bytes > bytes)
			bytes = process->model->devices[d]->known_bytes;
	return bytes;
}

static uint64_t hidden_of(const struct sl_process *process)
{
	uint64_t hidden = SL_UNKNOWN;

	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = process->model->devices[d];

		if (device && device->hidden_peak_bytes != SL_UNKNOWN &&
		    (hidden == SL_UNKNOWN || device->hidden_peak_bytes > hidden))
			hidden = device->hidden_peak_bytes;
	}
	return hidden;
}

static void add_leak(void *context, struct sl_process *process, const struct sl_leak *leak)
{
	(void)process;
	*(uint64_t *)context += leak->bytes;
}

static uint64_t leaks_of(struct sl_process *process)
{
	uint64_t bytes = 0;

	sl_leak_list_left(process, add_leak, &bytes);
	return bytes || process->trace->status == SL_STATUS_COMPLETED ? bytes : SL_UNKNOWN;
}

/* The same figures for each device: those of the process are of the one where they are largest. */
static void put_devices(struct sl_page *page, unsigned index)
{
	const struct sl_model *model = page->report->processes[index].model;

	sl_json_array(page->j, "devices");
	for (unsigned d = 1; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = model->devices[d];

		if (!device || !device->used)
			continue;
		sl_json_object(page->j, NULL);
		sl_json_known(page->j, "device", device->device);
		sl_json_known_uint(page->j, "peak", device->known_peak);
		sl_page_put_time(page, "peak_at", index, device->known_peak ? device->known_peak_ns : 0);
		sl_json_known_uint(page->j, "hidden", device->hidden_peak_bytes);
		sl_json_known_uint(page->j, "end", device->known_bytes);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
}

/* What the program said of its ranges by stormlog_pair: a row sums the entries with the same pair. */
static void put_pairs(struct sl_json *j, const struct sl_model *model)
{
	sl_json_array(j, "pairs");
	for (size_t i = 0; i < model->paired.count; i++) {
		const struct sl_paired *paired = &model->paired.item[i];

		sl_json_object(j, NULL);
		sl_json_string(j, "label", sl_defs_text(model->defs, model->labels.item[paired->label].text));
		sl_json_string(j, "pair", sl_defs_text(model->defs, paired->text));
		sl_json_uint(j, "entries", paired->entries);
		sl_json_uint(j, "duration_ns", paired->duration_ns);
		sl_json_uint(j, "peak_bytes", paired->peak_bytes);
		sl_json_uint(j, "allocated_bytes", paired->allocated_bytes);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_curve(struct sl_json *j, const double curve[SL_CHANGE_POINTS])
{
	float points[SL_CHANGE_POINTS];

	for (unsigned i = 0; i < SL_CHANGE_POINTS; i++)
		points[i] = (float)curve[i];
	sl_json_column(j, "curve", SL_PACKED_F32, points, SL_CHANGE_POINTS);
}

/* "would have fitted", or NULL where the change neither lets the request pass nor lowers the peak. */
static const char *helps_by(const struct sl_changes *changes, const struct sl_change *c)
{
	if (!changes->failed)
		return c->passes == SL_PASSES && c->less > 0 ? "would lower the peak" : NULL;
	return c->passes == SL_PASSES		? "would have fitted"
	       : c->passes == SL_PASSES_STEP	? "would have passed this step"
	       : c->passes == SL_PASSES_REQUEST ? "would have passed this request"
						: NULL;
}

/* The curves of `changes`, and their words. */
static void put_replayed(struct sl_json *j, const struct sl_changes *changes)
{
	char text[300], words[300];

	sl_json_object(j, "replayed");
	sl_json_double(j, "failed_at", changes->failed_at);
	put_curve(j, changes->curve);
	sl_json_array(j, "tried");
	for (unsigned k = 0; k < changes->count; k++) {
		sl_json_object(j, NULL);
		sl_json_string(j, "helps", helps_by(changes, &changes->tried[k]));
		sl_json_string(j, "text", sl_change_text(text, sizeof(text), &changes->tried[k], NULL));
		sl_json_string(j, "words", sl_change_words(words, sizeof(words), &changes->tried[k]));
		put_curve(j, changes->tried[k].curve);
		sl_json_end(j);
	}
	sl_json_end(j);
	sl_json_end(j);
}

static void put_process(struct sl_page *page, unsigned index, bool detailed)
{
	struct sl_process *p = &page->report->processes[index];
	const struct sl_device_state *fullest = sl_devices_fullest(p);

	sl_json_object(page->j, NULL);
	sl_json_identity(page->j, p);
	sl_json_known_uint(page->j, "peak", sl_devices_peak(p));
	sl_page_put_time(page, "peak_at", index, fullest ? fullest->known_peak_ns : 0);
	sl_json_known_uint(page->j, "end", end_of(p));
	put_devices(page, index);
	sl_json_known_uint(page->j, "hidden", hidden_of(p));
	sl_json_known_uint(page->j, "leaks", leaks_of(p));
	sl_json_known_uint(page->j, "ooms", p->model->ooms_total);
	sl_page_put_time(page, "from", index, p->model->first_ns);
	sl_page_put_time(page, "to", index, p->model->now_ns);
	if (detailed) {
		sl_json_figures(page->j, p);
		sl_json_labels(page->j, NULL, p);
		sl_json_names(page->j, p->model);
		put_pairs(page->j, p->model);
		if (p->changes)
			put_replayed(page->j, p->changes);
	}
	sl_json_end(page->j);
}

/* The size of a device; below --limit, what a process that has it for itself may take. */
static uint64_t room_of(const struct sl_report *report, const struct sl_shared_device *device)
{
	uint64_t limit =
		device->user_count == 1 ? sl_header_limit(report->processes[device->users[0].process].model->header) : SL_UNKNOWN;

	return limit < device->total_bytes ? limit : device->total_bytes;
}

void sl_page_processes(struct sl_page *page)
{
	const struct sl_report *report = page->report;
	bool *detailed = sl_memory_must(calloc(report->process_count + 1, sizeof(*detailed)));

	for (unsigned k = 0; k < page->budget.detailed; k++)
		detailed[page->order[k]] = true;
	sl_json_array(page->j, "processes");
	for (unsigned i = 0; i < report->process_count; i++)
		put_process(page, i, detailed[i]);
	sl_json_end(page->j);
	free(detailed);
	sl_json_array(page->j, "devices");
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		sl_json_object(page->j, NULL);
		sl_json_device(page->j, report, device);
		sl_json_known_uint(page->j, "room_bytes", room_of(report, device));
		sl_json_array(page->j, "processes");
		for (unsigned k = 0; k < device->user_count; k++)
			sl_json_uint(page->j, NULL, device->users[k].process);
		sl_json_end(page->j);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
}
