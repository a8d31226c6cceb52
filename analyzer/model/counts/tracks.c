/* SPDX-License-Identifier: MIT */
#include "analyzer/model/counts/tracks.h"

#include <ctype.h>

#include "analyzer/base/memory.h"
#include "analyzer/symbols/symbols.h"
#include "analyzer/model/state/model.h"

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return sl_idmap_hash((hash ^ value) * 0xff51afd7ed558ccdull);
}

/* True: the key was not met before. */
static bool is_new(struct sl_idmap *met, uint64_t key)
{
	uint32_t next = met->count;

	return sl_idmap_claim(met, key, next) == next;
}

/* The same wherever the object is loaded, since a library may be closed and opened again elsewhere. */
static uint64_t hash_address(uint64_t hash, const struct sl_module *module, uint64_t address)
{
	const char *object = !module ? NULL : module->build_id ? module->build_id : module->path; /* equal texts have one address */

	return object ? mix(mix(hash, (uintptr_t)object), address - module->base) : mix(hash, address);
}

#define NOTHING 0x6a09e667f3bcc909ull /* of a stack without a frame that counts */

static uint64_t hash_native(const struct sl_defs *defs, const struct sl_native_stack *stack)
{
	struct sl_idmap met = {0};
	uint64_t hash = NOTHING;

	for (uint32_t i = 0; i < stack->count; i++) {
		const struct sl_module *module = sl_defs_module_at(defs, stack->pcs[i] - 1);

		if (is_new(&met, stack->pcs[i]) && !(module && sl_stacks_passes_on(module->path)))
			hash = hash_address(hash, module, stack->pcs[i]);
	}
	sl_idmap_free(&met);
	return hash;
}

/* Generated code (a notebook's cells, traced graphs) has a number in its name, which is left out, so that it is one caller. */
static uint64_t hash_line(uint64_t hash, const struct sl_defs *defs, uint32_t frame)
{
	const struct sl_python_frame *line = sl_defs_frame(defs, frame);
	const char *file = line ? sl_defs_file(defs, line) : NULL;

	if (!sl_stacks_is_made_anew(file))
		return mix(hash, frame);
	for (const char *c = file; *c; c++)
		if (!isxdigit((unsigned char)*c)) /* a number, or a hash of the text */
			hash = mix(hash, (unsigned char)*c);
	return mix(hash, line->line);
}

/* A function that also occurs further inside recurses, and its line does not count.  Equal names have one address. */
static uint64_t hash_lines(const struct sl_defs *defs, const struct sl_python_stack *lines)
{
	struct sl_idmap met = {0};
	uint64_t hash = NOTHING;

	for (uint32_t i = 0; i < lines->count; i++) {
		const struct sl_python_frame *line = sl_defs_frame(defs, lines->frames[i]);

		if (!line || !line->function || is_new(&met, mix(mix(0, (uintptr_t)line->function), line->file)))
			hash = hash_line(hash, defs, lines->frames[i]);
	}
	sl_idmap_free(&met);
	return hash;
}

/* Cold and warm, one line calls from two places of the interpreter: its frames do not count. */
static uint64_t join(const struct sl_defs *defs, struct sl_stack at, uint64_t hash, uint64_t native, uint64_t lines)
{
	if (!native && !lines)
		return mix(hash, hash_address(NOTHING, sl_defs_module_at(defs, at.caller - 1), at.caller));
	hash = native && native != NOTHING ? mix(hash, native) : hash;
	return lines && lines != NOTHING ? mix(hash, lines) : hash;
}

static uint64_t hash_stack(const struct sl_defs *defs, struct sl_stack at)
{
	const struct sl_python_stack *lines = sl_defs_python(defs, at.python);
	const struct sl_native_stack *stack = sl_defs_native(defs, at.native);

	return join(defs, at, 0, stack ? hash_native(defs, stack) : 0, lines ? hash_lines(defs, lines) : 0);
}

bool sl_tracks_alike(const struct sl_defs *defs, struct sl_stack a, struct sl_stack b)
{
	return sl_stack_same(a, b) || hash_stack(defs, a) == hash_stack(defs, b);
}

