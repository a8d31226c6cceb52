/* SPDX-License-Identifier: MIT */
/* Contexts and devices, and the implicit frees that come with their end. */
#include <string.h>

#include "analyzer/model/moments.h"
#include "analyzer/model/pending.h"
#include "analyzer/model/stacks.h"
#include "analyzer/model/verbs.h"

static uint64_t key_of_device(int device)
{
	return ~(uint64_t)(uint32_t)device; /* no context has such an address */
}

/* Graphs' memory, and what belongs to an unknown context, are their device's. */
uint64_t sl_owners_key(const struct sl_model *model, const struct sl_live *live)
{
	const struct sl_site *site = &model->sites.item[live->site];

	return site->kind == SL_KIND_graph || !live->owner ? key_of_device(site->device) : live->owner;
}

static void drop(struct sl_model *model, struct sl_table *table, uint64_t key)
{
	struct sl_tied_list gone = sl_tied_take(table, model, sl_owners_key, key);

	for (size_t i = 0; i < gone.addresses.count; i++) {
		struct sl_live *live = sl_table_find(table, gone.addresses.item[i]), block = *live;

		sl_table_remove(table, live);
		if (block.flags & SL_LIVE_TORCH)
			sl_torch_release(model, model->sites.item[block.site].device, &block);
		sl_ledger_end_block(model, block.site, block.bytes, block.time_ns, SL_END_IMPLICIT);
	}
	free(gone.addresses.item);
}

/* Ends the context.  `device`: the device whose primary context it is, else -1. */
static void drop_all(struct sl_model *model, uint64_t context, int device)
{
	struct sl_table *const tables[] = {&model->pointers, &model->arrays, &model->registered, &model->imports};

	for (size_t i = 0; i < SL_COUNT(tables); i++) {
		if (context)
			drop(model, tables[i], context);
		if (device >= 0)
			drop(model, tables[i], key_of_device(device));
	}
}

/* What the call cost in addition to what it returned, where free memory was asked before and after it. */
static uint64_t cost(const struct sl_event *event)
{
	return event->extra && event->extra2 && event->extra > event->extra2 ? event->extra - event->extra2 : 0;
}

/* Modules are many and small: only one that was seen to cost memory gets a mark. */
static void mark(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct sl_mark mark = {
		.time_ns = model->now_ns, .bytes = cost(event), .device = (int)event->device, .api = (uint16_t)event->api};

	switch (item->hook->verb) {
	case SL_VERB_PRIMARY_RETAIN:
		if (!mark.bytes)
			return; /* only one more reference to an existing context */
		break;
	case SL_VERB_CONTEXT_CREATE:
		break;
	case SL_VERB_MODULE_LOAD:
	case SL_VERB_CODE_LOAD:
		if (mark.bytes < 16u << 20)
			return;
		mark.kind = SL_MARK_MODULE;
		break;
	case SL_VERB_DEVICE_RESET:
		mark.kind = SL_MARK_RESET;
		break;
	default:
		return;
	}
	sl_moments_mark(&model->moments, mark);
}

/* The module whose code a call loaded; a context is its own. */
static uint64_t costly(const struct sl_item *item)
{
	switch (item->hook->verb) {
	case SL_VERB_CONTEXT_CREATE:
		return item->event->context;
	case SL_VERB_CODE_LOAD:
		return item->event->object;
	default:
		return item->event->address;
	}
}

static uint64_t *bytes_of(struct sl_device_state *device, enum sl_hidden_what what)
{
	return what == SL_HIDDEN_CONTEXT ? &device->context_bytes : &device->module_bytes;
}

/* The module or context ends, and what is in the context. */
static void end_costs(struct sl_model *model, uint64_t handle)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->costs.count; i++) {
		struct sl_cost one = model->costs.item[i];
		struct sl_device_state *device;

		if (!handle || (one.handle != handle && one.owner != handle)) {
			model->costs.item[kept++] = one;
			continue;
		}
		device = sl_ledger_device(model, one.device);
		sl_pending_code(model, device);
		device->parts.item[one.part].bytes -= one.bytes;
		*bytes_of(device, device->parts.item[one.part].what) -= one.bytes;
	}
	model->costs.count = kept;
}

