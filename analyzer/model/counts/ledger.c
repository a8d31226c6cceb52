/* SPDX-License-Identifier: MIT */
/* Longer than other files: the begin or end of a block updates all of these figures. */
#include "analyzer/model/counts/ledger.h"

#include "analyzer/base/memory.h"
#include "analyzer/model/counts/between.h"
#include "analyzer/model/counts/sample_wait.h"
#include "analyzer/symbols/symbols.h"
#include "analyzer/model/counts/survivors.h"
#include "analyzer/model/counts/tracks.h"
#include "analyzer/model/state/units.h"

#define FIRST_WIDTH_NS 65536
#define WINDOWS_MIN    8 /* if so few windows already have too many rows, counting is given up */

static struct sl_stay *row_of(struct sl_stays *stays, uint32_t site, unsigned born, unsigned ended, unsigned size_class)
{
	uint64_t key = (uint64_t)site << 20 | born << 12 | ended << 4 | size_class;
	uint32_t at = sl_idmap_claim(&stays->ids, key, stays->rows.count);

	if (at == stays->rows.count)
		*SL_PUSH(&stays->rows) = (struct sl_stay){
			.site = site, .born = (uint8_t)born, .ended = (uint8_t)ended, .size_class = (uint8_t)size_class};
	return &stays->rows.item[at];
}

static void add(struct sl_stays *stays, struct sl_stay stay)
{
	struct sl_stay *row = row_of(stays, stay.site, stay.born, stay.ended, stay.size_class);

	row->bytes += stay.bytes;
	row->blocks += stay.blocks;
}

/* Joins pairs of windows: a block that was born in the first and ended in the second outlived nothing. */
static void halve(struct sl_stays *stays)
{
	unsigned shift = (unsigned)(stays->begin_ns / stays->width_ns & 1);
	struct sl_stay *old = stays->rows.item;
	size_t count = stays->rows.count;

	stays->begin_ns -= shift * stays->width_ns;
	stays->width_ns *= 2;
	stays->now = (stays->now + shift) / 2;
	stays->next_ns = stays->begin_ns + (stays->now + 1) * stays->width_ns;
	sl_idmap_free(&stays->ids);
	stays->ids = (struct sl_idmap){0};
	stays->rows.item = NULL;
	stays->rows.count = stays->rows.capacity = 0;
	for (size_t i = 0; i < count; i++) {
		struct sl_stay stay = old[i];

		stay.born = (uint8_t)((stay.born + shift) / 2);
		if (stay.ended != SL_SURVIVORS_LIVE)
			stay.ended = (uint8_t)((stay.ended + shift) / 2);
		if (stay.born != stay.ended || old[i].born == old[i].ended)
			add(stays, stay);
	}
	free(old);
	if (stays->last)
		memset(stays->last, 0, stays->last_count * sizeof(*stays->last));
}

/* Makes the present window the last one; false: counting was given up. */
static bool go_on(struct sl_stays *stays, uint64_t now_ns)
{
	if (stays->given_up)
		return false;
	if (!stays->width_ns) {
		stays->width_ns = FIRST_WIDTH_NS;
		stays->begin_ns = now_ns - now_ns % FIRST_WIDTH_NS;
		stays->next_ns = stays->begin_ns + FIRST_WIDTH_NS;
	}
	if (now_ns >= stays->next_ns && now_ns > stays->begin_ns) { /* the end of a window may be beyond 64 bits */
		while ((now_ns - stays->begin_ns) / stays->width_ns >= SL_SURVIVORS_WINDOWS)
			halve(stays);
		stays->now = (unsigned)((now_ns - stays->begin_ns) / stays->width_ns);
		stays->next_ns = stays->begin_ns + (stays->now + 1) * stays->width_ns;
	}
	while (stays->rows.count >= SL_SURVIVORS_MAX && !stays->given_up) {
		stays->given_up = stays->now < WINDOWS_MIN;
		halve(stays);
	}
	return !stays->given_up;
}

