/* SPDX-License-Identifier: MIT */
#include "analyzer/model/counts/moments.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

#define FIRST_WIDTH_NS 65536

static int by_bytes(const void *a, const void *b)
{
	const struct sl_moment_site *x = a, *y = b;

	return SL_FALLING(x->bytes, y->bytes) ?: SL_RISING(x->site, y->site);
}

static void put(uint64_t **list, uint32_t *count, unsigned slot, uint64_t bytes)
{
	*list = sl_memory_must(realloc(*list, slot * sizeof(**list)));
	while (*count < slot)
		(*list)[(*count)++] = 0;
	(*list)[slot - 1] = bytes;
}

static void put_unused(struct sl_moment *moment, unsigned slot, const struct sl_torch *torch)
{
	if (torch->reserved_bytes > torch->allocated_bytes)
		put(&moment->unused_bytes, &moment->unused_count, slot, torch->reserved_bytes - torch->allocated_bytes);
	if (torch->graph_reserved_bytes > torch->graph_allocated_bytes)
		put(&moment->graph_bytes, &moment->graph_count, slot, torch->graph_reserved_bytes - torch->graph_allocated_bytes);
}

static void free_moment(struct sl_moment *moment)
{
	free(moment->sites);
	free(moment->unused_bytes);
	free(moment->graph_bytes);
}

static void fill(const struct sl_model *model, struct sl_moment *moment)
{
	size_t count = 0;
	struct sl_moment_site *sites;

	for (size_t i = 0; i < model->sites.count; i++)
		count += model->sites.item[i].live_bytes != 0;
	sites = sl_memory_must(malloc((count + 1) * sizeof(*sites)));
	count = 0;
	for (uint32_t i = 0; i < model->sites.count; i++)
		if (model->sites.item[i].live_bytes)
			sites[count++] =
				(struct sl_moment_site){i, model->sites.item[i].live_bytes, model->sites.item[i].live_blocks};
	qsort(sites, count, sizeof(*sites), by_bytes);
	for (size_t i = SL_MOMENT_SITES_MAX; i < count; i++) {
		moment->rest_bytes += sites[i].bytes;
		moment->rest_blocks += sites[i].blocks;
	}
	moment->count = count < SL_MOMENT_SITES_MAX ? (uint32_t)count : SL_MOMENT_SITES_MAX;
	moment->sites = realloc(sites, (moment->count + 1) * sizeof(*sites));
	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = model->devices[d];

		if (!device)
			continue;
		moment->known_bytes += device->known_bytes;
		if (d && d <= SL_MOMENT_DEVICES_MAX)
			put_unused(moment, d, &device->torch);
	}
}

static void drop(struct sl_segments *segments)
{
	free(segments->segment);
	free(segments->block);
	*segments = (struct sl_segments){0};
}

static void keep_largest(const struct sl_model *model, struct sl_moments *moments, uint64_t time_ns)
{
	for (unsigned d = 0; d <= SL_DEVICES_MAX; d++) {
		const struct sl_device_state *device = model->devices[d];

		if (!device || !device->torch.used || device->known_bytes <= moments->largest_bytes)
			continue;
		moments->largest_bytes = device->known_bytes;
		drop(&moments->largest);
		sl_moments_segments(model, device->device, &moments->largest);
		moments->largest.time_ns = time_ns;
	}
}

static void halve(struct sl_moments *moments)
{
	size_t kept_count = 0;

	moments->width_ns *= 2;
	for (size_t i = 0; i < moments->count; i++) /* one of each stretch: of a program that sleeps, few are at its begin */
		if (kept_count &&
		    moments->moment[i].time_ns / moments->width_ns == moments->moment[kept_count - 1].time_ns / moments->width_ns)
			free_moment(&moments->moment[i]);
		else
			moments->moment[kept_count++] = moments->moment[i];
	moments->count = kept_count;
}

void sl_moments_take(struct sl_model *model, uint64_t time_ns)
{
	struct sl_moments *moments = &model->moments;
	uint64_t at;

	if (!moments->width_ns) {
		moments->width_ns = FIRST_WIDTH_NS;
		moments->next_ns = time_ns - time_ns % FIRST_WIDTH_NS + FIRST_WIDTH_NS;
		return;
	}
	while (moments->count == SL_MOMENTS_MAX ||
	       (moments->count && (time_ns - moments->moment[0].time_ns) / moments->width_ns > SL_MOMENTS_MAX * 2))
		halve(moments);
	at = time_ns - time_ns % moments->width_ns; /* what is live now was live at `at` */
	if (at >= moments->next_ns) {
		moments->moment = sl_arena_grow(moments->moment, &moments->capacity, moments->count, sizeof(*moments->moment));
		moments->moment[moments->count] = (struct sl_moment){.time_ns = at};
		fill(model, &moments->moment[moments->count++]);
		keep_largest(model, moments, at);
	}
	moments->next_ns = at + moments->width_ns;
}

