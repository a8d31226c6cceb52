/* SPDX-License-Identifier: MIT */
/* What became of each place's blocks, over the run and between any two of many moments. */

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/roles.h"

/* Sites of one stack, role and device. */
struct place {
	uint32_t node, site; /* site: the one that held most, which gives the name; SL_NO_SITE: the merged smaller places */
	int device;
	enum sl_role role;
	uint64_t made, made_bytes, live, live_bytes, peak_bytes, temporary, ended_ns;
	uint64_t weight, max_held_bytes;
	uint32_t index; /* position by weight */
};

struct places {
	SL_VECTOR(struct place) item;
	struct sl_idmap ids; /* key of a place -> number */
	uint32_t *of;	     /* by site: number, UINT32_MAX: not shown */
	size_t shown_count;  /* number of places shown by themselves */
};

static bool is_on_page(const struct sl_model *model, const struct sl_site *site)
{
	return site->device >= 0 && model->devices[site->device + 1] && model->devices[site->device + 1]->known_peak &&
	       site->total_bytes && sl_page_is_shown(model, site, site->device);
}

static struct place *place_of(struct sl_page *page, unsigned process, uint32_t site, struct places *places)
{
	struct sl_process *p = &page->report->processes[process];
	const struct sl_site *of = &p->model->sites.item[site];
	uint32_t node = sl_page_site(page, process, site), at;
	enum sl_role role = sl_roles_of(p, of);
	uint64_t key = (uint64_t)node << 16 | (uint64_t)(uint8_t)of->device << 8 | (unsigned)role;

	at = sl_idmap_get(&places->ids, key, UINT32_MAX);
	if (at == UINT32_MAX) {
		at = (uint32_t)places->item.count;
		sl_idmap_set(&places->ids, key, at);
		*SL_PUSH(&places->item) = (struct place){.node = node, .device = of->device, .role = role, .site = site};
	}
	places->of[site] = at;
	return &places->item.item[at];
}

