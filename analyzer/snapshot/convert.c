/* SPDX-License-Identifier: MIT */
/* Longer than other files: one place turns each event of a snapshot into those of the trace. */
#include "analyzer/snapshot/convert.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/base/escape.h"
#include "analyzer/base/format.h"
#include "analyzer/base/memory.h"
#include "analyzer/base/paths.h"
#include "analyzer/base/stats.h"
#include "analyzer/base/terminal.h"
#include "analyzer/snapshot/cache.h"
#include "analyzer/snapshot/casts.h"
#include "analyzer/snapshot/names.h"
#include "analyzer/snapshot/rebuild.h"
#include "analyzer/snapshot/release.h"
#include "analyzer/snapshot/rounds.h"
#include "analyzer/snapshot/write.h"
#include "common/fnv.h"
#include "common/tracefile.h"

#define ROUNDING   (UINT32_MAX - 1) /* the stack of what blocks have beyond what was asked for (analyzer/model/replay/torch.c) */
#define BEGIN_NS   1000000000ull
#define SIZES_MAX  12	      /* sizes of blocks without a stack that are told apart, as parameters are recognised by them */
#define PAGES_MAX  (1u << 18) /* of one mapping: no device has so many */
#define PAGE	   (20ull << 20)
#define SMALL_PAGE (2ull << 20) /* kLargeBuffer and kSmallBuffer: pages of an expandable segment */

enum { SEGMENT_ALLOC = 1, SEGMENT_FREE, BLOCK_ALLOC, BLOCK_FREE, BLOCK_OOM, BLOCK_WAIT, RANGE_PUSH, RANGE_POP };

static const struct {
	const char *name;
	enum sl_verb verb;
	enum sl_kind kind;
	enum sl_family family;
} rows[] = {
	{"segment_alloc", SL_VERB_ALLOC, SL_KIND_device, SL_FAMILY_torch},
	{"segment_free", SL_VERB_FREE, SL_KIND_device, SL_FAMILY_torch},
	{"block_alloc", SL_VERB_BLOCK_ALLOC, SL_KIND_block, SL_FAMILY_torch},
	{"block_free", SL_VERB_BLOCK_FREE, SL_KIND_block, SL_FAMILY_torch},
	{"block_oom", SL_VERB_BLOCK_OOM, SL_KIND_block, SL_FAMILY_torch},
	{"block_wait", SL_VERB_BLOCK_WAIT, SL_KIND_block, SL_FAMILY_torch},
	{"range_push", SL_VERB_RANGE_PUSH, SL_KIND_none, SL_FAMILY_label},
	{"range_pop", SL_VERB_RANGE_POP, SL_KIND_none, SL_FAMILY_label},
};

struct work {
	struct sl_snapshot *snapshot;
	struct sl_snapshot_names names;
	struct sl_write *write;
	SL_VECTOR(uint8_t) frames, stacks; /* which are written */
	uint64_t first_us;
	struct sl_map labels;
	uint64_t now_ns; /* of the newest event of all devices */
};

/* One device on its way through the window. */
struct lane {
	struct work *work;
	struct sl_rebuilt rebuilt;
	struct sl_rebuilt_walk walk;
	struct sl_pieces live, segments; /* blocks, and segments of the driver */
	struct sl_casts casts;
	uint64_t now_ns, allocated, reserved;
	size_t note; /* the next of the annotations */
	SL_VECTOR(uint32_t) open;
	uint64_t entries; /* of an optimizer */
};

/* ---- definitions */

static void define_frame(struct work *w, uint32_t id)
{
	struct sl_snapshot *s = w->snapshot;
	uint8_t bytes[SL_FUNCTION_MAX + SL_TEXT_MAX + 256];
	char file[SL_TEXT_MAX + 1];
	struct sl_definition map;
	size_t count;
	const uint32_t *words = sl_sequences_at(&s->frames, id, &count);
	const char *function = sl_snapshot_text(s, words[0]) ?: "?";

	while (w->frames.count <= id)
		*SL_PUSH(&w->frames) = 0;
	if (w->frames.item[id]++)
		return;
	snprintf(file, sizeof(file), "%s", sl_snapshot_text(s, words[1]) ?: "");
	for (char *at = file; *at; at++) /* paths of Windows */
		*at = *at == '\\' ? '/' : *at;
	count = strnlen(function, SL_FUNCTION_MAX);
	map = sl_definition_frame(bytes, sizeof(bytes), id + 1,
				  &(struct sl_python_text){function, file, count, strlen(file), (int)(words[2] & INT32_MAX), 0});
	sl_write_define(w->write, &map);
}

