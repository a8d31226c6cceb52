/* SPDX-License-Identifier: MIT */
#include "analyzer/model/model.h"

#include <string.h>

#include "analyzer/model/stacks.h"
#include "common/base.h"

struct sl_model *sl_model_new(const struct sl_header *header, const struct sl_defs *defs)
{
	struct sl_model *model = calloc(1, sizeof(*model));

	if (!model)
		abort();
	model->header = header;
	model->defs = defs;
	model->apis = calloc(header->hook_count + 1, sizeof(*model->apis));
	model->site_mask = 255;
	model->site_slots = malloc(256 * sizeof(*model->site_slots));
	if (!model->apis || !model->site_slots)
		abort();
	memset(model->site_slots, 0xff, 256 * sizeof(*model->site_slots));
	model->vmm = sl_vmm_new();
	model->graphs = sl_graphs_new();
	model->host = (struct sl_host){SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, SL_UNKNOWN, NULL, NULL};
	return model;
}

void sl_model_free(struct sl_model *model)
{
	if (!model)
		return;
	sl_table_free(&model->pointers);
	sl_table_free(&model->arrays);
	sl_table_free(&model->registered);
	sl_table_free(&model->imports);
	sl_table_free(&model->blocks);
	sl_vmm_free(model->vmm);
	sl_graphs_free(model->graphs);
	for (size_t i = 0; i < SL_COUNT(model->devices); i++)
		if (model->devices[i]) {
			free(model->devices[i]->parts.item);
			free(model->devices[i]->neighbours.item);
			free(model->devices[i]);
		}
	for (size_t i = 0; i < model->threads.count; i++)
		if (model->threads.item[i]) {
			free(model->threads.item[i]->ranges.item);
			free(model->threads.item[i]);
		}
	free(model->threads.item);
	free(model->called.item);
	free(model->called_parts.item);
	free(model->sites.item);
	free(model->site_slots);
	free(model->holders.item);
	free(model->libraries.item);
	free(model->apis);
	for (size_t i = 0; i < model->labels.count; i++) {
		free(model->labels.item[i].steps.item);
		free(model->labels.item[i].early.bytes);
		free(model->labels.item[i].late.bytes);
	}
	free(model->labels.item);
	free(model->labelled.item);
	sl_idmap_free(&model->label_ids);
	free(model->ooms.item);
	free(model->traffic.item);
	free(model->in_flight.item);
	sl_timeline_free(&model->timeline);
	sl_moments_free(&model->moments);
	sl_arena_free(&model->arena);
	free(model);
}

/* Ordinals that make no sense share the row of the unknown device. */
static unsigned slot_of(int64_t device)
{
	return device < 0 || device >= SL_DEVICES_MAX ? 0 : (unsigned)device + 1;
}

struct sl_device_state *sl_model_device(struct sl_model *model, int64_t device)
{
	unsigned slot = slot_of(device);
	struct sl_device_state *state = model->devices[slot];

	if (SL_LIKELY(state))
		return state;
	state = calloc(1, sizeof(*state));
	if (!state)
		abort();
	state->device = (int)slot - 1;
	state->used_peak_bytes = state->used_last_bytes = SL_UNKNOWN;
	state->hidden_peak_bytes = state->hidden_last_bytes = SL_UNKNOWN;
	state->total_bytes = state->sampled.known = SL_UNKNOWN;
	model->devices[slot] = state;
	return state;
}

struct sl_row *sl_model_row(struct sl_model *model, unsigned kind, int64_t device)
{
	struct sl_row *row = &model->rows[kind][sl_event_kinds[kind].on_host ? 0 : slot_of(device)];

	if (SL_UNLIKELY(!row->used)) {
		row->used = true;
		row->line = sl_timeline_add(&model->timeline, SL_LINE_KIND,
					    sl_event_kinds[kind].on_host ? -1 : (int)slot_of(device) - 1, (int)kind);
	}
	return row;
}

struct sl_thread_state *sl_model_thread(struct sl_model *model, uint32_t thread)
{
	if (thread > 1u << 20) /* only a damaged trace has such ids */
		thread = 1u << 20;
	while (model->threads.count <= thread) {
		model->threads.item = sl_arena_grow(model->threads.item, &model->threads.capacity, model->threads.count,
						    sizeof(*model->threads.item));
		model->threads.item[model->threads.count++] = NULL;
	}
	if (!model->threads.item[thread]) {
		model->threads.item[thread] = calloc(1, sizeof(struct sl_thread_state));
		if (!model->threads.item[thread])
			abort();
		model->threads.item[thread]->device = -1;
	}
	return model->threads.item[thread];
}

/* ---- sites */

