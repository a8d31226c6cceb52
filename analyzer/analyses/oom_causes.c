/* SPDX-License-Identifier: MIT */
/* One function for each thing that may have preceded the error, asked in one order at the end. */
#include <string.h>

#include "analyzer/analyses/leak_windows.h"
#include "analyzer/analyses/oom_causes.h"
#include "analyzer/base/amounts.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"

/* A try that failed, whose memory the exception still held when the next one failed too. */

/* The last error of another request, if the program caught it, else NULL. */
static const struct sl_oom *caught_before(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_oom *first = oom;

	while (first > process->model->ooms.item && first->group == oom->group)
		first--;
	return first->group == oom->group || first->recovered == 1 || first->device != oom->device ||
			       (first->thread != oom->thread && !(first->reported_by_torch && oom->reported_by_torch))
		       ? NULL
		       : first; /* autograd fails on a thread of its own */
}

/*
 * Bytes that the line of a failed try made and that are still held, although the program has left that line.  Activations count,
 * and places that gave back half of their blocks at other times.
 */
static uint64_t unreturned_at(struct sl_process *process, const struct sl_oom *oom, const struct sl_chain *tried, unsigned outer)
{
	const struct sl_site *site;
	uint64_t bytes[2] = {0};
	struct sl_chain other;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));) {
		sl_place_take(&other, process, site->stack);
		if (sl_place_shared(tried, &other) > outer &&
		    (2 * owner->blocks <= site->total_blocks || sl_roles_of(process, site) == SL_ROLE_ACTIVATIONS))
			bytes[site->kind == SL_KIND_block] += owner->bytes;
	}
	return bytes[oom->torch.used]; /* PyTorch's segments stay for other tensors */
}

bool sl_oom_causes_retry(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_oom *first = caught_before(process, oom);
	const struct sl_stack_frame *try, *next;
	struct sl_chain tried, failed;
	unsigned outer;
	uint64_t unreturned_bytes;

	if (!first)
		return false;
	sl_place_take(&tried, process, first->stack);
	sl_place_take(&failed, process, oom->stack);
	outer = sl_place_shared(&tried, &failed);
	if (outer == tried.count || outer == failed.count)
		return false;
	try = tried.frame[tried.count - 1 - outer];
	next = failed.frame[failed.count - 1 - outer];
	if (!try->function || !next->function || strcmp(try->function, next->function) != 0)
		return false; /* a handler is in the function of its try */
	unreturned_bytes = unreturned_at(process, oom, &tried, outer);
	if (unreturned_bytes < sl_oom_causes_missing(oom))
		return false;
	*story = (struct sl_story){.kind = SL_STORY_RETRY, .stack = first->stack, .bytes = unreturned_bytes};
	return true;
}

/* Places that leak, or only took memory, and what they held when memory ran out. */

#define CHUNK_MIN (2 << 20)

/* A launch does not tell its device. */
static bool is_of_its_device(const struct sl_oom *oom, const struct sl_leak_line *line)
{
	return oom->device < 0 && oom->scope != SL_SCOPE_HOST ? line->track->device >= 0 : line->track->device == oom->device;
}

const struct sl_leak_line *sl_oom_causes_leak(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_leak_line *found = NULL;

	for (size_t i = process->leaks_by_line.count; i--;) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];

		if ((line->verdict == SL_KEPT_GROWING || line->verdict == SL_KEPT_UNCLEAR) && is_of_its_device(oom, line) &&
		    line->bytes != SL_UNKNOWN)
			found = line;
	}
	return found;
}

/*
 * Bytes of the leak when the request failed.  Only the largest owners are listed: if the others held enough for the rest of the
 * leak, all of it counts.
 */
static uint64_t held_then(struct sl_process *process, const struct sl_oom *oom, const struct sl_leak_line *line)
{
	bool tensors = line->track->kind == SL_KIND_block;
	uint64_t then = 0, all = tensors ? oom->torch.allocated_bytes : oom->live_bytes, listed = 0;
	const struct sl_site *site;
	char place[300], other[300];

	sl_leak_list_line(process, line->track->stack, place, sizeof(place)); /* whatever it went through to its place */
	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));) {
		if ((site->kind == SL_KIND_block) != tensors) /* segments have the lines of their first tensors */
			continue;
		sl_leak_list_line(process, site->stack, other, sizeof(other));
		then += strcmp(place, other) ? 0 : owner->bytes;
		listed += owner->bytes;
	}
	if (oom->owner_count == SL_OWNERS_MAX && listed < all && line->bytes <= then + (all - listed))
		return line->bytes;
	return then ? then : line->bytes <= oom->live_bytes ? line->bytes : 0;
}

