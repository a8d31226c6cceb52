/* SPDX-License-Identifier: MIT */
#include "analyzer/report/devices.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"

#define SAMPLE_NS  2000000ull  /* a sample of the device usually takes no longer, from question to answer */
#define LEAVING_NS SL_NS_PER_S /* the driver takes so long to take back what an ended process held */

struct held {
	uint64_t least, most;
};

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

unsigned sl_devices_held(const struct sl_process *process)
{
	unsigned count = 0;

	for (size_t d = 1; d < SL_COUNT(process->model->devices); d++)
		count += process->model->devices[d] && process->model->devices[d]->known_peak;
	return count;
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

const struct sl_device_state *sl_devices_fullest(const struct sl_process *process)
{
	const struct sl_device_state *most = NULL;

	for (size_t d = 0; d < SL_COUNT(process->model->devices); d++) {
		const struct sl_device_state *state = process->model->devices[d];

		if (state && state->known_peak > (most ? most->known_peak : 0))
			most = state;
	}
	return most;
}

uint64_t sl_devices_peak(const struct sl_process *process)
{
	const struct sl_device_state *most = sl_devices_fullest(process);

	return most ? most->known_peak : 0;
}

struct sl_process *sl_devices_fullest_process(const struct sl_report *report)
{
	struct sl_process *found = NULL;
	uint64_t most = 0;

	for (unsigned i = 0; i < report->process_count; i++) {
		uint64_t peak = sl_devices_peak(&report->processes[i]);

		if (peak > most) {
			found = &report->processes[i];
			most = peak;
		}
	}
	return found;
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

uint64_t sl_devices_left(const struct sl_report *report, const struct sl_shared_device *device, const struct sl_process *process)
{
	uint64_t left = process->ended_unix_ns;

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_process *p = &report->processes[device->processes[i]];
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		for (size_t k = 0; state && k < state->neighbours.count; k++) {
			const struct sl_neighbour *one = &state->neighbours.item[k];
			uint64_t listed = sl_process_unix(p, one->last_ns);

			if (one->pid == process->trace->header.pid && listed > left)
				left = listed;
		}
	}
	return left;
}

/* The least and the most that all processes of the device except `except` held between two Unix times. */
static struct held held_by_others(const struct sl_report *report, const struct sl_shared_device *device, unsigned except,
				  uint64_t begin_ns, uint64_t end_ns, uint64_t leaving_ns)
{
	struct held held = {0};

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_process *p = &report->processes[device->processes[i]];
		const struct sl_header *header = &p->trace->header;
		const struct sl_device_state *state;
		uint64_t begin, end;

		/* a process holds nothing after its end; checked first, since of a thousand processes most are from another time */
		if (device->processes[i] == except || begin_ns > p->ended_unix_ns + leaving_ns || end_ns < header->started_ns)
			continue;
		state = sl_devices_state(report, device, device->processes[i]);
		if (!state)
			continue;
		begin = begin_ns - header->started_ns + header->monotonic_ns;
		end = end_ns - header->started_ns + header->monotonic_ns;
		held.most += sl_timeline_max(&p->model->timeline, state->line, begin, end);
		if (begin_ns >= header->started_ns &&
		    (end_ns <= p->ended_unix_ns ||
		     (p->trace->status != SL_STATUS_COMPLETED && begin_ns + SAMPLE_NS <= sl_devices_left(report, device, p))))
			held.least += sl_timeline_min(&p->model->timeline, state->line, begin, end);
	}
	return held;
}

static void measure_known(const struct sl_report *report, struct sl_shared_device *device, unsigned process)
{
	const struct sl_process *p = &report->processes[process];
	const struct sl_line *known = sl_devices_state(report, device, process)->line;

	for (uint32_t b = known && known->begun ? known->first : 1; known && known->begun && b <= known->bin; b++) {
		uint64_t at = sl_process_unix(p, known->bins[b].max_ns);
		uint64_t sum = known->bins[b].max + held_by_others(report, device, process, at, at, 0).most;

		if (sum > device->known_peak_bytes)
			device->known_peak_bytes = sum;
	}
}

static uint64_t less(uint64_t bytes, uint64_t others)
{
	return bytes > others ? bytes - others : 0;
}

/*
 * How much of a sample is hidden.  What others held is known only within bounds: what was hidden before is kept if it lies
 * within them, else the nearer bound is taken.
 */