static uint64_t site_hash(const struct sl_site *key)
{
	uint64_t h = sl_hash64(key->caller ^ (uint64_t)key->python << 32 ^ key->native);

	h = (h + ((uint64_t)key->label << 32 | key->thread)) * 0xff51afd7ed558ccdull;
	h ^= (uint64_t)key->api << 32 | (uint64_t)(uint16_t)key->device << 8 | key->kind;
	return sl_hash64(h * 0xc4ceb9fe1a85ec53ull);
}

static bool same_site(const struct sl_site *a, const struct sl_site *b)
{
	return a->caller == b->caller && a->python == b->python && a->native == b->native && a->label == b->label &&
	       a->thread == b->thread && a->api == b->api && a->device == b->device && a->kind == b->kind;
}

static void grow_sites(struct sl_model *model)
{
	model->site_mask = model->site_mask * 2 + 1;
	free(model->site_slots);
	model->site_slots = malloc(((size_t)model->site_mask + 1) * sizeof(*model->site_slots));
	if (!model->site_slots)
		abort();
	memset(model->site_slots, 0xff, ((size_t)model->site_mask + 1) * sizeof(*model->site_slots));
	for (uint32_t s = 0; s < model->sites.count; s++) {
		uint32_t i = (uint32_t)site_hash(&model->sites.item[s]) & model->site_mask;

		while (model->site_slots[i] != UINT32_MAX)
			i = (i + 1) & model->site_mask;
		model->site_slots[i] = s;
	}
}

static uint32_t holder_of(struct sl_model *model, const char *library, int device)
{
	uint32_t l = 0, h = 0;

	while (l < model->libraries.count && strcmp(model->libraries.item[l], library))
		l++;
	if (l == model->libraries.count) {
		model->libraries.item = sl_arena_grow(model->libraries.item, &model->libraries.capacity, model->libraries.count,
						      sizeof(*model->libraries.item));
		model->libraries.item[model->libraries.count++] = sl_arena_strdup(&model->arena, library);
	}
	while (h < model->holders.count && (model->holders.item[h].library != l || model->holders.item[h].device != device))
		h++;
	if (h == model->holders.count) {
		model->holders.item = sl_arena_grow(model->holders.item, &model->holders.capacity, model->holders.count,
						    sizeof(*model->holders.item));
		model->holders.item[model->holders.count++] = (struct sl_holder){.library = l, .device = device};
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
		model->labelled.item = sl_arena_grow(model->labelled.item, &model->labelled.capacity, model->labelled.count,
						     sizeof(*model->labelled.item));
		model->labelled.item[model->labelled.count++] = (struct sl_labelled){.text = text, .device = device};
	}
	return (uint32_t)i;
}

static uint32_t new_site(struct sl_model *model, const struct sl_site *key)
{
	struct sl_site *site;
	const char *library = key->kind == SL_KIND_block
				      ? "PyTorch tensors"
				      : sl_stacks_library(model->defs, model->header, key->python, key->native, key->caller);

	model->sites.item = sl_arena_grow(model->sites.item, &model->sites.capacity, model->sites.count, sizeof(*site));
	site = &model->sites.item[model->sites.count];
	*site = *key;
	site->holder = holder_of(model, library, key->device);
	site->labelled = sl_model_is_known(key->kind) ? labelled_of(model, key->label, key->device) : SL_NO_SITE;
	return (uint32_t)model->sites.count++;
}

uint32_t sl_model_site(struct sl_model *model, const struct sl_event *event, uint32_t thread, unsigned kind, int device)
{
	struct sl_site key = {
		.caller = event->caller,
		.python = (uint32_t)event->python,
		.native = (uint32_t)event->native,
		.label = (uint32_t)event->label,
		.thread = thread,
		.api = (uint16_t)event->api,
		.device = (int16_t)((int)slot_of(device) - 1),
		.kind = (uint8_t)kind,
	};
	uint32_t i = (uint32_t)site_hash(&key) & model->site_mask, at;

	if (sl_event_kinds[kind].on_host)
		key.device = -1, i = (uint32_t)site_hash(&key) & model->site_mask;
	for (; (at = model->site_slots[i]) != UINT32_MAX; i = (i + 1) & model->site_mask)
		if (same_site(&model->sites.item[at], &key))
			return at;
	at = new_site(model, &key);
	if (model->sites.count > model->site_mask / 4 * 3)
		grow_sites(model);
	else
		model->site_slots[i] = at;
	return at;
}

bool sl_model_in_use(const struct sl_model *model, const struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[site->device + 1];

	if (site->kind == SL_KIND_block)
		return true;
	return sl_model_is_known(site->kind) && !(device && device->torch.used && strstr(sl_model_library(model, site), "c10_"));
}

uint64_t sl_model_site_at_peak(const struct sl_model *model, const struct sl_site *site)
{
	const struct sl_device_state *device = model->devices[slot_of(site->device)];

	return device && site->epoch == device->epoch ? site->at_peak_bytes : site->live_bytes;
}