/* The same of a call's stack; each list of frames is read once, since many callers may share one. */
static uint64_t hash_call(struct sl_tracks *tracks, const struct sl_defs *defs, struct sl_stack at, uint64_t hash)
{
	const struct sl_python_stack *lines = sl_defs_python(defs, at.python);
	const struct sl_native_stack *stack = sl_defs_native(defs, at.native);
	uint64_t *native = NULL, *python = NULL;

	while (tracks->natives.count < defs->natives.count)
		*SL_PUSH(&tracks->natives) = 0;
	while (tracks->pythons.count < defs->pythons.count)
		*SL_PUSH(&tracks->pythons) = 0;
	if (stack && !*(native = &tracks->natives.item[stack - defs->natives.item]))
		*native = hash_native(defs, stack);
	if (lines && !*(python = &tracks->pythons.item[lines - defs->pythons.item]))
		*python = hash_lines(defs, lines);
	return join(defs, at, hash, native ? *native : 0, python ? *python : 0);
}

static void grow_slots(struct sl_tracks *tracks)
{
	tracks->mask = tracks->mask ? tracks->mask * 2 + 1 : 255;
	free(tracks->slots);
	tracks->slots = sl_memory_must(malloc(((size_t)tracks->mask + 1) * sizeof(*tracks->slots)));
	memset(tracks->slots, 0xff, ((size_t)tracks->mask + 1) * sizeof(*tracks->slots));
	for (uint32_t t = 0; t < tracks->count; t++) {
		uint32_t i = (uint32_t)sl_map_mix(tracks->course[t].hash) & tracks->mask;

		while (tracks->slots[i] != UINT32_MAX)
			i = (i + 1) & tracks->mask;
		tracks->slots[i] = t;
	}
}

uint32_t sl_tracks_of(struct sl_model *model, const struct sl_event *event, unsigned kind, int device)
{
	struct sl_tracks *tracks = &model->tracks;
	uint64_t hash = hash_call(tracks, model->defs, sl_stack_of(event), mix(kind, (uint64_t)(device + 1)));
	uint32_t i, at;

	if (tracks->count >= tracks->mask / 4 * 3)
		grow_slots(tracks);
	for (i = (uint32_t)sl_map_mix(hash) & tracks->mask; (at = tracks->slots[i]) != UINT32_MAX; i = (i + 1) & tracks->mask)
		if (tracks->course[at].hash == hash)
			return at;
	SL_ROOM(tracks);
	tracks->course = sl_arena_grow(tracks->course, &tracks->course_capacity, tracks->count, sizeof(*tracks->course));
	tracks->course[tracks->count] = (struct sl_track_course){.hash = hash, .births_per_window = 1};
	tracks->slots[i] = (uint32_t)tracks->count;
	tracks->item[tracks->count] = (struct sl_track){
		.stack = sl_stack_of(event),
		.kind = (uint8_t)kind,
		.device = (int16_t)(device >= 0 && device < SL_DEVICES_MAX ? device : -1),
	};
	return (uint32_t)tracks->count++;
}

struct sl_track *sl_tracks_place(struct sl_model *model, const struct sl_item *item)
{
	unsigned kind = item->hook->kind == SL_KIND_vmm ? SL_KIND_vmm : item->event->kind;
	uint32_t track;

	if (kind == SL_KIND_none || kind >= SL_KIND_COUNT)
		return NULL;
	track = sl_tracks_of(model, item->event, kind, sl_event_kinds[kind].on_host ? -1 : (int)item->event->device);
	return &model->tracks.item[track]; /* sl_tracks_of may have moved the array */
}

/* Joins pairs of windows. */
static void merge(struct sl_track_course *course)
{
	for (uint32_t i = 0; i < SL_TRACK_WINDOWS / 2; i++) {
		struct sl_track_window one = course->windows[2 * i], *two = &course->windows[2 * i + 1];

		one.least_bytes = two->least_bytes < one.least_bytes ? two->least_bytes : one.least_bytes;
		one.least_blocks = two->least_blocks < one.least_blocks ? two->least_blocks : one.least_blocks;
		one.born_bytes += two->born_bytes;
		one.ended_blocks += two->ended_blocks;
		one.gaps += two->gaps;
		course->windows[i] = one;
	}
	course->count /= 2;
	course->births_per_window *= 2;
}

static SL_NOINLINE void open_window(struct sl_track_course *course, const struct sl_track *track, const struct sl_model *model)
{
	if (course->count == SL_TRACK_WINDOWS)
		merge(course);
	if (course->count == course->capacity) {
		course->capacity = course->capacity ? course->capacity * 2 : 2;
		course->windows = sl_memory_must(realloc(course->windows, course->capacity * sizeof(*course->windows)));
	}
	course->windows[course->count++] =
		(struct sl_track_window){model->now_ns, model->tracks.ticks, track->live_bytes, track->live_blocks, 0, 0, 0, 0, 0};
	course->births_in_last = 0;
}