/* The id of a stack in the trace, which is written where it is new; 0: none. */
static uint64_t define_stack(struct work *w, uint32_t stack)
{
	static uint8_t bytes[8192];
	uint32_t ids[512];
	struct sl_definition map;
	const uint32_t *frames;
	size_t count;

	if (stack == SL_SNAPSHOT_NONE)
		return 0;
	frames = sl_sequences_at(&w->snapshot->stacks, stack, &count);
	if (!count)
		return 0;
	while (w->stacks.count <= stack)
		*SL_PUSH(&w->stacks) = 0;
	if (w->stacks.item[stack]++)
		return w->stacks.item[stack] = 1, stack + 1;
	count = count < SL_COUNT(ids) ? count : SL_COUNT(ids);
	for (size_t i = 0; i < count; i++) {
		define_frame(w, frames[i]);
		ids[i] = frames[i] + 1;
	}
	map = sl_definition_python(bytes, sizeof(bytes), stack + 1, ids, (uint32_t)count, false);
	sl_write_define(w->write, &map);
	return stack + 1;
}

static uint64_t stack_of(struct work *w, uint32_t stack)
{
	return define_stack(w, sl_snapshot_shown(&w->names, stack));
}

static void define_rounding(struct work *w)
{
	uint8_t bytes[512];
	struct sl_definition map =
		sl_definition_frame(bytes, sizeof(bytes), ROUNDING, &(struct sl_python_text){"rounding of sizes", "", 17, 0, 0, 0});

	sl_write_define(w->write, &map);
	map = sl_definition_begin(bytes, sizeof(bytes), "python_stack");
	sl_definition_uint(&map, "id", ROUNDING);
	sl_definition_key(&map, "frames");
	sl_pack_array(&map.pack, 1);
	sl_pack_uint(&map.pack, ROUNDING);
	sl_write_define(w->write, &map);
}

static void put_pairs(struct sl_definition *map, const char *key, const char *const (*pairs)[2], size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++)
		used += pairs[i][1] != NULL;
	sl_definition_key(map, key);
	sl_pack_map(&map->pack, used);
	for (size_t i = 0; i < count; i++)
		if (pairs[i][1]) {
			sl_pack_text(&map->pack, pairs[i][0]);
			sl_pack_text(&map->pack, pairs[i][1]);
		}
}

static void put_tables(struct sl_definition *map)
{
	sl_definition_key(map, "verbs");
	sl_pack_array(&map->pack, SL_VERB_COUNT);
	for (unsigned i = 0; i < SL_VERB_COUNT; i++) {
		sl_pack_array(&map->pack, 2);
		sl_pack_text(&map->pack, sl_event_verbs[i].name);
		sl_pack_text(&map->pack, sl_event_verbs[i].stamped_before ? "before" : "after");
	}
	sl_definition_key(map, "kinds");
	sl_pack_array(&map->pack, SL_KIND_COUNT);
	for (unsigned i = 0; i < SL_KIND_COUNT; i++) {
		sl_pack_array(&map->pack, 2);
		sl_pack_text(&map->pack, sl_event_kinds[i].name);
		sl_pack_text(&map->pack, sl_event_kinds[i].on_host ? "host" : "device");
	}
	sl_definition_key(map, "families");
	sl_pack_array(&map->pack, SL_FAMILY_COUNT);
	for (unsigned i = 0; i < SL_FAMILY_COUNT; i++) {
		sl_pack_array(&map->pack, 2);
		sl_pack_text(&map->pack, sl_event_families[i].name);
		sl_pack_uint(&map->pack, 0);
	}
	sl_definition_key(map, "hooks");
	sl_pack_array(&map->pack, SL_COUNT(rows));
	for (size_t i = 0; i < SL_COUNT(rows); i++) {
		sl_pack_array(&map->pack, 4);
		sl_pack_text(&map->pack, rows[i].name);
		sl_pack_uint(&map->pack, rows[i].verb);
		sl_pack_uint(&map->pack, rows[i].kind);
		sl_pack_uint(&map->pack, rows[i].family);
	}
}

/* ---- the file's name */

/* The digits behind the word "rank" in the name; NULL: none. */
static const char *rank_in(const char *name)
{
	for (const char *at = name; *at; at++) {
		const char *digits;

		if (strncasecmp(at, "rank", 4) != 0 || (at > name && islower((unsigned char)at[-1]) && *at == 'r'))
			continue;
		digits = at + 4 + strspn(at + 4, "_-. ");
		if (isdigit((unsigned char)*digits))
			return digits;
	}
	return NULL;
}

/* -1: none */
static long rank_of(const char *path)
{
	const char *digits = rank_in(sl_paths_name(path));

	return digits ? strtol(digits, NULL, 10) & 0xfffff : -1;
}

void sl_snapshot_member(const char *path, unsigned number, char *name, size_t size)
{
	long rank = rank_of(path);

	snprintf(name, size, "rank-%05ld-%u" SL_TRACE_SUFFIX, rank < 0 ? 0 : rank, number);
}

