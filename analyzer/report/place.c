/* SPDX-License-Identifier: MIT */
#include "analyzer/report/place.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/search.h"
#include "analyzer/base/utf8.h"
#include "analyzer/base/stats.h"
#include "common/fnv.h"

#define STACKS_MAX    1000 /* largest stacks of a process that are counted: further ones do not change who is a helper */
#define PROCESSES_MAX 16   /* processes with most stacks that are counted: ranks of one program tell the same */

struct pair {
	uint64_t function, other; /* hashes; other: a line of the function, or a line that calls it */
};

struct pairs {
	SL_VECTOR(struct pair) list;
};

struct sl_places {
	struct pairs lines, callers; /* sorted, each pair once */
	const struct sl_places *run; /* of all processes; NULL: there is one */
	struct sl_idmap asked;	     /* stacks, by a hash, to what sl_place_key found */
	SL_VECTOR(uint64_t) found;
};

size_t sl_place_name(const struct sl_stack_frame *frame, char *out, size_t size)
{
	const char *name = frame->function ? frame->function : "";
	size_t at = 0;
	int depth = 0;

	if (frame->python) {
		at = strlen(name);
		memcpy(out, name, at < size ? at : size - 1);
		out[at < size ? at : size - 1] = 0;
		return at;
	}
	for (; *name && at + 1 < size; name++) {
		if (*name == '<')
			depth++;
		else if (*name == '>')
			depth -= depth > 0;
		else if (depth)
			continue;
		else if (*name == '(' && at && strncmp(name, "(anonymous", 10))
			break;
		else if (*name == ' ')
			at = 0;
		else
			out[at++] = *name;
	}
	out[at] = 0;
	return at;
}

uint64_t sl_place_hash(const char *text)
{
	return sl_utf8_mix_text(SL_FNV_START, text);
}

static uint64_t function_of(const struct sl_stack_frame *frame)
{
	char name[512];
	size_t size = sl_place_name(frame, name, sizeof(name)), home_size;
	const char *home = frame->file ? sl_paths_name(frame->file) : frame->module;

	if (size >= sizeof(name))
		size = sizeof(name) - 1;
	home_size = home ? strnlen(home, sizeof(name)) : 0; /* no file has a longer name, and each frame of each stack comes here */
	if (!size && frame->bare)			    /* where functions end is not known: each call is its own */
		return sl_utf8_mix(sl_utf8_mix(SL_FNV_START, (const char *)&frame->offset, sizeof(frame->offset)), home, home_size);
	return sl_utf8_mix(sl_utf8_mix(SL_FNV_START, name, size), home, home_size);
}

static uint64_t line_of(const struct sl_stack_frame *frame)
{
	uint64_t line = frame->line ? frame->line : frame->offset;

	return sl_utf8_mix(function_of(frame), (const char *)&line, sizeof(line));
}

static bool is_constructor(const struct sl_stack_frame *frame)
{
	char name[512];
	const char *last, *before;
	size_t size;

	sl_place_name(frame, name, sizeof(name));
	if (frame->python) {
		last = strrchr(name, '.');
		last = last ? last + 1 : name;
		return !strcmp(last, "__init__") || !strcmp(last, "__new__") || !strcmp(last, "__post_init__");
	}
	if (!strcmp(name, "new") || !strcmp(name, "new[]")) /* operators of a class, of which the last word is left */
		return true;
	last = strrchr(name, ':');
	if (!last || last < name + 2)
		return false;
	for (before = last - 2; before >= name && *before != ':'; before--)
		;
	size = (size_t)(last - 2 - before);
	return strlen(last + 1) == size && !strncmp(last + 1, before + 1, size);
}