uint64_t sl_oom_causes_leaked(struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_leak_line *line = sl_oom_causes_leak(process, oom);

	return line ? held_then(process, oom, line) : 0;
}

/* Several places that leak and each hold little: their number, and their memory together. */
static unsigned leaks_together(struct sl_process *process, const struct sl_oom *oom, uint64_t *bytes)
{
	unsigned places = 0;

	*bytes = 0;
	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];
		uint64_t then = is_of_its_device(oom, line) && line->bytes != SL_UNKNOWN ? held_then(process, oom, line) : 0;

		*bytes += then < line->bytes ? then : line->bytes;
		places += then > 0;
	}
	return places;
}

/* What places that only took memory took, summed below one line of code. */
struct below {
	uint64_t bytes;
	unsigned places;
};

/* Adds what a place took to those of the lines `chain` that its stack passes. */
static void add_taken(struct below *below, const struct sl_chain *chain, struct sl_process *process,
		      const struct sl_leak_line *line)
{
	struct sl_chain other;

	sl_place_take(&other, process, line->track->stack);
	for (unsigned i = 0; i < chain->count; i++) {
		unsigned k = 0;

		while (k < other.count && !sl_place_same(chain->frame[i], other.frame[k]))
			k++;
		if (k < other.count) {
			below[i].bytes += line->bytes;
			below[i].places++;
		}
	}
}

/* True: one place took most, and no line below which several did so. */
static bool is_one_place(struct sl_process *process, const struct sl_leak_line *line)
{
	struct below below[SL_STACK_MAX] = {0};
	struct sl_chain chain;
	uint64_t all = 0;
	unsigned at = 0;

	sl_place_take(&chain, process, line->track->stack);
	for (size_t i = 0; i < process->leaks_by_line.count; i++) {
		const struct sl_leak_line *one = &process->leaks_by_line.item[i];

		if (one->verdict != SL_KEPT_UNCLEAR || one->track->device != line->track->device || one->bytes == SL_UNKNOWN)
			continue;
		all += one->bytes;
		add_taken(below, &chain, process, one);
	}
	while (at < chain.count && (double)below[at].bytes < SL_MOST_OF * (double)all)
		at++;
	return at + 1 >= chain.count || below[at].places == 1; /* the outermost line is no answer */
}

/*
 * True: these blocks may be the chunks of an allocator of the program's own.  They are large, and all have one size or functions
 * with such a name made them.  A trace does not show how much of a chunk is in use.
 */
static bool may_be_chunks(struct sl_process *process, const struct sl_leak_line *line)
{
	static const char *const words[] = {"alloc", "arena", "pool", "chunk", "segment", "slab", "heap"};
	const struct sl_track *track = line->track;
	struct sl_chain chain;

	if (line->count_only || track->kind == SL_KIND_block || track->births < SL_KEEPING_BIRTHS ||
	    track->born_bytes < track->births * CHUNK_MIN)
		return false;
	if (track->born_bytes == track->births * track->most_bytes)
		return true;
	sl_place_take(&chain, process, track->stack);
	for (unsigned i = 0; i < chain.via_count + (chain.count > 0); i++) {
		const char *name = (i < chain.via_count ? chain.via[i] : chain.frame[0])->function;

		for (unsigned k = 0; name && k < SL_COUNT(words); k++)
			if (strcasestr(name, words[k]))
				return true;
	}
	return false;
}

bool sl_oom_causes_grew(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_leak_line *line = sl_oom_causes_leak(process, oom);
	uint64_t then = sl_oom_causes_leaked(process, oom), together = then;
	unsigned places = 1;

	if (then && (double)then < SL_QUARTER * (double)oom->live_bytes)
		places = leaks_together(process, oom, &together);
	if (!then || (double)together < SL_QUARTER * (double)oom->live_bytes)
		return false;
	if (line->verdict == SL_KEPT_UNCLEAR)
		*story = (struct sl_story){.kind = SL_STORY_TOOK,
					   .stack = line->track->stack,
					   .bytes = line->bytes < then ? line->bytes : then,
					   .count = line->blocks,
					   .words = is_one_place(process, line) && may_be_chunks(process, line) ? "chunks" : NULL};
	else
		*story = (struct sl_story){
			.kind = SL_STORY_GREW, .stack = line->track->stack, .bytes = together, .before = then, .count = places};
	return true;
}

#define JUMP_BINS 32 /* of the time line */

/*
 * True: the program freed no block of the device for a while. The trace then cannot show which blocks it keeps, and which it
 * needs at once.
 */