/* Snapshots of one folder whose names differ only in the rank are of one run.  Other numbers are those of steps. */
static char *run_of(const char *path)
{
	char whole[PATH_MAX], *folder = realpath(path, whole) ? dirname(whole) : NULL, *plain, *id;
	const char *name = sl_paths_name(path), *digits = rank_in(name);

	plain = digits ? sl_memory_print("%.*s#%s", (int)(digits - name), name, digits + strspn(digits, "0123456789"))
		       : sl_memory_copy(name);
	id = sl_memory_print("%s-%08x", plain, (unsigned)sl_fnv_bytes(sl_fnv_text(folder ?: ""), plain, strlen(plain)));
	free(plain);
	return id;
}

/* ---- events */

/* All that was there before the window has its instant, and each event a later one of its own. */
static void put(struct lane *lane, struct sl_event event, uint64_t time_ns)
{
	if (time_ns)
		lane->now_ns = time_ns > lane->now_ns ? time_ns : lane->now_ns + 1;
	event.time_ns = lane->now_ns;
	event.device = lane->rebuilt.device;
	event.kind = rows[event.api - 1].kind;
	sl_write_event(lane->work->write, (uint32_t)lane->rebuilt.device + 1, &event);
	if (lane->now_ns > lane->work->now_ns)
		lane->work->now_ns = lane->now_ns;
}

static void put_block(struct lane *lane, unsigned api, const struct sl_tile *block, struct sl_event event, uint64_t time_ns)
{
	event.api = api;
	event.address = block->addr;
	event.bytes = block->size;
	event.object = 1 + block->size - block->requested;
	event.extra = lane->allocated;
	event.extra2 = lane->reserved;
	put(lane, event, time_ns);
}

static void begin_block(struct lane *lane, uint64_t addr, uint64_t size, uint64_t requested, struct sl_event event,
			uint64_t time_ns)
{
	struct sl_tile *block = sl_pieces_at(&lane->live, addr);

	if (!block)
		block = sl_pieces_add(&lane->live, addr, 0);
	block->size = size > requested ? size : requested;
	block->requested = requested;
	lane->allocated += block->size;
	event.stream = event.stream ? event.stream : 0;
	put_block(lane, BLOCK_ALLOC, block, event, time_ns);
}

static void end_block(struct lane *lane, const struct sl_snapshot_event *from, uint64_t time_ns)
{
	struct sl_tile *block = sl_pieces_at(&lane->live, from->addr);

	if (!block)
		return;
	lane->allocated -= block->size;
	put_block(lane, BLOCK_FREE, block, (struct sl_event){.python = stack_of(lane->work, from->stack)}, time_ns);
	sl_pieces_remove(&lane->live, from->addr);
}

static uint64_t stream_at(const struct work *w, uint16_t index)
{
	return index < w->snapshot->streams.count ? w->snapshot->streams.item[index] : 0;
}

/* Bits of `extra` of a segment.  A graph has a pool whose id's upper number is not 0 (CUDAGraph::capture_begin). */
enum { IS_SMALL = 1, IS_EXPANDABLE = 2, IS_GRAPH = 4 };

static void begin_segment(struct lane *lane, uint64_t addr, uint64_t size, const struct sl_rebuilt_group *group, uint64_t python,
			  uint64_t flags, uint64_t time_ns)
{
	uint64_t page = !group->expandable ? size : !group->small && !(size % PAGE) ? PAGE : SMALL_PAGE;

	if (page && size / page > PAGES_MAX)
		page = size;
	for (uint64_t at = 0; at < size; at += page) {
		uint64_t part = size - at < page ? size - at : page;
		struct sl_event event = {.api = SEGMENT_ALLOC,
					 .address = addr + at,
					 .bytes = part,
					 .stream = stream_at(lane->work, group->stream),
					 .object = 1 + group->pool,
					 .extra = (group->small ? IS_SMALL : 0u) | (group->expandable ? IS_EXPANDABLE : 0u) |
						  (lane->work->snapshot->pools.item[group->pool] >> 32 ? IS_GRAPH : 0u),
					 .python = python,
					 .flags = flags};

		if (!sl_pieces_at(&lane->segments, addr + at))
			sl_pieces_add(&lane->segments, addr + at, part);
		put(lane, event, time_ns);
	}
}

/* The group of the memory that an event brings or takes away. */
static struct sl_rebuilt_group group_at(const struct sl_rebuilt *r, size_t at)
{
	const struct sl_snapshot_event *event = &r->snapshot->events.item[r->events.first + at];

	if (r->exact)
		return r->groups.item[r->moved[at]];
	return (struct sl_rebuilt_group){event->stream, event->pool == SL_SNAPSHOT_NO_POOL ? 0 : event->pool,
					 event->size == SMALL_PAGE, event->action == SL_SNAPSHOT_SEGMENT_MAP};
}

/* `extra` of a segment that goes.  RETRIED: a request found no memory, and gave it back to ask again. */
enum { EMPTIED, RETRIED, POOL_ENDED };