static void add_site(struct place *place, const struct sl_model *model, uint32_t index)
{
	const struct sl_site *site = &model->sites.item[index];
	uint64_t peak = sl_model_site_at_peak(model, site), held_bytes = peak > site->live_bytes ? peak : site->live_bytes;

	place->made += site->total_blocks;
	place->made_bytes += site->total_bytes;
	place->live += site->live_blocks;
	place->live_bytes += site->live_bytes;
	place->peak_bytes += peak;
	place->weight += held_bytes;
	if (model->lives) {
		place->temporary += model->lives[index].temporary;
		place->ended_ns += model->lives[index].ended_ns;
	}
	if (held_bytes > place->max_held_bytes) {
		place->max_held_bytes = held_bytes;
		place->site = index;
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct place *x = *(struct place *const *)a, *y = *(struct place *const *)b;

	return SL_FALLING(x->weight, y->weight) ?: SL_FALLING(x->made_bytes, y->made_bytes) ?: SL_RISING(x, y);
}

/* Places that held most at the peak or the end, or whose blocks outlived windows, are shown by themselves. */
static void order(struct places *places, size_t max_count)
{
	struct place **sorted = sl_memory_must(calloc(places->item.count + 1, sizeof(*sorted)));

	for (size_t i = 0; i < places->item.count; i++)
		sorted[i] = &places->item.item[i];
	qsort(sorted, places->item.count, sizeof(struct place *), by_weight);
	places->shown_count = places->item.count < max_count ? places->item.count : max_count;
	for (size_t i = 0; i < places->item.count; i++)
		sorted[i]->index = (uint32_t)(i < places->shown_count ? i : places->shown_count);
	free(sorted);
}

static void gather(struct sl_page *page, unsigned process, struct places *places)
{
	const struct sl_model *model = page->report->processes[process].model;

	places->of = sl_memory_must(malloc((model->sites.count + 1) * sizeof(*places->of)));
	for (uint32_t i = 0; i < model->sites.count; i++) {
		places->of[i] = UINT32_MAX;
		if (is_on_page(model, &model->sites.item[i]))
			add_site(place_of(page, process, i, places), model, i);
	}
	for (size_t i = 0; model->stays && i < model->stays->rows.count; i++) {
		const struct sl_stay *stay = &model->stays->rows.item[i];
		uint32_t at = places->of[stay->site];

		if (at != UINT32_MAX && stay->ended != stay->born)
			places->item.item[at].weight += stay->bytes;
	}
	order(places, page->budget.samples);
}

/* A column for each figure, ordered by weight; the last row sums the smaller places. */
static void put_places(struct sl_page *page, unsigned process, const struct places *places)
{
	struct sl_process *p = &page->report->processes[process];
	size_t left = places->item.count - places->shown_count, rows = places->shown_count + (left != 0);
	struct place *row = sl_memory_must(calloc(rows + 1, sizeof(*row)));
	uint32_t *stack = sl_memory_must(calloc(2 * rows + 1, sizeof(*stack))), *name = stack + rows;
	double *figure = sl_memory_must(calloc(rows + 1, sizeof(*figure)));
	uint8_t *role = sl_memory_must(calloc(2 * rows + 1, 1)), *device = role + rows;
	char text[300], *via;

	for (size_t i = 0; i < places->item.count; i++) {
		const struct place *from = &places->item.item[i];
		struct place *to = &row[from->index];

		if (!to->made)
			*to = (struct place){.node = from->node, .site = from->site, .device = from->device, .role = from->role};
		to->made += from->made;
		to->made_bytes += from->made_bytes;
		to->live += from->live;
		to->live_bytes += from->live_bytes;
		to->peak_bytes += from->peak_bytes;
		to->temporary += from->temporary;
		to->ended_ns += from->ended_ns;
	}
	for (size_t i = 0; i < rows; i++) {
		const struct sl_site *site = &p->model->sites.item[row[i].site];

		if (i == places->shown_count)
			snprintf(text, sizeof(text), "%zu smaller places", left);
		else
			sl_owners_line(p, site->stack, 2, text, sizeof(text));
		if ((via = strstr(text, " via ")))
			*via = 0;
		stack[i] = i == places->shown_count ? sl_page_note(page, text) : row[i].node;
		name[i] = sl_page_string(page, text);
		role[i] = i == places->shown_count ? SL_ROLE_UNKNOWN : (uint8_t)row[i].role;
		device[i] = i == places->shown_count ? 255 : (uint8_t)row[i].device;
	}
	sl_json_column(page->j, "stack", SL_PACKED_U32, stack, rows);
	sl_json_column(page->j, "name", SL_PACKED_U32, name, rows);
	sl_json_column(page->j, "role", SL_PACKED_U8, role, rows);
	sl_json_column(page->j, "device", SL_PACKED_U8, device, rows);
#define FIGURE(key, member)                                                                                                        \
	for (size_t i = 0; i < rows; i++)                                                                                          \
		figure[i] = (double)row[i].member;                                                                                 \
	sl_json_column(page->j, key, SL_PACKED_F64, figure, rows)
	FIGURE("made", made);
	FIGURE("made_bytes", made_bytes);
	FIGURE("live", live);
	FIGURE("live_bytes", live_bytes);
	FIGURE("peak_bytes", peak_bytes);
	FIGURE("temporary", temporary);
	FIGURE("ended_ns", ended_ns);
#undef FIGURE
	free(row);
	free(stack);
	free(role);
	free(figure);
}

struct stays {
	SL_VECTOR(struct sl_stay) rows; /* their member site is the index of the place */
	struct sl_idmap ids;
	unsigned shift; /* how often two windows were joined into one */
};

static void merge(const struct sl_stays *from, const struct places *places, struct stays *to)
{
	for (size_t i = 0; i < from->rows.count; i++) {
		struct sl_stay stay = from->rows.item[i];
		bool births = stay.born == stay.ended;
		uint64_t key;
		uint32_t at;

		if (places->of[stay.site] == UINT32_MAX || !stay.blocks)
			continue;
		stay.site = places->item.item[places->of[stay.site]].index;
		stay.born = (uint8_t)(stay.born >> to->shift);
		stay.ended = stay.ended == SL_SURVIVORS_LIVE ? SL_SURVIVORS_LIVE : (uint8_t)(stay.ended >> to->shift);
		if (stay.born == stay.ended && !births)
			continue;
		key = (uint64_t)stay.site << 20 | stay.born << 12 | stay.ended << 4 | stay.size_class;
		at = sl_idmap_get(&to->ids, key, UINT32_MAX);
		if (at == UINT32_MAX) {
			sl_idmap_set(&to->ids, key, (uint32_t)to->rows.count);
			*SL_PUSH(&to->rows) = stay;
			continue;
		}
		to->rows.item[at].bytes += stay.bytes;
		to->rows.item[at].blocks += stay.blocks;
	}
}

static void put_rows(struct sl_page *page, const struct stays *stays)
{
	size_t count = stays->rows.count;
	uint32_t *place = sl_memory_must(calloc(count + 1, sizeof(*place)));
	uint8_t *byte = sl_memory_must(calloc(count + 1, 1));
	double *figure = sl_memory_must(calloc(count + 1, sizeof(*figure)));

#define COLUMN(key, type, to, member)                                                                                              \
	for (size_t i = 0; i < count; i++)                                                                                         \
		to[i] = (__typeof__(*to))stays->rows.item[i].member;                                                               \
	sl_json_column(page->j, key, type, to, count)
	COLUMN("place", SL_PACKED_U32, place, site);
	COLUMN("born", SL_PACKED_U8, byte, born);
	COLUMN("ended", SL_PACKED_U8, byte, ended);
	COLUMN("size_class", SL_PACKED_U8, byte, size_class);
	COLUMN("blocks", SL_PACKED_F64, figure, blocks);
	COLUMN("bytes", SL_PACKED_F64, figure, bytes);
#undef COLUMN
	free(place);
	free(byte);
	free(figure);
}

/* nil: births are missing from the trace (--keep), a summary was read, or there were too many sites. */
static void put_stays(struct sl_page *page, unsigned process, const struct places *places)
{
	const struct sl_model *model = page->report->processes[process].model;
	const struct sl_stays *from = model->stays;
	struct stays stays = {0};

	if (!from || from->given_up || !from->width_ns || model->folded_ns) {
		sl_json_null(page->j, "stays");
		return;
	}
	for (merge(from, places, &stays); stays.rows.count > page->budget.stays && stays.shift < 7; merge(from, places, &stays)) {
		sl_idmap_free(&stays.ids);
		SL_DROP(&stays.rows);
		stays.ids = (struct sl_idmap){0};
		stays.shift++;
	}
	sl_json_object(page->j, "stays");
	sl_json_double(page->j, "begin", /* on the grid, so it may be before t0 */
		       (double)((int64_t)from->begin_ns + page->timelines[process].unix_offset - (int64_t)page->t0_unix_ns));
	sl_json_double(page->j, "width", (double)(from->width_ns << stays.shift));
	sl_json_uint(page->j, "windows", (from->now >> stays.shift) + 1);
	put_rows(page, &stays);
	sl_json_end(page->j);
	free(stays.rows.item);
	sl_idmap_free(&stays.ids);
}

void sl_page_places(struct sl_page *page)
{
	unsigned count = page->budget.detailed;

	sl_json_array(page->j, "roles");
	for (int i = 0; i < SL_ROLE_COUNT; i++)
		sl_json_string(page->j, NULL, sl_roles_name(i));
	sl_json_end(page->j);
	sl_json_array(page->j, "places");
	for (unsigned i = 0; i < count; i++) {
		unsigned process = page->order[i];
		const struct sl_model *model = page->report->processes[process].model;
		struct places places = {0};

		gather(page, process, &places);
		sl_page_row(page, process);
		sl_json_bool(page->j, "whole", model->lives && !model->folded_ns); /* all births and deaths are known */
		put_places(page, process, &places);
		put_stays(page, process, &places);
		sl_json_end(page->j);
		free(places.item.item);
		free(places.of);
		sl_idmap_free(&places.ids);
	}
	sl_json_end(page->j);
}
