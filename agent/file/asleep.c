/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

#include "common/block.h"

#define RUN 16 /* insertion sort: events of one thread are nearly in order */

static void insert_run(struct sl_sort_key *keys, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct sl_sort_key key = keys[i];
		uint32_t at = i;

		for (; at && keys[at - 1].key > key.key; at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
	}
}

static void merge(struct sl_sort_key *out, const struct sl_sort_key *a, uint32_t a_count, const struct sl_sort_key *b,
		  uint32_t b_count)
{
	while (a_count && b_count) {
		if (b->key < a->key) {
			*out++ = *b++;
			b_count--;
		} else {
			*out++ = *a++;
			a_count--;
		}
	}
	memcpy(out, a, a_count * sizeof(*a));
	memcpy(out + a_count, b, b_count * sizeof(*b));
}

/* Sorts by key, ascending. scratch: room for as many keys. */
static void sort(struct sl_sort_key *keys, struct sl_sort_key *scratch, uint32_t count)
{
	uint32_t sorted = 1;

	while (sorted < count && keys[sorted - 1].key <= keys[sorted].key)
		sorted++;
	if (sorted >= count)
		return;
	for (uint32_t at = 0; at < count; at += RUN)
		insert_run(keys + at, count - at < RUN ? count - at : RUN);
	for (uint32_t width = RUN; width < count; width *= 2) {
		for (uint32_t at = 0; at < count; at += 2 * width) {
			uint32_t first = count - at < width ? count - at : width, rest = count - at - first;

			if (!rest || keys[at + first - 1].key <= keys[at + first].key)
				memcpy(scratch + at, keys + at, (first + (rest < width ? rest : width)) * sizeof(*keys));
			else
				merge(scratch + at, keys + at, first, keys + at + first, rest < width ? rest : width);
		}
		memcpy(keys, scratch, count * sizeof(*keys));
	}
}

static void clear_asleep_counts(struct sl_asleep_counts *counts)
{
	memset(counts, 0, sizeof(*counts));
}

static void count_call(struct sl_asleep_counts *counts, const struct sl_event *event)
{
	uint64_t api = event->api < SL_API_COUNT ? event->api : 0;

	counts->events++;
	counts->api[api].calls++;
	counts->api[api].time_ns += event->duration_ns;
	if (event->result)
		counts->api[api].failures++;
	else
		counts->api[api].bytes += event->bytes;
}

/* NULL: there is no row left. */
static void *row_of(struct sl_asleep_counts *counts, const struct sl_event *event)
{
	int64_t device = sl_event_kinds[event->kind].on_host ? -1 : event->device;
	unsigned i = 0;

	while (i < counts->rows && (counts->row[i].kind != event->kind || counts->row[i].device != device))
		i++;
	if (i == SL_ASLEEP_ROWS)
		return NULL;
	if (i == counts->rows) {
		counts->row[i].kind = event->kind;
		counts->row[i].device = device;
		counts->rows++;
	}
	return &counts->row[i];
}

/* Counts an allocation and its free.  False: there is no row for it, and nothing was counted. */
static bool count_pair(struct sl_asleep_counts *counts, const struct sl_event *made)
{
	__typeof__(&counts->row[0]) row = row_of(counts, made);

	if (!row)
		return false;
	row->blocks++;
	row->bytes += made->bytes;
	return true;
}

/* Notes a framework's totals after one of its blocks. */
static void count_block(struct sl_asleep_counts *counts, const struct sl_event *event)
{
	__typeof__(&counts->row[0]) row = row_of(counts, event);

	if (!row)
		return;
	row->peak_allocated = event->extra > row->peak_allocated ? event->extra : row->peak_allocated;
	row->peak_reserved = event->extra2 > row->peak_reserved ? event->extra2 : row->peak_reserved;
}