static void end_segment(struct lane *lane, size_t at, uint64_t time_ns)
{
	const struct sl_rebuilt *r = &lane->rebuilt;
	const struct sl_snapshot_event *from = &r->snapshot->events.item[r->events.first + at];
	uint64_t python = stack_of(lane->work, from->stack), end = from->addr + from->size;
	uint16_t pool = group_at(r, at).pool;
	bool ends = pool && sl_snapshot_freed_by(r->snapshot, from->stack) == SL_SNAPSHOT_UNSAID;

	for (const struct sl_tile *piece = sl_pieces_at(&lane->segments, from->addr)
						   ?: sl_pieces_behind(&lane->segments, from->addr);
	     piece && piece->addr < end; piece = sl_pieces_behind(&lane->segments, from->addr)) {
		struct sl_event event = {.api = SEGMENT_FREE,
					 .address = piece->addr,
					 .bytes = piece->size,
					 .object = 1 + pool,
					 .extra = ends			     ? POOL_ENDED
						  : sl_cache_is_retry(r, at) ? RETRIED
									     : EMPTIED,
					 .python = python};

		put(lane, event, time_ns);
		sl_pieces_remove(&lane->segments, event.address);
		if (sl_pieces_at(&lane->segments, from->addr))
			break;
	}
}

/* PyTorch gave up.  The device's free bytes go into the trace as after a call that fails. */
static void put_oom(struct lane *lane, const struct sl_snapshot_event *from, uint64_t time_ns)
{
	uint32_t thread = (uint32_t)lane->rebuilt.device + 1;
	uint64_t number = sl_write_next(lane->work->write, thread);
	uint8_t bytes[256];
	struct sl_definition map;

	put(lane,
	    (struct sl_event){.api = BLOCK_OOM,
			      .bytes = from->size,
			      .object = 1,
			      .stream = stream_at(lane->work, from->stream),
			      .extra = lane->allocated,
			      .extra2 = lane->reserved,
			      .python = stack_of(lane->work, from->stack)},
	    time_ns);
	if (from->addr == UINT64_MAX)
		return;
	map = sl_definition_begin(bytes, sizeof(bytes), "oom");
	sl_definition_uint(&map, "ns", lane->now_ns);
	sl_definition_uint(&map, "thread", thread);
	sl_definition_uint(&map, "seq", number);
	sl_definition_int(&map, "device", lane->rebuilt.device);
	sl_definition_uint(&map, "free_bytes", from->addr);
	sl_write_define(lane->work->write, &map);
}

/* ---- ranges */

static uint64_t label_of(struct work *w, const char *name)
{
	uintptr_t *at = sl_map_at(&w->labels, name);
	uint8_t bytes[SL_TEXT_MAX + 64];
	struct sl_definition map;

	if (!*at) {
		*at = w->labels.count;
		map = sl_definition_begin(bytes, sizeof(bytes), "text");
		sl_definition_uint(&map, "id", *at);
		sl_definition_bytes(&map, "text", name, strnlen(name, SL_TEXT_MAX));
		sl_write_define(w->write, &map);
	}
	return *at;
}

/* "ProfilerStep#3" is entry 3 of "ProfilerStep#"; "Optimizer.step#AdamW.step" the next one of "Optimizer.step_#". */
static uint64_t name_note(struct lane *lane, const char *name, uint64_t *step)
{
	const char *mark = strchr(name, '#');
	char label[SL_TEXT_MAX];

	*step = 0;
	if (mark && isdigit((unsigned char)mark[1])) {
		snprintf(label, sizeof(label), "%.*s#", (int)(mark - name), name);
		*step = strtoull(mark + 1, NULL, 10);
	} else if (!strncmp(name, "Optimizer.step#", 15)) {
		snprintf(label, sizeof(label), "Optimizer.step_#");
		*step = lane->entries;
	} else {
		snprintf(label, sizeof(label), "%s", name);
		for (char *at = label; (at = strchr(at, '#'));)
			*at = ' ';
	}
	return label_of(lane->work, label);
}

static uint64_t time_of(const struct lane *lane, uint64_t time_us)
{
	const struct work *w = lane->work;

	return BEGIN_NS + (time_us > w->first_us ? time_us - w->first_us : 0) * 1000;
}

static void put_note(struct lane *lane, const struct sl_snapshot_note *note)
{
	const char *name = sl_snapshot_text(lane->work->snapshot, note->name) ?: "";
	struct sl_event event = {.api = note->begins ? RANGE_PUSH : RANGE_POP};
	size_t at = lane->open.count;

	if (note->begins) {
		*SL_PUSH(&lane->open) = note->name;
	} else {
		while (at && lane->open.item[at - 1] != note->name)
			at--;
		if (!at)
			return; /* it began before the window */
		memmove(&lane->open.item[at - 1], &lane->open.item[at], (lane->open.count - at) * sizeof(*lane->open.item));
		lane->open.count--;
	}
	event.label = name_note(lane, name, &event.extra);
	put(lane, event, time_of(lane, note->time_us));
	lane->entries += !note->begins && !strncmp(name, "Optimizer.step#", 15);
}

