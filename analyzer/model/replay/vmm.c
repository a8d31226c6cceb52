/* SPDX-License-Identifier: MIT */
/*
 * Physical memory of cuMemCreate lives while it has a reference or a mapping.  The driver may reuse a handle's number once its
 * references are gone, though its mappings live on.  So mappings name the physical block by index, and a handle finds it only
 * while it is valid.
 */
#include "analyzer/model/replay/replay.h"

#include "analyzer/base/memory.h"
#include "analyzer/model/counts/tracks.h"

struct sl_vmm *sl_vmm_new(void)
{
	return sl_memory_must(calloc(1, sizeof(struct sl_vmm)));
}

void sl_vmm_free(struct sl_vmm *vmm)
{
	if (!vmm)
		return;
	sl_table_free(&vmm->handles);
	sl_table_free(&vmm->mappings);
	free(vmm->physical.item);
	free(vmm->unused.item);
	free(vmm->references.item);
	free(vmm);
}

bool sl_vmm_is_whole(const struct sl_vmm *vmm, const struct sl_live *mapping)
{
	const struct sl_physical *physical = mapping->owner < vmm->physical.count ? &vmm->physical.item[mapping->owner] : NULL;

	return physical && physical->mappings == 1 && physical->bytes == mapping->bytes;
}

void sl_vmm_pooled(struct sl_model *model, struct sl_live *mapping)
{
	struct sl_physical *physical = &model->vmm->physical.item[mapping->owner];

	mapping->site = physical->site = sl_ledger_pooled(model, physical->site, physical->bytes, physical->time_ns);
}

void sl_vmm_add(struct sl_model *model, const struct sl_event *event, uint32_t site)
{
	struct sl_vmm *vmm = model->vmm;
	struct sl_live *handle = sl_table_find(&vmm->handles, event->address);
	uint32_t index;

	if (vmm->unused.count) {
		index = vmm->unused.item[--vmm->unused.count];
	} else {
		SL_ROOM(&vmm->physical);
		index = (uint32_t)vmm->physical.count++;
	}
	vmm->physical.item[index] = (struct sl_physical){event->address, event->bytes, model->now_ns, site, 1, 0, 0};
	if (!handle)
		handle = sl_table_add(&vmm->handles, event->address);
	handle->refs = index;
}

static void end_if_unused(struct sl_model *model, uint32_t index)
{
	struct sl_vmm *vmm = model->vmm;
	struct sl_physical *physical = &vmm->physical.item[index];
	uint32_t site = physical->site;

	if (physical->refs || physical->mappings)
		return;
	physical->site = SL_NO_SITE;
	*SL_PUSH(&vmm->unused) = index;
	sl_ledger_end_block(model, site, physical->bytes, physical->time_ns, SL_END_FREE);
}

/* Retains a reference to the memory, and counts it as a block of the call's place. */
static void refer(struct sl_model *model, uint32_t index, const struct sl_event *event)
{
	struct sl_vmm *vmm = model->vmm;
	struct sl_physical *physical = &vmm->physical.item[index];
	uint32_t at = vmm->unused_reference, track;

	track = sl_tracks_of(model, event, SL_OBJECT_REFERENCE, model->sites.item[physical->site].device);
	physical->refs++;
	if (!at) {
		SL_ROOM(&vmm->references);
		at = (uint32_t)++vmm->references.count;
	} else {
		vmm->unused_reference = vmm->references.item[at - 1].older;
	}
	vmm->references.item[at - 1] = (struct sl_vmm_reference){model->now_ns, track, physical->newest};
	physical->newest = at;
	sl_tracks_birth(model, track, 0, (uint32_t)event->label);
}

/* Releases the reference that was retained last, since the trace does not say which one it is. */
static void unrefer(struct sl_model *model, struct sl_physical *physical)
{
	struct sl_vmm *vmm = model->vmm;
	struct sl_vmm_reference *newest = physical->newest ? &vmm->references.item[physical->newest - 1] : NULL;
	uint32_t at = physical->newest;

	physical->refs--;
	if (!newest)
		return;
	sl_tracks_death(model, newest->track, 0, newest->time_ns);
	physical->newest = newest->older;
	newest->older = vmm->unused_reference;
	vmm->unused_reference = at;
}

bool sl_vmm_release(struct sl_model *model, const struct sl_event *event)
{
	struct sl_vmm *vmm = model->vmm;
	struct sl_live *handle = sl_table_find(&vmm->handles, event->address);
	uint32_t index;

	if (!handle)
		return false;
	index = handle->refs;
	unrefer(model, &vmm->physical.item[index]);
	if (!vmm->physical.item[index].refs)
		sl_table_remove(&vmm->handles, handle);
	end_if_unused(model, index);
	return true;
}