static void swing(struct sl_track *track, struct sl_track_course *course, uint64_t now_ns)
{
	sl_swing_to(&course->swing, track->live_bytes, now_ns);
	track->usual_bytes = course->swing.second;
}

void sl_tracks_asked(struct sl_tracks *tracks)
{
	tracks->asked++;
	tracks->teardown_ns = 0;
}

/* Notes a rise, before a birth: a cache may take a new block first and then free an old one. */
static void rise(const struct sl_track *track, struct sl_track_course *course)
{
	uint64_t gap = track->births - course->crest_births;

	if (track->live_bytes <= course->crest_bytes + 2 * track->most_bytes)
		return;
	course->crest_gap = course->crest_births && gap > course->crest_gap ? gap : course->crest_gap;
	course->crest_bytes = track->live_bytes;
	course->crest_births = track->births;
}

/*
 * A birth after deaths.  The deaths were a turn if all blocks that had lived after the previous deaths died, no younger one
 * did, and about as many bytes live now.
 */
static void turn(struct sl_track *track, struct sl_track_course *course)
{
	uint64_t made = track->live_bytes, old = course->turn_bytes;
	bool whole = old && !course->turn_left && !course->younger_died && made + made / 4 >= old && old + old / 4 >= made;

	track->turns = !whole ? 0 : track->turns < UINT8_MAX ? track->turns + 1 : UINT8_MAX;
	course->turn_bytes = course->turn_left = track->live_bytes;
	course->turn_ns = course->last_death_ns;
	course->died = course->younger_died = false;
}

void sl_tracks_birth(struct sl_model *model, uint32_t index, uint64_t bytes, uint32_t label)
{
	struct sl_tracks *tracks = &model->tracks;
	struct sl_track *track = &tracks->item[index];
	struct sl_track_course *course = &tracks->course[index];
	bool begins;

	tracks->ticks++;
	sl_tracks_asked(tracks);
	tracks->last_birth_ns = model->now_ns;
	rise(track, course);
	if (course->died)
		turn(track, course);
	course->larger += bytes > track->most_bytes;
	if (course->pass != tracks->passes) {
		course->pass = tracks->passes;
		course->most_before = track->most_bytes;
		course->births_before = track->births;
	}
	track->live_bytes += bytes;
	track->live_blocks++;
	track->born_bytes += bytes;
	track->most_bytes = bytes > track->most_bytes ? bytes : track->most_bytes;
	track->most_blocks = track->live_blocks > track->most_blocks ? track->live_blocks : track->most_blocks;
	swing(track, course, model->now_ns);
	if (!track->births++) {
		track->first_ns = model->now_ns;
		course->first_event = model->events;
	}
	track->last_label = label;
	track->last_ns = model->now_ns;
	course->last_event = model->events;
	course->launches = tracks->launches;
	begins = course->last_tick + 1 != tracks->ticks || !course->bursts;
	course->bursts += begins;
	if (begins && course->count) {
		course->windows[course->count - 1].gaps++;
		if (tracks->ticks - course->last_tick > course->longest_gap)
			course->longest_gap = tracks->ticks - course->last_tick;
	}
	course->last_tick = tracks->ticks;
	if (!course->count || course->births_in_last >= course->births_per_window)
		open_window(course, track, model);
	course->births_in_last++;
	course->windows[course->count - 1].born_bytes += bytes;
}

void sl_tracks_sized(struct sl_model *model, uint32_t index, uint64_t bytes)
{
	struct sl_track *track = &model->tracks.item[index];
	struct sl_track_course *course = &model->tracks.course[index];

	track->live_bytes += bytes;
	track->born_bytes += bytes;
	track->most_bytes = bytes > track->most_bytes ? bytes : track->most_bytes;
	swing(track, course, model->now_ns);
	if (course->count)
		course->windows[course->count - 1].born_bytes += bytes;
}