/* Ranges up to a time of this device; those that begin behind last_us have no events. */
static void put_notes(struct lane *lane, uint64_t from_us, uint64_t to_us, uint64_t last_us)
{
	const struct sl_snapshot *s = lane->work->snapshot;

	for (; lane->note < s->in_notes.count; lane->note++) {
		const struct sl_snapshot_note *note = &s->notes.item[s->in_notes.first + lane->note];

		if (note->time_us > to_us)
			return;
		if (note->time_us >= from_us && (!note->begins || note->time_us <= last_us) &&
		    (note->device < 0 || note->device == lane->rebuilt.device))
			put_note(lane, note);
	}
}

/* ---- what was there before */

struct size_of_blocks {
	uint64_t size, count;
};

static int by_size(const void *a, const void *b)
{
	const struct size_of_blocks *x = a, *y = b;

	return SL_FALLING(x->size, y->size);
}

static int by_bytes(const void *a, const void *b)
{
	const struct size_of_blocks *x = a, *y = b;

	return SL_FALLING(x->size * x->count, y->size * y->count) ?: SL_FALLING(x->size, y->size);
}

/* The sizes of blocks without a stack that take most, largest sum first. */
static unsigned sizes_of(const struct lane *lane, struct size_of_blocks sizes[SIZES_MAX])
{
	const struct sl_rebuilt *r = &lane->rebuilt;
	struct size_of_blocks *all = sl_memory_must(calloc(r->blocks.count + 1, sizeof(*all)));
	size_t count = 0, unique_count = 0;

	for (size_t i = 0; i < r->blocks.count; i++)
		if (r->blocks.item[i].stack == SL_SNAPSHOT_NONE)
			all[count++] = (struct size_of_blocks){r->blocks.item[i].requested, 1};
	qsort(all, count, sizeof(*all), by_size);
	for (size_t i = 0; i < count; i++)
		if (unique_count && all[unique_count - 1].size == all[i].size)
			all[unique_count - 1].count++;
		else
			all[unique_count++] = all[i];
	qsort(all, unique_count, sizeof(*all), by_bytes);
	unique_count = unique_count < SIZES_MAX ? unique_count : SIZES_MAX;
	memcpy(sizes, all, unique_count * sizeof(*all));
	free(all);
	return (unsigned)unique_count;
}

static uint32_t stack_before(struct lane *lane, const struct sl_rebuilt_block *block, const struct size_of_blocks *sizes,
			     unsigned count)
{
	struct work *w = lane->work;
	uint32_t stack = sl_snapshot_shown(&w->names, block->stack);
	size_t frames = 0;
	char name[64] = "other sizes", size[SL_FORMAT_BYTES];

	if (stack != SL_SNAPSHOT_NONE)
		sl_sequences_at(&w->snapshot->stacks, stack, &frames);
	if (!frames) {
		for (unsigned i = 0; i < count; i++)
			if (sizes[i].size == block->requested) {
				sl_format_size(size, block->requested);
				snprintf(name, sizeof(name), "blocks of %s", size);
			}
		stack = sl_snapshot_around(w->snapshot, SL_SNAPSHOT_NONE, name);
	}
	if (lane->rebuilt.events.count >= SL_SNAPSHOT_FEW)
		return sl_snapshot_around(w->snapshot, stack, "made before the window");
	return frames ? stack : sl_snapshot_around(w->snapshot, stack, "no stack in the file");
}

/* True: the program freed the block before the window, and other streams still used it. */
static bool waits_from_start(const struct sl_rebuilt *r, const struct sl_rebuilt_block *block)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;

	for (size_t i = block->freed; block->freed != SIZE_MAX && i--;)
		if (events[i].addr == block->addr && events[i].action == SL_SNAPSHOT_FREE_REQUESTED)
			return false;
	return block->freed != SIZE_MAX;
}

static void put_start(struct lane *lane)
{
	struct sl_rebuilt *r = &lane->rebuilt;
	struct size_of_blocks sizes[SIZES_MAX];
	unsigned count = sizes_of(lane, sizes);

	lane->now_ns = BEGIN_NS;
	lane->reserved = r->reserved;
	for (size_t i = 0; i < r->segments.count; i++) {
		const struct sl_rebuilt_segment *segment = &r->segments.item[i];

		begin_segment(lane, segment->addr, segment->size, &r->groups.item[segment->group],
			      stack_of(lane->work, segment->stack), SL_FLAG_before, 0);
	}
	for (size_t i = 0; i < r->blocks.count; i++) {
		const struct sl_rebuilt_block *block = &r->blocks.item[i];
		struct sl_event event = {.flags = SL_FLAG_before,
					 .python = define_stack(lane->work, stack_before(lane, block, sizes, count))};

		if (r->exact) {
			event.stream = stream_at(lane->work, r->groups.item[block->group].stream);
			event.context = r->groups.item[block->group].pool;
		}
		begin_block(lane, block->addr, block->size, block->requested, event, 0);
		if (waits_from_start(r, block))
			put(lane, (struct sl_event){.api = BLOCK_WAIT, .address = block->addr, .object = 1}, 0);
	}
}