/* Before a site changes: if its device's peak is newer than what it saved, it still holds what it held then. */
static inline void save_at_peak(struct sl_site *site, const struct sl_device_state *device)
{
	if (site->epoch != device->epoch) {
		site->at_peak_bytes = site->live_bytes;
		site->at_peak_blocks = site->live_blocks;
		site->epoch = device->epoch;
	}
}

static void change_labelled(struct sl_model *model, struct sl_labelled *labelled, uint32_t which, uint32_t site, int64_t bytes)
{
	labelled->live_bytes += (uint64_t)bytes;
	if (SL_UNLIKELY(!labelled->line))
		labelled->line = sl_timeline_add(&model->timeline, SL_LINE_LABEL, labelled->device, (int)which);
	sl_timeline_set(&model->timeline, labelled->line, model->now_ns, labelled->live_bytes, site);
}

static void change_known(struct sl_model *model, struct sl_site *site, struct sl_device_state *device, uint32_t index,
			 int64_t bytes)
{
	struct sl_holder *holder = &model->holders.item[site->holder];
	uint64_t now = model->now_ns;

	device->used = true;
	sl_samples_change(model, device, bytes);
	device->known += (uint64_t)bytes;
	device->recent[device->changes % SL_RECENT].end_ns = model->call_end_ns;
	device->recent[device->changes++ % SL_RECENT].known = device->known;
	if (SL_UNLIKELY(!device->line))
		device->line = sl_timeline_add(&model->timeline, SL_LINE_KNOWN, device->device, 0);
	sl_timeline_set(&model->timeline, device->line, now, device->known, index);
	if (device->known > device->known_peak) {
		device->known_peak = device->known;
		device->known_peak_ns = now;
		device->torch_at_peak = device->torch;
		device->epoch++;
	}
	holder->live_bytes += (uint64_t)bytes;
	if (SL_UNLIKELY(!holder->line))
		holder->line = sl_timeline_add(&model->timeline, SL_LINE_LIBRARY, holder->device, (int)holder->library);
	sl_timeline_set(&model->timeline, holder->line, now, holder->live_bytes, index);
	if (holder->live_bytes > holder->peak_bytes)
		holder->peak_bytes = holder->live_bytes;
	if (site->labelled != SL_NO_SITE)
		change_labelled(model, &model->labelled.item[site->labelled], site->labelled, index, bytes);
	model->in_use += bytes;
	model->held += bytes;
	if (model->held > model->held_max)
		model->held_max = model->held;
	if (!model->torch_seen && model->in_use > model->in_use_max)
		model->in_use_max = model->in_use;
}

void sl_model_begin_block(struct sl_model *model, uint32_t index, uint64_t bytes)
{
	struct sl_site *site = &model->sites.item[index];
	struct sl_device_state *device = sl_model_device(model, site->device);
	struct sl_row *row = sl_model_row(model, site->kind, site->device);

	save_at_peak(site, device);
	site->live_bytes += bytes;
	site->live_blocks++;
	site->total_bytes += bytes;
	site->total_blocks++;
	row->allocations++;
	row->allocated_bytes += bytes;
	row->live_blocks++;
	row->live_bytes += bytes;
	sl_timeline_set(&model->timeline, row->line, model->now_ns, row->live_bytes, index);
	if (row->live_bytes > row->peak_bytes) {
		row->peak_bytes = row->live_bytes;
		row->peak_at_ns = model->now_ns;
	}
	if (!sl_model_is_known(site->kind))
		return;
	change_known(model, site, device, index, (int64_t)bytes);
	if (!model->torch_seen) {
		model->made_bytes += bytes;
		model->made_blocks++;
	}
}

void sl_model_end_block(struct sl_model *model, uint32_t index, uint64_t bytes, enum sl_end how)
{
	struct sl_site *site = &model->sites.item[index];
	struct sl_device_state *device = sl_model_device(model, site->device);
	struct sl_row *row = sl_model_row(model, site->kind, site->device);

	save_at_peak(site, device);
	site->live_bytes -= bytes;
	site->live_blocks--;
	row->live_blocks--;
	row->live_bytes -= bytes;
	if (how == SL_END_FREE)
		row->frees++;
	else
		row->implicit_frees++;
	sl_timeline_set(&model->timeline, row->line, model->now_ns, row->live_bytes, index);
	if (!sl_model_is_known(site->kind))
		return;
	change_known(model, site, device, index, -(int64_t)bytes);
	if (!model->torch_seen) {
		model->gone_bytes += bytes;
		model->gone_blocks++;
	}
}

/* ---- one item */

