/* SPDX-License-Identifier: MIT */
#include "analyzer/model/counts/survivors.h"

#include "analyzer/model/counts/between.h"

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

void sl_survivors_birth(struct sl_model *model, uint32_t site, uint64_t bytes)
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

void sl_survivors_death(struct sl_model *model, uint32_t site, uint64_t bytes, uint64_t born_ns)
{
	struct sl_stays *stays = model->stays;
	unsigned born;

	if (!go_on(stays, model->now_ns) || (born = window_of(stays, born_ns)) == stays->now)
		return;
	add(stays, (struct sl_stay){site, (uint8_t)born, (uint8_t)stays->now, (uint8_t)sl_lives_class(bytes), bytes, 1});
}

void sl_survivors_move(struct sl_model *model, uint32_t from, uint32_t to, uint64_t bytes, uint64_t born_ns)
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