static unsigned window_of(const struct sl_stays *stays, uint64_t ns)
{
	uint64_t window = ns > stays->begin_ns ? (ns - stays->begin_ns) / stays->width_ns : 0;

	return window < stays->now ? (unsigned)window : stays->now;
}

static uint32_t *last_of(struct sl_stays *stays, uint32_t site)
{
	while (stays->last_count <= site) {
		stays->last = sl_arena_grow(stays->last, &stays->last_capacity, stays->last_count, sizeof(*stays->last));
		stays->last[stays->last_count++] = 0;
	}
	return &stays->last[site];
}

/* Called for each block, at model->now_ns, if model->stays is wanted. */
static void survivors_birth(struct sl_model *model, uint32_t site, uint64_t bytes)
{
	struct sl_stays *stays = model->stays;
	unsigned size_class = sl_lives_class(bytes);
	struct sl_stay *row;
	uint32_t *last;

	if (!go_on(stays, model->now_ns))
		return;
	last = last_of(stays, site);
	row = *last ? &stays->rows.item[*last - 1] : NULL;
	if (!row || row->born != stays->now || row->size_class != size_class)
		row = row_of(stays, site, stays->now, stays->now, size_class);
	*last = (uint32_t)(row - stays->rows.item) + 1;
	row->bytes += bytes;
	row->blocks++;
}

static void survivors_death(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns)
{
	struct sl_stays *stays = model->stays;
	unsigned born;

	if (!go_on(stays, model->now_ns) || (born = window_of(stays, born_ns)) == stays->now)
		return;
	add(stays, (struct sl_stay){site, (uint8_t)born, (uint8_t)stays->now, (uint8_t)sl_lives_class(bytes), bytes, 1});
}

/* A live block turned out to belong to another site. */
static void survivors_move(struct sl_model *model, uint32_t from, uint32_t to, uint64_t bytes, uint64_t born_ns)
{
	struct sl_stays *stays = model->stays;
	unsigned size_class = sl_lives_class(bytes), born;
	struct sl_stay *row;

	if (!stays || !go_on(stays, model->now_ns))
		return;
	born = window_of(stays, born_ns);
	row = row_of(stays, from, born, born, size_class);
	row->bytes -= bytes;
	row->blocks--;
	add(stays, (struct sl_stay){to, (uint8_t)born, (uint8_t)born, (uint8_t)size_class, bytes, 1});
}

static void lives(void *context, uint64_t address, uint32_t site, uint64_t bytes, uint64_t born_ns)
{
	struct sl_stays *stays = context;

	(void)address;
	add(stays, (struct sl_stay){site, (uint8_t)window_of(stays, born_ns), SL_SURVIVORS_LIVE, (uint8_t)sl_lives_class(bytes),
				    bytes, 1});
}

void sl_survivors_end(struct sl_model *model)
{
	struct sl_stays *stays = model->stays;

	if (!stays)
		return;
	if (go_on(stays, model->now_ns))
		sl_between_each(model, stays, lives);
	sl_idmap_free(&stays->ids); /* from here on only the rows are read */
	free(stays->last);
	stays->last = NULL;
	stays->last_count = stays->last_capacity = 0;
	SL_TRIM(&stays->rows);
}

void sl_survivors_free(struct sl_stays *stays)
{
	if (!stays)
		return;
	free(stays->rows.item);
	sl_idmap_free(&stays->ids);
	free(stays->last);
	free(stays);
}

/* Makes room for one more change than is asked for: a change's size is the difference to the one before. */
static void make_recent(struct sl_model *model, struct sl_device_state *state)
{
	uint64_t room = SL_RECENT;

	while (room <= model->recent)
		room *= 2;
	state->recent = sl_memory_must(calloc(room, sizeof(*state->recent)));
	state->recent_mask = room - 1;
}

struct sl_device_state *sl_ledger_new_device(struct sl_model *model, unsigned slot)
{
	struct sl_device_state *state = sl_memory_must(calloc(1, sizeof(*state)));