static void pack_calls(const struct sl_asleep_counts *counts, struct sl_pack *pack)
{
	unsigned used = 0;

	for (unsigned i = 1; i < SL_API_COUNT; i++)
		used += counts->api[i].calls != 0;
	sl_pack_array(pack, used);
	for (unsigned i = 1; i < SL_API_COUNT; i++) {
		if (!counts->api[i].calls)
			continue;
		sl_pack_array(pack, 5);
		sl_pack_uint(pack, i);
		sl_pack_uint(pack, counts->api[i].calls);
		sl_pack_uint(pack, counts->api[i].failures);
		sl_pack_uint(pack, counts->api[i].bytes);
		sl_pack_uint(pack, counts->api[i].time_ns);
	}
}

/* Writes the map into SL_BLOCK_BYTES(SL_BLOCK_EVENTS); returns the bytes used. */
static size_t pack_asleep_counts(const struct sl_asleep_counts *counts, uint8_t *bytes, struct sl_asleep_span span)
{
	struct sl_definition map = sl_definition_begin(bytes, SL_BLOCK_BYTES(SL_BLOCK_EVENTS), "slept");

	sl_definition_uint(&map, "begin_ns", span.begin_ns);
	sl_definition_uint(&map, "end_ns", span.end_ns);
	sl_definition_text(&map, "why", span.why);
	sl_definition_uint(&map, "wakes", span.wakes);
	sl_definition_uint(&map, "follow", span.follow);
	sl_definition_key(&map, "calls");
	pack_calls(counts, &map.pack);
	sl_definition_key(&map, "blocks");
	sl_pack_array(&map.pack, counts->rows);
	for (unsigned i = 0; i < counts->rows; i++) {
		sl_pack_array(&map.pack, 6);
		sl_pack_uint(&map.pack, counts->row[i].kind);
		sl_pack_int(&map.pack, counts->row[i].device);
		sl_pack_uint(&map.pack, counts->row[i].blocks);
		sl_pack_uint(&map.pack, counts->row[i].bytes);
		sl_pack_uint(&map.pack, counts->row[i].peak_allocated);
		sl_pack_uint(&map.pack, counts->row[i].peak_reserved);
	}
	return sl_definition_end(&map) ? map.pack.used : 0;
}

#define KEPT_MAX    (1u << 18) /* entries */
#define BATCH_MAX   (1u << 16)
#define KEPT_ENOUGH (KEPT_MAX - BATCH_MAX) /* above this the writer writes: a batch of which all events are kept still has room */
#define TABLE_SLOTS (2 * KEPT_MAX)
#define WRITE_NS    (600 * SL_NS_PER_S) /* longest time whose events a kill can lose */
#define NOBODY	    UINT32_MAX

struct saved_call {
	struct sl_event event;
	uint64_t number; /* number of its slot, or less; ascending within a thread */
	uint32_t thread; /* 0: this entry is free, and `number` is the next free one */
};

/* Address spaces: one number may stand for a block in each of them. */
enum space { SPACE_POINTERS, SPACE_REGISTERED, SPACE_BLOCKS };

static struct {
	struct saved_call *batch, *saved;
	struct sl_sort_key *keys; /* twice KEPT_MAX */
	uint32_t *table;	  /* by address: 1 + index into `saved` of the live allocation there */
} pages;

/*
 * The context that a thread used last, to which pinned memory belongs (model/replay/replay.c).  The call that set it may be
 * counted only.
 */
#define THREADS 4096
static struct {
	uint32_t thread;
	uint64_t context;
} * seen_in;

static bool was_awake, has_nodes;
static uint32_t batch_count, kept_end, kept_count, free_first;
static uint64_t since_ns, written_ns, settled_ns, woken_ns;
static struct sl_asleep_counts counts;
static _Atomic(const char *) rouse;

/* --- state ------------------------------------------------------------------------------------------ */

bool sl_asleep_is(void)
{
	return sl_agent->ring && atomic_load_explicit(&sl_agent->ring->file->asleep, memory_order_relaxed);
}

void sl_asleep_rouse(const char *why)
{
	if (sl_asleep_is())
		atomic_store(&rouse, why);
}

bool sl_asleep_asked_to_wake(void)
{
	return sl_asleep_is() && (atomic_load(&rouse) || atomic_load(&sl_agent->ring->file->asked) == SL_ASKED_TO_WAKE);
}

