/* SPDX-License-Identifier: MIT */
/*
 * Where ranks meet: calls of NCCL and RCCL that make and end communicators, the ranges that these libraries open around each
 * collective, and the bytes that each communicator moved.  A call with its own range inside counts as one meeting.
 */

#include "analyzer/model/replay/replay.h"

/* When the list is full, every second entry is dropped. */
static void keep(struct sl_model *model, struct sl_collective collective)
{
	if (!model->collective_stride)
		model->collective_stride = 1;
	if (model->collectives_seen++ % model->collective_stride)
		return;
	if (model->collectives.count == SL_COLLECTIVES_MAX) {
		for (unsigned i = 0; i < SL_COLLECTIVES_MAX / 2; i++)
			model->collectives.item[i] = model->collectives.item[i * 2];
		model->collectives.count /= 2;
		model->collective_stride *= 2;
	}
	*SL_PUSH(&model->collectives) = collective;
}

static bool is_of(const struct sl_collective *range, const char *call, uint32_t thread, uint64_t begin_ns)
{
	const char *colon = range->name ? strchr(range->name, ':') : NULL;

	return colon && !strcmp(colon + 1, call) && range->thread == thread && range->begin_ns >= begin_ns;
}

void sl_collectives_call(struct sl_model *model, const struct sl_item *item)
{
	const char *name = item->hook->plain;

	if (strstr(name, "CommInit") || strstr(name, "CommSplit") || strstr(name, "CommShrink") || strstr(name, "CommGrow"))
		model->communicators++;
	else if (strstr(name, "CommDestroy") || strstr(name, "CommAbort"))
		model->communicators--;
	if (strstr(name, "CommInitRank") && model->meetings.count < SL_MEETINGS_MAX)
		*SL_PUSH(&model->meetings) = (struct sl_meeting){item->event->extra2, model->call_begin_ns, model->call_end_ns};
	if (!is_of(&model->last_collective, name, item->thread, model->call_begin_ns))
		keep(model,
		     (struct sl_collective){name, item->thread, model->call_begin_ns, model->call_end_ns, item->event->object, 0});
}

static struct sl_traffic *traffic_of(struct sl_model *model, uint64_t communicator)
{
	uint32_t at = sl_idmap_claim(&model->traffic_ids, communicator, model->traffic.count);

	if (at == model->traffic.count)
		*SL_PUSH(&model->traffic) = (struct sl_traffic){.communicator = communicator};
	return &model->traffic.item[at];
}

void sl_collectives_range(struct sl_model *model, const struct sl_open_range *range, uint32_t thread)
{
	const char *text = sl_defs_text(model->defs, model->labels.item[range->label].text);
	struct sl_traffic *traffic;

	/* the domains of NCCL and RCCL, and torch.distributed's names; an outer range of the program itself is a phase instead */
	if (!text || (strncmp(text, "NCCL:", 5) && strncmp(text, "RCCL:", 5) && strncmp(text, "nccl:", 5)) ||
	    strstr(text, "ncclGroup"))
		return;
	model->last_collective =
		(struct sl_collective){text, thread, range->begin_ns, model->now_ns, range->communicator, range->message_bytes};
	keep(model, model->last_collective);
	if (!range->communicator || !range->message_bytes)
		return;
	traffic = traffic_of(model, range->communicator);
	traffic->collectives++;
	traffic->bytes += range->message_bytes;
}