	state->device = (int)slot - 1;
	state->used_peak_bytes = state->used_last_bytes = SL_UNKNOWN;
	state->hidden_peak_bytes = state->hidden_last_bytes = state->context_most = SL_UNKNOWN;
	state->total_bytes = state->sampled.known_max = SL_UNKNOWN;
	make_recent(model, state);
	model->devices[slot] = state;
	return state;
}

struct sl_row *sl_ledger_new_row(struct sl_model *model, unsigned kind, unsigned slot)
{
	struct sl_row *row;

	if (!model->rows[slot])
		model->rows[slot] = sl_memory_must(calloc(SL_KIND_COUNT, sizeof(*row)));
	row = &model->rows[slot][kind];
	row->used = true;
	row->line = sl_timeline_add(&model->timeline, SL_LINE_KIND, (int)slot - 1, (int)kind);
	return row;
}

struct sl_thread_state *sl_ledger_new_thread(struct sl_model *model, uint32_t thread)
{
	if (thread > 1u << 20) /* such ids are only in damaged traces */
		thread = 1u << 20;
	while (model->threads.count <= thread) {
		*SL_PUSH(&model->threads) = NULL;
	}
	if (!model->threads.item[thread]) {
		model->threads.item[thread] = sl_memory_must(calloc(1, sizeof(struct sl_thread_state)));
		model->threads.item[thread]->device = -1;
		model->threads.item[thread]->index = thread;
	}
	return model->threads.item[thread];
}

/* ---- what threads and their ranges allocate */

/* The only thread that has a range of this label open; NULL: none, or several. */
static struct sl_thread_state *only_one_in(struct sl_model *model, uint64_t text)
{
	struct sl_thread_state *found = NULL;

	if (!sl_ledger_may_look(model, model->threads.count))
		return NULL;
	for (size_t t = 1; t < model->threads.count; t++) {
		struct sl_thread_state *state = model->threads.item[t];
		bool has = false;

		for (size_t i = 0; state && i < state->ranges.count && !has; i++)
			has = model->labels.item[state->ranges.item[i].label].text == text;
		if (has && found)
			return NULL;
		found = has ? state : found;
	}
	return found;
}

/*
 * The thread for which this one works.  A thread without ranges of its own works for the only thread that has some, or for the
 * one that lent it a label (a backward pass).  A thread of autograd works for the only other one even if it opens ranges itself.
 */
static struct sl_thread_state *works_for(struct sl_model *model, const struct sl_thread_state *own, const struct sl_event *event)
{
	bool has = own->ranges.count;

	if (model->ranged <= has || (has && !(event->flags & SL_FLAG_borrowed)))
		return NULL;
	if (model->ranged - has == 1)
		return model->threads.item[model->ranged_sum - (has ? own->index : 0)];
	return !has && event->label ? only_one_in(model, event->label) : NULL;
}

static void add_turnover(struct sl_turnover *turnover, uint64_t bytes, bool made)
{
	*(made ? &turnover->made_bytes : &turnover->gone_bytes) += bytes;
	++*(made ? &turnover->made_blocks : &turnover->gone_blocks);
}

static void count_for(const struct sl_model *model, struct sl_thread_state *state, const struct sl_site *site, uint64_t bytes,
		      bool made)
{
	add_turnover(&state->turnover, bytes, made);
	for (size_t i = 0; made && model->makers && i < state->ranges.count; i++)
		sl_model_range_allocs_add(&state->ranges.item[i].making, (uint32_t)(site - model->sites.item), bytes);
}

void sl_ledger_turn_over(struct sl_model *model, const struct sl_site *site, uint64_t bytes, bool made)
{
	uint32_t thread = model->item ? model->item->thread : 0;
	struct sl_thread_state *own = thread ? sl_ledger_thread(model, thread) : NULL, *other;

	count_for(model, sl_ledger_thread(model, 0), site, bytes, made);
	if (!own)
		return;
	count_for(model, own, site, bytes, made);
	other = works_for(model, own, model->item->event);
	if (other)
		count_for(model, other, site, bytes, made);
}