void sl_moments_mark(struct sl_moments *moments, struct sl_mark mark)
{
	if (moments->marks.count < SL_MARKS_MAX)
		*SL_PUSH(&moments->marks) = mark;
}

void sl_moments_step(struct sl_steps *steps, uint64_t time_ns, uint64_t number)
{
	if (!steps->item) {
		steps->item = sl_memory_must(malloc(SL_STEPS_MAX * sizeof(*steps->item)));
		steps->stride = 1;
	}
	if (++steps->skipped < steps->stride && steps->count)
		return;
	steps->skipped = 0;
	if (steps->count == SL_STEPS_MAX) {
		for (uint32_t i = 0; i < SL_STEPS_MAX / 2; i++)
			steps->item[i] = steps->item[i * 2];
		steps->count /= 2;
		steps->stride *= 2;
	}
	steps->item[steps->count++] = (struct sl_step){time_ns, number};
}

void sl_moments_free(struct sl_moments *moments)
{
	for (unsigned i = 0; i < moments->count; i++)
		free_moment(&moments->moment[i]);
	free(moments->moment);
	free(moments->marks.item);
	drop(&moments->largest);
	drop(&moments->at_oom);
	for (size_t i = 0; i < moments->at_end.count; i++)
		drop(&moments->at_end.item[i]);
	free(moments->at_end.item);
}

/* ---- segments */

static int by_address(const void *a, const void *b)
{
	const struct sl_piece *x = a, *y = b;

	return SL_RISING(x->address, y->address);
}

static struct sl_piece *pieces(const struct sl_model *model, const struct sl_table *table, int device, bool torch_only,
			       uint32_t *count)
{
	struct sl_piece *list = NULL;

	SL_TABLE_EACH(table, live)
	{
		if (live->site == SL_NO_SITE || model->sites.item[live->site].device != device ||
		    (torch_only && !(live->flags & SL_LIVE_TORCH)))
			continue;
		if (!(*count & (*count + 1))) /* the capacity is a power of two */
			list = sl_memory_must(realloc(list, (size_t)(*count + 1) * 2 * sizeof(*list)));
		list[(*count)++] = (struct sl_piece){live->address, live->bytes, live->site};
	}
	return list;
}

/* Adjacent mappings are one segment. */
static void join(struct sl_piece *list, uint32_t *count)
{
	uint32_t last = 0;

	for (uint32_t i = 1; i < *count; i++)
		if (list[last].address + list[last].bytes == list[i].address)
			list[last].bytes += list[i].bytes;
		else
			list[++last] = list[i];
	*count = *count ? last + 1 : 0;
}

void sl_moments_segments(const struct sl_model *model, int device, struct sl_segments *segments)
{
	struct sl_piece *mapped = NULL;
	uint32_t mapped_count = 0;

	*segments = (struct sl_segments){.time_ns = model->now_ns, .device = device};
	segments->segment = pieces(model, &model->pointers, device, true, &segments->segment_count);
	mapped = pieces(model, sl_vmm_mappings(model->vmm), device, true, &mapped_count);
	if (mapped_count) {
		qsort(mapped, mapped_count, sizeof(*mapped), by_address);
		join(mapped, &mapped_count);
		segments->segment = sl_memory_must(
			realloc(segments->segment, (size_t)(segments->segment_count + mapped_count) * sizeof(*mapped)));
		memcpy(segments->segment + segments->segment_count, mapped, mapped_count * sizeof(*mapped));
		segments->segment_count += mapped_count;
	}
	free(mapped);
	segments->block = pieces(model, &model->blocks, device, false, &segments->block_count);
	if (segments->segment_count)
		qsort(segments->segment, segments->segment_count, sizeof(*segments->segment), by_address);
	if (segments->block_count)
		qsort(segments->block, segments->block_count, sizeof(*segments->block), by_address);
	if (segments->block_count > SL_PIECES_MAX) {
		segments->left_out = segments->block_count - SL_PIECES_MAX;
		segments->block_count = SL_PIECES_MAX;
	}
}

void sl_moments_end_segments(struct sl_model *model)
{
	for (int d = 0; d <= SL_DEVICES_MAX; d++) {
		struct sl_segments end;

		if (!model->devices[d] || !model->devices[d]->torch.used)
			continue;
		sl_moments_segments(model, d - 1, &end);
		if (end.segment_count)
			*SL_PUSH(&model->moments.at_end) = end;
		else
			drop(&end);
	}
}
