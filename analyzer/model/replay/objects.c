/* SPDX-License-Identifier: MIT */
/*
 * Objects that are not memory but cost some: contexts, modules, pools, graphs, executables, streams, events, imports of
 * external memory or graphics.  Each is counted as a block of the site that made it.
 */
#include "analyzer/model/counts/tracks.h"
#include "analyzer/model/replay/replay.h"

struct made {
	unsigned object;
	bool ends;
};

static bool means(const struct sl_item *item, struct made *made)
{
	static const struct {
		unsigned verb;
		struct made made;
	} verbs[] = {
		{SL_VERB_CONTEXT_CREATE, {SL_OBJECT_CONTEXT, false}},	{SL_VERB_CONTEXT_DESTROY, {SL_OBJECT_CONTEXT, true}},
		{SL_VERB_MODULE_LOAD, {SL_OBJECT_MODULE, false}},	{SL_VERB_MODULE_UNLOAD, {SL_OBJECT_MODULE, true}},
		{SL_VERB_POOL_CREATE, {SL_OBJECT_POOL, false}},		{SL_VERB_POOL_DESTROY, {SL_OBJECT_POOL, true}},
		{SL_VERB_GRAPH_CREATE, {SL_OBJECT_GRAPH, false}},	{SL_VERB_GRAPH_DESTROY, {SL_OBJECT_GRAPH, true}},
		{SL_VERB_GRAPH_INSTANTIATE, {SL_OBJECT_EXEC, false}},	{SL_VERB_EXEC_DESTROY, {SL_OBJECT_EXEC, true}},
		{SL_VERB_STREAM_CREATE, {SL_OBJECT_STREAM, false}},	{SL_VERB_STREAM_DESTROY, {SL_OBJECT_STREAM, true}},
		{SL_VERB_EVENT_CREATE, {SL_OBJECT_EVENT, false}},	{SL_VERB_EVENT_DESTROY, {SL_OBJECT_EVENT, true}},
		{SL_VERB_EXTERNAL_IMPORT, {SL_OBJECT_EXTERNAL, false}}, {SL_VERB_EXTERNAL_DESTROY, {SL_OBJECT_EXTERNAL, true}},
	};

	for (size_t i = 0; i < SL_COUNT(verbs); i++)
		if (verbs[i].verb == item->hook->verb) {
			*made = verbs[i].made;
			return true;
		}
	return false;
}

static void end(struct sl_model *model, struct sl_table *objects, struct sl_live *live)
{
	struct sl_live gone = *live;

	sl_ledger_device(model, model->tracks.item[gone.site].device)->contexts -= gone.refs;
	sl_table_remove(objects, live);
	sl_tracks_death(model, gone.site, gone.bytes, gone.time_ns);
}

/* Ends the code, streams, events and imports of a context that ends. */
static void end_inside(struct sl_model *model, uint64_t context)
{
	static const unsigned owned[] = {SL_OBJECT_MODULE, SL_OBJECT_STREAM, SL_OBJECT_EVENT, SL_OBJECT_EXTERNAL};

	for (size_t o = 0; o < SL_COUNT(owned); o++) {
		struct sl_table *objects = &model->objects[owned[o] - SL_OBJECT_CONTEXT];
		struct sl_by_context_list gone = sl_by_context_take(objects, model, sl_by_context_owner, context);

		for (size_t i = 0; i < gone.addresses.count; i++)
			end(model, objects, sl_table_find(objects, gone.addresses.item[i]));
		free(gone.addresses.item);
	}
}

/* Names the place of the cost that sl_contexts_apply has just added. */
static void note_place(struct sl_model *model, const struct sl_event *event, uint32_t track)
{
	struct sl_device_state *device = sl_ledger_device(model, event->device);

	if (device->fresh.count)
		device->fresh.item[device->fresh.count - 1].track = track;
}

/* Code that is loaded later belongs to its module, which is counted already: only its place and its bytes are added. */
static void count_code(struct sl_model *model, const struct sl_event *event)
{
	uint32_t site;

	if (!model->cost)
		return;
	site = sl_tracks_of(model, event, SL_OBJECT_MODULE, (int)event->device);
	sl_tracks_birth(model, site, model->cost, (uint32_t)event->label);
	sl_tracks_death(model, site, model->cost, model->now_ns);
	note_place(model, event, site);
}

/*
 * No context was current, so the call did not measure the one it made: it is taken to cost what samples show of others.  refs:
 * marks such a context.
 */
static void guess_context(struct sl_model *model, struct sl_live *live)
{
	struct sl_device_state *device = sl_ledger_device(model, model->tracks.item[live->site].device);

	live->bytes = sl_sample_wait_contexts(device) / (device->contexts ? device->contexts : 1);
	live->refs = 1;
	device->contexts++;
}

const struct sl_live *sl_objects_find(const struct sl_model *model, uint64_t handle)
{
	return sl_table_find(&model->objects[SL_OBJECT_EXEC - SL_OBJECT_CONTEXT], handle)
		       ?: sl_table_find(&model->objects[SL_OBJECT_EVENT - SL_OBJECT_CONTEXT], handle);
}

void sl_objects_apply(struct sl_model *model, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	const struct sl_thread_state *thread = sl_ledger_thread(model, item->thread);
	struct made made;
	uint64_t handle;
	struct sl_table *objects;
	struct sl_live *live;

	if (item->hook->verb == SL_VERB_CODE_LOAD)
		count_code(model, event);
	if (!means(item, &made))
		return;
	objects = &model->objects[made.object - SL_OBJECT_CONTEXT];
	handle = made.object == SL_OBJECT_CONTEXT ? (event->context ? event->context
						     : made.ends    ? thread->context
								    : 0)
						  : event->address;
	live = handle ? sl_table_find(objects, handle) : NULL;
	if (live) /* the handle is in use again: its end was not seen */
		end(model, objects, live);
	if (made.ends && made.object == SL_OBJECT_CONTEXT && handle)
		end_inside(model, handle);
	if (made.ends || !handle)
		return;
	live = sl_table_add(objects, handle);
	live->site = sl_tracks_of(model, event, made.object, (int)event->device);
	live->bytes = made.object == SL_OBJECT_CONTEXT || made.object == SL_OBJECT_MODULE ? model->cost : 0;
	live->time_ns = event->time_ns;
	live->owner = made.object == SL_OBJECT_POOL ? event->bytes : event->context ? event->context : thread->context;
	sl_by_context_add(objects, model, sl_by_context_owner, live);
	if (made.object == SL_OBJECT_CONTEXT && !live->bytes)
		guess_context(model, live);
	sl_tracks_birth(model, live->site, live->bytes, (uint32_t)event->label);
	if (live->bytes && model->cost)
		note_place(model, event, live->site);
}