/* ---- sites */

static uint64_t site_hash(const struct sl_site *key)
{
	return sl_map_mix_two(sl_stack_mix(key->stack) ^ ((uint64_t)key->label << 32 | key->thread),
			      (uint64_t)key->api << 32 | (uint64_t)(uint16_t)key->device << 8 | key->kind);
}

static bool same_site(const struct sl_site *a, const struct sl_site *b)
{
	return sl_stack_same(a->stack, b->stack) && a->label == b->label && a->thread == b->thread && a->api == b->api &&
	       a->device == b->device && a->kind == b->kind && a->pooled == b->pooled;
}

/* The slot of the site in the index, empty if the site is new. */
static uint32_t *place_of(const struct sl_model *model, const struct sl_site *key)
{
	uint32_t i = (uint32_t)site_hash(key) & model->site_mask;

	while (model->site_slots[i] != UINT32_MAX && !same_site(&model->sites.item[model->site_slots[i]], key))
		i = (i + 1) & model->site_mask;
	return &model->site_slots[i];
}

static void grow_sites(struct sl_model *model)
{
	model->site_mask = model->site_mask * 2 + 1;
	free(model->site_slots);
	model->site_slots = sl_memory_must(malloc(((size_t)model->site_mask + 1) * sizeof(*model->site_slots)));
	memset(model->site_slots, 0xff, ((size_t)model->site_mask + 1) * sizeof(*model->site_slots));
	for (uint32_t s = 0; s < model->sites.count; s++)
		*place_of(model, &model->sites.item[s]) = s;
}

/* More libraries are counted as one: each has a line over time, and a hostile trace may name any number */
#define LIBRARIES_MAX 1024

static uint32_t holder_of(struct sl_model *model, const char *library, int device)
{
	uint32_t l = 0, h;

	while (l < model->libraries.count && strcmp(model->libraries.item[l], library))
		l++;
	if (l == LIBRARIES_MAX)
		l--; /* the last library stands for all further ones */
	else if (l == model->libraries.count)
		*SL_PUSH(&model->libraries) = l == LIBRARIES_MAX - 1 ? "other libraries" : sl_arena_strdup(&model->arena, library);
	h = sl_idmap_claim(&model->holder_ids, (uint64_t)l << 32 | (uint32_t)device, model->holders.count);
	if (h == model->holders.count) {
		*SL_PUSH(&model->holders) = (struct sl_holder){.library = l, .device = device};
	}
	return h;
}

static uint32_t labelled_of(struct sl_model *model, uint32_t text, int device)
{
	size_t i = 0;

	if (!text)
		return SL_NO_SITE;
	while (i < model->labelled.count && (model->labelled.item[i].text != text || model->labelled.item[i].device != device))
		i++;
	if (i == SL_LABELLED_MAX)
		return SL_NO_SITE;
	if (i == model->labelled.count) {
		*SL_PUSH(&model->labelled) = (struct sl_labelled){.text = text, .device = device};
	}
	return (uint32_t)i;
}

/* The name of a framework's blocks, by the first letters of the rows that report them. */
static const char *blocks_of(const struct sl_hook *hook)
{
	static const struct {
		const char *begin, *name;
	} frameworks[] = {{"ggml", "ggml tensors"}, {"PJRT", "JAX arrays"}, {"BFCAllocator", "TensorFlow tensors"}};

	for (size_t i = 0; hook && i < SL_COUNT(frameworks); i++)
		if (!strncmp(hook->plain, frameworks[i].begin, strlen(frameworks[i].begin)))
			return frameworks[i].name;
	return hook && hook->family == SL_FAMILY_pool ? "framework's blocks" : "PyTorch tensors";
}

/* Memory for one more site and for what the analyses keep of it. */
static void make_room(struct sl_model *model)
{
	SL_ROOM(&model->sites);
	model->lives = sl_arena_grow(model->lives, &model->lives_capacity, model->sites.count, sizeof(*model->lives));
	model->lives[model->sites.count] = (struct sl_lives){0};
	model->site_course =
		sl_arena_grow(model->site_course, &model->site_course_capacity, model->sites.count, sizeof(*model->site_course));
}

