/* SPDX-License-Identifier: MIT */
/* One function for each thing that may have preceded the error, asked in one order at the end. */
#include "analyzer/analyses/oom_causes.h"

#include <string.h>

#include "analyzer/base/amounts.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/roles.h"

#define JUMP_BINS 32 /* of the time line */

bool sl_oom_causes_first_rise(const struct sl_oom *oom)
{
	for (unsigned i = 1; i < oom->change_count; i++)
		if (oom->changes[i].known < oom->changes[i - 1].known)
			return false;
	return oom->device >= 0 && !oom->device_rise.count;
}

/*
 * Tells the memory that a limit had the context set aside, where it is at least half of what the program holds.  It must also be
 * enough for the request, unless the request is for a context or a limit.
 */
static bool tell_limit(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom,
		       const struct sl_account *account)
{
	const struct sl_device_state *state = oom->device >= 0 ? process->model->devices[oom->device + 1] : NULL;
	uint64_t least = state ? sl_device_state_limit(state) : 0, takes = state && state->limit_each ? account->context : least;
	bool asks = oom->scope == SL_SCOPE_CONTEXT;

	if (!least || state->limit_ns > oom->time_ns || account->hidden == SL_UNKNOWN || account->hidden < least ||
	    takes == SL_UNKNOWN || (!asks && takes < sl_oom_causes_missing(oom)) || 2 * takes < oom->live_bytes)
		return false;
	*story = (struct sl_story){
		.kind = SL_STORY_LIMIT, .stack = state->limit_stack, .bytes = takes, .count = state->limit_raised};
	return true;
}

/* A request unlike earlier ones at its place. */
static bool tell_request(struct sl_story *story, const struct sl_oom *oom)
{
	if (oom->place_births < SL_SEVERAL || oom->asked_bytes < SL_SPIKE_TIMES * oom->place_most)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_REQUEST,
				   .stack = oom->stack,
				   .bytes = oom->asked_bytes,
				   .before = oom->place_most,
				   .count = oom->place_births,
				   .times = (double)oom->asked_bytes / (double)oom->place_most};
	return true;
}

/* True: the place made the request, or still held enough at the error; memory given back before is no reason. */
static bool is_there(const struct sl_process *process, const struct sl_oom *oom, const struct sl_track *track)
{
	bool there = sl_tracks_alike(process->model->defs, track->stack, oom->stack);

	for (unsigned i = 0; i < oom->owner_count && !there; i++)
		there = &process->model->tracks.item[process->model->sites.item[oom->owners[i].site].track] == track &&
			oom->owners[i].bytes >= sl_oom_causes_missing(oom);
	return there;
}

/* A request unlike those of all steps before; in its own step the line may have asked for as much already. */
static bool tell_step(struct sl_story *story, const struct sl_oom *oom)
{
	if (oom->pass_births < SL_SEVERAL || !oom->pass_most || oom->asked_bytes < SL_SPIKE_TIMES * oom->pass_most)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_STEP,
				   .stack = oom->stack,
				   .bytes = oom->asked_bytes,
				   .before = oom->pass_most,
				   .count = oom->pass_births,
				   .times = (double)oom->asked_bytes / (double)oom->pass_most};
	return true;
}

/* The backward pass of a step that is the first: each layer asks for other sizes. */
static bool is_first_backward(struct sl_process *process, const struct sl_oom *oom, const struct sl_track *track)
{
	for (size_t i = 0; oom->step == SL_UNKNOWN && i < process->model->sites.count; i++)
		if (&process->model->tracks.item[process->model->sites.item[i].track] == track)
			return sl_roles_of(process, &process->model->sites.item[i]) == SL_ROLE_GRADIENTS;
	return false;
}

/* A place that asks for more each time. */
static bool tell_larger(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		if (found->device != oom->device || !found->larger || !is_there(process, oom, found->larger) ||
		    is_first_backward(process, oom, found->larger))
			continue;
		*story = (struct sl_story){.kind = SL_STORY_LARGER,
					   .stack = found->larger->stack,
					   .bytes = found->larger_to,
					   .before = found->larger_from};
		return true;
	}
	return false;
}

static bool is_surge(const struct sl_surge *rise)
{
	return rise->count >= SL_SEVERAL && rise->bytes >= SL_SPIKE_TIMES * rise->most;
}

/* A step that took much more than earlier ones, described by the place that took most of it, if there is one. */
static bool tell_surge(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_surge *all = &oom->device_rise, *here = &oom->place_rise;
	const struct sl_track *track = oom->surge ? &process->model->tracks.item[oom->surge - 1] : NULL;
	uint64_t more = all->bytes > all->most ? all->bytes - all->most : 0;

	if (track && is_surge(here) && here->bytes - here->most >= SL_HALF * (double)more) {
		*story = (struct sl_story){.stack = track->stack, .bytes = here->bytes, .before = here->most, .count = here->count};
	} else if (is_surge(all)) {
		*story = (struct sl_story){.stack = oom->stack, .bytes = all->bytes, .before = all->most, .count = all->count};
		story->words = "device";
	} else {
		return false;
	}
	story->kind = SL_STORY_SURGE;
	story->times = (double)story->bytes / (double)story->before;
	return true;
}

