/* SPDX-License-Identifier: MIT */
#include "analyzer/report/owners.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/report/devices.h"
#include "analyzer/report/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t push(struct sl_owners *owners, const char *name)
{
	SL_ROOM(&owners->share);
	owners->share.item[owners->share.count] = (struct sl_share){.name = name};
	return (uint32_t)owners->share.count++;
}

void sl_owners_init(struct sl_owners *owners)
{
	*owners = (struct sl_owners){0};
	push(owners, "");
}

void sl_owners_free(struct sl_owners *owners)
{
	free(owners->share.item);
	sl_idmap_free(&owners->children);
	sl_map_free(&owners->names);
}

/* The child with that name, which is made where missing. */
static uint32_t child_of(struct sl_owners *owners, uint32_t parent, const char *name)
{
	uint64_t key;
	uint32_t at;

	name = sl_map_intern(&owners->names, name);
	key = sl_map_mix_two(parent, (uintptr_t)name);
	for (; (at = sl_idmap_get(&owners->children, key, 0)); key = sl_map_mix(key + 1)) /* another child has this key */
		if (owners->share.item[at].parent == parent && owners->share.item[at].name == name)
			return at;
	at = push(owners, name);
	sl_idmap_set(&owners->children, key, at);
	owners->share.item[at].parent = parent;
	owners->share.item[at].sibling = owners->share.item[parent].child;
	owners->share.item[parent].child = at;
	return at;
}

uint32_t sl_owners_add(struct sl_owners *owners, const char *const *names, unsigned count, uint64_t bytes, uint64_t blocks)
{
	uint32_t at = 0;

	for (unsigned i = 0;; i++) {
		owners->share.item[at].bytes += bytes;
		owners->share.item[at].blocks += blocks;
		if (i == count)
			return at;
		at = child_of(owners, at, names[i]);
	}
}

static int by_bytes(const void *a, const void *b, void *shares)
{
	const struct sl_share *x = (struct sl_share *)shares + *(const uint32_t *)a;
	const struct sl_share *y = (struct sl_share *)shares + *(const uint32_t *)b;

	return SL_FALLING(x->bytes, y->bytes) ?: strcmp(x->name, y->name);
}

void sl_owners_sort(struct sl_owners *owners)
{
	uint32_t *order = sl_memory_must(calloc(owners->share.count, sizeof(*order)));

	for (size_t i = 0; i < owners->share.count; i++) {
		struct sl_share *share = &owners->share.item[i];
		size_t count = 0;

		for (uint32_t at = share->child; at; at = owners->share.item[at].sibling)
			order[count++] = at;
		if (!count)
			continue;
		qsort_r(order, count, sizeof(*order), by_bytes, owners->share.item);
		share->child = order[0];
		for (size_t k = 0; k < count; k++)
			owners->share.item[order[k]].sibling = k + 1 < count ? order[k + 1] : 0;
	}
	free(order);
}

/*
 * Callers worth naming behind a frame that is not the program's own: of the program's language, and not ones that only pass
 * calls on.
 */
static bool tells_more(const struct sl_stack_frame *frame, const struct sl_stack_frame *chosen)
{
	if (frame->python != chosen->python)
		return false;
	if (frame->python)
		return !sl_stacks_is_installed(frame->file) || sl_stacks_is_installed(chosen->file);
	return frame->function && frame->module && !frame->passes_on;
}

static bool append(char *out, size_t size, size_t *at, const char *between, const struct sl_stack_frame *frame)
{
	char one[256];

	sl_stacks_describe(one, sizeof(one), frame);
	if (*at + strlen(one) + strlen(between) + 1 > size)
		return false;
	*at += (size_t)snprintf(out + *at, size - *at, "%s%s", *at ? between : "", one);
	return true;
}

static size_t folder_of(const struct sl_stack_frame *frame)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

	return slash ? (size_t)(slash - frame->file) : 0;
}

static bool is_beside(const struct sl_stack_frame *a, const struct sl_stack_frame *b)
{
	return a->file && b->file && folder_of(a) == folder_of(b) && !memcmp(a->file, b->file, folder_of(a));
}

unsigned sl_owners_shorten(const struct sl_stack_frame **chain, unsigned given, unsigned frames)
{
	const struct sl_stack_frame *begin = chain[given - 1];
	const char *file = chain[0]->file;
	unsigned other = 1, neighbour = 0;

	while (file && other < given && (!chain[other]->file || !strcmp(chain[other]->file, file)))
		other++;
	while (neighbour < given - 1 && !is_beside(chain[neighbour], begin))
		neighbour++;
	if (file && frames > 1 && other >= frames && other < given)
		chain[frames - 1] = chain[other];
	if (frames < 2 || !begin->file || neighbour < frames || is_beside(chain[frames - 1], begin))
		return frames;
	chain[frames] = chain[neighbour];
	return frames + 1;
}

void sl_owners_line(struct sl_process *process, struct sl_stack stack, unsigned frames, char *out, size_t size)
{
	struct sl_stack_frame all[SL_STACK_MAX];
	const struct sl_stack_frame *chain[SL_STACK_MAX], *via[SL_PLACE_VIA];
	unsigned count = sl_process_stack(process, all, stack), given, via_count;
	size_t at = 0;

	out[0] = 0;
	given = sl_place_chain(process, all, count, chain, SL_STACK_MAX, via, &via_count);
	if (given > frames)
		given = sl_owners_shorten(chain, given, frames);
	for (unsigned i = 0; i < given && append(out, size, &at, " < ", chain[i]); i++)
		;
	for (unsigned i = 0; i < via_count; i++)
		append(out, size, &at, i ? ", " : " via ", via[i]);
	for (const struct sl_stack_frame *frame = given == 1 && !chain[0]->own ? chain[0] + 1 : all + count;
	     frame < all + count && given < frames; frame++)
		given += tells_more(frame, chain[0]) && append(out, size, &at, " < ", frame);
}

bool sl_owners_shows(const struct sl_process *process, const struct sl_site *site)
{
	if (site->kind == SL_KIND_block && site->device < 0 && sl_devices_held(process))
		return false;
	return sl_model_in_use(process->model, site);
}

const struct sl_site *sl_owners_next(const struct sl_process *process, int device, enum sl_weigh weigh, const struct sl_site *site,
				     uint64_t *bytes)
{
	const struct sl_model *model = process->model;

	for (size_t i = site ? (size_t)(site - model->sites.item) + 1 : 0; i < model->sites.count; i++) {
		site = &model->sites.item[i];
		if (device != SL_DEVICE_ANY && site->device != device)
			continue;
		*bytes = weigh == SL_WEIGH_PEAK	  ? sl_model_site_at_peak(model, site)
			 : weigh == SL_WEIGH_LIVE ? site->live_bytes
						  : site->total_bytes;
		if ((*bytes || weigh == SL_WEIGH_ANY) && sl_owners_shows(process, site))
			return site;
	}
	return NULL;
}

const struct sl_owner *sl_owners_at_error(const struct sl_process *process, const struct sl_oom *oom, const struct sl_owner *owner,
					  const struct sl_site **site)
{
	owner = owner ? owner + 1 : oom->owners;
	*site = owner < oom->owners + oom->owner_count ? &process->model->sites.item[owner->site] : NULL;
	return *site ? owner : NULL;
}