static uint32_t new_site(struct sl_model *model, const struct sl_site *key, const struct sl_event *event)
{
	struct sl_site *site;
	const struct sl_hook *hook = sl_header_hook(model->header, key->api);
	const char *library = model->recording.lists_tensors && !key->api ? "rounding of sizes" /* analyzer/model/replay/torch.c */
			      : key->kind == SL_KIND_block		  ? blocks_of(hook)
			      : model->recording.lists_tensors		  ? "libc10_cuda.so" /* of which segments are */
							       : sl_stacks_library(model->defs, model->header, key->stack);

	make_room(model);
	site = &model->sites.item[model->sites.count];
	*site = *key;
	site->holder = holder_of(model, library, key->device);
	site->track = sl_tracks_of(model, event, key->kind, key->device);
	model->site_course[model->sites.count] = (struct sl_site_course){
		.labelled = sl_model_is_on_device(key) ? labelled_of(model, key->label, key->device) : SL_NO_SITE};
	return (uint32_t)model->sites.count++;
}

/* True: the site for blocks beyond SL_SITES_MAX, which only has a call, a kind and a device. */
static bool is_crowd(const struct sl_site *key)
{
	return !sl_stack_known(key->stack) && !key->label && !key->thread;
}

static uint32_t crowd(struct sl_model *model, const struct sl_event *event, unsigned kind, int device)
{
	struct sl_event bare = *event;

	bare.caller = bare.python = bare.native = bare.label = 0;
	model->crowded++;
	return sl_ledger_site(model, &bare, 0, kind, device);
}

uint32_t sl_ledger_site(struct sl_model *model, const struct sl_event *event, uint32_t thread, unsigned kind, int device)
{
	struct sl_site key = {
		.stack = sl_stack_of(event),
		.label = (uint32_t)event->label,
		.thread = thread,
		.api = (uint16_t)event->api,
		.device = (int16_t)((int)sl_ledger_slot(kind, device) - 1),
		.kind = (uint8_t)kind,
	};
	uint32_t *place, at;

	place = place_of(model, &key);
	if (*place != UINT32_MAX)
		return *place;
	if (SL_UNLIKELY(model->sites.count >= SL_SITES_MAX) && !is_crowd(&key))
		return crowd(model, event, kind, device);
	*place = at = new_site(model, &key, event);
	if (model->sites.count > model->site_mask / 4 * 3)
		grow_sites(model);
	return at;
}

static void change_labelled(struct sl_model *model, struct sl_labelled *labelled, uint32_t which, uint32_t site, int64_t bytes)
{
	labelled->live_bytes += (uint64_t)bytes;
	if (SL_UNLIKELY(!labelled->line))
		labelled->line = sl_timeline_add(&model->timeline, SL_LINE_LABEL, labelled->device, (int)which);
	sl_timeline_set(&model->timeline, labelled->line, model->now_ns, labelled->live_bytes, site);
}

static uint32_t twin_of(struct sl_model *model, uint32_t index)
{
	struct sl_site twin = model->sites.item[index];
	uint32_t *place;
	char library[300];

	twin.pooled = true;
	place = place_of(model, &twin);
	if (*place != UINT32_MAX)
		return *place;
	snprintf(library, sizeof(library), SL_POOL_OF "%s", sl_model_library(model, &twin));
	twin.holder = holder_of(model, library, twin.device);
	twin.live_blocks = twin.at_peak_blocks = 0;
	twin.live_bytes = twin.total_bytes = twin.total_blocks = twin.at_peak_bytes = 0;
	make_room(model);
	model->site_course[model->sites.count] = model->site_course[index];
	model->sites.item[model->sites.count] = twin;
	*place = index = (uint32_t)model->sites.count++;
	if (model->sites.count > model->site_mask / 4 * 3)
		grow_sites(model);
	return index;
}