/* A place whose rises got higher each time, with most given back between them; one only as high as before would have fitted. */
static bool tell_teeth(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_surge *here = &oom->place_rise;

	if (!oom->surge || here->rose < SL_FEW || here->bytes < SL_SPIKE_TIMES * here->first ||
	    here->bytes - here->most < sl_oom_causes_missing(oom))
		return false;
	*story = (struct sl_story){SL_STORY_TEETH, process->model->tracks.item[oom->surge - 1].stack, here->bytes, here->first,
				   here->rose,	   (double)here->bytes / (double)here->first,	      NULL};
	return true;
}

static uint64_t most_in(const struct sl_line *line, uint32_t bins)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < bins; i++)
		most = line->bins[line->first + i].max > most ? line->bins[line->first + i].max : most;
	return most;
}

/*
 * The device held about the same for most of the time, and then much more within a moment.  Where nothing was freed before and
 * no new place asks, there was no jump: a program that fills the device only paused.  A program that held hardly any memory before
 * had only begun.
 */
static bool tell_jump(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_timeline *timeline = &process->model->timeline;
	const struct sl_line *line = oom->device >= 0 ? process->model->devices[oom->device + 1]->line : NULL;
	uint32_t bins =
		line && line->begun ? (uint32_t)((oom->time_ns - timeline->begin_ns) >> timeline->shift) + 1 - line->first : 0;
	uint64_t before, most = oom->live_bytes + oom->asked_bytes, then_ns;
	struct sl_stack stack = oom->stack;
	bool begun = false;

	if (bins < JUMP_BINS || bins > line->bin + 1 - line->first)
		return false;
	before = most_in(line, bins - (uint32_t)(SL_QUARTER * bins));
	if (2 * oom->asked_bytes + before > most || (double)most < SL_LARGER * (double)before ||
	    (double)before < SL_TRACE * SL_LITTLE * (double)most ||
	    (double)most_in(line, bins / 2) < SL_NEARLY_ALL * (double)before)
		return false;
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		if (found->device == oom->device && found->larger && found->larger_to >= 2 * found->larger_from)
			return false; /* growing requests explain more */
	}
	then_ns = timeline->begin_ns + ((uint64_t)(line->first + bins - (uint32_t)(SL_QUARTER * bins)) << timeline->shift);
	for (unsigned i = oom->owner_count; i--;) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];

		if (process->model->tracks.item[site->track].first_ns >= then_ns) {
			stack = site->stack;
			begun = true;
		}
	}
	if (!begun && sl_oom_causes_first_rise(oom))
		return false;
	*story = (struct sl_story){
		.kind = SL_STORY_JUMP, .stack = stack, .bytes = most, .before = before, .times = (double)most / (double)before};
	return true;
}

/* A request of a size that no earlier one had, in a program that made many. */
static bool tell_largest(struct sl_story *story, const struct sl_process *process, const struct sl_oom *oom)
{
	uint64_t most = 0, births = 0;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device != oom->device || track->first_ns > oom->time_ns)
			continue;
		most = track->most_bytes > most ? track->most_bytes : most;
		births += track->births;
	}
	if (oom->scope == SL_SCOPE_CONTEXT || births < SL_SEVERAL || !most || oom->asked_bytes < SL_SEVERAL * most)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_LARGEST, .stack = oom->stack, .bytes = oom->asked_bytes, .before = most};
	return true;
}

/* Repeated attempts, each of which kept what it had got before it failed. */
static bool tell_attempts(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom,
			  const struct sl_account *account)
{
	const struct sl_oom *first = &process->model->ooms.item[account->first_attempt];

	if (!account->attempts_before || oom->place_births <= first->place_births || oom->live_bytes <= first->live_bytes)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_ATTEMPTS,
				   .stack = oom->stack,
				   .bytes = oom->live_bytes,
				   .before = first->live_bytes,
				   .count = account->attempts_before + 1};
	return true;
}

/* The place that held most kept all that it had asked for.  A trace does not show whether that or this request is too much. */
static bool tell_holder(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_owner *most = oom->owner_count ? &oom->owners[0] : NULL;
	const struct sl_site *site = most ? &process->model->sites.item[most->site] : NULL;

	if (!site || most->blocks != process->model->tracks.item[site->track].births || most->bytes < sl_oom_causes_missing(oom))
		return false;
	*story = (struct sl_story){.kind = SL_STORY_HOLDER, .stack = site->stack, .bytes = most->bytes, .count = most->blocks};
	return true;
}

bool sl_oom_causes_tell(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom,
			const struct sl_account *account)
{
	bool fits = account->cause != SL_CAUSE_TOO_LARGE; /* else freeing everything would not be enough */

	return tell_attempts(story, process, oom, account) || tell_request(story, oom) || tell_step(story, oom) ||
	       (fits && tell_limit(story, process, oom, account)) || (fits && sl_oom_causes_grew(story, process, oom)) ||
	       (fits && tell_surge(story, process, oom)) || tell_teeth(story, process, oom) || tell_jump(story, process, oom) ||
	       (fits && tell_larger(story, process, oom)) || tell_largest(story, process, oom) ||
	       (fits && tell_holder(story, process, oom));
}