static bool find_first_rise(const struct sl_oom *oom)
{
	for (unsigned i = 1; i < oom->change_count; i++)
		if (oom->changes[i].known_bytes < oom->changes[i - 1].known_bytes)
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
	const struct sl_site *site;

	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));)
		there |= &process->model->tracks.item[site->track] == track && owner->bytes >= sl_oom_causes_missing(oom);
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
	return oom->step == SL_UNKNOWN && sl_roles_of_track(process, track) == SL_ROLE_GRADIENTS;
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
	return rise->count >= SL_SEVERAL && rise->bytes >= SL_SPIKE_TIMES * rise->highest;
}

/* A step that took much more than earlier ones, described by the place that took most of it, if there is one. */
static bool tell_surge(struct sl_story *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_surge *all = &oom->device_rise, *rise = &oom->place_rise;
	const struct sl_track *track = oom->surge ? &process->model->tracks.item[oom->surge - 1] : NULL;
	uint64_t more = all->bytes > all->highest ? all->bytes - all->highest : 0;

	if (track && is_surge(rise) && rise->bytes - rise->highest >= SL_HALF * (double)more) {
		*story = (struct sl_story){
			.stack = track->stack, .bytes = rise->bytes, .before = rise->highest, .count = rise->count};
	} else if (is_surge(all)) {
		*story = (struct sl_story){.stack = oom->stack, .bytes = all->bytes, .before = all->highest, .count = all->count};
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
	const struct sl_surge *rise = &oom->place_rise;

	if (!oom->surge || rise->rose < SL_FEW || rise->bytes < SL_SPIKE_TIMES * rise->first ||
	    rise->bytes - rise->highest < sl_oom_causes_missing(oom))
		return false;
	*story = (struct sl_story){SL_STORY_TEETH, process->model->tracks.item[oom->surge - 1].stack, rise->bytes, rise->first,
				   rise->rose,	   (double)rise->bytes / (double)rise->first,	      NULL};
	return true;
}

static uint64_t most_in(const struct sl_line *line, uint32_t bins)
{
	uint64_t max_bytes = 0;

	for (uint32_t i = 0; i < bins; i++)
		max_bytes = line->bins[line->first + i].max > max_bytes ? line->bins[line->first + i].max : max_bytes;
	return max_bytes;
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
	uint64_t before, needed = oom->live_bytes + oom->asked_bytes, then_ns;
	struct sl_stack stack = oom->stack;
	bool begun = false;
	const struct sl_site *site;

	if (bins < JUMP_BINS || bins > line->bin + 1 - line->first)
		return false;
	before = most_in(line, bins - (uint32_t)(SL_QUARTER * bins));
	if (2 * oom->asked_bytes + before > needed || (double)needed < SL_LARGER * (double)before ||
	    (double)before < SL_TRACE * SL_LITTLE * (double)needed ||
	    (double)most_in(line, bins / 2) < SL_NEARLY_ALL * (double)before)
		return false;
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		if (found->device == oom->device && found->larger && found->larger_to >= 2 * found->larger_from)
			return false; /* growing requests explain more */
	}
	then_ns = timeline->begin_ns + ((uint64_t)(line->first + bins - (uint32_t)(SL_QUARTER * bins)) << timeline->shift);
	for (const struct sl_owner *owner = NULL; (owner = sl_owners_at_error(process, oom, owner, &site));)
		if (!begun && process->model->tracks.item[site->track].first_ns >= then_ns) {
			stack = site->stack;
			begun = true;
		}
	if (!begun && find_first_rise(oom))
		return false;
	*story = (struct sl_story){
		.kind = SL_STORY_JUMP, .stack = stack, .bytes = needed, .before = before, .times = (double)needed / (double)before};
	return true;
}

/* A request of a size that no earlier one had, in a program that made many. */
static bool tell_largest(struct sl_story *story, const struct sl_process *process, const struct sl_oom *oom)
{
	uint64_t largest = 0, births = 0;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device != oom->device || track->first_ns > oom->time_ns)
			continue;
		largest = track->most_bytes > largest ? track->most_bytes : largest;
		births += track->births;
	}
	if (oom->scope == SL_SCOPE_CONTEXT || births < SL_SEVERAL || !largest || oom->asked_bytes < SL_SEVERAL * largest)
		return false;
	*story = (struct sl_story){.kind = SL_STORY_LARGEST, .stack = oom->stack, .bytes = oom->asked_bytes, .before = largest};
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
	const struct sl_site *site;
	const struct sl_owner *largest = sl_owners_at_error(process, oom, NULL, &site);

	if (!largest || largest->blocks != process->model->tracks.item[site->track].births ||
	    largest->bytes < sl_oom_causes_missing(oom))
		return false;
	*story =
		(struct sl_story){.kind = SL_STORY_HOLDER, .stack = site->stack, .bytes = largest->bytes, .count = largest->blocks};
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