/* ---- the window */

static bool waits(const struct sl_rebuilt *r, size_t at)
{
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;

	return at + 1 == r->events.count || events[at + 1].action != SL_SNAPSHOT_FREE_COMPLETED ||
	       events[at + 1].addr != events[at].addr;
}

static void put_event(struct lane *lane, size_t at)
{
	struct sl_rebuilt *r = &lane->rebuilt;
	const struct sl_snapshot_event *event = &r->snapshot->events.item[r->events.first + at];
	uint64_t time_ns = event->time_us ? time_of(lane, event->time_us) : BEGIN_NS + at * 1000, size = 0;
	const struct sl_tile *tile;
	uint32_t stack;
	struct sl_rebuilt_group group;

	if (r->exact)
		size = sl_rebuilt_walk_step(&lane->walk, event);
	switch (event->action) {
	case SL_SNAPSHOT_ALLOC:
		tile = r->exact ? sl_pieces_at(&lane->walk.pieces, event->addr) : NULL;
		stack = sl_snapshot_shown(&lane->work->names, event->stack);
		if (sl_casts_take(&lane->casts, event))
			stack = sl_snapshot_inside(lane->work->snapshot, stack, "copies of weights by autocast");
		begin_block(lane, event->addr, size ? size : sl_rebuilt_rounded(r->snapshot, event->size), event->size,
			    (struct sl_event){.context = tile ? r->groups.item[tile->group].pool : 0,
					      .stream = stream_at(lane->work, event->stream),
					      .python = define_stack(lane->work, stack)},
			    time_ns);
		break;
	case SL_SNAPSHOT_FREE_REQUESTED:
		if (waits(r, at))
			put(lane,
			    (struct sl_event){.api = BLOCK_WAIT,
					      .address = event->addr,
					      .object = 1,
					      .python = stack_of(lane->work, event->stack)},
			    time_ns);
		break;
	case SL_SNAPSHOT_FREE_COMPLETED:
		sl_casts_give(&lane->casts, event->addr);
		end_block(lane, event, time_ns);
		break;
	case SL_SNAPSHOT_SEGMENT_ALLOC:
	case SL_SNAPSHOT_SEGMENT_MAP:
		lane->reserved += event->size;
		group = group_at(r, at);
		begin_segment(lane, event->addr, event->size, &group, stack_of(lane->work, event->stack), 0, time_ns);
		break;
	case SL_SNAPSHOT_SEGMENT_FREE:
	case SL_SNAPSHOT_SEGMENT_UNMAP:
		lane->reserved -= event->size;
		end_segment(lane, at, time_ns);
		break;
	case SL_SNAPSHOT_OOM:
		put_oom(lane, event, time_ns);
		break;
	default:
		break;
	}
}

static void put_window(struct lane *lane)
{
	struct sl_rebuilt *r = &lane->rebuilt;
	const struct sl_snapshot_event *events = r->snapshot->events.item + r->events.first;
	uint64_t from = r->events.count ? events[0].time_us : 0, to = r->events.count ? events[r->events.count - 1].time_us : 0;

	sl_casts_begin(&lane->casts, r);
	if (r->exact)
		sl_rebuilt_walk_begin(&lane->walk, r);
	for (size_t i = 0; i < r->events.count; i++) {
		put_notes(lane, from, events[i].time_us, to);
		put_event(lane, i);
	}
	put_notes(lane, from, UINT64_MAX, to);
	if (r->exact)
		sl_rebuilt_walk_end(&lane->walk);
	sl_casts_end(&lane->casts);
}

/* ---- the whole */

static int device_count(const struct sl_snapshot *s)
{
	int count = s->in_traces.count < 256 ? (int)s->in_traces.count : 256;

	for (size_t i = 0; i < s->in_segments.count; i++) {
		int device = s->segments.item[s->in_segments.first + i].device;

		count = device >= count ? device + 1 : count;
	}
	return count ? count : 1;
}

static uint64_t first_time(const struct sl_snapshot *s)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < s->in_traces.count; i++) {
		struct sl_snapshot_range trace = s->traces.item[s->in_traces.first + i];

		if (trace.count && s->events.item[trace.first].time_us && s->events.item[trace.first].time_us < first)
			first = s->events.item[trace.first].time_us;
	}
	return first == UINT64_MAX ? 0 : first;
}

