/* SPDX-License-Identifier: MIT */
#include "analyzer/fit/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"
#include "analyzer/fit/engine.h"
#include "analyzer/trace/trace.h"

#define STREAMS_MAX 1024
#define SEGMENT	    (20ull << 20) /* of several blocks (kLargeBuffer) */
#define GAP_MOST    (40ull << 20) /* a larger one of an expandable segment has whole pages, which are given back */

/* Bits of `extra` of a segment, and `extra` of one that goes (analyzer/snapshot/convert.c). */
enum { IS_SMALL = 1, IS_EXPANDABLE = 2, IS_GRAPH = 4 };
enum { EMPTIED, RETRIED, POOL_ENDED };

struct lane {
	struct sl_fit_recording out;
	struct sl_table blocks; /* by address; owner is the id, refs 1: a free of it was asked for, and waits */
	SL_VECTOR(struct sl_fit_seed) segments, before;
	SL_VECTOR(uint64_t) streams; /* handles, by number */
	SL_VECTOR(uint32_t) spare;
	SL_VECTOR(bool) in_use; /* private pools that are in use, by number */
	bool emptied, refused;
	uint64_t placed, now;
	struct sl_fit_placed driver; /* segments, by address */
};

struct builder {
	struct sl_fit_process *process;
	struct lane *lanes[SL_DEVICES_MAX];
};

static void put(struct lane *lane, struct sl_fit_op op, uint64_t reserved, uint64_t address)
{
	*SL_PUSH(&lane->out.ops) = op;
	*SL_PUSH(&lane->out.reserved) = reserved;
	*SL_PUSH(&lane->out.times) = lane->now;
	*SL_PUSH(&lane->out.addresses) = address;
}

/* A private pool has a user from its first block until its memory goes. */
static void hold(struct lane *lane, uint16_t pool, bool in_use)
{
	while (lane->in_use.count <= pool)
		*SL_PUSH(&lane->in_use) = false;
	if (pool && lane->in_use.item[pool] != in_use)
		put(lane, (struct sl_fit_op){.verb = in_use ? SL_FIT_HOLD : SL_FIT_GONE, .pool = pool}, SL_UNKNOWN, 0);
	lane->in_use.item[pool] = in_use;
}

static struct lane *lane_of(struct builder *b, int64_t device)
{
	if (device < 0 || device >= SL_DEVICES_MAX)
		return NULL;
	if (!b->lanes[device]) {
		b->lanes[device] = sl_memory_must(calloc(1, sizeof(*b->lanes[0])));
		b->lanes[device]->out.device = (int)device;
		b->lanes[device]->out.lowest[0] = b->lanes[device]->out.lowest[1] = UINT64_MAX;
	}
	return b->lanes[device];
}

static uint16_t stream_of(struct lane *lane, uint64_t handle)
{
	for (size_t i = 0; i < lane->streams.count; i++)
		if (lane->streams.item[i] == handle)
			return (uint16_t)i;
	if (lane->streams.count == STREAMS_MAX)
		return 0;
	*SL_PUSH(&lane->streams) = handle;
	return (uint16_t)(lane->streams.count - 1);
}

static uint32_t new_id(struct lane *lane, uint64_t address)
{
	struct sl_live *live = sl_table_find(&lane->blocks, address);
	uint32_t id = lane->spare.count ? lane->spare.item[--lane->spare.count] : lane->out.ids++;

	if (!live)
		live = sl_table_add(&lane->blocks, address);
	live->owner = id;
	live->refs = 0;
	return id;
}

static void segment(struct lane *lane, const struct sl_event *event)
{
	struct sl_fit_seed seed = {.address = event->address,
				   .bytes = event->bytes,
				   .stream = stream_of(lane, event->stream),
				   .pool = (uint16_t)(event->object ? event->object - 1 : 0),
				   .small = event->extra & IS_SMALL,
				   .expandable = event->extra & IS_EXPANDABLE};

	hold(lane, seed.pool, true);
	lane->out.pools |= seed.pool != 0;
	lane->out.pools_open |= seed.pool && !(event->extra & IS_GRAPH);
	if (!seed.expandable)
		sl_fit_placed_add(&lane->driver, event->address, event->bytes);
	if (event->flags & SL_FLAG_before)
		*SL_PUSH(&lane->segments) = seed;
	else if (!lane->placed)
		lane->placed = event->address;
	if (seed.expandable && event->address < lane->out.lowest[seed.small])
		lane->out.lowest[seed.small] = event->address;
}

