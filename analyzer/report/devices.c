/* SPDX-License-Identifier: MIT */
#include "analyzer/report/devices.h"

#include <string.h>

#include "analyzer/base/memory.h"

#define UNIT (2ull << 20) /* in which devices give memory out */

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

struct sl_device_state *sl_devices_state(const struct sl_report *report, const struct sl_shared_device *device, unsigned process)
{
	const struct sl_process *p = &report->processes[process];

	for (size_t i = 1; i < SL_COUNT(p->model->devices); i++) {
		struct sl_device_state *state = p->model->devices[i];
		const struct sl_device *def = state ? sl_defs_device(&p->trace->defs, state->device) : NULL;

		if (!state || !state->used)
			continue;
		if (device->uuid ? def && same_text(def->uuid, device->uuid) : state->device == device->device)
			return state;
	}
	return NULL;
}

bool sl_devices_several(const struct sl_process *process)
{
	unsigned count = 0;

	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++)
		count += process->model->devices[d] && process->model->devices[d]->known_peak;
	return count > 1;
}

const struct sl_device_state *sl_devices_home(const struct sl_process *process)
{
	const struct sl_device_state *most = NULL;

	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->used && (!most || state->known_peak > most->known_peak))
			most = state;
	}
	return most;
}

static struct sl_shared_device *shared_of(struct sl_report *report, const char *host, const struct sl_device *def, int ordinal)
{
	struct sl_shared_device *device;

	for (unsigned i = 0; def && def->uuid && i < report->device_count; i++)
		if (same_text(report->devices[i].uuid, def->uuid) && same_text(report->devices[i].host, host))
			return &report->devices[i];
	report->devices = sl_memory_must(realloc(report->devices, (report->device_count + 1) * sizeof(*device)));
	device = &report->devices[report->device_count++];
	*device = (struct sl_shared_device){
		.host = host,
		.uuid = def ? def->uuid : NULL,
		.name = def ? def->name : NULL,
		.device = ordinal,
		.total_bytes = def && def->total_bytes ? def->total_bytes : SL_UNKNOWN,
		.used_peak_bytes = SL_UNKNOWN,
		.hidden_peak_bytes = SL_UNKNOWN,
	};
	return device;
}

static void add_process(struct sl_report *report, unsigned process, const struct sl_device_state *state)
{
	const struct sl_process *p = &report->processes[process];
	struct sl_shared_device *device =
		shared_of(report, p->trace->header.host, sl_defs_device(&p->trace->defs, state->device), state->device);

	device->processes = sl_memory_must(realloc(device->processes, (device->process_count + 1) * sizeof(*device->processes)));
	device->processes[device->process_count++] = process;
	if (state->total_bytes != SL_UNKNOWN)
		device->total_bytes = state->total_bytes;
	if (state->source[0])
		device->source = state->source;
	if (state->used_peak_bytes != SL_UNKNOWN &&
	    (device->used_peak_bytes == SL_UNKNOWN || state->used_peak_bytes > device->used_peak_bytes))
		device->used_peak_bytes = state->used_peak_bytes;
}

/* The most that all processes of the device except `except` held between two Unix times. */
static uint64_t held_by_others(const struct sl_report *report, const struct sl_shared_device *device, unsigned except,
			       uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_process *p = &report->processes[device->processes[i]];
		const struct sl_header *header = &p->trace->header;
		const struct sl_device_state *state;

		/* a process holds nothing after its end; checked first, since of a thousand processes most are from another time */
		if (device->processes[i] == except || begin_ns > p->ended_unix_ns || end_ns < header->started_ns)
			continue;
		state = sl_devices_state(report, device, device->processes[i]);
		if (!state)
			continue;
		bytes += sl_timeline_max(&p->model->timeline, state->line, begin_ns - header->started_ns + header->monotonic_ns,
					 end_ns - header->started_ns + header->monotonic_ns);
	}
	return bytes;
}

static void measure_known(const struct sl_report *report, struct sl_shared_device *device, unsigned process)
{
	const struct sl_process *p = &report->processes[process];
	const struct sl_line *known = sl_devices_state(report, device, process)->line;

	for (uint32_t b = known && known->begun ? known->first : 1; known && known->begun && b <= known->bin; b++) {
		uint64_t at = sl_process_unix(p, known->bins[b].max_ns);
		uint64_t sum = known->bins[b].max + held_by_others(report, device, process, at, at);

		if (sum > device->known_peak_bytes)
			device->known_peak_bytes = sum;
	}
}

