/* SPDX-License-Identifier: MIT */
/* Processes, devices, and the plain tables. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_list.h"

#define HIDDEN_PART 50 /* less than one of so many parts of the hidden memory is not named */

/* The most on one device at the end. */
static uint64_t end_of(const struct sl_process *process)
{
	uint64_t bytes = 0;

	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++)
		if (process->model->devices[d] && process->model->devices[d]->known > bytes)
			bytes = process->model->devices[d]->known;
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

static void put_command(struct sl_page *page, const struct sl_header *header)
{
	char text[1024] = "";
	size_t at = 0;

	for (unsigned i = 0; i < header->argc && at < sizeof(text) - 1; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", i ? " " : "", header->argv[i]);
	sl_json_string(page->j, "command", text);
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
		sl_json_known_uint(page->j, "end", device->known);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
}

static void put_process(struct sl_page *page, unsigned index)
{
	char exited[32];
	struct sl_process *p = &page->report->processes[index];
	const struct sl_header *header = &p->trace->header;
	const struct sl_device_state *fullest = sl_devices_fullest(p);

	sl_json_object(page->j, NULL);
	sl_json_known(page->j, "rank", header->rank);
	sl_json_string(page->j, "host", header->host ? header->host : "");
	sl_json_known(page->j, "pid", header->pid);
	put_command(page, header);
	sl_json_string(page->j, "session", p->session_id);
	sl_json_string(page->j, "trace", sl_paths_name(p->trace->name));
	snprintf(exited, sizeof(exited), "exit status %u", p->trace->exited ? p->trace->exited - 1 : 0);
	sl_json_string(page->j, "status", p->trace->exited > 1 ? exited : sl_ended_names[sl_trace_ended(p->trace)]);
	sl_json_known_uint(page->j, "events", p->model->events);
	sl_json_known_uint(page->j, "lost_events", sl_trace_lost_events(p->trace));
	sl_json_known_uint(page->j, "peak", sl_devices_peak(p));
	sl_page_put_time(page, "peak_at", index, fullest ? fullest->known_peak_ns : 0);
	sl_json_known_uint(page->j, "end", end_of(p));
	put_devices(page, index);
	sl_json_known_uint(page->j, "hidden", hidden_of(p));
	sl_json_known_uint(page->j, "leaks", leaks_of(p));
	sl_json_known_uint(page->j, "ooms", p->model->ooms_total);
	sl_page_put_time(page, "from", index, p->model->first_ns);
	sl_page_put_time(page, "to", index, p->model->now_ns);
	sl_json_end(page->j);
}

/* The size of a device; below --limit, what a process that has it for itself may take. */
static uint64_t room_of(const struct sl_report *report, const struct sl_shared_device *device)
{
	uint64_t limit =
		device->process_count == 1 ? sl_header_limit(report->processes[device->processes[0]].model->header) : SL_UNKNOWN;

	return limit < device->total_bytes ? limit : device->total_bytes;
}

/* "CUDA context, code": what the hidden memory is. */
static void put_hidden(struct sl_page *page, const struct sl_shared_device *device)
{
	static const char *const names[][2] = {{"context", "CUDA context"},
					       {"code", "code"},
					       {"limit", "set aside by a limit"},
					       {"rounding", "rounding"},
					       {"unexplained", "unexplained"}};
	struct sl_hidden hidden;
	char text[100] = "";
	size_t at = 0;

	sl_hidden_split(page->report, device, &hidden);
	for (size_t k = 0; k < SL_COUNT(names); k++) {
		uint64_t bytes = 0;

		for (size_t i = 0; i < hidden.count; i++)
			bytes += strcmp(hidden.item[i].what, names[k][0]) ? 0 : hidden.item[i].bytes;
		if (bytes && bytes * HIDDEN_PART >= device->hidden_peak_bytes)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", at ? ", " : "", names[k][1]);
	}
	sl_hidden_free(&hidden);
	sl_json_string(page->j, "hidden_is", text);
}

void sl_page_processes(struct sl_page *page)
{
	const struct sl_report *report = page->report;

	sl_json_array(page->j, "processes");
	for (unsigned i = 0; i < report->process_count; i++)
		put_process(page, i);
	sl_json_end(page->j);
	sl_json_array(page->j, "devices");
	for (unsigned i = 0; i < report->device_count; i++) {
		const struct sl_shared_device *device = &report->devices[i];

		sl_json_object(page->j, NULL);
		sl_json_array(page->j, "processes");
		for (unsigned k = 0; k < device->process_count; k++)
			sl_json_uint(page->j, NULL, device->processes[k]);
		sl_json_end(page->j);
		sl_json_string(page->j, "host", device->host ? device->host : "");
		sl_json_known(page->j, "device", device->device);
		sl_json_string(page->j, "name", device->name);
		sl_json_known_uint(page->j, "total", room_of(report, device));
		sl_json_known_uint(page->j, "used_peak", device->used_peak_bytes);
		sl_json_known_uint(page->j, "known_peak", device->known_peak_bytes);
		sl_json_known_uint(page->j, "hidden_peak", device->hidden_peak_bytes);
		sl_json_bool(page->j, "hidden_at_most", device->figure == SL_FIGURE_DEVICE);
		put_hidden(page, device);
		sl_json_string(page->j, "source", device->source);
		sl_json_end(page->j);
	}
	sl_json_end(page->j);
}

static void memory_rows(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (unsigned kind = 0; kind < SL_KIND_COUNT; kind++)
		for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
			const struct sl_row *row = sl_model_row(model, kind, d);

			if (!row->used || kind == SL_KIND_block)
				continue;
			sl_page_row(page, process);
			sl_json_string(page->j, "kind", sl_event_kinds[kind].name);
			sl_json_known(page->j, "device", (int)d - 1);
			sl_json_known_uint(page->j, "peak", row->peak_bytes);
			sl_json_known_uint(page->j, "live", row->live_bytes);
			sl_json_known_uint(page->j, "blocks", row->live_blocks);
			sl_json_known_uint(page->j, "allocations", row->allocations);
			sl_json_known_uint(page->j, "frees", row->frees);
			sl_json_known_uint(page->j, "implicit_frees", row->implicit_frees);
			sl_json_known_uint(page->j, "failed", row->failed_allocations);
			sl_json_known_uint(page->j, "allocated", row->allocated_bytes);
			sl_json_end(page->j);
		}
}

