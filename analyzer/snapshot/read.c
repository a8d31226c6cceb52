/* SPDX-License-Identifier: MIT */
/*
 * A pickle's machine whose dictionaries become records as soon as they are whole: an event never exists as a dictionary.  The file
 * is read twice, because each object has a number in it and hardly one is asked for again: the first reading finds those.
 *
 * Longer than other files: the keys of a snapshot and the records that they make stand side by side.
 */
#include "analyzer/snapshot/read.h"

#include <stdlib.h>
#include <string.h>

#include "analyzer/base/memory.h"
#include "analyzer/snapshot/opcodes.h"
#include "common/base.h"

#define DEPTH_MAX   (4u << 20) /* objects on the machine's stack: Python writes lists in parts of 1000 */
#define NAME_MAX_   4096u      /* bytes of a text that are kept */
#define FRAMES_MAX  256u       /* of a stack: outer ones are cut off */
#define INDEXES_MAX 1024       /* streams, pools */

enum kind {
	OTHER, /* not needed: None, numbers that are no integers, unknown objects */
	NUMBER,
	TEXT,
	PAIR, /* of numbers: the id of a pool */
	DICT, /* begun */
	FRAME,
	EVENT,
	BLOCK,
	SEGMENT,
	NOTE,
	HISTORY, /* of a block, up to 2.0: its stack */
	DIVISIONS,
	SETTINGS,
	LIST, /* empty */
	FRAMES,
	EVENTS,
	BLOCKS,
	SEGMENTS,
	NOTES,
	TRACES,
	OBJECT, /* one that has a number and is asked for again: an index into objects */
};

struct value {
	uint8_t kind;
	uint32_t count;	 /* of a list */
	uint64_t number; /* the number, text, record, or the first record of a list */
};

/* Keys of dictionaries, and texts that are values. */
enum word {
	NO_WORD,
	KEY_SEGMENTS,
	KEY_TRACES,
	KEY_SETTINGS,
	KEY_ANNOTATIONS,
	KEY_DEVICE,
	KEY_ADDRESS,
	KEY_TOTAL,
	KEY_STREAM,
	KEY_TYPE,
	KEY_POOL,
	KEY_EVENT_POOL,
	KEY_EXPANDABLE,
	KEY_BLOCKS,
	KEY_SIZE,
	KEY_REQUESTED,
	KEY_STATE,
	KEY_HISTORY,
	KEY_REAL_SIZE,
	KEY_FRAMES,
	KEY_ACTION,
	KEY_ADDR,
	KEY_TIME,
	KEY_FREE,
	KEY_CONTEXT,
	KEY_METADATA,
	KEY_NAME,
	KEY_FILE,
	KEY_LINE,
	KEY_STAGE,
	KEY_CONF,
	KEY_EXPANDABLES,
	KEY_DIVISIONS,
	KEY_REUSE,
	KEY_MAX_SPLIT,
	KEY_DRY,
	KEY_OUTSIDE,
	KEY_COUNT,
	WORD_ALLOC,
	WORD_FREE_REQUESTED,
	WORD_FREE_COMPLETED,
	WORD_SEGMENT_ALLOC,
	WORD_SEGMENT_FREE,
	WORD_SEGMENT_MAP,
	WORD_SEGMENT_UNMAP,
	WORD_OOM,
	WORD_SMALL,
	WORD_ACTIVE,
	WORD_PENDING,
	WORD_INACTIVE,
	WORD_SNAPSHOT,
	WORD_START,
};

