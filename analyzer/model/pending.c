/* SPDX-License-Identifier: MIT */
#include "analyzer/model/pending.h"

/*
 * What a sample finds beyond the process's own memory.  If that memory changed while the sample was taken (NVML may answer with
 * a figure from before an allocation that it is asked after) only two bounds are known: the value hidden before stays if it lies
 * between them, else the nearer bound is taken.  SL_UNKNOWN: there is no value from before and the bounds differ.
 */
static uint64_t hidden(const struct sl_device_state *device, uint64_t most)
{
	uint64_t used = device->sampled.used, least = device->sampled.least, before = device->hidden_last_bytes;
	uint64_t low = used > most ? used - most : 0, high = used > least ? used - least : 0;

	if (before == SL_UNKNOWN)
		return low == high ? low : SL_UNKNOWN;
	if (before < low)
		return low;
	return before < high ? before : high;
}

void sl_pending_settle(struct sl_model *model, struct sl_device_state *device)
{
	uint64_t bytes, known = device->sampled.known;

	if (known == SL_UNKNOWN)
		return;
	device->sampled.known = SL_UNKNOWN;
	bytes = hidden(device, known);
	if (bytes == SL_UNKNOWN)
		return;
	device->hidden_last_bytes = bytes;
	if (!device->hidden_line)
		device->hidden_line = sl_timeline_add(&model->timeline, SL_LINE_HIDDEN, device->device, 0);
	if (!device->samples_line)
		device->samples_line = sl_timeline_add(&model->timeline, SL_LINE_SAMPLES, device->device, 0);
	sl_timeline_set(&model->timeline, device->samples_line, model->now_ns, device->samples_line->value + 1, SL_NO_SITE);
	sl_timeline_set(&model->timeline, device->hidden_line, model->now_ns, bytes, SL_NO_SITE);
	if (device->hidden_peak_bytes == SL_UNKNOWN || bytes > device->hidden_peak_bytes) {
		device->hidden_peak_bytes = bytes;
		device->hidden_peak_ns = device->sampled.time_ns;
	}
}

/* The driver may have done this allocation or free before the sample, although the call returned after it. */
void sl_pending_change(struct sl_model *model, struct sl_device_state *device, int64_t bytes)
{
	if (device->sampled.known == SL_UNKNOWN)
		return;
	if (model->call_begin_ns > device->sampled.time_ns)
		sl_pending_settle(model, device);
	else if (bytes > 0)
		device->sampled.known += (uint64_t)bytes;
	else
		device->sampled.least -= device->sampled.least < (uint64_t)-bytes ? device->sampled.least : (uint64_t)-bytes;
}