static void drop_costs(struct sl_model *model, int device)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->costs.count; i++)
		if (model->costs.item[i].device != device)
			model->costs.item[kept++] = model->costs.item[i];
	model->costs.count = kept;
}

static void add_part(struct sl_model *model, struct sl_device_state *device, const struct sl_item *item, enum sl_hidden_what what)
{
	const struct sl_event *event = item->event;
	const char *library = what == SL_HIDDEN_CONTEXT ? NULL
							: sl_stacks_library(model->defs, model->header, (uint32_t)event->python,
									    (uint32_t)event->native, event->caller);
	uint64_t bytes = cost(event);
	size_t at = 0;

	if (!bytes)
		return;
	*bytes_of(device, what) += bytes;
	while (at < device->parts.count &&
	       (device->parts.item[at].what != what || (library && strcmp(device->parts.item[at].library, library))))
		at++;
	if (at == device->parts.count) {
		device->parts.item = sl_arena_grow(device->parts.item, &device->parts.capacity, at, sizeof(*device->parts.item));
		device->parts.item[device->parts.count++] = (struct sl_hidden_part){
			.what = what,
			.library = library ? sl_arena_strdup(&model->arena, library) : NULL,
			.first = sl_labels_instant(model, item->thread),
		};
	}
	device->parts.item[at].bytes += bytes;
	device->parts.item[at].count++;
	*SL_PUSH(&model->costs) =
		(struct sl_cost){.handle = costly(item),
				 .owner = event->context ? event->context : sl_ledger_thread(model, item->thread)->context,
				 .bytes = bytes,
				 .device = device->device,
				 .part = (uint32_t)at};
}

static void drop_parts(struct sl_model *model, struct sl_device_state *device)
{
	drop_costs(model, device->device);
	device->context_bytes = device->module_bytes = 0;
	device->parts.count = device->context_sampled = 0;
	device->context_made.time_ns = 0;
}

void sl_owners_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	const struct sl_thread_state *thread = sl_ledger_thread(model, item->thread);
	/* cudaDeviceReset names no device: it resets the thread's current one */
	int64_t ordinal = event->device >= 0 ? event->device : thread->device;
	struct sl_device_state *device = sl_ledger_device(model, ordinal);

	sl_pending_code(model, device);
	mark(model, item);
	if ((item->hook->verb == SL_VERB_PRIMARY_RETAIN || item->hook->verb == SL_VERB_CONTEXT_CREATE) &&
	    !device->context_made.time_ns) {
		device->context_made = sl_labels_instant(model, item->thread);
		device->context_python = (uint32_t)event->python;
		device->context_native = (uint32_t)event->native;
		device->context_caller = event->caller;
	}
	switch (item->hook->verb) {
	case SL_VERB_PRIMARY_RETAIN:
		if (event->context)
			device->primary = event->context;
		break;
	case SL_VERB_CONTEXT_CREATE:
		add_part(model, device, item, SL_HIDDEN_CONTEXT);
		break;
	case SL_VERB_MODULE_LOAD:
	case SL_VERB_CODE_LOAD:
		add_part(model, device, item, SL_HIDDEN_CODE);
		break;
	case SL_VERB_MODULE_UNLOAD:
		end_costs(model, event->address);
		break;
	case SL_VERB_CONTEXT_DESTROY:
		drop_all(model, event->context ? event->context : thread->context, -1);
		end_costs(model, event->context ? event->context : thread->context);
		break;
	case SL_VERB_PRIMARY_RELEASE:
		if (event->extra != 1)
			break;
		drop_all(model, event->context ? event->context : device->primary, (int)ordinal);
		drop_parts(model, device);
		break;
	case SL_VERB_DEVICE_RESET:
		drop_all(model, event->context ? event->context : device->primary, (int)ordinal);
		drop_parts(model, device);
		break;
	default:
		break;
	}
}