bool sl_place_is_wrapper(const struct sl_stack_frame *frame)
{
	static const char *const names[] = {"wrapper",	 "wrapped",    "_wrapper",	     "inner",	  "_bootstrap_inner",
					    "decorated", "_call_impl", "_wrapped_call_impl", "_bootstrap"};
	const char *last = frame->function ? strrchr(frame->function, '.') : NULL;

	last = last ? last + 1 : frame->function;
	for (size_t i = 0; frame->python && last && i < SL_COUNT(names); i++)
		if (!strcmp(last, names[i]))
			return true;
	return false;
}

/* The program's entry point, which belongs to the C library although it is linked into the program. */
static bool is_entry(const struct sl_stack_frame *frame)
{
	return !frame->python && frame->function && !strcmp(frame->function, "_start");
}

/*
 * True: code of a package called the inner frame on its own account, as a Trainer calls a callback.  PyTorch's own frames only pass
 * on: a module's call, a checkpoint, a Sequential.
 */
static bool is_called_back(const struct sl_stack_frame *inner, const struct sl_stack_frame *outer)
{
	for (const struct sl_stack_frame *frame = inner + 1; frame < outer; frame++)
		if (frame->python && !frame->own && frame->file && !sl_place_is_wrapper(frame) && !strstr(frame->file, "/torch/") &&
		    strstr(frame->file, "-packages/"))
			return true;
	return false;
}

/* The frames that may be a place, innermost first, without recursion and wrappers. */
static unsigned frames_of(const struct sl_stack_frame *frames, unsigned count, bool bare, const struct sl_stack_frame **own)
{
	uint64_t functions[SL_STACK_MAX];
	unsigned used = 0;

	for (unsigned i = 0; i < count; i++) {
		uint64_t function;

		if (!(bare ? frames[i].bare : frames[i].own) || (used && sl_place_is_wrapper(&frames[i])) || is_entry(&frames[i]))
			continue;
		function = function_of(&frames[i]);
		for (unsigned k = 0; k < used; k++)
			if (functions[k] == function) {
				used = k + 1; /* the frames in between are the recursion */
				function = 0;
				break;
			}
		if (!function)
			continue;
		functions[used] = function;
		own[used++] = &frames[i];
	}
	return used;
}

/* What calls libc's beginning of a program is its entry, whatever its name. */
static unsigned own_frames(const struct sl_stack_frame *frames, unsigned count, const struct sl_stack_frame **own)
{
	unsigned used = frames_of(frames, count, false, own);

	if (used)
		return used;
	if (count > 1 && frames[count - 1].bare && frames[count - 2].passes_on)
		count--;
	return frames_of(frames, count, true, own);
}

static void push(struct pairs *pairs, uint64_t function, uint64_t other)
{
	*SL_PUSH(&pairs->list) = (struct pair){function, other};
}

static int by_pair(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return SL_RISING(x->function, y->function) ?: SL_RISING(x->other, y->other);
}

static void unique(struct pairs *pairs)
{
	size_t unique_count = 0;

	if (pairs->list.count)
		qsort(pairs->list.item, pairs->list.count, sizeof(*pairs->list.item), by_pair);
	for (size_t i = 0; i < pairs->list.count; i++)
		if (!unique_count || by_pair(&pairs->list.item[unique_count - 1], &pairs->list.item[i]))
			pairs->list.item[unique_count++] = pairs->list.item[i];
	pairs->list.count = unique_count;
}

/* The first pair of the function, or where it would stand. */
static const struct pair *first_of(const struct pairs *pairs, uint64_t function)
{
	return pairs->list.item + SL_FIRST(i, pairs->list.count, pairs->list.item[i].function >= function);
}

static bool is_of(const struct pairs *pairs, const struct pair *pair, uint64_t function)
{
	return pair < pairs->list.item + pairs->list.count && pair->function == function;
}

/* How many others the function has, in this process or in the run. */
static unsigned others_of(const struct pairs *mine, const struct pairs *all, uint64_t function)
{
	const struct pair *a = first_of(mine, function), *b = first_of(all, function);
	unsigned count = 0;

	for (; is_of(mine, a, function) || is_of(all, b, function); count++) {
		bool in_mine = is_of(mine, a, function), in_all = is_of(all, b, function);
		uint64_t other = in_mine && (!in_all || a->other <= b->other) ? a->other : b->other;

		a += in_mine && a->other == other;
		b += in_all && b->other == other;
	}
	return count;
}