bool sl_asleep_asked_to_rest(void)
{
	return !sl_asleep_is() && atomic_load(&sl_agent->ring->file->asked) == SL_ASKED_TO_REST;
}

static void forget(void)
{
	batch_count = kept_end = kept_count = 0;
	free_first = NOBODY;
	if (!pages.table)
		return;
	memset(seen_in, 0, THREADS * sizeof(*seen_in));
	if (sl_open_proc_sandboxed()) {
		memset(pages.table, 0, TABLE_SLOTS * sizeof(*pages.table));
		return;
	}
	madvise(pages.batch, BATCH_MAX * sizeof(*pages.batch), MADV_DONTNEED);
	madvise(pages.saved, KEPT_MAX * sizeof(*pages.saved), MADV_DONTNEED);
	madvise(pages.keys, 2 * KEPT_MAX * sizeof(*pages.keys), MADV_DONTNEED);
	madvise(pages.table, TABLE_SLOTS * sizeof(*pages.table), MADV_DONTNEED);
}

static bool make_pages(void)
{
	if (pages.table)
		return true;
	if (sl_open_proc_sandboxed() || !(pages.batch = sl_pages_map(BATCH_MAX * sizeof(*pages.batch))) ||
	    !(pages.saved = sl_pages_map(KEPT_MAX * sizeof(*pages.saved))) ||
	    !(pages.keys = sl_pages_map(2 * KEPT_MAX * sizeof(*pages.keys))))
		return false;
	if (!(seen_in = sl_pages_map(THREADS * sizeof(*seen_in))))
		return false;
	pages.table = sl_pages_map(TABLE_SLOTS * sizeof(*pages.table));
	return pages.table;
}

static void answered(void)
{
	atomic_store(&sl_agent->ring->file->asked, SL_ASKED_NOTHING);
}

/* What a kill leaves. */
static void publish_counts(void)
{
	struct sl_ringfile *file = sl_agent->ring->file;

	atomic_store(&file->asleep_begun, counts.begun);
	atomic_store(&file->asleep_begun_bytes, counts.begun_bytes);
	atomic_store(&file->asleep_ended, counts.ended);
	atomic_store(&file->asleep_ended_bytes, counts.ended_bytes);
}

void sl_asleep_rest(void)
{
	struct sl_ringfile *file = sl_agent->ring->file;

	if (!make_pages()) {
		sl_define_note(
			"asked to rest, it stays awake: there is no memory for it, or the program forbade itself to get any");
		answered();
		return;
	}
	forget();
	clear_asleep_counts(&counts);
	publish_counts();
	since_ns = written_ns = settled_ns = sl_agent_now();
	atomic_store(&rouse, NULL);
	sl_agent->stacks = 0;
	atomic_store(&file->asleep_since_ns, since_ns);
	atomic_store(&file->asleep, 1);
	answered();
}

void sl_asleep_begin(bool asleep)
{
	atomic_store(&sl_agent->ring->file->obeys, 1);
	atomic_store(&sl_agent->ring->file->asleep, 0);
	sl_agent->stacks = sl_agent->options.stacks;
	was_awake = !asleep;
	has_nodes = false;
	woken_ns = 0;
	if (asleep)
		sl_asleep_rest();
}

/* --- what lives ------------------------------------------------------------------------------------- */

static uint64_t key_of(const struct sl_event *event, enum space space)
{
	return event->address << 2 | space;
}

static enum space space_of(const struct sl_event *event)
{
	return event->kind == SL_KIND_block		? SPACE_BLOCKS
	       : event->kind == SL_KIND_host_registered ? SPACE_REGISTERED
							: SPACE_POINTERS;
}

static uint32_t home_of(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32) & (TABLE_SLOTS - 1);
}

static uint64_t key_at(uint32_t slot)
{
	const struct sl_event *event = &pages.saved[pages.table[slot] - 1].event;

	return key_of(event, space_of(event));
}

/* The slot of the key, or the one where it would be inserted. */
static uint32_t slot_of(uint64_t key)
{
	uint32_t slot = home_of(key);

	while (pages.table[slot] && key_at(slot) != key)
		slot = (slot + 1) & (TABLE_SLOTS - 1);
	return slot;
}