static void change_holder(struct sl_model *model, const struct sl_site *site, uint32_t index, int64_t bytes)
{
	struct sl_holder *holder = &model->holders.item[site->holder];

	holder->live_bytes += (uint64_t)bytes;
	if (SL_UNLIKELY(!holder->line))
		holder->line = sl_timeline_add(&model->timeline, SL_LINE_LIBRARY, holder->device, (int)holder->library);
	sl_timeline_set(&model->timeline, holder->line, model->now_ns, holder->live_bytes, index);
	if (holder->live_bytes > holder->peak_bytes)
		holder->peak_bytes = holder->live_bytes;
}

uint32_t sl_ledger_pooled(struct sl_model *model, uint32_t index, uint64_t bytes, uint64_t born_ns)
{
	uint32_t twin = twin_of(model, index);
	struct sl_site *from = &model->sites.item[index], *to = &model->sites.item[twin];

	sl_ledger_save(model, from);
	sl_ledger_save(model, to);
	from->live_bytes -= bytes, from->live_blocks--;
	from->total_bytes -= bytes, from->total_blocks--;
	to->live_bytes += bytes, to->live_blocks++;
	to->total_bytes += bytes, to->total_blocks++;
	model->lives[index].sizes[sl_lives_class(bytes)]--;
	model->lives[twin].sizes[sl_lives_class(bytes)]++;
	survivors_move(model, index, twin, bytes, born_ns);
	change_holder(model, from, index, -(int64_t)bytes);
	change_holder(model, to, twin, (int64_t)bytes);
	return twin;
}

/* Raises the bytes in use.  For a segment of PyTorch its blocks count, which are reported next. */
static void raise_in_use(struct sl_model *model, const struct sl_site *site)
{
	bool segment = sl_model_is_cache(sl_model_library(model, site));

	if (segment && model->torch_seen)
		return;
	if (segment)
		model->in_use_max_before = model->in_use_max;
	model->in_use_max = model->in_use;
}

void sl_ledger_peak(const struct sl_model *model, struct sl_device_state *device)
{
	uint64_t now = model->now_ns;

	device->known_peak_ns = now;
	device->torch_at_peak = device->torch;
	device->peak_folded = now <= model->folded_ns && device->kept_ns[0] != now && device->kept_ns[1] != now;
	device->epoch++;
}

static void change_known(struct sl_model *model, struct sl_site *site, struct sl_device_state *device, uint32_t index,
			 int64_t bytes)
{
	uint32_t labelled = model->site_course[index].labelled;
	uint64_t now = model->now_ns;

	device->used = true;
	sl_sample_wait_change(model, device, bytes);
	device->known_bytes += (uint64_t)bytes;
	device->recent[device->changes++ & device->recent_mask] = (struct sl_known_at){
		.end_ns = model->call_end_ns, .known_bytes = device->known_bytes, .site = index, .api = model->call_api};
	if (SL_UNLIKELY(!device->line))
		device->line = sl_timeline_add(&model->timeline, SL_LINE_KNOWN, device->device, 0);
	sl_timeline_set(&model->timeline, device->line, now, device->known_bytes, index);
	if (!device->torch.reported) /* else its next report tells what of this segment is in use */
		sl_ledger_swing(model, device);
	if (device->known_bytes > device->known_peak && !model->recording.lists_tensors) {
		device->known_peak = device->known_bytes;
		sl_ledger_peak(model, device);
	}
	change_holder(model, site, index, bytes);
	if (labelled != SL_NO_SITE)
		change_labelled(model, &model->labelled.item[labelled], labelled, index, bytes);
	model->in_use += bytes;
	model->held_bytes += bytes;
	if (model->held_bytes > model->held_max)
		model->held_max = model->held_bytes;
	if (model->in_use > model->in_use_max)
		raise_in_use(model, site);
}

static uint64_t rounding_of(const struct sl_site *site, uint64_t bytes)
{
	return site->kind == SL_KIND_device ? sl_units_rounding(bytes) : 0;
}

