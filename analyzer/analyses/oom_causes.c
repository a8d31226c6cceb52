/* SPDX-License-Identifier: MIT */
/* (Longer than other files: one function for each thing that may have preceded the error, asked in one order at the end.) */
#include "analyzer/analyses/oom_causes.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/analyses/hidden.h"
#include "analyzer/base/format.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/report/roles.h"

#define SPIKE_BIRTHS  5 /* births of the place, and rises, before it */
#define SPIKE_TIMES   2
#define JUMP_TIMES    1.2  /* what the device held, over what it had held for most of the time */
#define JUMP_LEVEL    0.9  /* of that: what the device had held in the first half already, so that it did not grow */
#define JUMP_PART     0.25 /* the last part of the time, in which the jump lies */
#define LARGER_TIMES  2	   /* requests of a place that got so many times larger are the reason */
#define JUMP_BINS     32   /* of the time line */
#define GREW_PART     0.25 /* share of what the process held */
#define SURGE_PART    0.5  /* share of what the step took more than earlier steps */
#define TEETH_MIN     3	   /* rises, each higher than all before */
#define LIMIT_GREW    3	   /* raises of a limit */
#define STAIRS_MIN    3	   /* earlier blocks of the place */
#define STAIRS_PART   0.3  /* share of what the process held */
#define OTHERS_PART   4	   /* a place is named if it held at least one of so many parts of what others held */
#define NEAR_PEAK     0.9  /* share of its peak that the other process must hold for its peak to tell who held it */
#define BELOW_PART    0.8  /* share of the bytes of all places that only took memory */
#define TAKEN_PART    0.4  /* share of what the process held */
#define CHUNKS_MIN    8
#define CHUNK_MIN     (2 << 20)
#define LARGEST_TIMES 4
#define ATTEMPTS_PART 0.05 /* share of what the process held at the last attempt */

/* For what grows, and for what had not all been asked for yet: a later request would fail. */
static const char but_once[] = ", but not what comes after it";

static void advise(struct sl_oom_causes *story, const struct sl_oom *oom, const char *what, const char *but)
{
	if (oom->asked_bytes)
		snprintf(story->advice, sizeof(story->advice), "%s: %s less " SL_WOULD_PASS "%s", what,
			 SL_SIZE(sl_oom_causes_missing(oom)), but);
	else
		snprintf(story->advice, sizeof(story->advice), "%s", what);
}

/*
 * Tells the memory that a limit had the context set aside, where it is at least half of what the program holds.  It must also be
 * enough for the request, unless the request is for a context or a limit.
 */
static bool tell_limit(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom,
		       const struct sl_account *account)
{
	const struct sl_device_state *state = oom->device >= 0 ? process->model->devices[oom->device + 1] : NULL;
	uint64_t least = state ? sl_device_state_limit(state) : 0, takes = state && state->limit_each ? account->context : least;
	bool asks = oom->scope == SL_SCOPE_CONTEXT;
	char where[300], what[100], times[60] = "";

	if (!least || state->limit_ns > oom->time_ns || account->hidden == SL_UNKNOWN || account->hidden < least ||
	    takes == SL_UNKNOWN || (!asks && takes < sl_oom_causes_missing(oom)) || 2 * takes < oom->live_bytes)
		return false;
	sl_owners_line(process, state->limit_stack, 2, where, sizeof(where));
	sl_hidden_limit(what, sizeof(what), state);
	if (state->limit_raised >= LIMIT_GREW)
		snprintf(times, sizeof(times), "it grew, by %llu raises: ", (unsigned long long)state->limit_raised);
	snprintf(story->text, sizeof(story->text), "%shidden memory has %s, for which the limit was raised at %s", times, what,
		 where);
	if (asks)
		snprintf(story->advice, sizeof(story->advice), "lower that limit when it is no longer needed");
	else
		advise(story, oom, "lower that limit", but_once);
	return true;
}