static const struct {
	const char *text;
	enum word word;
} words[] = {
	{"segments", KEY_SEGMENTS},
	{"device_traces", KEY_TRACES},
	{"allocator_settings", KEY_SETTINGS},
	{"external_annotations", KEY_ANNOTATIONS},
	{"stormlog_dry", KEY_DRY},
	{"stormlog_outside", KEY_OUTSIDE},
	{"device", KEY_DEVICE},
	{"address", KEY_ADDRESS},
	{"total_size", KEY_TOTAL},
	{"stream", KEY_STREAM},
	{"segment_type", KEY_TYPE},
	{"segment_pool_id", KEY_POOL},
	{"pool_id", KEY_EVENT_POOL},
	{"is_expandable", KEY_EXPANDABLE},
	{"blocks", KEY_BLOCKS},
	{"size", KEY_SIZE},
	{"requested_size", KEY_REQUESTED},
	{"state", KEY_STATE},
	{"history", KEY_HISTORY},
	{"real_size", KEY_REAL_SIZE},
	{"frames", KEY_FRAMES},
	{"action", KEY_ACTION},
	{"addr", KEY_ADDR},
	{"time_us", KEY_TIME},
	{"device_free", KEY_FREE},
	{"compile_context", KEY_CONTEXT},
	{"user_metadata", KEY_METADATA},
	{"name", KEY_NAME},
	{"filename", KEY_FILE},
	{"line", KEY_LINE},
	{"stage", KEY_STAGE},
	{"PYTORCH_CUDA_ALLOC_CONF", KEY_CONF},
	{"PYTORCH_ALLOC_CONF", KEY_CONF},
	{"PYTORCH_HIP_ALLOC_CONF", KEY_CONF},
	{"expandable_segments", KEY_EXPANDABLES},
	{"roundup_power2_divisions", KEY_DIVISIONS},
	{"graph_capture_record_stream_reuse", KEY_REUSE},
	{"max_split_size", KEY_MAX_SPLIT},
	{"alloc", WORD_ALLOC},
	{"free_requested", WORD_FREE_REQUESTED},
	{"free_completed", WORD_FREE_COMPLETED},
	{"segment_alloc", WORD_SEGMENT_ALLOC},
	{"segment_free", WORD_SEGMENT_FREE},
	{"segment_map", WORD_SEGMENT_MAP},
	{"segment_unmap", WORD_SEGMENT_UNMAP},
	{"oom", WORD_OOM},
	{"small", WORD_SMALL},
	{"snapshot", WORD_SNAPSHOT},
	{"inactive", WORD_INACTIVE},
	{"active_allocated", WORD_ACTIVE},
	{"active_pending_free", WORD_PENDING},
	{"active_awaiting_free", WORD_PENDING},
	{"START", WORD_START},
};

struct machine {
	struct sl_snapshot *out;
	struct sl_opcodes pickle;
	SL_VECTOR(struct value) stack;
	SL_VECTOR(size_t) marks; /* heights of the stack */
	SL_VECTOR(struct value) objects;
	SL_VECTOR(uint64_t) asked;	    /* a bit for each number: it is asked for again */
	SL_VECTOR(uint32_t) numbers_before; /* of each word of `asked`: bits set before it */
	SL_VECTOR(struct value) memo;	    /* of the numbers that are asked for, in their order */
	SL_VECTOR(uint32_t) frames;	    /* of the list that grows */
	bool found;
};

static bool fail(struct machine *m, const char *why)
{
	if (!m->pickle.why[0])
		snprintf(m->pickle.why, sizeof(m->pickle.why), "%s", why);
	return false;
}

const char *sl_snapshot_text(const struct sl_snapshot *snapshot, uint32_t text)
{
	return text < snapshot->texts.count ? snapshot->texts.item[text] : NULL;
}

static uint32_t text_of(struct sl_snapshot *s, const char *text, size_t size)
{
	char copy[NAME_MAX_ + 1];
	uintptr_t *at;

	size = size < NAME_MAX_ ? size : NAME_MAX_;
	memcpy(copy, text, size);
	copy[size] = 0;
	at = sl_map_at(&s->text_ids, copy);
	if (!*at) {
		uint8_t word = NO_WORD;

		for (size_t i = 0; i < SL_COUNT(words); i++)
			if (!strcmp(words[i].text, copy))
				word = (uint8_t)words[i].word;
		*SL_PUSH(&s->texts) = sl_map_intern(&s->text_ids, copy);
		*SL_PUSH(&s->words) = word;
		*sl_map_at(&s->text_ids, copy) = s->texts.count;
		return (uint32_t)s->texts.count - 1;
	}
	return (uint32_t)*at - 1;
}

static uint16_t index_of(uint64_t **list, size_t *count, size_t *capacity, uint64_t number)
{
	for (size_t i = *count; i--;)
		if ((*list)[i] == number)
			return (uint16_t)i;
	if (*count == INDEXES_MAX) /* no program has so many */
		return 0;
	*list = sl_arena_grow(*list, capacity, *count, sizeof(**list));
	(*list)[*count] = number;
	return (uint16_t)(*count)++;
}
#define INDEX_OF(vector, number) index_of(&(vector)->item, &(vector)->count, &(vector)->capacity, number)

/* ---- objects */

static struct value deref(const struct machine *m, struct value value)
{
	return value.kind == OBJECT ? m->objects.item[value.number] : value;
}

static bool push(struct machine *m, struct value value)
{
	if (m->stack.count == DEPTH_MAX)
		return fail(m, "objects are nested deeper than in any snapshot");
	*SL_PUSH(&m->stack) = value;
	return true;
}

/* How many objects are above the mark, which goes; SIZE_MAX: there is none. */
static size_t above_mark(struct machine *m)
{
	size_t height;

	if (!m->marks.count)
		return SIZE_MAX;
	height = m->marks.item[--m->marks.count];
	return height <= m->stack.count ? m->stack.count - height : SIZE_MAX;
}