/* A segment goes: inside a request, which found no memory, because the program empties the cache, or with its private pool. */
static void segment_goes(struct lane *lane, const struct sl_event *event)
{
	uint16_t pool = (uint16_t)(event->object ? event->object - 1 : 0);

	sl_fit_placed_remove(&lane->driver, event->address);
	hold(lane, pool, false);
	if (event->extra == RETRIED)
		lane->refused = true;
	else if (event->extra == POOL_ENDED)
		put(lane, (struct sl_fit_op){.verb = SL_FIT_DROP, .pool = pool}, SL_UNKNOWN, 0);
	else if (!lane->emptied || pool)
		put(lane, (struct sl_fit_op){.verb = SL_FIT_EMPTY}, SL_UNKNOWN, 0);
	lane->emptied |= event->extra == EMPTIED;
}

static void request(struct lane *lane, const struct sl_event *event, bool fails)
{
	struct sl_fit_op op = {.bytes = event->bytes - (event->object ? event->object - 1 : 0),
			       .python = (uint32_t)event->python,
			       .verb = fails ? SL_FIT_TRY : SL_FIT_ALLOC,
			       .stream = stream_of(lane, event->stream),
			       .pool = (uint16_t)event->context,
			       .refused = fails ? 255 : lane->refused};

	if (event->flags & SL_FLAG_before) {
		*SL_PUSH(&lane->before) = (struct sl_fit_seed){.address = event->address,
							       .bytes = event->bytes,
							       .requested = op.bytes,
							       .stream = op.stream,
							       .pool = op.pool,
							       .id = new_id(lane, event->address),
							       .active = true};
		return;
	}
	hold(lane, op.pool, true);
	if (lane->placed && !fails)
		put(lane, (struct sl_fit_op){.verb = SL_FIT_PLACE, .bytes = lane->placed}, SL_UNKNOWN, 0);
	lane->placed = 0;
	lane->emptied = lane->refused = false;
	lane->out.requests++;
	lane->out.events++;
	lane->out.goes_on |= lane->out.ooms != 0;
	if (fails) {
		lane->out.ooms++;
		lane->out.goes_on = false;
	} else {
		op.id = new_id(lane, event->address);
	}
	put(lane, op, event->extra2, fails ? 0 : event->address);
}

static void give_back(struct lane *lane, const struct sl_event *event)
{
	struct sl_live *live = sl_table_find(&lane->blocks, event->address);

	lane->emptied = false;
	lane->out.events++;
	if (!live)
		return;
	put(lane, (struct sl_fit_op){.verb = live->refs ? SL_FIT_DONE : SL_FIT_FREE, .id = (uint32_t)live->owner}, event->extra2,
	    0);
	*SL_PUSH(&lane->spare) = (uint32_t)live->owner;
	sl_table_remove(&lane->blocks, live);
}

/* The program is done with a block, and other streams may not be. */
static void wait_for(struct lane *lane, const struct sl_event *event)
{
	struct sl_live *live = sl_table_find(&lane->blocks, event->address);

	if (!live || live->refs)
		return;
	live->refs = 1;
	put(lane, (struct sl_fit_op){.verb = SL_FIT_FREE_LATER, .id = (uint32_t)live->owner}, SL_UNKNOWN, 0);
}