/* A request unlike earlier ones at its place. */
static bool tell_request(struct sl_oom_causes *story, const struct sl_oom *oom)
{
	if (oom->place_births < SPIKE_BIRTHS || oom->asked_bytes < SPIKE_TIMES * oom->place_most)
		return false;
	snprintf(story->text, sizeof(story->text), "this request is %.1f times the largest of the %llu before it at its place, %s",
		 (double)oom->asked_bytes / (double)oom->place_most, (unsigned long long)oom->place_births,
		 SL_SIZE(oom->place_most));
	snprintf(story->advice, sizeof(story->advice), "bound this size: up to %s would have fitted", SL_SIZE(sl_units_room(oom)));
	return true;
}

/* A launch does not tell its device. */
static bool is_of_its_device(const struct sl_oom *oom, const struct sl_kept *kept)
{
	return oom->device < 0 && oom->scope != SL_SCOPE_HOST ? kept->track->device >= 0 : kept->track->device == oom->device;
}

const struct sl_kept *sl_oom_causes_leak(const struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_kept *found = NULL;

	for (size_t i = process->kept.count; i--;) {
		const struct sl_kept *kept = &process->kept.item[i];

		if ((kept->verdict == SL_KEPT_GROWING || kept->verdict == SL_KEPT_UNCLEAR) && is_of_its_device(oom, kept) &&
		    kept->bytes != SL_UNKNOWN)
			found = kept;
	}
	return found;
}

/*
 * Bytes of the leak when the request failed.  Only the largest owners are listed: if the others held enough for the rest of the
 * leak, all of it counts.
 */
static uint64_t held_then(struct sl_process *process, const struct sl_oom *oom, const struct sl_kept *kept)
{
	bool tensors = kept->track->kind == SL_KIND_block;
	uint64_t then = 0, all = tensors ? oom->torch.allocated_bytes : oom->live_bytes, listed = 0;
	char place[300], other[300];

	sl_leak_list_line(process, kept->track->stack, place, sizeof(place)); /* whatever it went through to its place */
	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];

		sl_leak_list_line(process, site->stack, other, sizeof(other));
		then += strcmp(place, other) ? 0 : oom->owners[i].bytes;
		listed += (site->kind == SL_KIND_block) == tensors ? oom->owners[i].bytes : 0;
	}
	if (oom->owner_count == SL_OWNERS_MAX && listed < all && kept->bytes <= then + (all - listed))
		return kept->bytes;
	return then ? then : kept->bytes <= oom->live_bytes ? kept->bytes : 0;
}

uint64_t sl_oom_causes_leaked(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_kept *kept = sl_oom_causes_leak(process, oom);
	uint64_t then = kept ? held_then(process, oom, kept) : 0;
	char bytes[SL_FORMAT_BYTES], all[200];

	if (!kept)
		return 0;
	sl_leak_words_amount(all, sizeof(all), process, kept);
	if (!then || kept->bytes <= then)
		snprintf(out, size, "%s", all);
	else
		snprintf(out, size, "%s of it by then; in the end %s", sl_format_size(bytes, then), all);
	return then;
}

/* Several places that leak and each hold little: their number, and their memory together. */
static unsigned leaks_together(struct sl_process *process, const struct sl_oom *oom, uint64_t *bytes)
{
	unsigned places = 0;

	*bytes = 0;
	for (size_t i = 0; i < process->kept.count && process->kept.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_kept *kept = &process->kept.item[i];
		uint64_t then = is_of_its_device(oom, kept) && kept->bytes != SL_UNKNOWN ? held_then(process, oom, kept) : 0;

		*bytes += then < kept->bytes ? then : kept->bytes;
		places += then > 0;
	}
	return places;
}

/* True: nothing was freed on the device for a while, so nothing tells whether what is held is kept or needed at once. */
static bool is_first_rise(const struct sl_oom *oom)
{
	for (unsigned i = 1; i < oom->change_count; i++)
		if (oom->changes[i].known < oom->changes[i - 1].known)
			return false;
	return oom->device >= 0 && !oom->device_rise.count;
}