/* Replaces what the object below the uppermost `count` is. */
static void become(struct machine *m, size_t count, struct value value)
{
	struct value *at = &m->stack.item[m->stack.count - count - 1];

	if (at->kind == OBJECT)
		m->objects.item[at->number] = value;
	else
		*at = value;
}

/* ---- dictionaries */

static uint64_t number_in(const struct value *fields, enum word key)
{
	return fields[key].kind == NUMBER ? fields[key].number : 0;
}

static uint32_t text_in(const struct value *fields, enum word key)
{
	return fields[key].kind == TEXT ? (uint32_t)fields[key].number : SL_SNAPSHOT_NONE;
}

static enum word word_in(const struct machine *m, const struct value *fields, enum word key)
{
	return fields[key].kind == TEXT ? m->out->words.item[fields[key].number] : NO_WORD;
}

static uint32_t stack_in(const struct value *fields)
{
	const struct value *frames = &fields[KEY_FRAMES];

	if (frames->kind != FRAMES)
		frames = &fields[KEY_HISTORY];
	return frames->kind == FRAMES || frames->kind == HISTORY ? (uint32_t)frames->number : SL_SNAPSHOT_NONE;
}

static uint16_t pool_in(struct machine *m, const struct value *fields, enum word key)
{
	return fields[key].kind == PAIR ? INDEX_OF(&m->out->pools, fields[key].number) : SL_SNAPSHOT_NO_POOL;
}

static int device_in(const struct value *fields)
{
	uint64_t device = number_in(fields, KEY_DEVICE);

	return device < 256 ? (int)device : -1;
}

static void has(struct machine *m, const struct value *fields, enum word key, enum sl_snapshot_key which)
{
	if (fields[key].kind != DICT) /* it is there */
		m->out->keys |= 1u << which;
}

static struct value event_of(struct machine *m, const struct value *fields)
{
	static const uint8_t actions[] = {
		[WORD_ALLOC - WORD_ALLOC] = SL_SNAPSHOT_ALLOC,
		[WORD_FREE_REQUESTED - WORD_ALLOC] = SL_SNAPSHOT_FREE_REQUESTED,
		[WORD_FREE_COMPLETED - WORD_ALLOC] = SL_SNAPSHOT_FREE_COMPLETED,
		[WORD_SEGMENT_ALLOC - WORD_ALLOC] = SL_SNAPSHOT_SEGMENT_ALLOC,
		[WORD_SEGMENT_FREE - WORD_ALLOC] = SL_SNAPSHOT_SEGMENT_FREE,
		[WORD_SEGMENT_MAP - WORD_ALLOC] = SL_SNAPSHOT_SEGMENT_MAP,
		[WORD_SEGMENT_UNMAP - WORD_ALLOC] = SL_SNAPSHOT_SEGMENT_UNMAP,
		[WORD_OOM - WORD_ALLOC] = SL_SNAPSHOT_OOM,
	};
	enum word action = word_in(m, fields, KEY_ACTION);
	struct sl_snapshot_event *event = SL_PUSH(&m->out->events);

	*event = (struct sl_snapshot_event){
		.addr = number_in(fields, KEY_ADDR),
		.size = number_in(fields, KEY_SIZE),
		.time_us = number_in(fields, KEY_TIME),
		.stack = stack_in(fields),
		.stream = INDEX_OF(&m->out->streams, number_in(fields, KEY_STREAM)),
		.pool = pool_in(m, fields, KEY_EVENT_POOL),
		.action = action >= WORD_ALLOC && action <= WORD_OOM ? actions[action - WORD_ALLOC] : SL_SNAPSHOT_OTHER,
		.outside = number_in(fields, KEY_OUTSIDE),
	};
	if (event->action == SL_SNAPSHOT_OTHER && action != WORD_SNAPSHOT && !m->out->odd_events++)
		m->out->odd_action = text_in(fields, KEY_ACTION);
	if (event->action == SL_SNAPSHOT_OOM && fields[KEY_FREE].kind == NUMBER)
		event->addr = fields[KEY_FREE].number;
	else if (event->action == SL_SNAPSHOT_OOM && fields[KEY_ADDR].kind != NUMBER)
		event->addr = UINT64_MAX;
	has(m, fields, KEY_TIME, SL_SNAPSHOT_HAS_TIME);
	has(m, fields, KEY_CONTEXT, SL_SNAPSHOT_HAS_CONTEXT);
	has(m, fields, KEY_METADATA, SL_SNAPSHOT_HAS_METADATA);
	has(m, fields, KEY_EVENT_POOL, SL_SNAPSHOT_HAS_POOL);
	return (struct value){EVENT, 0, m->out->events.count - 1};
}