static int by_born(const void *a, const void *b)
{
	const struct sl_track *x = *(const struct sl_track *const *)a, *y = *(const struct sl_track *const *)b;

	return SL_FALLING(x->born_bytes, y->born_bytes) ?: SL_RISING(x, y);
}

static void add_stack(struct sl_places *places, struct sl_process *process, const struct sl_track *track)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_stack_frame *own[SL_STACK_MAX];
	unsigned count = own_frames(frames, sl_process_stack(process, frames, track->stack), own);

	for (unsigned i = 0; i < count; i++) {
		uint64_t function = function_of(own[i]);

		push(&places->lines, function, line_of(own[i]));
		if (i + 1 < count && !is_called_back(own[i], own[i + 1]))
			push(&places->callers, function, line_of(own[i + 1]));
	}
}

static void add_process(struct sl_places *places, struct sl_process *process)
{
	static const struct sl_tracks none; /* of a process that was read and not replayed */
	const struct sl_tracks *tracks = process->model ? &process->model->tracks : &none;
	const struct sl_track **order = sl_memory_must(calloc(tracks->count + 1, sizeof(*order)));

	for (size_t i = 0; i < tracks->count; i++)
		order[i] = &tracks->item[i];
	qsort(order, tracks->count, sizeof(*order), by_born);
	for (size_t i = 0; i < tracks->count && i < STACKS_MAX; i++)
		add_stack(places, process, order[i]);
	free(order);
}

static void finish(struct sl_places *places)
{
	unique(&places->lines);
	unique(&places->callers);
}

static int by_tracks(const void *a, const void *b)
{
	const struct sl_process *x = *(struct sl_process *const *)a, *y = *(struct sl_process *const *)b;

	return SL_FALLING(x->model->tracks.count, y->model->tracks.count) ?: SL_RISING(x, y); /* of one array */
}

/* A worker may call the program's helper from one line only; its parent process shows that it is a helper. */
static const struct sl_places *places_of_run(struct sl_report *report)
{
	struct sl_process **order;

	if (!report || report->process_count < 2 || report->places)
		return report ? report->places : NULL;
	report->places = sl_memory_must(calloc(1, sizeof(*report->places)));
	order = sl_memory_must(calloc(report->process_count, sizeof(*order)));
	for (unsigned i = 0; i < report->process_count; i++)
		order[i] = &report->processes[i];
	qsort(order, report->process_count, sizeof(*order), by_tracks);
	for (unsigned i = 0; i < report->process_count && i < PROCESSES_MAX; i++)
		add_process(report->places, order[i]);
	free(order);
	finish(report->places);
	return report->places;
}

struct sl_places *sl_places_of(struct sl_process *process)
{
	if (process->places)
		return process->places;
	process->places = sl_memory_must(calloc(1, sizeof(*process->places)));
	process->places->run = places_of_run(process->report);
	add_process(process->places, process);
	finish(process->places);
	return process->places;
}

struct sl_places *sl_places_in(const struct sl_report *report, const struct sl_header *header)
{
	for (unsigned i = 0; report && i < report->process_count; i++) {
		struct sl_process *process = &report->processes[i];

		if (process->trace->header.pid == header->pid && process->trace->header.started_ns == header->started_ns)
			return sl_places_of(process);
	}
	return NULL;
}

static unsigned place_among(const struct sl_places *places, const struct sl_stack_frame *const *own, unsigned count)
{
	static const struct sl_places none;
	const struct sl_places *run = places->run ? places->run : &none;
	unsigned place = 0;

	for (unsigned i = 0; i + 1 < count && !is_called_back(own[i], own[i + 1]); i++) {
		uint64_t function = function_of(own[i]);
		unsigned lines = others_of(&places->lines, &run->lines, function),
			 callers = others_of(&places->callers, &run->callers, function);

		if ((lines <= 1 && is_constructor(own[i])) || (callers >= 2 && callers >= 2 * lines))
			place = i + 1;
		else if (lines > 1)
			break;
	}
	return place;
}

