/* SPDX-License-Identifier: MIT */
#include "analyzer/exports/export.h"

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/heap.h"
#include "analyzer/base/memory.h"
#include "analyzer/report/missing.h"
#include "analyzer/report/owners.h"
#include "analyzer/report/place.h"
#include "analyzer/base/paths.h"
#include "analyzer/model/replay/replay.h"

static void read_item(struct sl_merge_process *p)
{
	p->item = sl_order_next(p->order);
	p->pending = p->item != NULL;
	if (p->item)
		p->unix_ns = sl_process_unix(&p->process, sl_item_time(p->item));
}

static bool before(const struct sl_merge_process *a, const struct sl_merge_process *b)
{
	return a->unix_ns != b->unix_ns ? a->unix_ns < b->unix_ns : a->index < b->index;
}

void sl_merge_apply(struct sl_merge_process *p)
{
	if (p->pending && p->process.model)
		sl_replay_apply(p->process.model, p->item);
	p->pending = false;
}

static void say(struct sl_merge *merge, uint64_t now_ns)
{
	if (!merge->progress || (merge->events & 0xfffff) || merge->events == merge->last_said)
		return;
	merge->last_said = merge->events;
	sl_escape_print(stderr, "\r%llu M events, %.1f s into the run ", (unsigned long long)(merge->events >> 20),
			now_ns > merge->begin_ns ? (double)(now_ns - merge->begin_ns) / 1e9 : 0.0);
	fflush(stderr);
}

struct sl_merge_process *sl_merge_next(struct sl_merge *merge)
{
	struct sl_merge_process *first = merge->heap_count ? merge->heap[0] : NULL;

	if (first && merge->events) { /* apply the item of the process that was returned last */
		sl_merge_apply(first);
		read_item(first);
	}
	for (;; read_item(first)) {
		if (first && !first->item)
			merge->heap[0] = merge->heap[--merge->heap_count];
		if (!merge->heap_count)
			return NULL;
		SL_HEAP_SINK(merge->heap, merge->heap_count, 0, before);
		first = merge->heap[0];
		if (merge->to_ns && first->unix_ns >= merge->to_ns)
			return NULL;
		if (first->unix_ns >= merge->from_ns)
			break;
		sl_merge_apply(first);
	}
	merge->events++;
	say(merge, first->unix_ns);
	return first;
}

/* ---- opening */

static bool parse_time(const char *text, uint64_t begin_ns, uint64_t *unix_ns)
{
	if (!text)
		return true;
	if (!sl_format_is_moment(text))
		return sl_escape_fail("stormlog-analyze", false,
				      "%s is no time: seconds since the run began (12.5), or Unix nanoseconds", text);
	*unix_ns = sl_format_moment(text, begin_ns);
	return true;
}

static void open_image(struct sl_merge *merge, const struct sl_image *image, const struct sl_merge_options *options)
{
	struct sl_merge_process *p = &merge->processes[merge->count];
	struct sl_damage damage = {0};
	struct sl_trace *trace = sl_trace_open(image, &damage);

	sl_damage_print(&damage);
	sl_damage_free(&damage);
	if (!trace)
		return;
	if (options->rank >= 0 && trace->header.rank != options->rank) {
		sl_trace_close(trace);
		return;
	}
	*p = (struct sl_merge_process){.process = {.trace = trace, .symbols = merge->symbols}, .index = merge->count};
	p->process.places = sl_places_in(options->report, &trace->header);
	if (options->models)
		p->process.model = sl_replay_new(&trace->header, &trace->defs);
	p->order = sl_order_new(trace);
	if (!merge->count || trace->header.started_ns < merge->begin_ns)
		merge->begin_ns = trace->header.started_ns;
	merge->count++;
}

static void fill_heap(struct sl_merge *merge)
{
	for (unsigned i = 0; i < merge->count; i++) {
		read_item(&merge->processes[i]);
		if (merge->processes[i].item)
			merge->heap[merge->heap_count++] = &merge->processes[i];
	}
	for (unsigned i = merge->heap_count / 2; i--;)
		SL_HEAP_SINK(merge->heap, merge->heap_count, i, before);
}