static uint64_t last_time(const struct sl_snapshot *s)
{
	uint64_t last = 0;

	for (size_t i = 0; i < s->in_traces.count; i++) {
		struct sl_snapshot_range trace = s->traces.item[s->in_traces.first + i];

		if (trace.count && s->events.item[trace.first + trace.count - 1].time_us > last)
			last = s->events.item[trace.first + trace.count - 1].time_us;
	}
	return last;
}

/* The free pieces of a device at the end, the largest of them, and bytes that the program freed and other streams still use. */
static void count_free(const struct sl_snapshot *s, int device, uint64_t *pieces, uint64_t *largest, uint64_t *waiting)
{
	*pieces = *largest = *waiting = 0;
	for (size_t i = 0; i < s->in_segments.count; i++) {
		const struct sl_snapshot_segment *segment = &s->segments.item[s->in_segments.first + i];

		for (size_t b = 0; b < segment->count && (segment->device < 0 ? 0 : segment->device) == device; b++) {
			const struct sl_snapshot_block *block = &s->blocks.item[segment->first + b];

			*pieces += !block->active;
			*waiting += block->active && block->pending ? block->requested : 0;
			if (!block->active && block->size > *largest)
				*largest = block->size;
		}
	}
}

/* The course of what was reserved on one device, as a setting of the header (analyzer/report/window_facts.c reads it). */
static void put_cache(struct work *w, const struct sl_rebuilt *r, int device, const char *setting[2])
{
	struct sl_cache_course c;
	uint32_t stacks[2];
	size_t frames;

	sl_cache_follow(&c, r, w->first_us);
	stacks[0] = sl_snapshot_shown(&w->names, c.emptied.stack);
	stacks[1] = sl_snapshot_shown(&w->names, c.retried.stack);
	for (unsigned i = 0; i < 2; i++) { /* as define_stack numbers them */
		frames = 0;
		if (stacks[i] != SL_SNAPSHOT_NONE)
			sl_sequences_at(&w->snapshot->stacks, stacks[i], &frames);
		stacks[i] = frames ? stacks[i] + 1 : 0;
	}
	setting[0] = sl_memory_print("snapshot_cache_%d", device);
	setting[1] =
		sl_memory_print("%llu %llu %llu %llu %llu %u %llu %llu %u %llu %llu %llu", (unsigned long long)c.peak,
				(unsigned long long)c.peak_tensors, (unsigned long long)c.peak_us,
				(unsigned long long)c.emptied.times, (unsigned long long)c.emptied.bytes, stacks[0],
				(unsigned long long)c.retried.times, (unsigned long long)c.retried.bytes, stacks[1],
				(unsigned long long)c.retry_us, (unsigned long long)c.retry_bytes, (unsigned long long)c.asked);
}

/* "1 event \"teleport\", 3 blocks \"hibernating\""; NULL: all words are known. */
static char *unknown_of(const struct sl_snapshot *s)
{
	char events[120] = "", blocks[120] = "";

	if (s->odd_events)
		snprintf(events, sizeof(events), "%llu event%s \"%.60s\"", (unsigned long long)s->odd_events,
			 s->odd_events == 1 ? "" : "s", sl_snapshot_text(s, s->odd_action) ?: "?");
	if (s->odd_blocks)
		snprintf(blocks, sizeof(blocks), "%s%llu block%s \"%.60s\"", *events ? ", " : "", (unsigned long long)s->odd_blocks,
			 s->odd_blocks == 1 ? "" : "s", sl_snapshot_text(s, s->odd_state) ?: "?");
	return *events || *blocks ? sl_memory_print("%s%s", events, blocks) : NULL;
}

/* "5 7": the minor numbers, the second one 0 where any newer one is possible. */
static const char *snapshot_releases_text(struct sl_snapshot_releases *releases)
{
	snprintf(releases->text, sizeof(releases->text), "%u %u", releases->oldest, releases->newest);
	return releases->text;
}