static struct value block_of(struct machine *m, const struct value *fields)
{
	enum word state = word_in(m, fields, KEY_STATE);

	if (state != WORD_ACTIVE && state != WORD_PENDING && state != WORD_INACTIVE && !m->out->odd_blocks++)
		m->out->odd_state = text_in(fields, KEY_STATE);
	*SL_PUSH(&m->out->blocks) = (struct sl_snapshot_block){
		.addr = number_in(fields, KEY_ADDRESS),
		.size = number_in(fields, KEY_SIZE),
		.requested = number_in(fields, fields[KEY_REQUESTED].kind == NUMBER ? KEY_REQUESTED : KEY_SIZE),
		.stack = stack_in(fields),
		.active = state == WORD_ACTIVE || state == WORD_PENDING,
		.pending = state == WORD_PENDING,
	};
	has(m, fields, KEY_ADDRESS, SL_SNAPSHOT_HAS_ADDRESS);
	has(m, fields, KEY_HISTORY, SL_SNAPSHOT_HAS_HISTORY);
	return (struct value){BLOCK, 0, m->out->blocks.count - 1};
}

static struct value segment_of(struct machine *m, const struct value *fields)
{
	const struct value *blocks = &fields[KEY_BLOCKS];
	struct sl_snapshot_segment segment = {
		.addr = number_in(fields, KEY_ADDRESS),
		.size = number_in(fields, KEY_TOTAL),
		.first = blocks->kind == BLOCKS ? blocks->number : 0,
		.count = blocks->kind == BLOCKS ? blocks->count : 0,
		.stack = stack_in(fields),
		.stream = INDEX_OF(&m->out->streams, number_in(fields, KEY_STREAM)),
		.pool = pool_in(m, fields, KEY_POOL),
		.device = device_in(fields),
		.small = word_in(m, fields, KEY_TYPE) == WORD_SMALL,
		.expandable = number_in(fields, KEY_EXPANDABLE),
		.outside = number_in(fields, KEY_OUTSIDE),
	};
	uint64_t at = segment.addr;

	for (size_t i = 0; i < segment.count; i++) { /* up to 2.0 blocks have no address */
		struct sl_snapshot_block *block = &m->out->blocks.item[segment.first + i];

		block->addr = block->addr ? block->addr : at;
		at = block->addr + block->size;
	}
	*SL_PUSH(&m->out->segments) = segment;
	return (struct value){SEGMENT, 0, m->out->segments.count - 1};
}

static struct value frame_of(struct machine *m, const struct value *fields)
{
	const uint32_t line[3] = {text_in(fields, KEY_NAME), text_in(fields, KEY_FILE), (uint32_t)number_in(fields, KEY_LINE)};

	return (struct value){FRAME, 0, sl_sequences_add(&m->out->frames, line, SL_COUNT(line))};
}

static struct value note_of(struct machine *m, const struct value *fields)
{
	*SL_PUSH(&m->out->notes) = (struct sl_snapshot_note){number_in(fields, KEY_TIME), text_in(fields, KEY_NAME),
							     device_in(fields), word_in(m, fields, KEY_STAGE) == WORD_START};
	return (struct value){NOTE, 0, m->out->notes.count - 1};
}

static struct value settings_of(struct machine *m, const struct value *fields)
{
	uint32_t conf = text_in(fields, KEY_CONF);

	m->out->conf = conf != SL_SNAPSHOT_NONE ? conf : m->out->conf;
	m->out->expandable |= number_in(fields, KEY_EXPANDABLES) == 1;
	if ((int64_t)number_in(fields, KEY_MAX_SPLIT) > 0)
		m->out->max_split = number_in(fields, KEY_MAX_SPLIT);
	has(m, fields, KEY_REUSE, SL_SNAPSHOT_HAS_REUSE);
	return (struct value){SETTINGS};
}

static struct sl_snapshot_range range_in(const struct value *fields, enum word key, enum kind kind)
{
	return fields[key].kind == kind ? (struct sl_snapshot_range){fields[key].number, fields[key].count}
					: (struct sl_snapshot_range){0, 0};
}

static void take_snapshot(struct machine *m, const struct value *fields)
{
	m->found = true;
	m->out->in_segments = range_in(fields, KEY_SEGMENTS, SEGMENTS);
	m->out->in_traces = range_in(fields, KEY_TRACES, TRACES);
	m->out->in_notes = range_in(fields, KEY_ANNOTATIONS, NOTES);
	m->out->dry = text_in(fields, KEY_DRY);
	has(m, fields, KEY_SETTINGS, SL_SNAPSHOT_HAS_SETTINGS);
	has(m, fields, KEY_ANNOTATIONS, SL_SNAPSHOT_HAS_ANNOTATIONS);
}

