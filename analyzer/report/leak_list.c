/* SPDX-License-Identifier: MIT */
#include "analyzer/report/leak_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/amounts.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/leak_words.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"

void sl_leak_list_line(struct sl_process *process, struct sl_stack stack, char *out, size_t size)
{
	char *via;

	sl_owners_line(process, stack, 1, out, size);
	if ((via = strstr(out, " via ")))
		*via = 0;
}

/* True: the process leaks there on a second device.  Ranks that leak there on a device each are one place. */
static bool is_other_device(const struct sl_leak_list_place *there, const struct sl_leak_list_place *one)
{
	return there->leak_line && one->leak_line && there->last == one->process &&
	       there->leak_line->track->device != one->leak_line->track->device;
}

static void take(struct sl_leak_list *list, struct sl_process *process, struct sl_leak_list_place one, unsigned kind,
		 uint64_t bytes)
{
	char key[320];
	struct sl_leak_list_place *to;
	uintptr_t *at;
	int length = snprintf(key, sizeof(key), "%u ", kind);

	sl_leak_list_line(process, one.stack, key + length, sizeof(key) - (size_t)length);
	at = sl_map_at(&list->names, key);
	if (*at && is_other_device(&list->place.item[*at - 1], &one)) {
		length = snprintf(key, sizeof(key), "%u on %d ", kind, one.leak_line->track->device);
		sl_leak_list_line(process, one.stack, key + length, sizeof(key) - (size_t)length);
		at = sl_map_at(&list->names, key);
	}
	if (!*at) {
		one.where = sl_map_intern(&list->names, key) + length;
		one.processes = 1;
		one.last = one.process;
		one.bytes = one.first_bytes = bytes;
		*SL_PUSH(&list->place) = one;
		*at = list->place.count;
		return;
	}
	to = &list->place.item[*at - 1];
	if (one.leak && to->leak_line && to->last == one.process)
		return; /* its births have told of this leak */
	to->processes += to->last != one.process;
	to->last = one.process;
	to->bytes += bytes;
	to->uneven |= bytes != to->first_bytes;
	if (one.weight <= to->weight)
		return;
	one.processes = to->processes;
	one.last = to->last;
	one.bytes = to->bytes;
	one.first_bytes = to->first_bytes;
	one.uneven = to->uneven;
	one.where = to->where;
	*to = one;
}

/* Bytes, or the number of objects whose bytes are not known: the largest comes first. */
static double weigh_line(const struct sl_leak_line *line)
{
	return line->bytes != SL_UNKNOWN ? (double)line->bytes : line->amount;
}

static void take_process(struct sl_leak_list *list, struct sl_process *process, unsigned index)
{
	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];
		struct sl_leak_list_place one = {.process = index, .leak_line = line, .weight = weigh_line(line)};

		one.stack = line->track->stack;
		take(list, process, one, line->track->kind, line->bytes == SL_UNKNOWN ? 0 : line->bytes);
	}
	for (size_t i = 0; i < process->leaks.count; i++) {
		const struct sl_leak *leak = &process->leaks.item[i];
		struct sl_leak_list_place one = {.process = index, .leak = leak, .weight = (double)leak->bytes};

		if (strcmp(leak->verdict, "growing") != 0)
			continue;
		one.stack = leak->stack;
		take(list, process, one, leak->kind, leak->bytes);
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct sl_leak_list_place *x = a, *y = b;

	return SL_FALLING(x->weight, y->weight) ?: strcmp(x->where, y->where);
}

void sl_leak_list_take(struct sl_leak_list *list, struct sl_report *report)
{
	for (unsigned i = 0; i < report->process_count; i++)
		take_process(list, &report->processes[i], i);
	if (list->place.count)
		qsort(list->place.item, list->place.count, sizeof(*list->place.item), by_weight);
}