/* Empties the slot and moves up the entries behind it in its chain. */
static void empty_slot(uint32_t hole)
{
	for (uint32_t at = (hole + 1) & (TABLE_SLOTS - 1); pages.table[at]; at = (at + 1) & (TABLE_SLOTS - 1)) {
		uint32_t home = home_of(key_at(at));

		if (((at - home) & (TABLE_SLOTS - 1)) < ((at - hole) & (TABLE_SLOTS - 1)))
			continue;
		pages.table[hole] = pages.table[at];
		hole = at;
	}
	pages.table[hole] = 0;
}

/* Returns the index of the new entry. */
static uint32_t keep(const struct saved_call *what)
{
	uint32_t at = free_first;

	if (at == NOBODY)
		at = kept_end++;
	else
		free_first = (uint32_t)pages.saved[at].number;
	pages.saved[at] = *what;
	kept_count++;
	return at;
}

static void drop(uint32_t at)
{
	pages.saved[at].thread = 0;
	pages.saved[at].number = free_first;
	free_first = at;
	kept_count--;
}

/* --- what becomes of an event ----------------------------------------------------------------------- */

enum fate { FATE_KEEP, FATE_COUNT, FATE_BEGINS, FATE_ENDS };

static bool is_plain(const struct sl_event *event, bool frees)
{
	static const uint32_t kinds = 1u << SL_KIND_device | 1u << SL_KIND_pool | 1u << SL_KIND_managed | 1u << SL_KIND_array |
				      1u << SL_KIND_host_pinned | 1u << SL_KIND_host_registered;

	if (event->flags & SL_FLAG_captured || sl_hooks[event->api].kind == SL_KIND_vmm)
		return false;
	return kinds >> event->kind & 1 || (frees && event->kind == SL_KIND_unknown);
}

static enum fate fate_of(const struct sl_event *event)
{
	enum sl_verb verb = sl_hooks[event->api].verb;

	if (event->flags & SL_FLAG_abandoned)
		return FATE_KEEP;
	if (sl_slot_shape(verb) == SL_SHAPE_RANGE)
		return FATE_COUNT;
	switch (verb) {
	case SL_VERB_CALL:
	case SL_VERB_RESERVE:
	case SL_VERB_UNRESERVE:
	case SL_VERB_EXPORT:
	case SL_VERB_POOL_TRIM:
	case SL_VERB_GRAPH_TRIM:
	case SL_VERB_BLOCK_WAIT:
	case SL_VERB_BLOCK_DONE:
	case SL_VERB_BLOCK_FRACTION:
	case SL_VERB_BLOCK_POOL:
		return FATE_COUNT;
	case SL_VERB_GRAPH_LAUNCH:
		return has_nodes || was_awake ? FATE_KEEP
					      : FATE_COUNT; /* the events matter only where a graph has allocation nodes */
	case SL_VERB_ALLOC:
		if (event->result || !is_plain(event, false))
			return FATE_KEEP;
		return event->address && event->bytes ? FATE_BEGINS : FATE_COUNT;
	case SL_VERB_FREE:
		if (event->result || !event->address)
			return FATE_COUNT;
		return is_plain(event, true) ? FATE_ENDS : FATE_KEEP;
	case SL_VERB_BLOCK_ALLOC:
		return event->address ? FATE_BEGINS : FATE_COUNT;
	case SL_VERB_BLOCK_FREE:
		return event->address ? FATE_ENDS : FATE_COUNT;
	case SL_VERB_GRAPH_ALLOC:
	case SL_VERB_BLOCK_OOM:
		return FATE_KEEP;
	default:
		return event->result && !(event->flags & SL_FLAG_abandoned) ? FATE_COUNT : FATE_KEEP;
	}
}

static void note_context(struct saved_call *what)
{
	__typeof__(seen_in) seen = &seen_in[what->thread % THREADS];

	if (what->event.context && what->event.device >= 0) {
		seen->thread = what->thread;
		seen->context = what->event.context;
	} else if (!what->event.context && sl_event_kinds[what->event.kind].on_host && seen->thread == what->thread) {
		what->event.context = seen->context;
	}
}