/* roundup_power2_divisions: {"1": 0, "2": 0, ...}, sizes in MiB. */
static bool take_division(struct machine *m, struct value key, struct value value)
{
	const char *text = sl_snapshot_text(m->out, (uint32_t)key.number);
	char *end;
	unsigned long long mib = strtoull(text, &end, 10);

	if (end == text || *end || !mib || mib & (mib - 1) || value.kind != NUMBER)
		return false;
	if (mib < 1ull << SL_SNAPSHOT_DIVISIONS)
		m->out->divisions[__builtin_ctzll(mib)] = value.number;
	return true;
}

/* The pairs above a dictionary make it what it is. */
static bool set(struct machine *m, size_t count)
{
	struct value fields[KEY_COUNT], *pairs, made = {OTHER};

	if (count == SIZE_MAX || count % 2 || m->stack.count < count + 1)
		return fail(m, "a key or a value is missing");
	if (deref(m, m->stack.item[m->stack.count - count - 1]).kind != DICT) { /* more than 1000 keys, which no record has */
		m->stack.count -= count;
		return true;
	}
	for (int i = 0; i < KEY_COUNT; i++)
		fields[i] = (struct value){DICT}; /* not there: no value is a dictionary that was only begun */
	pairs = &m->stack.item[m->stack.count - count];
	for (size_t i = 0; i < count; i += 2) {
		struct value key = deref(m, pairs[i]), value = deref(m, pairs[i + 1]);
		enum word word = key.kind == TEXT ? m->out->words.item[key.number] : NO_WORD;

		if (value.kind == DICT) /* an empty one */
			value.kind = OTHER;
		if (word && word < KEY_COUNT)
			fields[word] = value;
		else if (key.kind == TEXT && take_division(m, key, value))
			made.kind = DIVISIONS;
	}
	if (fields[KEY_ACTION].kind != DICT)
		made = event_of(m, fields);
	else if (fields[KEY_STATE].kind != DICT)
		made = block_of(m, fields);
	else if (fields[KEY_BLOCKS].kind != DICT)
		made = segment_of(m, fields);
	else if (fields[KEY_FILE].kind != DICT)
		made = frame_of(m, fields);
	else if (fields[KEY_STAGE].kind != DICT)
		made = note_of(m, fields);
	else if (fields[KEY_REAL_SIZE].kind != DICT)
		made = (struct value){HISTORY, 0, stack_in(fields)};
	else if (fields[KEY_SEGMENTS].kind != DICT || fields[KEY_TRACES].kind != DICT)
		take_snapshot(m, fields);
	else if (fields[KEY_CONF].kind != DICT || fields[KEY_EXPANDABLES].kind != DICT)
		made = settings_of(m, fields);
	become(m, count, made);
	m->stack.count -= count;
	return true;
}

/* ---- lists */

/* A record that is in a list twice gets a copy, so that a list is a range of records. */
#define COPY(vector, number)                                                                                                       \
	do {                                                                                                                       \
		SL_ROOM(vector);                                                                                                   \
		(vector)->item[(vector)->count] = (vector)->item[number];                                                          \
		number = (vector)->count++;                                                                                        \
	} while (0)

static uint64_t copy_of(struct machine *m, enum kind kind, uint64_t number)
{
	if (kind == EVENT)
		COPY(&m->out->events, number);
	else if (kind == BLOCK)
		COPY(&m->out->blocks, number);
	else if (kind == SEGMENT)
		COPY(&m->out->segments, number);
	else
		COPY(&m->out->notes, number);
	return number;
}

static size_t records_of(const struct machine *m, enum kind kind)
{
	return kind == EVENT   ? m->out->events.count
	       : kind == BLOCK ? m->out->blocks.count
	       : kind == NOTE  ? m->out->notes.count
			       : m->out->segments.count;
}

static bool append_record(struct machine *m, struct value *list, struct value item)
{
	static const uint8_t lists[] = {[EVENT] = EVENTS, [BLOCK] = BLOCKS, [SEGMENT] = SEGMENTS, [NOTE] = NOTES};

	if (list->kind == LIST)
		*list = (struct value){lists[item.kind], 0, item.number};
	if (list->kind != lists[item.kind])
		return true; /* a list of different things, which no snapshot has */
	if (item.number != list->number + list->count) {
		if (list->number + list->count != records_of(m, (enum kind)item.kind))
			return fail(m, "its lists share their parts as those of no snapshot do");
		item.number = copy_of(m, (enum kind)item.kind, item.number);
	}
	list->count++;
	return true;
}