static uint64_t hidden_of(uint64_t sampled, struct held others, uint64_t before)
{
	uint64_t low = less(sampled, others.most), high = less(sampled, others.least);

	if (before < low)
		return low;
	return before < high ? before : high;
}

/* What others held while the samples of a bin were taken. */
static struct held held_beside(const struct sl_report *report, const struct sl_shared_device *device, unsigned process,
			       uint32_t bin)
{
	const struct sl_process *p = &report->processes[process];
	const struct sl_timeline *timeline = &p->model->timeline;
	uint64_t begin_ns = sl_process_unix(p, timeline->begin_ns + ((uint64_t)bin << timeline->shift));

	return held_by_others(report, device, process, begin_ns - SAMPLE_NS, begin_ns + (1ull << timeline->shift) + SAMPLE_NS,
			      LEAVING_NS);
}

static bool is_sampled(const struct sl_line *samples, uint32_t bin)
{
	return bin == samples->first || samples->bins[bin].last > samples->bins[bin - 1].last;
}

/* What was hidden at the first sample during which no other process changed; without one, the least that any sample shows. */
static uint64_t hidden_at_rest(const struct sl_report *report, const struct sl_shared_device *device, unsigned process,
			       const struct sl_device_state *state)
{
	uint64_t least = SL_UNKNOWN;

	for (uint32_t b = state->samples_line->first; b <= state->samples_line->bin; b++) {
		struct held others;
		uint64_t bytes;

		if (!is_sampled(state->samples_line, b))
			continue;
		others = held_beside(report, device, process, b);
		bytes = less(state->hidden_line->bins[b].last, others.least);
		if (others.least == others.most)
			return bytes;
		least = bytes < least ? bytes : least;
	}
	return least;
}

/*
 * Splits what the samples of a bin found into hidden memory and that of others.  The bin begins with what the sample before it
 * found (found_before), of which `before` was hidden.
 */
static void take(struct sl_bin *hidden, struct sl_bin *taken, uint64_t found_before, uint64_t before, struct held others)
{
	uint64_t most = taken->max == found_before ? taken->last : taken->max;
	uint64_t least = taken->min == found_before ? taken->last : taken->min;

	hidden->last = hidden_of(taken->last, others, before);
	hidden->max = hidden_of(most, others, before);
	hidden->min = hidden_of(least, others, before);
	if (found_before != SL_UNKNOWN) {
		hidden->max = before > hidden->max ? before : hidden->max;
		hidden->min = before < hidden->min ? before : hidden->min;
	}
	hidden->area = taken->max ? taken->area * (double)hidden->max / (double)taken->max : 0;
	taken->min -= hidden->min;
	taken->max -= hidden->max;
	taken->last -= hidden->last;
	taken->area -= hidden->area;
}

/*
 * What other recorded processes held is not hidden: it is subtracted from the line of hidden memory and gets a line of its
 * own.  For the bin of a sample it is known exactly where their memory did not change, else within bounds.  Within these
 * bounds as little as possible is called hidden.
 */
static void take_others(const struct sl_report *report, const struct sl_shared_device *device, unsigned process)
{
	struct sl_model *model = report->processes[process].model;
	struct sl_device_state *state = sl_devices_state(report, device, process);
	struct sl_line *hidden = state->hidden_line, *taken;
	uint64_t found = SL_UNKNOWN, before, most = 0;
	struct held others = {0};

	if (!hidden || !hidden->begun)
		return;
	before = hidden_at_rest(report, device, process, state);
	taken = state->others_line = sl_timeline_copy(&model->timeline, hidden, SL_LINE_OTHERS);
	for (uint32_t b = hidden->first; b <= hidden->bin; b++) {
		uint64_t last = taken->bins[b].last;

		if (is_sampled(state->samples_line, b))
			others = held_beside(report, device, process, b);
		take(&hidden->bins[b], &taken->bins[b], found, before, others);
		found = last;
		before = hidden->bins[b].last;
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

uint64_t sl_devices_rounding(const struct sl_report *report, const struct sl_shared_device *device)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < device->process_count; i++) {
		const struct sl_device_state *state = sl_devices_state(report, device, device->processes[i]);

		if (state)
			bytes += state->hidden_peak_rounded;
	}
	return bytes;
}

unsigned sl_devices_visible(const struct sl_process *process)
{
	const char *visible = sl_defs_capability(&process->trace->defs, "visible_devices");

	return visible ? (unsigned)strtoul(visible, NULL, 10) : 0;
}
