/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/peak.h"

#include <stdio.h>
#include <stdlib.h>

#include "analyzer/base/memory.h"
#include "analyzer/fit/window.h"

/* What lives after op `at`, by id. */
static void find_held(struct sl_fit_peak *peak, const struct sl_fit_recording *r, size_t at)
{
	struct sl_fit_held *by_id = sl_memory_must(calloc(r->ids + 1, sizeof(*by_id)));

	for (size_t i = 0; i < r->seeds.count; i++)
		if (r->seeds.item[i].held)
			by_id[r->seeds.item[i].id].bytes = r->seeds.item[i].requested;
	for (size_t i = 0; i <= at; i++) {
		const struct sl_fit_op *op = &r->ops.item[i];

		if (op->verb == SL_FIT_ALLOC)
			by_id[op->id] = (struct sl_fit_held){op->bytes, op->python};
		else if (op->verb == SL_FIT_FREE || op->verb == SL_FIT_FREE_LATER)
			by_id[op->id].bytes = 0;
	}
	for (uint32_t id = 0; id < r->ids; id++) {
		if (by_id[id].bytes)
			*SL_PUSH(&peak->held) = by_id[id];
		peak->requested += by_id[id].bytes;
	}
	free(by_id);
}

/* Two runs: the first finds the moment, the second ends there. */
static bool take(struct sl_fit_peak *peak, const struct sl_fit_recording *recording, struct sl_fit_case *how)
{
	struct sl_fit_recording until = *recording;
	struct sl_fit_top top = {0};
	struct sl_fit_outcome o;
	const struct sl_fit_unused *unused = &top.unused;

	how->top = &top;
	sl_fit_run(&o, &until, how);
	/* a recording that ran out of memory as it did fails at its last request */
	if (o.stats.broken || !top.bytes || (o.verdict != SL_FIT_FITS && !(o.verdict == SL_FIT_FAILS && recording->ooms)))
		return false;
	until.ops.count = top.at + 1;
	top = (struct sl_fit_top){0};
	sl_fit_run(&o, &until, how);
	find_held(peak, recording, top.at);
	peak->bytes = top.bytes;
	peak->rounding = top.stats.allocated - peak->requested;
	peak->unused = *unused;
	peak->waiting = top.stats.reserved - top.stats.allocated - unused->fragments - unused->cache - unused->pools;
	peak->outside = top.outside;
	peak->libraries = top.others - top.outside;
	return top.stats.allocated >= peak->requested && peak->waiting < UINT64_MAX / 2;
}

bool sl_fit_peak(struct sl_fit_peak *peak, const struct sl_fit_recording *r, const struct sl_fit_choice *like, char *why,
		 size_t size)
{
	const struct sl_fit_question question = {.setting_count = 1, .unscanned = true, .ties = SL_FIT_GIVEN};
	struct sl_fit_case how = {.capacity = UINT64_MAX, .as_recorded = !like};
	struct sl_fit_subject subject;
	struct sl_fit_recording other;
	bool known;

	*peak = (struct sl_fit_peak){0};
	*why = 0;
	sl_fit_ask(&subject, r, &question);
	known = subject.answers != NULL;
	if (!known)
		snprintf(why, size, "%s", sl_fit_why(&subject, why, size));
	sl_fit_subject_free(&subject);
	if (!known)
		return false;
	how.ties = subject.check.ties;
	if (!like)
		return take(peak, r, &how);
	other = r->seeds.count ? sl_fit_from_nothing(r, SL_FIT_BY_ADDRESS) : *r;
	other.release = like->release;
	how.settings = &like->settings;
	how.ties = r->seeds.count ? SL_FIT_REUSED : sl_fit_way(&other, SL_FIT_GIVEN);
	how.capacity = r->ooms || r->window || !r->device_total ? UINT64_MAX : r->device_total;
	known = take(peak, &other, &how);
	if (r->seeds.count) {
		free(other.ops.item);
		free(other.reserved.item);
		free(other.times.item);
	}
	return known;
}

void sl_fit_peak_free(struct sl_fit_peak *peak)
{
	SL_DROP(&peak->held);
}