static void append_frames(struct machine *m, struct value *list, size_t from, size_t count)
{
	size_t before = 0;
	const uint32_t *frames = list->kind == FRAMES ? sl_sequences_at(&m->out->stacks, (uint32_t)list->number, &before) : NULL;

	m->frames.count = 0;
	for (size_t i = 0; i < before; i++)
		*SL_PUSH(&m->frames) = frames[i];
	for (size_t i = 0; i < count && m->frames.count < FRAMES_MAX; i++) {
		struct value frame = deref(m, m->stack.item[from + i]);

		if (frame.kind == FRAME)
			*SL_PUSH(&m->frames) = (uint32_t)frame.number;
	}
	*list = (struct value){FRAMES, 1, sl_sequences_add(&m->out->stacks, m->frames.item, m->frames.count)};
}

/* A list of lists of events: one for each device.  A device without events has an empty list. */
static void append_trace(struct machine *m, struct value *list, struct value item)
{
	if (list->kind == LIST)
		*list = (struct value){TRACES, 0, m->out->traces.count};
	if (list->kind != TRACES || list->number + list->count != m->out->traces.count)
		return;
	*SL_PUSH(&m->out->traces) =
		item.kind == EVENTS ? (struct sl_snapshot_range){item.number, item.count} : (struct sl_snapshot_range){0, 0};
	list->count++;
}

static bool append(struct machine *m, size_t count)
{
	struct value list;
	size_t from;

	if (count == SIZE_MAX || m->stack.count < count + 1)
		return fail(m, "an item of a list is missing");
	from = m->stack.count - count;
	list = deref(m, m->stack.item[from - 1]);
	if (count && deref(m, m->stack.item[from]).kind == FRAME) {
		append_frames(m, &list, from, count);
	} else {
		for (size_t i = 0; i < count; i++) {
			struct value item = deref(m, m->stack.item[from + i]);

			if (item.kind == EVENT || item.kind == BLOCK || item.kind == SEGMENT || item.kind == NOTE) {
				if (!append_record(m, &list, item))
					return false;
			} else if (item.kind == EVENTS || item.kind == LIST) {
				append_trace(m, &list, item);
			} else if (list.kind == LIST) {
				list = item.kind == HISTORY ? item : (struct value){OTHER};
			}
		}
	}
	become(m, count, list);
	m->stack.count = from;
	return true;
}

static bool tuple(struct machine *m, uint64_t size)
{
	size_t count = size == UINT64_MAX ? above_mark(m) : size;
	struct value made = {OTHER}, first, second;

	if (count == SIZE_MAX || m->stack.count < count)
		return fail(m, "an item of a tuple is missing");
	if (count == 2) {
		first = deref(m, m->stack.item[m->stack.count - 2]);
		second = deref(m, m->stack.item[m->stack.count - 1]);
		if (first.kind == NUMBER && second.kind == NUMBER)
			made = (struct value){PAIR, 0, first.number << 32 | (uint32_t)second.number};
	} else if (count && deref(m, m->stack.item[m->stack.count - count]).kind == FRAME) {
		made = (struct value){LIST};
		append_frames(m, &made, m->stack.count - count, count);
	}
	m->stack.count -= count;
	return push(m, made);
}

/* ---- numbers of objects */

/* The index of a number among those that are asked for; UINT64_MAX: it is not. */
static uint64_t memo_of(const struct machine *m, uint64_t number)
{
	uint64_t word;

	if (number / 64 >= m->asked.count)
		return UINT64_MAX;
	word = m->asked.item[number / 64];
	if (!(word >> number % 64 & 1))
		return UINT64_MAX;
	return m->numbers_before.item[number / 64] + (uint64_t)__builtin_popcountll(word & ((1ull << number % 64) - 1));
}

static bool put(struct machine *m, uint64_t number)
{
	uint64_t at = memo_of(m, number);
	struct value *top;

	if (!m->stack.count)
		return fail(m, "the object that gets a number is missing");
	if (at == UINT64_MAX)
		return true;
	top = &m->stack.item[m->stack.count - 1];
	if (top->kind == DICT || top->kind == LIST) { /* it is filled later */
		*SL_PUSH(&m->objects) = *top;
		*top = (struct value){OBJECT, 0, m->objects.count - 1};
	}
	m->memo.item[at] = *top;
	return true;
}

static bool get(struct machine *m, uint64_t number)
{
	uint64_t at = memo_of(m, number);

	return push(m, at == UINT64_MAX ? (struct value){OTHER} : m->memo.item[at]);
}

/* ---- the two readings */