static void put_header(struct work *w, FILE *in, const char *path, unsigned number, const struct lane *lanes, int count)
{
	const struct sl_snapshot *s = w->snapshot;
	static uint8_t bytes[1 << 17];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "header");
	const char *conf = sl_snapshot_text(s, s->conf);
	struct sl_snapshot_releases releases = sl_snapshot_releases(s);
	SL_VECTOR(char *) texts = {0};
	char *unknown = unknown_of(s);
	const char *settings[2 * 256 + 4][2] = {{"snapshot_releases", snapshot_releases_text(&releases)},
						{"snapshot_timed", w->first_us ? "1" : "0"},
						{"snapshot_npu", s->is_npu ? "1" : NULL},
						{"snapshot_unknown", unknown}};
	const char *environment[][2] = {{"PYTORCH_CUDA_ALLOC_CONF", conf && *conf   ? conf
								    : s->expandable ? "expandable_segments:True"
										    : NULL}};
	char *run = run_of(path);
	struct stat st = {0};

	fstat(fileno(in), &st);
	for (int i = 0; i < count; i++) {
		const struct sl_rebuilt *r = &lanes[i].rebuilt;

		put_cache(w, r, i, settings[4 + count + i]);
		*SL_PUSH(&texts) = (char *)settings[4 + count + i][0];
		*SL_PUSH(&texts) = (char *)settings[4 + count + i][1];
		*SL_PUSH(&texts) = sl_memory_print("snapshot_device_%d", i);
		settings[4 + i][0] = texts.item[texts.count - 1];
		uint64_t pieces, largest, waiting;

		count_free(s, i, &pieces, &largest, &waiting);
		*SL_PUSH(&texts) = sl_memory_print(
			"%zu %llu %llu %d %d %llu %llu %llu %llu %llu", r->events.count, (unsigned long long)r->reserved,
			(unsigned long long)r->requested, r->exact, r->trimmed, (unsigned long long)(last_time(s) - w->first_us),
			(unsigned long long)sl_snapshot_rounds(&lanes[i].rebuilt), (unsigned long long)pieces,
			(unsigned long long)largest, (unsigned long long)waiting);
		settings[4 + i][1] = texts.item[texts.count - 1];
	}
	sl_definition_text(&map, "format", SL_TRACE_FORMAT);
	sl_definition_uint(&map, "version", SL_TRACE_VERSION);
	sl_definition_text(&map, "agent", "snapshot");
	sl_definition_uint(&map, "started_ns", w->first_us ? w->first_us * 1000 : (uint64_t)st.st_mtim.tv_sec * 1000000000u);
	sl_definition_uint(&map, "monotonic_ns", BEGIN_NS);
	sl_definition_uint(&map, "pid", number);
	sl_definition_text(&map, "run_id", run);
	sl_definition_maybe_int(&map, "rank", rank_of(path));
	sl_definition_key(&map, "argv");
	sl_pack_array(&map.pack, 1);
	sl_pack_text(&map.pack, sl_paths_name(path));
	put_pairs(&map, "settings", settings, (size_t)(4 + 2 * count));
	put_pairs(&map, "environment", environment, 1);
	put_pairs(&map, "dry", (const char *const[][2]){{"name", sl_snapshot_text(s, s->dry)}}, 1);
	put_tables(&map);
	sl_write_header(w->write, &map);
	SL_DROP_EACH(&texts);
	free(unknown);
	free(run);
}

struct telling {
	const char *path;
	uint64_t bytes; /* of the file, twice */
	bool on;
};

static void tell(void *context, uint64_t bytes)
{
	const struct telling *telling = context;

	if (telling->on)
		sl_terminal_reading(telling->path, bytes, telling->bytes);
}

static void write_all(struct sl_snapshot *snapshot, FILE *in, const char *path, unsigned number, FILE *out,
		      struct sl_converted *how)
{
	struct work w = {.snapshot = snapshot, .names = {snapshot}, .write = sl_write_open(out), .first_us = first_time(snapshot)};
	int count = device_count(snapshot);
	struct lane *lanes = sl_memory_must(calloc((size_t)count, sizeof(*lanes)));

	for (int i = 0; i < count; i++) {
		lanes[i].work = &w;
		sl_rebuild(&lanes[i].rebuilt, snapshot, i);
	}
	put_header(&w, in, path, number, lanes, count);
	define_rounding(&w);
	for (int i = 0; i < count; i++) {
		put_start(&lanes[i]);
		put_window(&lanes[i]);
		sl_pieces_free(&lanes[i].live);
		sl_pieces_free(&lanes[i].segments);
		sl_rebuilt_free(&lanes[i].rebuilt);
		free(lanes[i].open.item);
	}
	how->unwritten = sl_write_close(w.write, w.now_ns) ? 0 : errno;
	free(lanes);
	free(w.names.of.item);
	free(w.frames.item);
	free(w.stacks.item);
	sl_map_free(&w.labels);
}

bool sl_snapshot_convert(FILE *in, const char *path, unsigned number, FILE *out, struct sl_converted *how)
{
	struct sl_snapshot snapshot;
	struct telling telling = {path, 0, sl_terminal_rewrites(STDERR_FILENO)};
	struct stat st;

	*how = (struct sl_converted){.offset = 0};
	if (!fstat(fileno(in), &st))
		telling.bytes = 2 * (uint64_t)st.st_size;
	if (sl_snapshot_read(&snapshot, in, tell, &telling, how->why, &how->offset))
		write_all(&snapshot, in, path, number, out, how);
	if (telling.on)
		tell(&telling, UINT64_MAX);
	sl_snapshot_free(&snapshot);
	return !how->why[0] && !how->unwritten;
}