static void apply_event(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_hook *hook = item->hook;
	struct sl_api_stats *api = &model->apis[item->event->api];
	bool failed = item->event->result != 0;
	uint64_t time_ns = item->event->time_ns, duration_ns = item->event->duration_ns;

	model->call_begin_ns = sl_event_verbs[hook->verb].stamped_before ? time_ns : time_ns - duration_ns;
	model->call_end_ns = sl_event_verbs[hook->verb].stamped_before ? time_ns + duration_ns : time_ns;
	if (item->event->context && item->event->device >= 0) {
		struct sl_thread_state *thread = sl_model_thread(model, item->thread);

		thread->context = item->event->context;
		thread->device = item->event->device;
	}
	if (hook->is_call) {
		model->last_call_ns = model->now_ns;
		api->calls++;
		api->time_ns += item->event->duration_ns;
		if (failed)
			api->failures++;
		else
			api->bytes += item->event->bytes;
		sl_ooms_check(model, item, failed);
		if (hook->verb == SL_VERB_CALL && !failed && !strncmp(hook->plain, "nccl", 4))
			sl_collectives_call(model, item);
	}
	switch (hook->verb) {
	case SL_VERB_ALLOC:
	case SL_VERB_FREE:
		if (item->event->flags & SL_FLAG_captured)
			sl_graphs_apply(model, item);
		else
			sl_blocks_apply(model, item);
		break;
	case SL_VERB_MAP:
	case SL_VERB_UNMAP:
	case SL_VERB_UNMAP_MORE:
	case SL_VERB_RETAIN:
		if (failed)
			break;
		if (hook->kind == SL_KIND_imported)
			sl_blocks_apply(model, item);
		else
			sl_vmm_apply(model, item);
		break;
	case SL_VERB_CONTEXT_CREATE:
	case SL_VERB_CONTEXT_DESTROY:
	case SL_VERB_PRIMARY_RETAIN:
	case SL_VERB_PRIMARY_RELEASE:
	case SL_VERB_DEVICE_RESET:
	case SL_VERB_MODULE_LOAD:
		if (!failed)
			sl_owners_apply(model, item);
		break;
	case SL_VERB_GRAPH_ALLOC:
	case SL_VERB_GRAPH_FREE:
	case SL_VERB_GRAPH_CREATE:
	case SL_VERB_GRAPH_INSTANTIATE:
	case SL_VERB_GRAPH_LAUNCH:
	case SL_VERB_GRAPH_DESTROY:
	case SL_VERB_EXEC_DESTROY:
		sl_graphs_apply(model, item);
		break;
	case SL_VERB_BLOCK_ALLOC:
	case SL_VERB_BLOCK_FREE:
	case SL_VERB_BLOCK_OOM:
		sl_torch_apply(model, item);
		break;
	case SL_VERB_RANGE_PUSH:
	case SL_VERB_RANGE_POP:
	case SL_VERB_RANGE_START:
	case SL_VERB_RANGE_END:
	case SL_VERB_PAIR:
		sl_labels_apply(model, item);
		break;
	case SL_VERB_NAME:
		sl_called_apply(model, item->event);
		break;
	default:
		break; /* address space, exports, pools' settings, limits: counted as calls, no memory of their own */
	}
}

static void add_in_flight(struct sl_model *model, const struct sl_item *item)
{
	model->in_flight.item = sl_arena_grow(model->in_flight.item, &model->in_flight.capacity, model->in_flight.count,
					      sizeof(*model->in_flight.item));
	model->in_flight.item[model->in_flight.count++] =
		(struct sl_in_flight){(uint16_t)item->event->api, item->thread, item->event->bytes, item->event->time_ns};
}

void sl_model_apply(struct sl_model *model, const struct sl_item *item)
{
	uint64_t time_ns = item->kind == SL_ITEM_EVENT	  ? item->event->time_ns
			   : item->kind == SL_ITEM_SAMPLE ? item->sample.time_ns
							  : item->oom.time_ns;

	if (!model->first_ns)
		model->first_ns = time_ns;
	sl_moments_advance(model, &model->moments, time_ns);
	if (time_ns > model->now_ns)
		model->now_ns = time_ns;
	if (item->kind == SL_ITEM_SAMPLE) {
		sl_samples_apply(model, &item->sample);
		return;
	}
	if (item->kind == SL_ITEM_OOM) {
		sl_ooms_context(model, &item->oom);
		return;
	}
	if (item->event->flags & SL_FLAG_in_flight) {
		if (item->hook)
			add_in_flight(model, item);
		return;
	}
	model->events++;
	if (!item->hook)
		model->unknown_hooks++;
	else if (!(item->event->flags & SL_FLAG_abandoned))
		apply_event(model, item);
}

void sl_model_end(struct sl_model *model)
{
	for (size_t i = 0; i < SL_COUNT(model->devices); i++)
		if (model->devices[i])
			sl_samples_settle(model, model->devices[i]);
	sl_labels_end(model);
	sl_timeline_end(&model->timeline, model->now_ns);
}