static bool step(struct machine *m, const struct sl_opcode *op)
{
	switch (op->what) {
	case SL_OPCODE_NONE:
	case SL_OPCODE_REAL:
		return push(m, (struct value){OTHER});
	case SL_OPCODE_NUMBER:
		return push(m, (struct value){NUMBER, 0, op->number});
	case SL_OPCODE_TEXT:
		return push(m, (struct value){TEXT, 0, text_of(m->out, op->text, op->size)});
	case SL_OPCODE_MARK:
		if (m->marks.count == DEPTH_MAX)
			return fail(m, "objects are nested deeper than in any snapshot");
		*SL_PUSH(&m->marks) = m->stack.count;
		return true;
	case SL_OPCODE_LIST:
		return push(m, (struct value){LIST});
	case SL_OPCODE_DICT:
		return push(m, (struct value){DICT});
	case SL_OPCODE_TUPLE:
		return tuple(m, op->number);
	case SL_OPCODE_APPEND:
		return append(m, 1);
	case SL_OPCODE_APPENDS:
		return append(m, above_mark(m));
	case SL_OPCODE_SET:
		return set(m, 2);
	case SL_OPCODE_SETS:
		return set(m, above_mark(m));
	case SL_OPCODE_PUT:
		return put(m, op->number);
	case SL_OPCODE_GET:
		return get(m, op->number);
	default:
		return false;
	}
}

/* Notes which numbers are asked for; a number larger than the file has bytes belongs to no object. */
static void note_asked(struct machine *m, uint64_t number)
{
	if (number > sl_input_offset(m->pickle.input))
		return;
	while (m->asked.count <= number / 64)
		*SL_PUSH(&m->asked) = 0;
	m->asked.item[number / 64] |= 1ull << number % 64;
}

static void count_asked(struct machine *m)
{
	uint64_t count = 0;

	for (size_t i = 0; i < m->asked.count; i++) {
		*SL_PUSH(&m->numbers_before) = (uint32_t)count;
		count += (uint64_t)__builtin_popcountll(m->asked.item[i]);
	}
	m->memo.item = sl_memory_must(calloc(count + 1, sizeof(*m->memo.item)));
}

struct reading {
	void (*progress)(void *context, uint64_t bytes);
	void *context;
	uint64_t before; /* bytes of the readings before */
};

#define UNIT	   512	      /* of sizes of blocks, in bytes */
#define ENOUGH	   8	      /* blocks or frees that show a rule */
#define TELL_EVERY (1u << 20) /* opcodes */

static bool read_through(struct machine *m, FILE *file, struct reading *reading, bool shape)
{
	struct sl_opcode op = {SL_OPCODE_NONE};
	uint64_t count = 0;

	m->pickle = (struct sl_opcodes){.input = sl_input_open(file, 0)};
	do {
		op = sl_opcodes_next(&m->pickle);
		if (shape ? op.what > SL_OPCODE_FAILED && !step(m, &op) : false)
			op.what = SL_OPCODE_FAILED;
		if (!shape && op.what == SL_OPCODE_GET)
			note_asked(m, op.number);
		if (!(++count % TELL_EVERY) && reading->progress)
			reading->progress(reading->context, reading->before + sl_input_read(m->pickle.input));
	} while (op.what > SL_OPCODE_FAILED);
	reading->before += sl_input_read(m->pickle.input);
	return op.what == SL_OPCODE_END;
}

/*
 * Ascend's allocator has rules of its own, and the frames of its library.  It adds 32 bytes to each request (torch_npu,
 * NPUCachingAllocator.cpp, round_size), so that one of whole units of 512 gets a unit more.
 */
static bool is_npu(const struct sl_snapshot *s)
{
	size_t more = 0, same = 0;

	for (size_t i = 0; i < s->texts.count; i++)
		if (strstr(s->texts.item[i], "torch_npu/") || strstr(s->texts.item[i], "c10_npu::"))
			return true;
	for (size_t i = 0; i < s->in_segments.count; i++) {
		const struct sl_snapshot_segment *segment = &s->segments.item[s->in_segments.first + i];

		for (size_t b = 0; b < segment->count && (segment->small || segment->expandable); b++) {
			const struct sl_snapshot_block *block = &s->blocks.item[segment->first + b];

			if (block->active && block->requested && !(block->requested % UNIT)) {
				more += block->size == block->requested + UNIT;
				same += block->size == block->requested;
			}
		}
	}
	return !same && more >= ENOUGH;
}

/* skip_actions=["free_completed"], from 2.11 on: a free has only the event of its request. */
static void complete_frees(struct sl_snapshot *s)
{
	size_t requests = 0;

	for (size_t i = 0; i < s->events.count; i++) {
		requests += s->events.item[i].action == SL_SNAPSHOT_FREE_REQUESTED;
		if (s->events.item[i].action == SL_SNAPSHOT_FREE_COMPLETED)
			return;
	}
	for (size_t i = 0; i < s->events.count && requests >= ENOUGH; i++)
		if (s->events.item[i].action == SL_SNAPSHOT_FREE_REQUESTED)
			s->events.item[i].action = SL_SNAPSHOT_FREE_COMPLETED;
}