static void library_rows(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (size_t i = 0; i < model->holders.count; i++) {
		const struct sl_holder *holder = &model->holders.item[i];

		if (!holder->peak_bytes)
			continue;
		sl_page_row(page, process);
		sl_json_string(page->j, "library", model->libraries.item[holder->library]);
		sl_json_known(page->j, "device", holder->device);
		sl_json_known_uint(page->j, "peak", holder->peak_bytes);
		sl_json_known_uint(page->j, "live", holder->live_bytes);
		sl_json_end(page->j);
	}
}

static void label_rows(struct sl_page *page, unsigned process)
{
	const struct sl_process *p = &page->report->processes[process];

	for (size_t i = 0; i < p->growth.count; i++) {
		const struct sl_growth *growth = &p->growth.item[i];
		const struct sl_label *label = &p->model->labels.item[growth->label];
		const char *text = sl_defs_text(p->model->defs, label->text);

		sl_page_row(page, process);
		sl_json_string(page->j, "label", text ? text : "");
		sl_json_known_uint(page->j, "entries", label->entries);
		sl_json_known_uint(page->j, "open", label->open);
		sl_json_known_uint(page->j, "duration", label->entries ? label->duration_ns : SL_UNKNOWN);
		sl_json_known_uint(page->j, "peak", label->entries ? label->peak_bytes : SL_UNKNOWN);
		sl_json_double(page->j, "slope", growth->verdict ? growth->slope : NAN);
		sl_json_string(page->j, "verdict", growth->verdict);
		sl_json_end(page->j);
	}
}

/* What the program itself called its memory. */
static void name_rows(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (size_t i = 0; i < model->called.count; i++) {
		const struct sl_called *called = &model->called.item[i];

		sl_page_row(page, process);
		sl_json_string(page->j, "name", sl_defs_text(model->defs, called->text));
		sl_json_known(page->j, "device", called->device);
		sl_json_known_uint(page->j, "blocks", called->blocks);
		sl_json_known_uint(page->j, "live", called->live_bytes);
		sl_json_known_uint(page->j, "peak", called->peak_bytes);
		sl_json_end(page->j);
	}
}

/* What a framework's pool had given out at its most, by the pool's own figures. */
static void given_rows(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (size_t d = 0; d < SL_COUNT(model->devices); d++) {
		const struct sl_given *given = model->devices[d] ? &model->devices[d]->torch.most_given : NULL;

		if (!given || !given->in_use)
			continue;
		sl_page_row(page, process);
		sl_json_known(page->j, "device", (int)d - 1);
		sl_json_known_uint(page->j, "in_use", given->in_use);
		sl_json_known_uint(page->j, "named", given->named);
		sl_json_known_uint(page->j, "rounding", given->rounded - given->named);
		sl_json_known_uint(page->j, "unnamed", sl_given_rest(given));
		sl_json_end(page->j);
	}
}

/* What the program said of its ranges by stormlog_pair: a row sums the entries with the same pair. */
static void said_rows(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;

	for (size_t i = 0; i < model->paired.count; i++) {
		const struct sl_paired *paired = &model->paired.item[i];

		sl_page_row(page, process);
		sl_json_string(page->j, "label", sl_defs_text(model->defs, model->labels.item[paired->label].text));
		sl_json_string(page->j, "pair", sl_defs_text(model->defs, paired->text));
		sl_json_known_uint(page->j, "entries", paired->entries);
		sl_json_known_uint(page->j, "duration", paired->duration_ns);
		sl_json_known_uint(page->j, "peak", paired->peak_bytes);
		sl_json_known_uint(page->j, "allocated", paired->allocated_bytes);
		sl_json_end(page->j);
	}
}

static void api_rows(struct sl_page *page, unsigned process)
{
	const struct sl_model *model = page->report->processes[process].model;
	struct sl_api_stats *apis = sl_model_apis(model);

	for (unsigned i = 0; i < model->header->hook_count; i++) {
		const struct sl_api_stats *api = &apis[i];

		if (!model->header->hooks[i].is_call || !api->calls)
			continue;
		sl_page_row(page, process);
		sl_json_string(page->j, "api", model->header->hooks[i].plain);
		sl_json_known_uint(page->j, "calls", api->calls);
		sl_json_known_uint(page->j, "failures", api->failures);
		sl_json_known_uint(page->j, "bytes", api->bytes);
		sl_json_known_uint(page->j, "time", api->time_ns);
		sl_json_end(page->j);
	}
	free(apis);
}

void sl_page_tables(struct sl_page *page)
{
	static const struct {
		const char *name;
		void (*put)(struct sl_page *page, unsigned process);
	} tables[] = {{"memory", memory_rows},	 {"libraries", library_rows}, {"labels", label_rows}, {"said", said_rows},
		      {"given_out", given_rows}, {"names", name_rows},	      {"apis", api_rows}};

	for (size_t t = 0; t < SL_COUNT(tables); t++) {
		sl_json_array(page->j, tables[t].name);
		for (unsigned k = 0; k < sl_page_detailed(page); k++)
			tables[t].put(page, page->order[k]);
		sl_json_end(page->j);
	}
}