enum sl_merge_result sl_merge_open(struct sl_merge *merge, char *const *paths, unsigned count,
				   const struct sl_merge_options *options)
{
	int chosen;

	*merge = (struct sl_merge){.progress = options->progress, .symbols = sl_symbols_new()};
	for (unsigned i = 0; i < count; i++)
		if (!sl_images_add(&merge->images, paths[i])) {
			sl_paths_failed(paths[i]);
			return SL_MERGE_USAGE;
		}
	if (!merge->images.image_count) {
		if (!sl_foreign_tell(paths, count))
			sl_paths_empty(paths, count, "trace");
		return SL_MERGE_UNREADABLE;
	}
	sl_images_group(&merge->images);
	sl_damage_print(&merge->images.copies);
	chosen = sl_images_choose(&merge->images, options->run);
	if (chosen < -1)
		return SL_MERGE_USAGE;
	merge->processes = sl_memory_must(calloc(merge->images.image_count, sizeof(*merge->processes)));
	merge->heap = sl_memory_must(calloc(merge->images.image_count, sizeof(struct sl_merge_process *)));
	for (unsigned i = 0; i < merge->images.image_count; i++)
		if (sl_images_is_of(&merge->images, i, chosen))
			open_image(merge, &merge->images.images[i], options);
	if (!merge->count && options->rank >= 0)
		return sl_escape_fail("stormlog-analyze", SL_MERGE_USAGE, "%s has no rank %ld", paths[0], options->rank);
	if (!merge->count)
		return SL_MERGE_UNREADABLE;
	if (!parse_time(options->from, merge->begin_ns, &merge->from_ns) ||
	    !parse_time(options->to, merge->begin_ns, &merge->to_ns))
		return SL_MERGE_USAGE;
	if (merge->to_ns && merge->to_ns <= merge->from_ns)
		return sl_escape_fail("stormlog-analyze", SL_MERGE_USAGE, "%s is not after %s: give a later end", options->to,
				      options->from ? options->from : "the beginning");
	fill_heap(merge);
	return SL_MERGE_FINE;
}

void sl_merge_close(struct sl_merge *merge)
{
	bool printed = false;

	if (merge->progress && merge->last_said)
		fputs("\r\033[K", stderr);
	for (unsigned i = 0; i < merge->count; i++) {
		struct sl_merge_process *p = &merge->processes[i];

		sl_damage_print(&p->process.trace->damage);
		sl_missing_say_newer(p->process.trace, &printed);
		sl_order_free(p->order);
		if (p->process.model)
			sl_replay_free(p->process.model);
		sl_trace_close(p->process.trace);
		free(p->wheres.item);
		sl_idmap_free(&p->where_ids);
	}
	free(merge->processes);
	free(merge->heap);
	sl_arena_free(&merge->arena);
	sl_symbols_free(merge->symbols);
	sl_images_free(&merge->images);
}

/* ---- places and events */

uint32_t sl_merge_where(struct sl_merge *merge, struct sl_merge_process *p, struct sl_stack stack)
{
	uint64_t key = sl_stack_mix(stack);
	uint32_t at = sl_idmap_get(&p->where_ids, key, UINT32_MAX);
	const struct sl_trace *trace = p->process.trace;
	struct sl_where *where;
	char line[400];

	if (at != UINT32_MAX)
		return at;
	at = (uint32_t)p->wheres.count;
	sl_idmap_set(&p->where_ids, key, at);
	where = SL_PUSH(&p->wheres);
	sl_owners_line(&p->process, stack, 1, line, sizeof(line));
	*where =
		(struct sl_where){.stack = stack,
				  .library = sl_arena_strdup(&merge->arena, sl_stacks_library(&trace->defs, &trace->header, stack)),
				  .line = sl_arena_strdup(&merge->arena, line)};
	return at;
}

void sl_merge_view(struct sl_event_view *view, const struct sl_merge_process *p)
{
	const struct sl_event *event = p->item->event;
	const struct sl_hook *hook = p->item->hook;
	const struct sl_trace *trace = p->process.trace;
	const struct sl_thread *thread = sl_defs_thread(&trace->defs, p->item->thread);
	bool in_flight = event->flags & SL_FLAG_in_flight, at_begin = hook && hook->stamped_before;

	*view = (struct sl_event_view){
		.rank = trace->header.rank,
		.pid = trace->header.pid,
		.tid = thread && thread->tid ? thread->tid : (int64_t)p->item->thread,
		.api = hook ? hook->name : NULL,
		.verb = hook ? sl_event_verbs[hook->verb].name : NULL,
		.kind = event->kind && event->kind < SL_KIND_COUNT ? sl_event_kinds[event->kind].name : NULL,
		.label = event->label ? sl_defs_text(&trace->defs, event->label) : NULL,
		.step = sl_item_step(p->item, &trace->defs),
		.returned = !(event->flags & (SL_FLAG_in_flight | SL_FLAG_abandoned)),
		.event = event,
	};
	view->begin_ns = at_begin || in_flight ? p->unix_ns : p->unix_ns - event->duration_ns;
	view->end_ns = in_flight ? 0 : view->begin_ns + event->duration_ns;
}

const struct sl_where *sl_merge_place(struct sl_merge *merge, struct sl_merge_process *p)
{
	uint32_t index = sl_merge_where(merge, p, sl_stack_of(p->item->event));

	return &p->wheres.item[index];
}