/* What places that only took memory took, summed below one line of code. */
struct below {
	uint64_t bytes;
	unsigned places;
};

/* Adds what a place took to those of the lines `chain` that its stack passes. */
static void add_taken(struct below *below, const struct sl_chain *chain, struct sl_process *process, const struct sl_kept *kept)
{
	struct sl_chain other;

	sl_place_take(&other, process, kept->track->stack);
	for (unsigned i = 0; i < chain->count; i++) {
		unsigned k = 0;

		while (k < other.count && !sl_place_same(chain->frame[i], other.frame[k]))
			k++;
		if (k < other.count) {
			below[i].bytes += kept->bytes;
			below[i].places++;
		}
	}
}

/*
 * "at a.py:9 f < a.py:12 g, 9 of 9 blocks kept, 2.25 GiB", where one place took most of it; else "below a.py:12 g < a.py:20 h, 3
 * places, 6.75 GiB", the innermost line below which most was taken.  kept: the place that took most; what: its amount.  True: it is
 * one place.
 */
static bool say_taken(char *out, size_t size, struct sl_process *process, const struct sl_kept *kept, const char *what)
{
	struct below below[SL_STACK_MAX] = {0};
	struct sl_chain chain;
	char where[300], line[200], caller[200];
	uint64_t all = 0;
	unsigned at = 0;

	sl_place_take(&chain, process, kept->track->stack);
	for (size_t i = 0; i < process->kept.count; i++) {
		const struct sl_kept *one = &process->kept.item[i];

		if (one->verdict != SL_KEPT_UNCLEAR || one->track->device != kept->track->device || one->bytes == SL_UNKNOWN)
			continue;
		all += one->bytes;
		add_taken(below, &chain, process, one);
	}
	while (at < chain.count && (double)below[at].bytes < BELOW_PART * (double)all)
		at++;
	if (at + 1 >= chain.count || below[at].places == 1) { /* the outermost line is no answer */
		sl_owners_line(process, kept->track->stack, 2, where, sizeof(where));
		snprintf(out, size, "at %s, %s", where, what);
		return true;
	}
	sl_stacks_describe(line, sizeof(line), chain.frame[at]);
	sl_stacks_describe(caller, sizeof(caller), chain.frame[at + 1]);
	snprintf(out, size, "below %s < %s, %u places, %s", line, caller, below[at].places, SL_SIZE(below[at].bytes));
	return false;
}

/*
 * True: these blocks may be the chunks of an allocator of the program's own, of which a trace does not show what is in use: large
 * and all of one size, or made by functions with such a name.
 */