static bool is_one_pace(const struct sl_leak_line *a, const struct sl_leak_line *b, bool multiple)
{
	double larger = fmax((double)a->blocks, (double)b->blocks), smaller = fmin((double)a->blocks, (double)b->blocks);
	double times = multiple && smaller > 0 ? round(larger / smaller) : 1;

	return a->track->kind == b->track->kind && a->track->device == b->track->device &&
	       fabs(larger - times * smaller) <= 1 + SL_ALIKE * larger;
}

/* Marks the places at the pace of `first` that share so many frames with it, or more; returns how many. */
static size_t mark(const struct sl_leak_list *list, struct sl_report *report, const struct sl_chain *chain, size_t first,
		   unsigned frames, bool multiple, bool *with)
{
	const struct sl_leak_list_place *base = &list->place.item[first];
	struct sl_chain there;
	size_t count = 0;

	for (size_t i = 0; i < list->place.count; i++) {
		const struct sl_leak_list_place *place = &list->place.item[i];

		with[i] = i == first;
		if (i != first && place->leak_line && !place->was_printed && place->process == base->process &&
		    place->processes == base->processes && is_one_pace(base->leak_line, place->leak_line, multiple)) {
			sl_place_take(&there, &report->processes[place->process], place->stack);
			with[i] = sl_place_shared(chain, &there) >= frames;
		}
		count += with[i];
	}
	return count;
}

/* True: so many other stacks of that device and kind were busy and do not leak. */
static bool do_not_leak(const struct sl_leak_list *list, struct sl_report *report, const struct sl_leak_list_place *base,
			unsigned wanted)
{
	struct sl_process *process = &report->processes[base->process];
	const struct sl_tracks *tracks = &process->model->tracks;
	char line[300];

	for (size_t i = 0; i < tracks->count && wanted; i++) {
		const struct sl_track *track = &tracks->item[i];
		bool leaks = track->births < base->leak_line->births / 2 || track->kind != base->leak_line->track->kind ||
			     track->device != base->leak_line->track->device;

		if (!leaks)
			sl_leak_list_line(process, track->stack, line, sizeof(line));
		for (size_t k = 0; k < list->place.count && !leaks; k++)
			leaks = !strcmp(line, list->place.item[k].where);
		wanted -= !leaks;
	}
	return !wanted;
}

/* Those that ask through a helper leak what they get, and others do not: the helper keeps it. */
static size_t mark_through(const struct sl_leak_list *list, struct sl_report *report, const struct sl_chain *chain, size_t first,
			   bool *with)
{
	const struct sl_leak_list_place *base = &list->place.item[first];
	struct sl_chain there;
	size_t count = 0;

	if (!chain->via_count)
		return 0;
	for (size_t i = 0; i < list->place.count; i++) {
		const struct sl_leak_list_place *place = &list->place.item[i];

		with[i] = false;
		if (!place->leak_line || place->was_printed || place->process != base->process ||
		    place->processes != base->processes || place->leak_line->track->kind != base->leak_line->track->kind ||
		    place->leak_line->track->device != base->leak_line->track->device)
			continue;
		sl_place_take(&there, &report->processes[place->process], place->stack);
		for (unsigned k = 0; k < there.via_count; k++)
			with[i] |= sl_place_same(there.via[k], chain->via[0]);
		count += with[i];
	}
	return do_not_leak(list, report, base, 2) ? count : 0;
}

static void put_owner(char *out, size_t size, const struct sl_chain *chain, unsigned at)
{
	char line[200], caller[200] = "";
	bool called = at + 1 < chain->count;

	sl_stacks_describe(line, sizeof(line), chain->frame[at]);
	if (called)
		sl_stacks_describe(caller, sizeof(caller), chain->frame[at + 1]);
	snprintf(out, size, "below %s%s%s", line, called ? " < " : "", caller);
}