/* Keeps an allocation.  If one lives at its address already, the end of that one is missing or comes later: both are kept. */
static void begins(const struct saved_call *what)
{
	uint32_t slot = slot_of(key_of(&what->event, space_of(&what->event))), at = keep(what);

	if (!pages.table[slot] || pages.saved[pages.table[slot] - 1].event.time_ns <= what->event.time_ns)
		pages.table[slot] = at + 1;
}

static void ends(const struct saved_call *what)
{
	uint32_t slot = slot_of(key_of(&what->event, space_of(&what->event))), at = pages.table[slot] - 1;
	const struct sl_event *made = &pages.saved[at].event;

	if (!pages.table[slot] || made->time_ns > what->event.time_ns) {
		keep(what); /* the block was allocated before the sleep, or its allocation comes later */
		return;
	}
	counts.ended_bytes += made->bytes;
	if (!count_pair(&counts, made)) {
		keep(what);
		empty_slot(slot);
		return;
	}
	count_call(&counts, made);
	count_call(&counts, &what->event);
	empty_slot(slot);
	drop(at);
}

static bool is_oom(const struct sl_event *event)
{
	int oom = sl_event_families[sl_hooks[event->api].family].oom;

	return sl_hooks[event->api].verb == SL_VERB_BLOCK_OOM || (oom && event->result == oom);
}

static void apply(struct saved_call *what)
{
	const struct sl_event *event = &what->event;
	unsigned verb = sl_hooks[event->api].verb;
	enum fate fate = fate_of(event);

	has_nodes |= verb == SL_VERB_GRAPH_ALLOC || (verb == SL_VERB_ALLOC && event->flags & SL_FLAG_captured);
	note_context(what);
	if (is_oom(event))
		sl_asleep_rouse("a call ran out of memory");
	if (event->kind == SL_KIND_block)
		count_block(&counts, event);
	if (atomic_load(&rouse))
		fate = FATE_KEEP; /* it is to wake: blocks that live now are kept until they are written */
	switch (fate) {
	case FATE_COUNT:
		count_call(&counts, event);
		break;
	case FATE_BEGINS:
		begins(what);
		break;
	case FATE_ENDS:
		ends(what);
		break;
	default:
		keep(what);
	}
}

/* --- from step to step ------------------------------------------------------------------------------ */

bool sl_asleep_has_room(void)
{
	if (batch_count + SL_BLOCK_EVENTS > BATCH_MAX)
		sl_asleep_settle(UINT64_MAX);
	return kept_count <= KEPT_ENOUGH;
}

/* Begins and ends count here, since the caller then takes the events off the ring: a kill before they settle loses them. */
void sl_asleep_take(uint32_t thread, uint64_t first, const struct sl_event *events, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct saved_call *what = &pages.batch[batch_count++];

		what->event = events[i];
		what->number = first + i;
		what->thread = thread;
		switch (fate_of(&events[i])) {
		case FATE_BEGINS:
			counts.begun++;
			counts.begun_bytes += events[i].bytes;
			break;
		case FATE_ENDS:
			counts.ended++;
			break;
		default:
			break;
		}
	}
	publish_counts();
}

void sl_asleep_settle(uint64_t until_ns)
{
	struct sl_sort_key *keys = pages.keys;
	uint32_t left = 0, at;

	for (at = 0; at < batch_count; at++) {
		const struct sl_event *event = &pages.batch[at].event;
		bool before = sl_event_verbs[sl_hooks[event->api].verb].stamped_before;

		keys[at] = (struct sl_sort_key){event->time_ns << 1 | !before, at};
	}
	sort(keys, keys + KEPT_MAX, batch_count);
	for (at = 0; at < batch_count && pages.batch[keys[at].index].event.time_ns <= until_ns; at++) {
		apply(&pages.batch[keys[at].index]);
		pages.batch[keys[at].index].thread = 0;
	}
	for (at = 0; at < batch_count; at++)
		if (pages.batch[at].thread)
			pages.batch[left++] = pages.batch[at];
	batch_count = left;
	settled_ns = until_ns == UINT64_MAX ? sl_agent_now() : until_ns;
	publish_counts();
}