static void take(struct builder *b, const struct sl_item *item)
{
	const struct sl_event *event = item->event;
	struct lane *lane = item->kind == SL_ITEM_EVENT && item->hook ? lane_of(b, event->device) : NULL;

	if (!lane)
		return;
	lane->now = event->time_ns;
	switch (item->hook->verb) {
	case SL_VERB_ALLOC:
		segment(lane, event);
		break;
	case SL_VERB_FREE:
		segment_goes(lane, event);
		break;
	case SL_VERB_BLOCK_ALLOC:
	case SL_VERB_BLOCK_OOM:
		request(lane, event, item->hook->verb == SL_VERB_BLOCK_OOM);
		break;
	case SL_VERB_BLOCK_FREE:
		give_back(lane, event);
		break;
	case SL_VERB_BLOCK_WAIT:
		wait_for(lane, event);
		break;
	default:
		break;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct sl_fit_seed *x = a, *y = b;

	return SL_RISING(x->address, y->address);
}

static bool are_one(const struct sl_fit_seed *a, const struct sl_fit_seed *b)
{
	return a->expandable && b->expandable && a->small == b->small && a->stream == b->stream && a->pool == b->pool &&
	       a->address + a->bytes == b->address;
}

/* The pieces of one segment, or of one stretch of pages: its blocks, and what lies free between them. */
static size_t put_pieces(struct lane *lane, struct sl_fit_seed segment, size_t at)
{
	uint64_t begin = segment.address, end = segment.address + segment.bytes;

	segment.number = lane->out.seeds.count ? lane->out.seeds.item[lane->out.seeds.count - 1].number + 1 : 1;
	for (; at < lane->before.count && lane->before.item[at].address < end; at++) {
		const struct sl_fit_seed *block = &lane->before.item[at];
		struct sl_fit_seed piece = segment;

		if (block->address < begin || block->bytes > end - block->address) { /* no segment holds it */
			lane->out.doubt = "the places of blocks before the window are not known";
			continue;
		}
		if (block->address > begin) {
			piece.address = begin;
			piece.bytes = block->address - begin;
			*SL_PUSH(&lane->out.seeds) = piece;
		}
		piece.address = block->address;
		piece.bytes = block->bytes;
		piece.requested = block->requested;
		piece.id = block->id;
		piece.active = true;
		*SL_PUSH(&lane->out.seeds) = piece;
		begin = block->address + block->bytes;
	}
	if (begin < end) {
		segment.bytes = end - begin;
		segment.address = begin;
		*SL_PUSH(&lane->out.seeds) = segment;
	}
	return at;
}

static void put_seeds(struct lane *lane)
{
	size_t at = 0, next;

	if (lane->segments.count)
		qsort(lane->segments.item, lane->segments.count, sizeof(*lane->segments.item), by_address);
	if (lane->before.count)
		qsort(lane->before.item, lane->before.count, sizeof(*lane->before.item), by_address);
	for (size_t i = 0; i < lane->segments.count; i = next) {
		struct sl_fit_seed segment = lane->segments.item[i];

		for (next = i + 1; next < lane->segments.count && are_one(&segment, &lane->segments.item[next]); next++)
			segment.bytes += lane->segments.item[next].bytes;
		lane->out.reserved_start += segment.bytes;
		at = put_pieces(lane, segment, at);
	}
}

/* The numbers of streams follow their handles, by which PyTorch orders free blocks. */
static void number_streams(struct lane *lane)
{
	uint64_t *sorted = sl_memory_must(malloc((lane->streams.count + 1) * sizeof(*sorted)));
	uint16_t *number = sl_memory_must(calloc(lane->streams.count + 1, sizeof(*number)));

	stream_of(lane, 0);
	sorted = sl_memory_must(realloc(sorted, (lane->streams.count + 1) * sizeof(*sorted)));
	number = sl_memory_must(realloc(number, (lane->streams.count + 1) * sizeof(*number)));
	memcpy(sorted, lane->streams.item, lane->streams.count * sizeof(*sorted));
	qsort(sorted, lane->streams.count, sizeof(*sorted), sl_stats_by_number);
	for (size_t i = 0; i < lane->streams.count; i++) {
		const uint64_t *at =
			bsearch(&lane->streams.item[i], sorted, lane->streams.count, sizeof(*sorted), sl_stats_by_number);

		number[i] = (uint16_t)(at - sorted);
	}
	for (size_t i = 0; i < lane->out.ops.count; i++)
		lane->out.ops.item[i].stream = number[lane->out.ops.item[i].stream];
	for (size_t i = 0; i < lane->out.seeds.count; i++)
		lane->out.seeds.item[i].stream = number[lane->out.seeds.item[i].stream];
	lane->out.streams = (unsigned)lane->streams.count - 1;
	free(sorted);
	free(number);
}

static const char *doubt_of(const struct sl_header *header, const struct lane *lane)
{
	char name[40];
	unsigned long long events = 0, reserved, requested;
	int exact = 0, trimmed = 0;

	snprintf(name, sizeof(name), "snapshot_device_%d", lane->out.device);
	sscanf(sl_header_setting(header, name), "%llu %llu %llu %d %d", &events, &reserved, &requested, &exact, &trimmed);
	if (*sl_header_setting(header, "snapshot_npu"))
		return "it is a snapshot of torch_npu, whose allocator is not PyTorch's own";
	if (events < SL_FIT_WINDOW_MIN)
		return "the file has no window, so that it is not known what was asked for";
	if (trimmed)
		return "events are missing: they do not lead to the file's final state";
	if (!exact)
		return "the places of blocks before the window are not known";
	return lane->out.doubt;
}

static void keep_lane(struct builder *b, struct lane *lane)
{
	struct sl_fit_process *p = b->process;
	struct sl_fit_recording *out = &lane->out;
	const struct sl_header *header = &p->trace->header;
	const char *at;

	put_seeds(lane);
	number_streams(lane);
	out->window = true;
	out->trace = p->trace;
	out->others_known = true; /* capacities are PyTorch's own */
	out->models = sl_fit_placed_models(&lane->driver);
	out->settings = sl_fit_defaults;
	out->text = "";
	for (unsigned i = 0; i < header->environment_count; i++)
		if (header->environment[i].value)
			out->text = header->environment[i].value;
	sscanf(sl_header_setting(header, "snapshot_releases"), "%u %u", &out->oldest, &out->newest);
	out->oldest = out->oldest < 2 ? 2 : out->oldest; /* the rules of 2.0 and 2.1 are those of 2.2 */
	out->newest = !out->newest ? SL_FIT_NEWEST : out->newest < out->oldest ? out->oldest : out->newest;
	out->release = SL_FIT_RELEASE(2, 0) + out->newest;
	out->doubt = doubt_of(header, lane);
	if (sl_fit_settings_parse(&out->settings, out->text, out->release, &at))
		out->doubt = "the recorded settings are not understood";
	out->budget = &p->budget;
	p->recordings = sl_memory_must(realloc(p->recordings, (p->count + 1) * sizeof(*out)));
	p->recordings[p->count++] = *out;
}

static void record_windows(struct sl_fit_process *process, struct sl_trace *trace, const char *session)
{
	struct builder b = {.process = process};
	struct sl_order *order = sl_order_new(trace);
	const struct sl_item *item;

	*process = (struct sl_fit_process){.trace = trace};
	while ((item = sl_order_next(order)))
		take(&b, item);
	sl_order_free(order);
	for (unsigned d = 0; d < SL_DEVICES_MAX; d++) {
		struct lane *lane = b.lanes[d];

		if (!lane)
			continue;
		lane->out.session = session;
		keep_lane(&b, lane);
		sl_table_free(&lane->blocks);
		sl_fit_placed_free(&lane->driver);
		SL_DROP(&lane->segments);
		SL_DROP(&lane->before);
		SL_DROP(&lane->streams);
		SL_DROP(&lane->spare);
		SL_DROP(&lane->in_use);
		free(lane);
	}
	sl_budget_begin(&process->budget, trace->disk_bytes);
	sl_budget_resume();
}

void sl_fit_record(struct sl_fit_process *process, struct sl_trace *trace, const char *session, bool alone)
{
	if (sl_header_is_snapshot(&trace->header))
		record_windows(process, trace, session);
	else
		sl_fit_record_calls(process, trace, session, alone);
}

/* ---- from nothing */

static int by_size(const void *a, const void *b)
{
	const struct sl_fit_seed *x = a, *y = b;

	return SL_FALLING(x->requested, y->requested) ?: SL_RISING(x->address, y->address);
}

/*
 * True: the free piece belongs to a segment that a block holds, or to a private pool, which is in use: it cannot be given back.
 */
static bool is_gap(const struct sl_fit_recording *r, size_t at)
{
	const struct sl_fit_seed *seed = &r->seeds.item[at];

	if (seed->pool && !seed->active)
		return true;
	if (seed->active || (seed->expandable && seed->bytes >= GAP_MOST))
		return false;
	return (at && r->seeds.item[at - 1].number == seed->number) ||
	       (at + 1 < r->seeds.count && r->seeds.item[at + 1].number == seed->number);
}

/* Blocks, and with_gaps what is free between them, which gets an id behind the others. */
static size_t pieces_of(struct sl_fit_recording *out, struct sl_fit_seed *pieces, bool with_gaps)
{
	size_t count = 0;

	for (size_t i = 0; i < out->seeds.count; i++) {
		if (!out->seeds.item[i].active && !(with_gaps && is_gap(out, i)))
			continue;
		pieces[count] = out->seeds.item[i];
		if (!pieces[count].active) {
			pieces[count].requested = pieces[count].bytes;
			pieces[count].id = out->ids++;
		}
		count++;
	}
	return count;
}

/*
 * Bytes of the segment that begins with this piece, if it was made for a block that is gone: it has several pieces, and more memory
 * than PyTorch takes for such.  0: it was not.
 */
static uint64_t segment_of(const struct sl_fit_seed *pieces, size_t count, size_t at)
{
	uint64_t bytes = pieces[at].bytes;
	size_t end = at + 1;

	if (pieces[at].small || pieces[at].expandable || (at && pieces[at - 1].number == pieces[at].number))
		return 0;
	for (; end < count && pieces[end].number == pieces[at].number; end++)
		bytes += pieces[end].bytes;
	return end > at + 1 && bytes > SEGMENT ? bytes : 0;
}

static void put_op(struct sl_fit_recording *out, size_t *at, struct sl_fit_op op, uint64_t time)
{
	out->ops.item[*at] = op;
	out->reserved.item[*at] = SL_UNKNOWN;
	out->times.item[(*at)++] = time;
}

struct sl_fit_recording sl_fit_from_nothing(const struct sl_fit_recording *r, enum sl_fit_first first)
{
	struct sl_fit_recording out = *r;
	struct sl_fit_seed *pieces = sl_memory_must(calloc(r->seeds.count + 1, sizeof(*pieces)));
	size_t count = pieces_of(&out, pieces, first == SL_FIT_WITH_GAPS), capacity = 4 * count + r->ops.count + 1, at = 0;
	uint64_t whole, begin = r->times.count ? r->times.item[0] : 0;

	if (first == SL_FIT_BY_SIZE)
		qsort(pieces, count, sizeof(*pieces), by_size);
	out.ops.item = sl_memory_must(malloc(capacity * sizeof(*out.ops.item)));
	out.reserved.item = sl_memory_must(malloc(capacity * sizeof(*out.reserved.item)));
	out.times.item = sl_memory_must(malloc(capacity * sizeof(*out.times.item)));
	memset(&out.seeds, 0, sizeof(out.seeds));
	memset(&out.addresses, 0, sizeof(out.addresses));
	for (size_t i = 0; i < count; i++) {
		if (first == SL_FIT_WITH_GAPS && (whole = segment_of(pieces, count, i))) {
			put_op(&out, &at,
			       (struct sl_fit_op){.bytes = whole,
						  .id = out.ids,
						  .stream = pieces[i].stream,
						  .pool = pieces[i].pool,
						  .verb = SL_FIT_ALLOC},
			       begin);
			put_op(&out, &at, (struct sl_fit_op){.id = out.ids, .verb = SL_FIT_FREE}, begin);
			out.requests++;
		}
		put_op(&out, &at,
		       (struct sl_fit_op){.bytes = pieces[i].requested,
					  .id = pieces[i].id,
					  .stream = pieces[i].stream,
					  .pool = pieces[i].pool,
					  .verb = SL_FIT_ALLOC},
		       begin);
	}
	for (size_t i = 0; i < count; i++)
		if (!pieces[i].active)
			put_op(&out, &at, (struct sl_fit_op){.id = pieces[i].id, .verb = SL_FIT_FREE}, begin);
	for (size_t i = 0; i < r->ops.count; i++) {
		struct sl_fit_op op = r->ops.item[i];

		if (op.verb == SL_FIT_PLACE)
			op.bytes = 0;
		put_op(&out, &at, op, r->times.item[i]);
	}
	out.ids++;
	out.ops.count = out.reserved.count = out.times.count = at;
	out.requests += count;
	free(pieces);
	return out;
}

struct sl_fit_recording sl_fit_without_cache(const struct sl_fit_recording *r)
{
	struct sl_fit_recording out = *r;
	const struct sl_fit_seed *seeds = r->seeds.item;

	memset(&out.seeds, 0, sizeof(out.seeds));
	out.reserved_start = 0;
	for (size_t i = 0, next; i < r->seeds.count; i = next) {
		bool active = false;

		for (next = i; next < r->seeds.count && seeds[next].number == seeds[i].number; next++)
			active |= seeds[next].active;
		for (; active && i < next; i++) {
			*SL_PUSH(&out.seeds) = seeds[i];
			out.reserved_start += seeds[i].bytes;
		}
	}
	return out;
}