/* What is outside of PyTorch's allocator goes from a device where the file has memory of it: PyTorch's own file lacks it too. */
static void drop_outside(struct sl_snapshot *s)
{
	struct sl_snapshot_segment *segments = s->segments.item + s->in_segments.first;
	bool inside[256] = {false}, any = false;
	size_t kept_count = 0;

	for (size_t d = 0; d < s->in_traces.count && d < SL_COUNT(inside); d++) {
		struct sl_snapshot_range trace = s->traces.item[s->in_traces.first + d];

		for (size_t i = 0; i < trace.count && !inside[d]; i++) {
			const struct sl_snapshot_event *event = &s->events.item[trace.first + i];

			inside[d] = !event->outside && event->action != SL_SNAPSHOT_OTHER && event->action != SL_SNAPSHOT_OOM;
			s->whole_sizes |= event->outside;
		}
		any |= inside[d];
		for (size_t i = 0; i < trace.count && inside[d]; i++)
			if (s->events.item[trace.first + i].outside)
				s->events.item[trace.first + i].action = SL_SNAPSHOT_OTHER;
	}
	for (size_t i = 0; i < s->in_segments.count; i++)
		if (!segments[i].outside || segments[i].device < 0 || !inside[segments[i].device])
			segments[kept_count++] = segments[i];
	s->in_segments.count = kept_count;
	s->whole_sizes &= !any;
}

bool sl_snapshot_read(struct sl_snapshot *snapshot, FILE *file, void (*progress)(void *context, uint64_t bytes), void *context,
		      char why[160], uint64_t *offset)
{
	struct machine m = {.out = snapshot};
	struct reading reading = {progress, context};
	bool fine = false;

	*snapshot = (struct sl_snapshot){
		.conf = SL_SNAPSHOT_NONE, .odd_action = SL_SNAPSHOT_NONE, .odd_state = SL_SNAPSHOT_NONE, .max_split = UINT64_MAX};
	INDEX_OF(&snapshot->pools, 0); /* everybody's */
	for (int shape = 0; shape < 2; shape++) {
		fine = read_through(&m, file, &reading, shape);
		if (fine && shape && !m.found && m.stack.count && deref(&m, m.stack.item[m.stack.count - 1]).kind == SEGMENTS) {
			struct value list = deref(&m, m.stack.item[m.stack.count - 1]);

			snapshot->in_segments = (struct sl_snapshot_range){list.number, list.count};
			m.found = true; /* of torch.cuda.memory_snapshot(), which has no more */
		}
		if (fine && shape && !m.found)
			fine = fail(&m, "it is a pickle, and no snapshot of torch.cuda.memory._dump_snapshot()");
		*offset = sl_input_offset(m.pickle.input);
		sl_input_close(m.pickle.input);
		if (!fine)
			break;
		if (!shape)
			count_asked(&m);
	}
	snprintf(why, 160, "%s", m.pickle.why);
	snapshot->is_npu = is_npu(snapshot);
	complete_frees(snapshot);
	drop_outside(snapshot);
	free(m.stack.item);
	free(m.marks.item);
	free(m.objects.item);
	free(m.asked.item);
	free(m.numbers_before.item);
	free(m.memo.item);
	free(m.frames.item);
	return fine;
}

bool sl_snapshot_is(FILE *file)
{
	struct sl_input *input = sl_input_open(file, 0);
	const uint8_t *bytes = sl_input_take(input, 2);
	char head[256];
	size_t size = 0;
	bool fine = bytes && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;

	while (fine && size < sizeof(head) && (bytes = sl_input_take(input, 1)))
		head[size++] = (char)*bytes;
	sl_input_close(input);
	return fine && (memmem(head, size, "segments", 8) || memmem(head, size, "device_traces", 13) ||
			memmem(head, size, "allocator_settings", 18) || memmem(head, size, "total_size", 10));
}

void sl_snapshot_free(struct sl_snapshot *snapshot)
{
	free(snapshot->events.item);
	free(snapshot->blocks.item);
	free(snapshot->segments.item);
	free(snapshot->notes.item);
	free(snapshot->traces.item);
	sl_map_free(&snapshot->text_ids);
	free(snapshot->texts.item);
	free(snapshot->words.item);
	sl_sequences_free(&snapshot->frames);
	sl_sequences_free(&snapshot->stacks);
	free(snapshot->streams.item);
	free(snapshot->pools.item);
	*snapshot = (struct sl_snapshot){0};
}