void sl_ledger_born(struct sl_model *model, struct sl_site *site, uint64_t bytes)
{
	struct sl_track_course *course = &model->tracks.course[site->track];
	uint32_t index = (uint32_t)(site - model->sites.item);

	model->lives[index].sizes[sl_lives_class(bytes)]++;
	if (model->stays)
		survivors_birth(model, index, bytes);
	if (course->newest_ended)
		model->lives[course->newest_ended - 1].temporary++;
	course->newest_ended = 0;
}

void sl_ledger_died(struct sl_model *model, struct sl_site *site, uint64_t bytes, uint64_t born_ns)
{
	uint32_t index = (uint32_t)(site - model->sites.item);

	if (model->stays)
		survivors_death(model, index, bytes, born_ns);
	model->lives[index].ended_ns += model->now_ns > born_ns ? model->now_ns - born_ns : 0;
	if (model->tracks.item[site->track].last_ns == born_ns)
		model->tracks.course[site->track].newest_ended = index + 1;
}

static void raise_row(struct sl_model *model, struct sl_row *row, uint32_t index)
{
	sl_timeline_set(&model->timeline, row->line, model->now_ns, row->live_bytes, index);
	if (row->live_bytes <= row->peak_bytes)
		return;
	row->peak_bytes = row->live_bytes;
	row->peak_at_ns = model->now_ns;
}

void sl_ledger_sized(struct sl_model *model, uint32_t index, uint64_t bytes)
{
	struct sl_site *site = &model->sites.item[index];
	struct sl_row *row = sl_ledger_row(model, site->kind, site->device);

	sl_ledger_save(model, site);
	site->live_bytes += bytes;
	site->total_bytes += bytes;
	model->lives[index].sizes[sl_lives_class(0)]--;
	model->lives[index].sizes[sl_lives_class(bytes)]++;
	sl_tracks_sized(model, site->track, bytes);
	row->live_bytes += bytes;
	row->allocated_bytes += bytes;
	raise_row(model, row, index);
}

void sl_ledger_begin_block(struct sl_model *model, uint32_t index, uint64_t bytes)
{
	struct sl_site *site = &model->sites.item[index];
	struct sl_device_state *device = sl_ledger_device(model, site->device);
	struct sl_row *row = sl_ledger_row(model, site->kind, site->device);

	sl_ledger_save(model, site);
	sl_tracks_birth(model, site->track, bytes, site->label);
	site->live_bytes += bytes;
	site->live_blocks++;
	site->total_bytes += bytes;
	site->total_blocks++;
	sl_ledger_born(model, site, bytes);
	row->allocations++;
	row->allocated_bytes += bytes;
	row->live_blocks++;
	row->live_bytes += bytes;
	raise_row(model, row, index);
	if (!sl_model_is_on_device(site))
		return;
	change_known(model, site, device, index, (int64_t)bytes);
	device->rounded += rounding_of(site, bytes);
	if (!model->torch_seen)
		sl_ledger_count(model, site, bytes, true);
}

void sl_ledger_end_block(struct sl_model *model, uint32_t index, uint64_t bytes, uint64_t born_ns, enum sl_end how)
{
	struct sl_site *site = &model->sites.item[index];
	struct sl_device_state *device = sl_ledger_device(model, site->device);
	struct sl_row *row = sl_ledger_row(model, site->kind, site->device);

	sl_ledger_save(model, site);
	sl_ledger_died(model, site, bytes, born_ns);
	sl_tracks_death(model, site->track, bytes, born_ns);
	site->live_bytes -= bytes;
	site->live_blocks--;
	row->live_blocks--;
	row->live_bytes -= bytes;
	if (how == SL_END_FREE)
		row->frees++;
	else
		row->implicit_frees++;
	sl_timeline_set(&model->timeline, row->line, model->now_ns, row->live_bytes, index);
	if (!sl_model_is_on_device(site))
		return;
	change_known(model, site, device, index, -(int64_t)bytes);
	device->rounded -= rounding_of(site, bytes);
	if (!model->torch_seen)
		sl_ledger_count(model, site, bytes, false);
}
