/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/other_settings.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

#define OPERATIONS_MAX 12000000ull /* about two seconds */

/* A block that was live when memory ran out. */
struct live {
	uint64_t bytes, request;
	size_t at;
	uint32_t id;
};

static int by_bytes(const void *a, const void *b)
{
	const struct live *x = a, *y = b;

	return SL_RISING(x->bytes, y->bytes) ?: SL_RISING(x->at, y->at);
}

static struct live *live_at(const struct sl_fit_recording *r, size_t end, unsigned *count)
{
	struct live *by_id = sl_memory_must(calloc(r->ids + 1, sizeof(*by_id)));
	uint64_t request = 0;

	*count = 0;
	for (size_t i = 0; i < end; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		request += op->verb == SL_FIT_ALLOC || op->verb == SL_FIT_TRY;
		if (op->verb == SL_FIT_ALLOC)
			by_id[op->id] = (struct live){op->bytes, request, i, op->id};
		else if (op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER)
			by_id[op->id].bytes = 0;
	}
	for (uint32_t id = 0; id < r->ids; id++)
		if (by_id[id].bytes)
			by_id[(*count)++] = by_id[id];
	qsort(by_id, *count, sizeof(*by_id), by_bytes);
	return by_id;
}

/* True: the replay grants the request that the recording refused. */
static bool is_granted(const struct sl_fit_recording *r, const struct sl_fit_case *how, size_t at)
{
	struct sl_fit_outcome o;

	sl_fit_run(&o, r, how);
	return o.verdict == SL_FIT_UNKNOWN && o.at == at;
}

/* The ops up to the request, with one block ended before it. */
static bool is_granted_without(const struct sl_fit_recording *r, const struct sl_fit_case *how, size_t at, const struct live *block)
{
	struct sl_fit_recording other = *r;
	bool granted;

	other.ops.item = sl_memory_must(calloc(at + 2, sizeof(*other.ops.item)));
	other.ops.count = at + 2;
	memcpy(other.ops.item, r->ops.item, at * sizeof(*other.ops.item));
	other.ops.item[at] = (struct sl_fit_op){.verb = SL_FIT_FREE, .id = block->id};
	other.ops.item[at + 1] = r->ops.item[at];
	granted = is_granted(&other, how, at + 1);
	free(other.ops.item);
	return granted;
}

static void find_block(struct sl_fit_other_settings *instead, const struct sl_fit_recording *r, const struct sl_fit_case *how)
{
	struct live *live = live_at(r, instead->at, &instead->live);

	for (unsigned i = 0; i < instead->live && !instead->block_bytes; i++) {
		if ((uint64_t)(instead->tried + 1) * instead->at > OPERATIONS_MAX)
			break;
		instead->tried++;
		if (!is_granted_without(r, how, instead->at, &live[i]))
			continue;
		instead->block_bytes = live[i].bytes;
		instead->block_request = live[i].request;
		instead->block_at = live[i].at;
	}
	free(live);
}

void sl_fit_other_settings(struct sl_fit_other_settings *instead, const struct sl_fit_subject *subject)
{
	const struct sl_fit_recording *r = subject->recording;
	struct sl_fit_picture picture = {0};
	struct sl_fit_case how = {.capacity = r->device_total, .ties = sl_fit_way(r, SL_FIT_GIVEN), .picture = &picture};
	struct sl_fit_outcome o;

	*instead = (struct sl_fit_other_settings){0};
	if (!subject->answers || !r->ooms || r->goes_on || !r->device_total || !r->others_known)
		return;
	sl_fit_run(&o, r, &how);
	how.picture = NULL;
	if (o.verdict != SL_FIT_FAILS || r->ops.item[o.at].verb != SL_FIT_TRY || o.request != r->requests) {
		sl_fit_picture_free(&picture);
		return;
	}
	*instead = (struct sl_fit_other_settings){
		.is_known = true, .at = o.at, .request = o.request, .bytes = o.bytes, .picture = picture};
	for (unsigned c = 0; c < subject->choice_count; c++) {
		const struct sl_fit_recording under = sl_fit_under(r, &subject->choices[c]);
		struct sl_fit_case other = how;

		other.settings = subject->choices[c].text ? &subject->choices[c].settings : NULL;
		other.ties = sl_fit_way(&under, SL_FIT_GIVEN);
		instead->granted[c] = !subject->choices[c].wrong && is_granted(&under, &other, o.at);
	}
	find_block(instead, r, &how);
	if (!r->budget->left_ns) {
		sl_fit_other_settings_free(instead);
		*instead = (struct sl_fit_other_settings){0};
	}
}

void sl_fit_other_settings_free(struct sl_fit_other_settings *instead)
{
	sl_fit_picture_free(&instead->picture);
}