size_t sl_leak_list_together(const struct sl_leak_list *list, struct sl_report *report, size_t first, size_t least, bool *with,
			     char *owner, size_t size)
{
	const struct sl_leak_list_place *base = &list->place.item[first];
	struct sl_chain chain;
	size_t all, count;
	char line[200];

	if (!base->leak_line || list->place.count < least)
		return 1;
	sl_place_take(&chain, &report->processes[base->process], base->stack);
	if ((count = mark_through(list, report, &chain, first, with)) >= least) {
		sl_stacks_describe(line, sizeof(line), chain.via[0]);
		snprintf(owner, size, "through %s", line);
		return count;
	}
	all = mark(list, report, &chain, first, 1, false, with);
	for (unsigned frames = chain.count; frames && all >= least - 1; frames--) {
		if (mark(list, report, &chain, first, frames, false, with) < 2)
			continue;
		count = mark(list, report, &chain, first, frames, true, with);
		put_owner(owner, size, &chain, chain.count - frames);
		break;
	}
	return count >= least ? count : 1;
}

void sl_leak_list_free(struct sl_leak_list *list)
{
	free(list->place.item);
	sl_map_free(&list->names);
}

bool sl_leak_list_is_at(struct sl_process *process, const struct sl_leak *leak, const struct sl_leak_line *line)
{
	struct sl_stack_frame leak_frames[SL_STACK_MAX], track_frames[SL_STACK_MAX];
	const struct sl_track *track = line->track;
	const struct sl_stack_frame *a, *b;

	if (leak->kind != track->kind || sl_place_key(process, leak->stack) != sl_place_key(process, track->stack))
		return false;
	a = sl_place_at(process, leak->stack, leak_frames);
	b = sl_place_at(process, track->stack, track_frames);
	return a && b && a->offset == b->offset && sl_place_same(a, b);
}

static uint64_t index_key(struct sl_process *process, unsigned kind, struct sl_stack stack)
{
	return sl_map_mix_two(sl_place_key(process, stack), kind);
}

void sl_leak_list_index_take(struct sl_leak_list_index *index, struct sl_process *process)
{
	*index =
		(struct sl_leak_list_index){.next = sl_memory_must(calloc(process->leaks_by_line.count + 1, sizeof(*index->next)))};
	for (size_t i = process->leaks_by_line.count; i--;) {
		const struct sl_track *track = process->leaks_by_line.item[i].track;
		uint64_t key = index_key(process, track->kind, track->stack);

		index->next[i] = sl_idmap_get(&index->first, key, UINT32_MAX);
		sl_idmap_set(&index->first, key, (uint32_t)i);
	}
}

void sl_leak_list_index_free(struct sl_leak_list_index *index)
{
	sl_idmap_free(&index->first);
	free(index->next);
}

uint32_t sl_leak_list_first(const struct sl_leak_list_index *index, struct sl_process *process, const struct sl_leak *leak)
{
	return index->first.count ? sl_idmap_get(&index->first, index_key(process, leak->kind, leak->stack), UINT32_MAX)
				  : UINT32_MAX;
}

void sl_leak_list_left(struct sl_process *process,
		       void (*take)(void *context, struct sl_process *process, const struct sl_leak *leak), void *context)
{
	bool ended = process->trace->status == SL_STATUS_COMPLETED;

	for (size_t i = 0; i < process->leaks.count; i++)
		if (sl_leak_counts(&process->leaks.item[i]))
			take(context, process, &process->leaks.item[i]);
	for (size_t i = 0; i < process->leaks_by_line.count && process->leaks_by_line.item[i].verdict == SL_KEPT_GROWING; i++) {
		const struct sl_leak_line *line = &process->leaks_by_line.item[i];

		if (line->track->kind < SL_KIND_COUNT ? !ended : line->bytes != SL_UNKNOWN)
			take(context, process,
			     &(struct sl_leak){.stack = line->track->stack,
					       .kind = line->track->kind,
					       .device = line->track->device,
					       .bytes = line->bytes,
					       .library = "",
					       .verdict = "kept"});
	}
}