unsigned sl_place_chain(struct sl_process *process, const struct sl_stack_frame *frames, unsigned count,
			const struct sl_stack_frame **chain, unsigned max, const struct sl_stack_frame *via[SL_PLACE_VIA],
			unsigned *via_count)
{
	const struct sl_stack_frame *own[SL_STACK_MAX];
	unsigned used = own_frames(frames, count, own), place, given = 0;

	*via_count = 0;
	if (!used) {
		chain[0] = sl_stacks_interesting(frames, count);
		return chain[0] != NULL;
	}
	place = place_among(sl_places_of(process), own, used);
	*via_count = place < SL_PLACE_VIA ? place : SL_PLACE_VIA;
	for (unsigned i = 0; i < *via_count; i++)
		via[i] = own[i + 1 < SL_PLACE_VIA ? place - 1 - i : 0];
	for (; place < used && given < max; place++)
		chain[given++] = own[place];
	return given;
}

void sl_place_take(struct sl_chain *chain, struct sl_process *process, struct sl_stack stack)
{
	chain->count = sl_place_chain(process, chain->all, sl_process_stack(process, chain->all, stack), chain->frame, SL_STACK_MAX,
				      chain->via, &chain->via_count);
}

const struct sl_stack_frame *sl_place_of(struct sl_process *process, const struct sl_stack_frame *frames, unsigned count)
{
	const struct sl_stack_frame *place = NULL, *via[SL_PLACE_VIA];
	unsigned via_count;

	return sl_place_chain(process, frames, count, &place, 1, via, &via_count) ? place : NULL;
}

const struct sl_stack_frame *sl_place_at(struct sl_process *process, struct sl_stack stack, struct sl_stack_frame *frames)
{
	return sl_place_of(process, frames, sl_process_stack(process, frames, stack));
}

static bool is_same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

bool sl_place_same(const struct sl_stack_frame *a, const struct sl_stack_frame *b)
{
	return is_same_text(a->file, b->file) &&
	       (a->line ? a->line == b->line : !b->line && a->offset == b->offset && is_same_text(a->module, b->module));
}

unsigned sl_place_shared(const struct sl_chain *a, const struct sl_chain *b)
{
	unsigned shared = 0;

	while (shared < a->count && shared < b->count &&
	       sl_place_same(a->frame[a->count - 1 - shared], b->frame[b->count - 1 - shared]))
		shared++;
	return shared;
}

uint64_t sl_place_key(struct sl_process *process, struct sl_stack stack)
{
	struct sl_places *places = sl_places_of(process);
	uint64_t id = sl_map_mix_two(stack.caller, (uint64_t)stack.python << 32 | stack.native);
	uint32_t index = sl_idmap_claim(&places->asked, id, places->found.count);
	struct sl_stack_frame frames[SL_STACK_MAX];
	const struct sl_stack_frame *place;
	uint64_t number;

	if (index < places->found.count)
		return places->found.item[index];
	*SL_PUSH(&places->found) = 0;
	place = sl_place_at(process, stack, frames);
	if (!place)
		return 0;
	number = place->line ? place->line : place->offset;
	number = sl_utf8_mix(SL_FNV_START, (const char *)&number, sizeof(number));
	number = sl_utf8_mix_text(number, place->file);
	return places->found.item[index] = place->line ? number : sl_utf8_mix_text(number, place->module);
}

void sl_places_free(struct sl_places *places)
{
	if (!places)
		return;
	free(places->lines.list.item);
	free(places->callers.list.item);
	sl_idmap_free(&places->asked);
	SL_DROP(&places->found);
	free(places);
}
