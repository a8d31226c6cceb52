/* SPDX-License-Identifier: MIT */
#include "analyzer/devices.h"

#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

const struct sl_device_state *sl_devices_state(const struct sl_report *report, const struct sl_shared_device *device,
					       unsigned process)
{
	const struct sl_process *p = &report->processes[process];

	for (size_t i = 1; i < SL_COUNT(p->model->devices); i++) {
		const struct sl_device_state *state = p->model->devices[i];
		const struct sl_device *def = state ? sl_defs_device(&p->trace->defs, state->device) : NULL;

		if (!state || !state->used)
			continue;
		if (device->uuid ? def && same_text(def->uuid, device->uuid) : state->device == device->device)
			return state;
	}
	return NULL;
}

static struct sl_shared_device *shared_of(struct sl_report *report, const char *host, const struct sl_device *def,
					  int ordinal)
{
	struct sl_shared_device *device;

	for (unsigned i = 0; def && def->uuid && i < report->device_count; i++)
		if (same_text(report->devices[i].uuid, def->uuid) && same_text(report->devices[i].host, host))
			return &report->devices[i];
	report->devices = realloc(report->devices, (report->device_count + 1) * sizeof(*device));
	if (!report->devices)
		abort();
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
	struct sl_shared_device *device = shared_of(report, p->trace->header.host,
						    sl_defs_device(&p->trace->defs, state->device), state->device);

	device->processes = realloc(device->processes, (device->process_count + 1) * sizeof(*device->processes));
	if (!device->processes)
		abort();
	device->processes[device->process_count++] = process;
	if (state->total_bytes != SL_UNKNOWN)
		device->total_bytes = state->total_bytes;
	if (state->source[0])
		device->source = state->source;
	if (state->used_peak_bytes != SL_UNKNOWN &&
	    (device->used_peak_bytes == SL_UNKNOWN || state->used_peak_bytes > device->used_peak_bytes))
		device->used_peak_bytes = state->used_peak_bytes;
}

/* What all processes of the device but `except` held at a Unix time. */
static double held_by_others(const struct sl_report *report, const struct sl_shared_device *device, unsigned except,
			     uint64_t unix_ns)
{
	double bytes = 0;

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_process *p = &report->processes[device->processes[i]];
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);
		const struct sl_header *header = &p->trace->header;

		if (device->processes[i] == except || !state || unix_ns > p->ended_unix_ns)
			continue; /* what a process held goes with it */
		bytes += sl_timeline_at(&p->model->timeline, state->line,
					unix_ns - header->started_ns + header->monotonic_ns);
	}
	return bytes;
}

static void measure(const struct sl_report *report, struct sl_shared_device *device)
{
	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_process *p = &report->processes[device->processes[i]];
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);
		bool alone = device->process_count == 1;
		const struct sl_line *known = state->line, *used = state->used_line;

		if (alone) {
			device->known_peak_bytes = state->known_peak;
			device->hidden_peak_bytes = state->hidden_peak_bytes;
			return;
		}
		for (uint32_t b = known && known->begun ? known->first : 1; known && known->begun && b <= known->bin; b++) {
			double sum = (double)known->bins[b].max +
				     held_by_others(report, device, device->processes[i],
						    sl_process_unix(p, known->bins[b].max_ns));

			if (sum > (double)device->known_peak_bytes)
				device->known_peak_bytes = (uint64_t)sum;
		}
		for (uint32_t b = used && used->begun ? used->first : 1; used && used->begun && b <= used->bin; b++) {
			uint64_t at = used->bins[b].max_ns;
			double hidden = (double)used->bins[b].max - sl_timeline_at(&p->model->timeline, known, at) -
					held_by_others(report, device, device->processes[i], sl_process_unix(p, at));
			uint64_t bytes = hidden > 0 ? (uint64_t)hidden : 0;

			if (device->hidden_peak_bytes == SL_UNKNOWN || bytes > device->hidden_peak_bytes)
				device->hidden_peak_bytes = bytes;
		}
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