bool sl_asleep_is_due(uint64_t now_ns)
{
	return kept_count > KEPT_ENOUGH || (kept_count && now_ns - written_ns > WRITE_NS);
}

/* Gives events without a stack one stack of their own, so that every reader shows them as one row. */
static bool define_stack(void)
{
	uint8_t bytes[256];
	struct sl_definition map = sl_definition_begin(bytes, sizeof(bytes), "frame");

	sl_definition_uint(&map, "id", SL_ASLEEP_STACK);
	sl_definition_text(&map, "function", "made while asleep");
	sl_definition_text(&map, "file", "<asleep>");
	sl_definition_uint(&map, "line", 0);
	if (!sl_define_publish(&map))
		return false;
	map = sl_definition_begin(bytes, sizeof(bytes), "python_stack");
	sl_definition_uint(&map, "id", SL_ASLEEP_STACK);
	sl_definition_key(&map, "frames");
	sl_pack_array(&map.pack, 1);
	sl_pack_uint(&map.pack, SL_ASLEEP_STACK);
	return sl_define_publish(&map);
}

static uint64_t begin_of(const struct sl_event *event)
{
	return event->time_ns - (sl_event_verbs[sl_hooks[event->api].verb].stamped_before ? 0 : event->duration_ns);
}

static void mark(struct sl_event *event)
{
	if (!event->python && !event->native)
		event->python = SL_ASLEEP_STACK;
}

void sl_asleep_mark(struct sl_event *events, unsigned count)
{
	for (unsigned i = 0; i < count && begin_of(&events[i]) <= woken_ns; i++)
		mark(&events[i]);
}

/* One block of events for each thread, in slot order. */
static bool write_kept(uint32_t count, struct sl_event *events, sl_asleep_write *write)
{
	for (uint32_t at = 0, used; at < count; at += used) {
		const struct saved_call *first = &pages.saved[pages.keys[at].index], *last = first;

		for (used = 0; at + used < count && used < SL_BLOCK_EVENTS; used++) {
			const struct saved_call *what = &pages.saved[pages.keys[at + used].index];

			if (what->thread != first->thread)
				break;
			last = what;
			events[used] = what->event;
			mark(&events[used]);
		}
		if (!write(first->thread, first->number, last->number + 1, events, used))
			return false;
	}
	return true;
}

bool sl_asleep_flush(const char *why, bool wake, struct sl_event *events, uint8_t *map, sl_asleep_write *write)
{
	struct sl_ringfile *file = sl_agent->ring->file;
	uint64_t now_ns = sl_agent_now();
	uint32_t count = 0;
	size_t bytes;

	if (!pages.table)
		return true;
	if (wake) {
		sl_agent->stacks = sl_agent->options.stacks;
		woken_ns = sl_agent_now();
	}
	for (uint32_t i = 0; i < batch_count; i++)
		keep(&pages.batch[i]);
	for (uint32_t i = 0; i < kept_end; i++)
		if (pages.saved[i].thread)
			pages.keys[count++] =
				(struct sl_sort_key){(uint64_t)pages.saved[i].thread << 40 | pages.saved[i].number, i};
	sort(pages.keys, pages.keys + KEPT_MAX, count);
	if (wake && atomic_load(&rouse))
		why = atomic_load(&rouse);
	bytes = pack_asleep_counts(&counts, map, (struct sl_asleep_span){since_ns, settled_ns, why, wake, count});
	if (!define_stack() ||
	    sl_store_append(sl_agent->store, (struct sl_frame_index){.kind = SL_FRAME_DEFS, .count = 1}, map, bytes) ||
	    !write_kept(count, events, write))
		return false;
	atomic_fetch_add(&file->asleep_written, 1);
	forget();
	clear_asleep_counts(&counts);
	publish_counts();
	since_ns = settled_ns; /* all later events are written */
	written_ns = now_ns;
	if (wake) {
		was_awake = true;
		atomic_store(&file->asleep, 0);
		answered();
	}
	return true;
}
