/* SPDX-License-Identifier: MIT */
#include "analyzer/model/replay/replay.h"

#define FOLLOWED_NS (SL_NS_PER_S / 4)

static void take_neighbours(struct sl_oom *oom, const struct sl_device_state *device)
{
	oom->neighbour_count = 0;
	for (size_t i = 0; i < device->present.count; i++) {
		const struct sl_neighbour *one = &device->neighbours.item[device->present.item[i]];
		unsigned at = oom->neighbour_count;

		if (!one->bytes || (at == SL_NEIGHBOURS_MAX && oom->neighbours[at - 1].bytes >= one->bytes))
			continue;
		if (at == SL_NEIGHBOURS_MAX)
			at--;
		else
			oom->neighbour_count++;
		for (; at && oom->neighbours[at - 1].bytes < one->bytes; at--)
			oom->neighbours[at] = oom->neighbours[at - 1];
		oom->neighbours[at].pid = one->pid;
		oom->neighbours[at].bytes = one->bytes;
	}
}

void sl_neighbours_take(struct sl_oom *oom, const struct sl_device_state *device)
{
	oom->context_bytes = sl_sample_wait_contexts(device);
	oom->module_bytes = device->module_bytes;
	take_neighbours(oom, device);
}

void sl_neighbours_sampled(struct sl_model *model, const struct sl_device_state *device)
{
	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->device == device->device && oom->time_ns + SL_NS_PER_S > device->sampled.time_ns)
			sl_neighbours_take(oom, device);
	}
}

/* What was in use at the error beside the process's own; 0: not known. */
static uint64_t rest_of(const struct sl_oom *oom)
{
	uint64_t own = oom->live_bytes + oom->context_bytes + oom->module_bytes, used = oom->total_bytes - oom->free_bytes;

	return oom->total_bytes != SL_UNKNOWN && oom->free_bytes <= oom->total_bytes && used > own ? used - own : 0;
}

/*
 * True: neighbours hold more by the last sample than by the one before the error, and that was in use at the error.  One that
 * holds even more than was in use went on growing.
 */
static bool explains_more(const struct sl_oom *oom, const struct sl_device_state *device)
{
	uint64_t then = 0, now = 0, rest = rest_of(oom);

	for (unsigned i = 0; i < oom->neighbour_count; i++)
		then += oom->neighbours[i].bytes;
	for (size_t i = 0; i < device->present.count; i++)
		now += device->neighbours.item[device->present.item[i]].bytes;
	return now > then && rest > then && (now <= rest || device->present.count == 1);
}

void sl_neighbours_followed(struct sl_model *model, const struct sl_device_state *device, uint64_t before_ns)
{
	for (size_t i = model->ooms.count; i--;) {
		struct sl_oom *oom = &model->ooms.item[i];

		if (oom->time_ns < before_ns || oom->time_ns + FOLLOWED_NS < device->sampled.time_ns)
			break;
		if (oom->device != device->device || !explains_more(oom, device))
			continue;
		take_neighbours(oom, device);
		if (oom->neighbour_count == 1 && oom->neighbours[0].bytes > rest_of(oom))
			oom->neighbours[0].bytes = rest_of(oom);
	}
}
