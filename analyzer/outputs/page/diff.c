/* SPDX-License-Identifier: MIT */
/* The page of what changed between runs: differences as rows, and stacks at the peak with what they held before and after. */
#include <stdlib.h>

#include "analyzer/gate/diff.h"
#include "analyzer/outputs/owners.h"
#include "analyzer/outputs/page/page.h"

#define KEYS 19

void sl_page_changes_begin(struct sl_page_changes *changes)
{
	static const struct sl_page_budget budget = {.bins = SL_TIMELINE_BINS};

	*changes = (struct sl_page_changes){0};
	sl_page_begin(&changes->page, 0, &budget);
}

static void add(struct sl_page_changes *changes, uint32_t node, bool after, double bytes)
{
	uint32_t at = sl_idmap_get(&changes->index, node, 0);

	if (!at) {
		changes->stacks.item = sl_arena_grow(changes->stacks.item, &changes->stacks.capacity, changes->stacks.count,
						     sizeof(*changes->stacks.item));
		changes->stacks.item[changes->stacks.count] = (struct sl_page_change){.node = node};
		at = (uint32_t)++changes->stacks.count;
		sl_idmap_set(&changes->index, node, at);
	}
	*(after ? &changes->stacks.item[at - 1].after : &changes->stacks.item[at - 1].before) += bytes;
}

void sl_page_changes_add(struct sl_page_changes *changes, struct sl_process *process, bool after, double share)
{
	struct sl_stack_frame frames[SL_STACK_MAX];

	for (size_t i = 0; i < process->model->sites.count; i++) {
		const struct sl_site *site = &process->model->sites.item[i];
		uint64_t bytes = sl_model_site_at_peak(process->model, site);
		unsigned count;

		if (!bytes || !sl_owners_shows(process, site))
			continue;
		count = sl_process_stack(process, frames, site->python, site->native, site->caller);
		for (unsigned f = 0; f < count; f++) { /* lines shift, offsets change with every build */
			frames[f].line = 0;
			frames[f].offset = 0;
			frames[f].file = sl_stacks_basename(frames[f].file);
		}
		add(changes, sl_page_frames(&changes->page, sl_page_note(&changes->page, sl_model_library(process->model, site)), frames, count),
		    after, (double)bytes * share);
	}
}

static void put_spread(struct sl_page *page, const char *key, const struct sl_spread *spread)
{
	sl_page_key(page, key);
	if (!spread->count) {
		sl_pack_nil(&page->pack);
		return;
	}
	sl_pack_map(&page->pack, 3);
	sl_page_put_known(page, "min", spread->min);
	sl_page_put_known(page, "max", spread->max);
	sl_page_key(page, "mean");
	sl_pack_double(&page->pack, spread->mean);
}

static void put_rows(struct sl_page *page, const struct sl_differences *differences)
{
	sl_page_key(page, "differences");
	sl_pack_array(&page->pack, (uint32_t)differences->list.count);
	for (size_t i = 0; i < differences->list.count; i++) {
		const struct sl_difference *d = &differences->list.item[i];

		sl_pack_map(&page->pack, 7);
		sl_page_put_text(page, "of", sl_measure_names[d->of]);
		sl_page_put_text(page, "key", d->key);
		sl_page_put_text(page, "what", d->what);
		sl_page_put_text(page, "change", sl_change_names[d->change]);
		sl_page_key(page, "bytes");
		sl_pack_double(&page->pack, d->bytes);
		put_spread(page, "before", &d->before);
		put_spread(page, "after", &d->after);
	}
}

static void put_stacks(struct sl_page_changes *changes)
{
	size_t count = changes->stacks.count;
	uint32_t *node = calloc(count + 1, sizeof(*node));
	double *bytes[2] = {calloc(count + 1, sizeof(double)), calloc(count + 1, sizeof(double))};
	struct sl_pack *pack = &changes->page.pack;

	if (!node || !bytes[0] || !bytes[1])
		abort();
	for (size_t i = 0; i < count; i++) {
		node[i] = changes->stacks.item[i].node;
		bytes[0][i] = changes->stacks.item[i].before;
		bytes[1][i] = changes->stacks.item[i].after;
	}
	sl_page_key(&changes->page, "stacks");
	sl_pack_map(pack, 3);
	sl_page_key(&changes->page, "stack");
	sl_pack_column(pack, SL_PACK_U32, node, count);
	sl_page_key(&changes->page, "before");
	sl_pack_column(pack, SL_PACK_F64, bytes[0], count);
	sl_page_key(&changes->page, "after");
	sl_pack_column(pack, SL_PACK_F64, bytes[1], count);
	free(node);
	free(bytes[0]);
	free(bytes[1]);
}

void sl_page_changes_close(struct sl_page_changes *changes, const struct sl_differences *differences, char *const *paths,
			   const unsigned *counts)
{
	struct sl_page *page = &changes->page;

	sl_page_open(page, KEYS, "diff", "What changed", NULL, NULL);
	for (unsigned side = 0; side < 2; side++) {
		sl_page_key(page, side ? "after" : "before");
		sl_pack_array(&page->pack, counts[side]);
		for (unsigned i = 0; i < counts[side]; i++)
			sl_pack_string(&page->pack, paths[side ? counts[0] + i : i]);
	}
	put_rows(page, differences);
	put_stacks(changes);
	for (unsigned i = 0; i < 2; i++) { /* what search looks through */
		sl_page_key(page, i ? "libraries" : "warnings");
		sl_pack_array(&page->pack, 0);
	}
	sl_page_close(page);
}

void sl_page_changes_free(struct sl_page_changes *changes)
{
	sl_idmap_free(&changes->index);
	free(changes->stacks.item);
	sl_page_free(&changes->page);
}
