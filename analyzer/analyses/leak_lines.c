/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "analyzer/analyses/leak.h"
#include "analyzer/analyses/leak_clock.h"
#include "analyzer/base/memory.h"
#include "analyzer/model/state/model.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/place.h"

#define TAKES_FEW (1u << SL_KEPT_GROWING | 1u << SL_KEPT_COLLECTED)
#define FEW_MAX	  2000 /* stacks with few births, beside places that leak */

/* Adds the first calls of its place, which were named after the replay (replay/late_unwinder.c). */
static void add_first_calls(const struct sl_model *model, struct sl_kept *kept)
{
	for (size_t i = 0; i < model->tracks.count; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		uint64_t bytes, blocks;

		if (track == kept->track || track->stack.python != kept->track->stack.python ||
		    track->stack.native != kept->track->stack.native || track->kind != kept->track->kind ||
		    track->device != kept->track->device || track->births >= SL_KEEPING_BIRTHS)
			continue;
		sl_tracks_held(&model->tracks, track, &bytes, &blocks);
		kept->births += track->births;
		kept->blocks += blocks;
		kept->bytes += kept->bytes == SL_UNKNOWN ? 0 : bytes;
		kept->amount += kept->count_only ? (double)blocks : (double)bytes;
		kept->left_blocks += track->live_blocks;
		kept->left_bytes += track->live_bytes;
	}
}

/* True: a reported place keeps blocks of this kind on this device, so sl_leak_join() may find both on one line. */
static bool may_join(const struct sl_process *process, size_t judged, const struct sl_track *track)
{
	bool may = false;

	for (size_t i = 0; i < judged; i++) {
		const struct sl_track *other = process->kept.item[i].track;

		if (track == other || (track->stack.native && track->stack.native == other->stack.native &&
				       track->stack.python == other->stack.python)) /* add_first_calls */
			return false;
		may |= 1u << process->kept.item[i].verdict & TAKES_FEW && track->kind == other->kind &&
		       track->device == other->device;
	}
	return may;
}

/* Stacks with too few births to be judged, or whose blocks were all kept unevenly: as a vector grows it calls from elsewhere. */
static void add_few(struct sl_process *process, const bool *segments)
{
	const struct sl_model *model = process->model;
	size_t judged = process->kept.count, few = 0;

	for (size_t i = 0; i < model->tracks.count && judged && few < FEW_MAX; i++) {
		const struct sl_track *track = &model->tracks.item[i];
		struct sl_kept kept = {.track = track, .verdict = SL_KEPT_FEW, .since_ns = track->first_ns};

		if (segments[i] || (track->births >= SL_KEEPING_BIRTHS && track->most_blocks < track->births) ||
		    !may_join(process, judged, track))
			continue;
		sl_leak_count(&kept, model, false);
		if (!kept.blocks)
			continue;
		kept.per_birth = kept.amount / (double)kept.births;
		*SL_PUSH(&process->kept) = kept;
		few++;
	}
}

void sl_leak_add(struct sl_process *process, const bool *segments)
{
	for (size_t i = 0; i < process->kept.count; i++)
		if (process->kept.item[i].track->stack.native)
			add_first_calls(process->model, &process->kept.item[i]);
	add_few(process, segments);
}

/* True: this place went on where that of the loop that ended stopped: one line with two callers did not end. */
static bool goes_on(const struct sl_track *track, const struct sl_track *ended)
{
	double gap = (double)(ended->last_ns - ended->first_ns) / (double)(ended->births - 1);

	return track->first_ns > ended->last_ns && (double)(track->first_ns - ended->last_ns) <= SL_CLOCK_PACES * gap;
}

static bool is_one_leak(const struct sl_kept *to, const struct sl_kept *one)
{
	return to->track->kind == one->track->kind && to->track->device == one->track->device &&
	       ((to->verdict == SL_KEPT_HELD) == (one->verdict == SL_KEPT_HELD) || goes_on(to->track, one->track)) &&
	       (one->verdict != SL_KEPT_FEW || (1u << to->verdict & TAKES_FEW && one->track->last_ns >= to->since_ns));
}

/* Per second of the time between them; 0: there is none. */
static double rate_between(uint64_t first_ns, uint64_t last_ns, double amount)
{
	return last_ns > first_ns ? amount / ((double)(last_ns - first_ns) / 1e9) : 0;
}

/* A leak of several stacks: the place they have in common, and the time in which any of them allocated. */
struct joined {
	struct sl_stack_frame place;
	uint64_t first_ns, last_ns;
};

/* Stacks that allocated one after the other grew at no time by the sum of their rates. */
static void slow_down(struct sl_kept *kept, const struct joined *joined)
{
	double rate = rate_between(joined->first_ns, joined->last_ns, kept->amount);

	if (rate > 0 && rate < kept->per_second) {
		kept->per_second_error *= rate / kept->per_second;
		kept->per_second = rate;
	}
}

void sl_leak_join(struct sl_process *process)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	struct joined *joined = sl_memory_must(calloc(process->kept.count + 1, sizeof(*joined)));
	size_t kept = 0, k;

	for (size_t i = 0; i < process->kept.count; i++) {
		struct sl_kept one = process->kept.item[i];
		const struct sl_stack_frame *place = sl_place_at(process, one.track->stack, frames);

		for (k = 0; place && k < kept; k++)
			if (is_one_leak(&process->kept.item[k], &one) && sl_place_same(&joined[k].place, place))
				break;
		if (place && k < kept) {
			if (one.verdict == SL_KEPT_FEW)
				one.per_second = rate_between(process->kept.item[k].track->first_ns,
							      process->kept.item[k].track->last_ns, one.amount);
			sl_leak_words_add(&process->kept.item[k], &one);
			if (one.track->first_ns < joined[k].first_ns)
				joined[k].first_ns = one.track->first_ns;
			if (one.track->last_ns > joined[k].last_ns)
				joined[k].last_ns = one.track->last_ns;
			slow_down(&process->kept.item[k], &joined[k]);
		} else if (one.verdict != SL_KEPT_FEW) {
			joined[kept] = (struct joined){place ? *place : (struct sl_stack_frame){0}, one.track->first_ns,
						       one.track->last_ns};
			process->kept.item[kept++] = one;
		}
	}
	process->kept.count = kept;
	free(joined);
}