/* Finds the memory of a handle that was obtained from an address after the last release: mappings had kept the memory. */
static bool revive(struct sl_model *model, const struct sl_event *event)
{
	struct sl_vmm *vmm = model->vmm;

	if (!sl_ledger_may_look(model, vmm->physical.count))
		return false;
	for (uint32_t i = (uint32_t)vmm->physical.count; i--;) {
		struct sl_physical *physical = &vmm->physical.item[i];

		if (physical->site == SL_NO_SITE || physical->handle != event->address || physical->refs)
			continue;
		refer(model, i, event);
		sl_table_add(&vmm->handles, event->address)->refs = i;
		return true;
	}
	return false;
}

static void retain(struct sl_model *model, const struct sl_event *event)
{
	struct sl_live *handle = sl_table_find(&model->vmm->handles, event->address), *mapping, *import;

	/* cuMemRetainAllocationHandle gets an address: if that is known, it decides */
	mapping = event->object ? sl_table_find(&model->vmm->mappings, event->object) : NULL;
	if (!event->address)
		return;
	if (mapping && mapping->owner != UINT64_MAX && !handle) {
		struct sl_physical *physical = &model->vmm->physical.item[mapping->owner];

		physical->handle = event->address;
		refer(model, (uint32_t)mapping->owner, event);
		sl_table_add(&model->vmm->handles, event->address)->refs = (uint32_t)mapping->owner;
	} else if (handle) {
		refer(model, handle->refs, event);
	} else if (!revive(model, event)) {
		import = sl_table_find(&model->imports, event->address);
		if (import)
			import->refs++;
	}
}

static void map(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_vmm *vmm = model->vmm;
	struct sl_live *handle = sl_table_find(&vmm->handles, event->object), *import = NULL, *mapping;

	if (!event->address || sl_table_find(&vmm->mappings, event->address))
		return;
	if (!handle)
		import = sl_table_find(&model->imports, event->object);
	if (import && !import->bytes) { /* the size of an imported handle is only known from its mapping */
		import->bytes = event->bytes;
		sl_ledger_sized(model, import->site, event->bytes);
	}
	mapping = sl_table_add(&vmm->mappings, event->address);
	mapping->bytes = event->bytes;
	mapping->time_ns = model->now_ns;
	mapping->thread = item->thread;
	mapping->owner = handle ? handle->refs : UINT64_MAX;
	mapping->site = handle ? vmm->physical.item[handle->refs].site : SL_NO_SITE;
	if (handle) {
		vmm->physical.item[handle->refs].mappings++;
		sl_torch_fresh(model, item->thread, &vmm->mappings, event->address, event->bytes);
	}
}

static void unmap_one(struct sl_model *model, struct sl_live *live)
{
	struct sl_live mapping = *live;

	sl_table_remove(&model->vmm->mappings, live);
	sl_memory_names_freed(model, mapping.address, mapping.bytes);
	if (mapping.flags & SL_LIVE_TORCH)
		sl_torch_release(model, model->sites.item[mapping.site].device, &mapping);
	if (mapping.owner == UINT64_MAX)
		return;
	model->vmm->physical.item[mapping.owner].mappings--;
	end_if_unused(model, (uint32_t)mapping.owner);
}

/* One call may unmap several adjacent mappings. */
static void unmap(struct sl_model *model, const struct sl_event *event)
{
	struct sl_vmm *vmm = model->vmm;
	uint64_t at = event->address, end = event->address + event->bytes;
	struct sl_live *mapping = sl_table_find(&vmm->mappings, at);

	while (mapping && at < end) {
		uint64_t bytes = mapping->bytes;

		unmap_one(model, mapping);
		at += bytes;
		mapping = bytes ? sl_table_find(&vmm->mappings, at) : NULL;
	}
	if (at < end) { /* there are gaps */
		struct sl_extent range = {.address = at, .bytes = end - at};

		while ((mapping = sl_table_next(&vmm->mappings, &range)))
			unmap_one(model, mapping);
	}
}

void sl_vmm_apply(struct sl_model *model, const struct sl_item *item)
{
	if (item->hook->verb == SL_VERB_MAP)
		map(model, item);
	else if (item->hook->verb == SL_VERB_UNMAP)
		unmap(model, item->event);
	else
		retain(model, item->event);
}