static uint64_t less(uint64_t bytes, uint64_t others)
{
	return bytes > others ? bytes - others : 0;
}

static void take(struct sl_bin *hidden, struct sl_bin *taken, uint64_t others)
{
	hidden->min = less(taken->min, others);
	hidden->max = less(taken->max, others);
	hidden->last = less(taken->last, others);
	hidden->area = taken->max ? taken->area * (double)hidden->max / (double)taken->max : 0;
	taken->min -= hidden->min;
	taken->max -= hidden->max;
	taken->last -= hidden->last;
	taken->area -= hidden->area;
}

uint64_t sl_devices_shown_ns(const struct sl_process *process, const struct sl_device_state *state)
{
	uint64_t bin = 1ull << process->model->timeline.shift, tail = process->model->now_ns - state->last_sample_ns;

	return bin + state->sample_gap_ns + (tail > state->sample_gap_ns ? tail : state->sample_gap_ns);
}

/*
 * What other recorded processes held is not hidden: it is subtracted from the line of hidden memory and gets a line of its own.
 * A bin shows a sample taken before it.  For other processes the maximum from then until shortly after counts, so that memory
 * which came and went is never called hidden.
 */
static void take_others(const struct sl_report *report, const struct sl_shared_device *device, unsigned process)
{
	const struct sl_process *p = &report->processes[process];
	struct sl_device_state *state = sl_devices_state(report, device, process);
	struct sl_line *hidden = state->hidden_line, *taken;
	uint64_t around = 1ull << p->model->timeline.shift, before = sl_devices_shown_ns(p, state), most = 0;

	if (!hidden || !hidden->begun)
		return;
	taken = state->others_line = sl_timeline_copy(&p->model->timeline, hidden, SL_LINE_OTHERS);
	for (uint32_t b = hidden->first; b <= hidden->bin; b++) {
		uint64_t at = sl_process_unix(p, hidden->bins[b].max_ns);

		take(&hidden->bins[b], &taken->bins[b], held_by_others(report, device, process, at - before, at + around));
		if (b == hidden->first || hidden->bins[b].max > most) {
			most = hidden->bins[b].max;
			state->hidden_peak_ns = hidden->bins[b].max_ns;
		}
	}
	state->hidden_peak_bytes = most;
	hidden->value = hidden->bins[hidden->bin].last;
	taken->value = taken->bins[taken->bin].last;
}

static void measure(const struct sl_report *report, struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (device->process_count > 1) {
			measure_known(report, device, device->processes[i]);
			take_others(report, device, device->processes[i]);
		} else {
			device->known_peak_bytes = state->known_peak;
		}
		if (state->hidden_peak_bytes == SL_UNKNOWN ||
		    (device->hidden_peak_bytes != SL_UNKNOWN && state->hidden_peak_bytes <= device->hidden_peak_bytes))
			continue;
		device->hidden_peak_bytes = state->hidden_peak_bytes;
		device->hidden_peak_unix_ns = sl_process_unix(&report->processes[device->processes[i]], state->hidden_peak_ns);
	}
}

void sl_devices_join(struct sl_report *report)
{
	for (unsigned p = 0; p < report->process_count; p++)
		for (size_t d = 1; d < SL_COUNT(report->processes[p].model->devices); d++) {
			const struct sl_device_state *state = report->processes[p].model->devices[d];

			if (state && state->used)
				add_process(report, p, state);
		}
	for (unsigned i = 0; i < report->device_count; i++)
		measure(report, &report->devices[i]);
}

static uint64_t rounding_of(const struct sl_model *model, int device)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < model->sites.count; i++) {
		const struct sl_site *site = &model->sites.item[i];
		uint64_t blocks = site->kind == SL_KIND_device && site->device == device ? sl_model_blocks_at_peak(model, site) : 0;
		uint64_t each = blocks ? sl_model_site_at_peak(model, site) / blocks : 0;

		if (each >= UNIT / 2 && each % UNIT)
			bytes += blocks * (UNIT - each % UNIT);
	}
	return bytes;
}

uint64_t sl_devices_rounding(const struct sl_report *report, const struct sl_shared_device *device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (state)
			bytes += rounding_of(report->processes[device->processes[i]].model, state->device);
	}
	return bytes;
}