static bool may_be_chunks(struct sl_process *process, const struct sl_kept *kept)
{
	static const char *const words[] = {"alloc", "arena", "pool", "chunk", "segment", "slab", "heap"};
	const struct sl_track *track = kept->track;
	struct sl_chain chain;

	if (kept->count_only || track->kind == SL_KIND_block || track->births < CHUNKS_MIN ||
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

bool sl_oom_causes_grew(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_kept *kept = sl_oom_causes_leak(process, oom);
	char where[300], what[300], taken[620];
	uint64_t then = sl_oom_causes_leaked(what, sizeof(what), process, oom), together = then;
	unsigned places = 1;

	if (then && (double)then < GREW_PART * (double)oom->live_bytes)
		places = leaks_together(process, oom, &together);
	if (!then || (double)together < GREW_PART * (double)oom->live_bytes)
		return false;
	if (kept->verdict == SL_KEPT_UNCLEAR) {
		bool chunks = say_taken(taken, sizeof(taken), process, kept, what) && may_be_chunks(process, kept);

		snprintf(story->text, sizeof(story->text), "it took memory and did not free it, most %s: %sa leak%s", taken,
			 is_first_rise(oom) ? "a first step that is too large, " : "",
			 chunks ? ", model loading, or chunks of the program's own allocator, which may be fragmented"
				: ", or model loading");
		snprintf(story->advice, sizeof(story->advice),
			 "%s; if it loads a model: fewer bits, or several devices (how much was still to come is not known)%s",
			 is_first_rise(oom) ? "ask for less at once there, a smaller batch, or find what keeps them"
					    : "find what keeps them",
			 chunks ? "; if they are chunks: give idle ones back" : "");
		return true;
	}
	sl_owners_line(process, kept->track->stack, 2, where, sizeof(where));
	if (places > 1)
		snprintf(story->text, sizeof(story->text), "it grew: %u places leak, %s together, most at %s, %s", places,
			 SL_SIZE(together), where, what);
	else
		snprintf(story->text, sizeof(story->text), "it grew: leak at %s, %s", where, what);
	advise(story, oom, "free there what is not needed any more", but_once);
	return true;
}

/* True: most of this process's memory comes from that line too, as in workers that each load the model. */
static bool holds_most_at(struct sl_process *process, const struct sl_oom *oom, const char *line)
{
	char own[300] = "";

	if (oom->owner_count)
		sl_leak_list_line(process, process->model->sites.item[oom->owners[0].site].stack, own, sizeof(own));
	return !strcmp(own, line);
}

/* Writes the line of the largest leak of that process on the device; false: it has none. */
static bool leaks_on(struct sl_process *process, int device, char *line, size_t size)
{
	for (size_t i = 0; i < process->kept.count && process->kept.item[i].verdict == SL_KEPT_GROWING; i++)
		if (process->kept.item[i].track->device == device) {
			sl_leak_list_line(process, process->kept.item[i].track->stack, line, size);
			return line[0];
		}
	return false;
}

/* The other process with most on the device; a rank that only strays there, if without it the request had fitted. */
static unsigned who_to_move(const struct sl_oom *oom, const struct sl_account *account)
{
	unsigned most = 0;
	bool enough = false;

	for (unsigned i = 0; i < account->other_count; i++) {
		bool strays = account->others[i].stray && account->others[i].bytes >= sl_oom_causes_missing(oom);

		if (strays == enough ? account->others[i].bytes > account->others[most].bytes : strays)
			most = i;
		enough |= strays;
	}
	return most;
}

const char *sl_oom_causes_others(char *out, size_t size, struct sl_process *process, const struct sl_oom *oom,
				 const struct sl_account *account)
{
	static const char own[] = "give each process a device of its own: CUDA_VISIBLE_DEVICES";
	static const char shared[] = "share one copy between these processes, run fewer of them, or give each a device of its own: "
				     "CUDA_VISIBLE_DEVICES";
	static const char leak[] = "free there what is not needed any more; or give each process a device of its own: "
				   "CUDA_VISIBLE_DEVICES";
	static const char ranks[] = "give each rank a device of its own: cudaSetDevice(LOCAL_RANK) first, or CUDA_VISIBLE_DEVICES";
	const struct sl_device_state *state;
	struct sl_process *other;
	struct sl_owners owners;
	bool alike = false, leaks = false;
	unsigned most, held;
	char where[300];

	out[0] = 0;
	most = who_to_move(oom, account);
	if (!account->other_count || !(other = account->others[most].process))
		return own;
	state = account->others[most].state;
	sl_owners_init(&owners);
	for (size_t i = 0; i < other->model->sites.count; i++) {
		const struct sl_site *site = &other->model->sites.item[i];
		const char *name = where;

		if (site->device != state->device || !sl_owners_shows(other, site))
			continue;
		sl_leak_list_line(other, site->stack, where, sizeof(where));
		if (where[0])
			sl_owners_add(&owners, &name, 1, sl_model_site_at_peak(other->model, site), 0);
	}
	sl_owners_sort(&owners);
	held = 2 * state->context_bytes < account->others[most].bytes ? owners.share.item[0].child : 0;
	if (held && owners.share.item[held].bytes) {
		if (OTHERS_PART * owners.share.item[held].bytes >= account->others_bytes &&
		    (double)account->others[most].bytes >= NEAR_PEAK * (double)owners.share.item[0].bytes) {
			alike = holds_most_at(process, oom, owners.share.item[held].name);
			leaks = !alike && leaks_on(other, state->device, where, sizeof(where)) &&
				!strcmp(where, owners.share.item[held].name);
			snprintf(out, size, ", %s of it at %s%s",
				 2 * owners.share.item[held].bytes >= account->others_bytes ? "most" : "the largest part",
				 owners.share.item[held].name,
				 alike	 ? ", where this one holds most too"
				 : leaks ? ", where it leaks"
					 : "");
		} else if (leaks_on(other, state->device, where, sizeof(where))) {
			leaks = true;
			snprintf(out, size, ", and leaks at %s", where);
		}
	} else {
		held = 0;
		sl_leak_list_line(other, state->context_stack, where, sizeof(where));
		snprintf(out, size, ", mostly contexts%s%s", where[0] ? ", made at " : "", where);
	}
	sl_owners_free(&owners);
	if (account->others[most].stray)
		return "let those ranks use only their own device: set it first, name it there, or set CUDA_VISIBLE_DEVICES";
	if (leaks)
		return leak;
	if (sl_process_is_rank(process) && sl_process_is_rank(other) && sl_devices_visible(process) > 1)
		return ranks;
	if (alike)
		return shared;
	return held ? own : "let those processes make no context there, or give each a device of its own: CUDA_VISIBLE_DEVICES";
}

void sl_oom_causes_larger(char *out, size_t size, struct sl_process *process, const struct sl_heuristics *found)
{
	const struct sl_track *track = found->larger;
	char where[300], from[SL_FORMAT_BYTES], to[SL_FORMAT_BYTES];

	out[0] = 0;
	if (!track)
		return;
	sl_owners_line(process, track->stack, 2, where, sizeof(where));
	snprintf(out, size, "requests at %s grew: on average from %s to %s each, up to %llu at once", where,
		 sl_format_size(from, found->larger_from), sl_format_size(to, found->larger_to),
		 (unsigned long long)track->most_blocks);
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

/* A place that asks for more each time. */
static bool tell_larger(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		if (found->device != oom->device || !found->larger || !is_there(process, oom, found->larger))
			continue;
		sl_oom_causes_larger(story->text, sizeof(story->text), process, found);
		advise(story, oom, "limit what is asked for there, such as a batch or a sequence length", but_once);
		return true;
	}
	return false;
}

static bool is_surge(const struct sl_surge *rise)
{
	return rise->count >= SPIKE_BIRTHS && rise->bytes >= SPIKE_TIMES * rise->most;
}

/* A step that took much more than earlier ones, described by the place that took most of it, if there is one. */
static bool tell_surge(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_surge *all = &oom->device_rise, *here = &oom->place_rise;
	const struct sl_track *track = oom->surge ? &process->model->tracks.item[oom->surge - 1] : NULL;
	uint64_t more = all->bytes > all->most ? all->bytes - all->most : 0;
	char where[300];

	if (track && is_surge(here) && here->bytes - here->most >= SURGE_PART * (double)more) {
		sl_owners_line(process, track->stack, 2, where, sizeof(where));
		snprintf(story->text, sizeof(story->text),
			 "memory held or asked for at %s rose to %s: %.1f times the highest of the %llu rises before", where,
			 SL_SIZE(here->bytes), (double)here->bytes / (double)here->most, (unsigned long long)here->count);
	} else if (is_surge(all)) {
		sl_owners_line(process, oom->stack, 2, where, sizeof(where));
		snprintf(
			story->text, sizeof(story->text),
			"memory would have risen to %s, the last part of it at %s: %.1f times the highest of the %llu rises before",
			SL_SIZE(all->bytes), where, (double)all->bytes / (double)all->most, (unsigned long long)all->count);
	} else {
		return false;
	}
	advise(story, oom, "limit what one step takes", "");
	return true;
}

/* A place whose rises got higher each time, with most given back between them; one only as high as before would have fitted. */
static bool tell_teeth(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_surge *here = &oom->place_rise;
	char where[300];

	if (!oom->surge || here->rose < TEETH_MIN || here->bytes < SPIKE_TIMES * here->first ||
	    here->bytes - here->most < sl_oom_causes_missing(oom))
		return false;
	sl_owners_line(process, process->model->tracks.item[oom->surge - 1].stack, 2, where, sizeof(where));
	snprintf(story->text, sizeof(story->text),
		 "it grew from round to round at %s: each of %llu rises was higher than all before, and this is %.1f times the "
		 "first",
		 where, (unsigned long long)here->rose, (double)here->bytes / (double)here->first);
	advise(story, oom, "limit what a round gathers there", but_once);
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
 * no new place asks, there was no jump: a program that fills the device only paused.
 */
static bool tell_jump(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_timeline *timeline = &process->model->timeline;
	const struct sl_line *line = oom->device >= 0 ? process->model->devices[oom->device + 1]->line : NULL;
	uint32_t bins =
		line && line->begun ? (uint32_t)((oom->time_ns - timeline->begin_ns) >> timeline->shift) + 1 - line->first : 0;
	uint64_t before, most = oom->live_bytes + oom->asked_bytes, then_ns;
	struct sl_stack stack = oom->stack;
	bool begun = false, timeless = process->trace->header.dry_count || process->model->snapshot; /* their times are of no run */
	char where[300], then[SL_FORMAT_BYTES];

	if (bins < JUMP_BINS || bins > line->bin + 1 - line->first)
		return false;
	before = most_in(line, bins - (uint32_t)(JUMP_PART * bins));
	if (2 * oom->asked_bytes + before > most || (double)most < JUMP_TIMES * (double)before ||
	    (double)most_in(line, bins / 2) < JUMP_LEVEL * (double)before)
		return false;
	for (size_t i = 0; i < process->heuristics.count; i++) {
		const struct sl_heuristics *found = &process->heuristics.item[i];

		if (found->device == oom->device && found->larger && found->larger_to >= LARGER_TIMES * found->larger_from)
			return false; /* growing requests explain more */
	}
	then_ns = timeline->begin_ns + ((uint64_t)(line->first + bins - (uint32_t)(JUMP_PART * bins)) << timeline->shift);
	for (unsigned i = oom->owner_count; i--;) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];

		if (process->model->tracks.item[site->track].first_ns >= then_ns) {
			stack = site->stack;
			begun = true;
		}
	}
	if (!begun && is_first_rise(oom))
		return false;
	sl_owners_line(process, stack, 2, where, sizeof(where));
	snprintf(story->text, sizeof(story->text), "it had held %s at most%s%s, and then %.1f times that, %s %s", SL_SIZE(before),
		 timeless ? "" : " until ",
		 timeless ? "" : sl_format_duration(then, sl_process_unix(process, then_ns) - process->report->started_unix_ns),
		 (double)most / (double)before, sl_stack_same(stack, oom->stack) ? "the last part of it at" : "most of it new at",
		 where);
	advise(story, oom, "bound what is held at once there", but_once);
	return true;
}

static bool is_same_line(struct sl_process *process, const struct sl_site *site, const struct sl_oom *oom)
{
	struct sl_stack_frame frames[2][SL_STACK_MAX];
	const struct sl_stack_frame *a, *b;

	a = sl_place_at(process, site->stack, frames[0]);
	b = sl_place_at(process, oom->stack, frames[1]);
	return a && b && a->line == b->line && a->offset == b->offset && !strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

/* The request is one of many at its place, of which none was freed; too few of them to be judged as a leak. */
static bool tell_stairs(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_owner *most = oom->owner_count ? &oom->owners[0] : NULL;
	const struct sl_site *site = most ? &process->model->sites.item[most->site] : NULL;
	char where[300];

	if (!site || most->blocks < STAIRS_MIN || most->blocks != process->model->tracks.item[site->track].births ||
	    (double)most->bytes < STAIRS_PART * (double)oom->live_bytes || !is_same_line(process, site, oom))
		return false;
	sl_owners_line(process, site->stack, 2, where, sizeof(where));
	if (is_first_rise(oom)) {
		snprintf(story->text, sizeof(story->text),
			 "it was still filling: %llu requests before this one at %s, %s, and no block was given back meanwhile",
			 (unsigned long long)most->blocks, where, SL_SIZE(most->bytes));
		advise(story, oom, "ask for less at once there, a smaller batch", but_once);
		return true;
	}
	snprintf(story->text, sizeof(story->text), "it grew at %s: %llu requests before this one, %s, and all of it was kept",
		 where, (unsigned long long)most->blocks, SL_SIZE(most->bytes));
	advise(story, oom, "free there what is not needed any more, or bound it", but_once);
	return true;
}

/* A request of a size that no earlier one had, in a program that made many. */
static bool tell_largest(struct sl_oom_causes *story, const struct sl_process *process, const struct sl_oom *oom)
{
	uint64_t most = 0, births = 0;
	bool exceeded = false;

	for (size_t i = 0; i < process->model->tracks.count; i++) {
		const struct sl_track *track = &process->model->tracks.item[i];

		if (track->device != oom->device || track->first_ns > oom->time_ns)
			continue;
		most = track->most_bytes > most ? track->most_bytes : most;
		births += track->births;
	}
	for (size_t i = 0; i < process->model->ooms.count && !exceeded; i++)
		exceeded = process->model->ooms.item[i].device == oom->device &&
			   process->model->ooms.item[i].asked_bytes > oom->asked_bytes;
	if (oom->scope == SL_SCOPE_CONTEXT || births < SPIKE_BIRTHS || !most || oom->asked_bytes < LARGEST_TIMES * most)
		return false;
	snprintf(story->text, sizeof(story->text), "%s: the largest that succeeded was %s",
		 exceeded ? "one of the largest requests" : "the largest request of all", SL_SIZE(most));
	snprintf(story->advice, sizeof(story->advice),
		 "check what the size comes from: a batch, a shape, a count; up to %s would have fitted",
		 SL_SIZE(sl_units_room(oom)));
	return true;
}

/* Repeated attempts, each of which kept what it had got before it failed. */
static bool tell_attempts(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom,
			  const struct sl_account *account)
{
	const struct sl_oom *first = &process->model->ooms.item[account->first_attempt];
	char where[300];

	if (!account->attempts_before || oom->place_births <= first->place_births ||
	    (double)(oom->live_bytes - first->live_bytes) < ATTEMPTS_PART * (double)oom->live_bytes)
		return false;
	sl_owners_line(process, oom->stack, 2, where, sizeof(where));
	snprintf(story->text, sizeof(story->text),
		 "it grew from %s to %s over %u failed attempts at %s: the memory that each had got before it failed was never "
		 "given back",
		 SL_SIZE(first->live_bytes), SL_SIZE(oom->live_bytes), account->attempts_before + 1, where);
	snprintf(story->advice, sizeof(story->advice), "when an attempt fails, free what it got before the next one begins");
	return true;
}

/* The error before this one that is not of the same request, if the program caught it; NULL: none. */
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

/* How many of the outermost lines are the same. */
static unsigned in_common(const struct sl_chain *a, const struct sl_chain *b)
{
	unsigned same = 0;

	while (same < a->count && same < b->count && sl_place_same(a->frame[a->count - 1 - same], b->frame[b->count - 1 - same]))
		same++;
	return same;
}

/*
 * What the line of a failed try made, and what is still held, although the program has left that line: activations, or what was
 * given back at other times.
 */
static uint64_t unreturned_at(struct sl_process *process, const struct sl_oom *oom, const struct sl_chain *tried, unsigned outer)
{
	uint64_t bytes[2] = {0};
	struct sl_chain other;

	for (unsigned i = 0; i < oom->owner_count; i++) {
		const struct sl_site *site = &process->model->sites.item[oom->owners[i].site];

		sl_place_take(&other, process, site->stack);
		if (in_common(tried, &other) > outer &&
		    (2 * oom->owners[i].blocks <= site->total_blocks || sl_roles_of(process, site) == SL_ROLE_ACTIVATIONS))
			bytes[site->kind == SL_KIND_block] += oom->owners[i].bytes;
	}
	return bytes[oom->torch.used]; /* PyTorch's segments stay for other tensors */
}

bool sl_oom_causes_retry(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_oom *first = caught_before(process, oom);
	const struct sl_stack_frame *try, *next;
	struct sl_chain tried, here;
	unsigned outer;
	uint64_t kept;
	char where[300];

	if (!first)
		return false;
	sl_place_take(&tried, process, first->stack);
	sl_place_take(&here, process, oom->stack);
	outer = in_common(&tried, &here);
	if (outer == tried.count || outer == here.count)
		return false;
	try = tried.frame[tried.count - 1 - outer];
	next = here.frame[here.count - 1 - outer];
	if (!try->function || !next->function || strcmp(try->function, next->function) != 0)
		return false; /* a handler is in the function of its try */
	kept = unreturned_at(process, oom, &tried, outer);
	if (kept < sl_oom_causes_missing(oom))
		return false;
	sl_stacks_describe(where, sizeof(where), try);
	snprintf(story->text, sizeof(story->text),
		 "a try at %s had failed before, and the %s that it had got there was not given back: the exception may keep it",
		 where, SL_SIZE(kept));
	advise(story, oom, "leave the handler of the error, or drop the exception, before the next try", "");
	return true;
}

/* A place that kept all it took left no room for this request; the trace does not tell which of the two is too much. */
static bool tell_taken(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_owner *most = oom->owner_count ? &oom->owners[0] : NULL;
	const struct sl_site *site = most ? &process->model->sites.item[most->site] : NULL;
	char where[300], before[SL_FORMAT_BYTES + 90] = "";

	if (!site || most->blocks != process->model->tracks.item[site->track].births || most->bytes < sl_oom_causes_missing(oom) ||
	    (double)most->bytes < TAKEN_PART * (double)oom->live_bytes || is_same_line(process, site, oom) ||
	    sl_oom_causes_leaked(where, sizeof(where), process, oom) >= sl_oom_causes_missing(oom))
		return false;
	sl_owners_line(process, site->stack, 2, where, sizeof(where));
	if (oom->place_births && oom->asked_bytes > oom->place_most)
		snprintf(before, sizeof(before), ", and this request is %.1f times the largest before it at its place, %s",
			 (double)oom->asked_bytes / (double)oom->place_most, SL_SIZE(oom->place_most));
	snprintf(story->text, sizeof(story->text), "%s of it in %llu block%s that stayed, of %s%s", SL_SIZE(most->bytes),
		 (unsigned long long)most->blocks, most->blocks == 1 ? "" : "s", where, before);
	advise(story, oom, "hold less there, or ask for less here", "");
	return true;
}

bool sl_oom_causes_tell(struct sl_oom_causes *story, struct sl_process *process, const struct sl_oom *oom,
			const struct sl_account *account)
{
	bool fits = account->cause != SL_CAUSE_TOO_LARGE; /* else freeing everything would not be enough */

	return tell_attempts(story, process, oom, account) || tell_request(story, oom) ||
	       (fits && tell_limit(story, process, oom, account)) || (fits && sl_oom_causes_grew(story, process, oom)) ||
	       (fits && tell_surge(story, process, oom)) || tell_teeth(story, process, oom) || tell_jump(story, process, oom) ||
	       (fits && tell_larger(story, process, oom)) || (fits && tell_stairs(story, process, oom)) ||
	       tell_largest(story, process, oom) || (fits && tell_taken(story, process, oom));
}