/* Finds the birth that ended; a block without a time counts as the newest. */
static void end_birth(struct sl_track_course *course, uint64_t asked, uint64_t born_ns)
{
	uint32_t i = course->count - 1;
	uint64_t lived;

	while (i && course->windows[i].begin_ns > born_ns)
		i--;
	lived = (course->count - 1 - i) * course->births_per_window;
	course->late_lived = lived > course->late_lived ? lived : course->late_lived;
	if (course->windows[i].late_tick != asked)
		course->windows[i].late_blocks = 0;
	course->windows[i].late_tick = asked;
	course->windows[i].late_blocks++;
	course->windows[i].ended_blocks++;
}

void sl_tracks_death(struct sl_model *model, uint32_t index, uint64_t bytes, uint64_t born_ns)
{
	struct sl_tracks *tracks = &model->tracks;
	struct sl_track *track = &tracks->item[index];
	struct sl_track_course *course = &tracks->course[index];
	struct sl_track_window *last;

	track->live_bytes -= bytes;
	track->live_blocks--;
	course->last_death_ns = model->now_ns;
	course->died = true;
	if (born_ns <= course->turn_ns && bytes <= course->turn_left)
		course->turn_left -= bytes;
	else
		course->younger_died = true;
	swing(track, course, model->now_ns);
	if (!tracks->teardown_ns)
		tracks->teardown_ns = model->now_ns;
	tracks->pauses += model->call_begin_ns > tracks->freed_ns + SL_TRACK_PAUSE_NS;
	tracks->freed_ns = model->call_end_ns;
	if (!course->count) /* only tracks from a checkpoint of --keep have none */
		return;
	last = &course->windows[course->count - 1];
	if (course->death_tick != tracks->asked) {
		course->before_bytes = last->least_bytes;
		course->before_blocks = last->least_blocks;
		course->death_tick = tracks->asked;
		course->died_bytes = course->died_blocks = 0;
		course->died_ns = 0;
		course->paused = 0;
		course->lived = course->late_lived > course->lived ? course->late_lived : course->lived;
		course->late_lived = 0;
	}
	end_birth(course, tracks->asked, born_ns);
	course->died_bytes += bytes;
	course->died_blocks++;
	course->died_ns += (double)(model->now_ns - tracks->teardown_ns);
	course->paused += course->pauses != tracks->pauses;
	course->pauses = tracks->pauses;
	if (track->live_bytes < last->least_bytes)
		last->least_bytes = track->live_bytes;
	if (track->live_blocks < last->least_blocks)
		last->least_blocks = track->live_blocks;
}

void sl_tracks_least(const struct sl_tracks *tracks, const struct sl_track *track, uint32_t window, uint64_t *bytes,
		     uint64_t *blocks)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	bool torn_down = window + 1 == course->count && course->death_tick == tracks->asked;

	*bytes = torn_down ? course->before_bytes : course->windows[window].least_bytes;
	*blocks = torn_down ? course->before_blocks : course->windows[window].least_blocks;
}

uint64_t sl_tracks_left(const struct sl_tracks *tracks, const struct sl_track *track, uint32_t window)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	const struct sl_track_window *of = &course->windows[window];
	uint64_t births = window + 1 == course->count ? course->births_in_last : course->births_per_window;

	uint64_t ended = of->ended_blocks - (of->late_tick == tracks->asked ? of->late_blocks : 0);

	return births > ended ? births - ended : 0;
}

uint64_t sl_tracks_lived(const struct sl_tracks *tracks, const struct sl_track *track)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);

	return course->death_tick == tracks->asked || course->lived > course->late_lived ? course->lived : course->late_lived;
}

void sl_tracks_held(const struct sl_tracks *tracks, const struct sl_track *track, uint64_t *bytes, uint64_t *blocks)
{
	const struct sl_track_course *course = sl_tracks_course(tracks, track);
	bool torn_down = course->death_tick == tracks->asked;

	*bytes = track->live_bytes + (torn_down ? course->died_bytes : 0);
	*blocks = track->live_blocks + (torn_down ? course->died_blocks : 0);
}

void sl_tracks_rest(struct sl_tracks *tracks)
{
	for (size_t i = 0; tracks->course && i < tracks->count; i++)
		free(tracks->course[i].windows);
	free(tracks->course);
	free(tracks->slots);
	SL_DROP(&tracks->pythons);
	SL_DROP(&tracks->natives);
	tracks->course = NULL;
	tracks->slots = NULL;
}

void sl_tracks_free(struct sl_tracks *tracks)
{
	sl_tracks_rest(tracks);
	free(tracks->item);
}
