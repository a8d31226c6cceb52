/* SPDX-License-Identifier: MIT */
/* Places that leak, or only took memory, and what they held when memory ran out. */
#include "analyzer/analyses/oom_causes.h"

#include <string.h>

#include "analyzer/analyses/leak_windows.h"
#include "analyzer/base/amounts.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/report/leak_list.h"
#include "analyzer/report/place.h"

#define CHUNK_MIN (2 << 20)

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

		if ((site->kind == SL_KIND_block) != tensors) /* segments have the lines of their first tensors */
			continue;
		sl_leak_list_line(process, site->stack, other, sizeof(other));
		then += strcmp(place, other) ? 0 : oom->owners[i].bytes;
		listed += oom->owners[i].bytes;
	}
	if (oom->owner_count == SL_OWNERS_MAX && listed < all && kept->bytes <= then + (all - listed))
		return kept->bytes;
	return then ? then : kept->bytes <= oom->live_bytes ? kept->bytes : 0;
}

uint64_t sl_oom_causes_leaked(struct sl_process *process, const struct sl_oom *oom)
{
	const struct sl_kept *kept = sl_oom_causes_leak(process, oom);

	return kept ? held_then(process, oom, kept) : 0;
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

/* True: one place took most, and no line below which several did so. */
static bool is_one_place(struct sl_process *process, const struct sl_kept *kept)
{
	struct below below[SL_STACK_MAX] = {0};
	struct sl_chain chain;
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
	while (at < chain.count && (double)below[at].bytes < SL_MOST_OF * (double)all)
		at++;
	return at + 1 >= chain.count || below[at].places == 1; /* the outermost line is no answer */
}

/*
 * True: these blocks may be the chunks of an allocator of the program's own.  They are large, and all have one size or functions
 * with such a name made them.  A trace does not show how much of a chunk is in use.
 */
static bool may_be_chunks(struct sl_process *process, const struct sl_kept *kept)
{
	static const char *const words[] = {"alloc", "arena", "pool", "chunk", "segment", "slab", "heap"};
	const struct sl_track *track = kept->track;
	struct sl_chain chain;

	if (kept->count_only || track->kind == SL_KIND_block || track->births < SL_KEEPING_BIRTHS ||
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
	const struct sl_kept *kept = sl_oom_causes_leak(process, oom);
	uint64_t then = sl_oom_causes_leaked(process, oom), together = then;
	unsigned places = 1;

	if (then && (double)then < SL_QUARTER * (double)oom->live_bytes)
		places = leaks_together(process, oom, &together);
	if (!then || (double)together < SL_QUARTER * (double)oom->live_bytes)
		return false;
	if (kept->verdict == SL_KEPT_UNCLEAR)
		*story = (struct sl_story){.kind = SL_STORY_TOOK,
					   .stack = kept->track->stack,
					   .bytes = kept->bytes < then ? kept->bytes : then,
					   .count = kept->blocks,
					   .words = is_one_place(process, kept) && may_be_chunks(process, kept) ? "chunks" : NULL};
	else
		*story = (struct sl_story){
			.kind = SL_STORY_GREW, .stack = kept->track->stack, .bytes = together, .before = then, .count = places};
	return true;
}
