/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <zlib.h>

#include "analyzer/base/memory.h"
#include "analyzer/outputs/page/page.h"
#include "analyzer/report/place.h"

#define TEXT_MAX 4096

static int put(void *data, const char *bytes, size_t size)
{
	struct sl_packed *packed = data;

	if (packed->size + size > packed->capacity) {
		packed->capacity = (packed->size + size) * 2 + 4096;
		packed->data = sl_memory_must(realloc(packed->data, packed->capacity));
	}
	memcpy(packed->data + packed->size, bytes, size);
	packed->size += size;
	return 0;
}

static void begin_packed(struct sl_packed *packed)
{
	*packed = (struct sl_packed){.pk = {.data = packed, .callback = put}};
}

void sl_packed_array_at(struct sl_packed *packed, size_t at, uint32_t items)
{
	size_t end = packed->size, head;
	unsigned char bytes[5];

	msgpack_pack_array(&packed->pk, items);
	head = packed->size - end;
	memcpy(bytes, packed->data + end, head);
	memmove(packed->data + at + head, packed->data + at, end - at);
	memcpy(packed->data + at, bytes, head);
}

void sl_packed_string(struct sl_packed *packed, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	if (!text) {
		msgpack_pack_nil(&packed->pk);
		return;
	}
	for (size_t cut = TEXT_MAX; size > TEXT_MAX;) { /* never inside a character */
		while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80)
			cut--;
		size = cut;
	}
	msgpack_pack_str_with_body(&packed->pk, text, size);
}

void sl_packed_bool(struct sl_packed *packed, int value)
{
	if (value)
		msgpack_pack_true(&packed->pk);
	else
		msgpack_pack_false(&packed->pk);
}

/* Bytes, nil where the value is SL_UNKNOWN. */
static void pack_known(struct sl_packed *packed, uint64_t value)
{
	if (value == UINT64_MAX)
		msgpack_pack_nil(&packed->pk);
	else
		msgpack_pack_uint64(&packed->pk, value);
}

static void pack_column(struct sl_packed *packed, enum sl_packed_type type, const void *values, size_t count)
{
	static const unsigned char widths[] = {0, 1, 2, 4, 4, 8};
	size_t size = count * widths[type];

	msgpack_pack_ext(&packed->pk, size, (int8_t)type);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (size)
		put(packed, values, size);
#else
	for (size_t i = 0; i < size; i++)
		put(packed, (const char *)values + i / widths[type] * widths[type] + widths[type] - 1 - i % widths[type], 1);
#endif
}

static void free_packed(struct sl_packed *packed)
{
	free(packed->data);
	begin_packed(packed);
}

unsigned char *sl_packed_gzip(const struct sl_packed *packed, size_t *size)
{
	z_stream z = {.next_in = packed->data, .avail_in = (uInt)packed->size};
	unsigned char *out;

	if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	*size = deflateBound(&z, packed->size);
	out = sl_memory_must(malloc(*size));
	z.next_out = out;
	z.avail_out = (uInt)*size;
	deflate(&z, Z_FINISH);
	*size = z.total_out;
	deflateEnd(&z);
	return out;
}

int sl_packed_base64(const unsigned char *data, size_t size, FILE *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)data[i] << 16 | (i + 1 < size ? (uint32_t)data[i + 1] << 8 : 0) |
				 (i + 2 < size ? data[i + 2] : 0);
		char four[4] = {letters[three >> 18], letters[three >> 12 & 63], i + 1 < size ? letters[three >> 6 & 63] : '=',
				i + 2 < size ? letters[three & 63] : '='};

		if (fwrite(four, 4, 1, out) != 1)
			return -1;
	}
	return 0;
}

/* ---- tables */

uint32_t sl_page_string(struct sl_page *page, const char *text)
{
	uintptr_t *at;

	if (!text || !*text)
		return 0;
	at = sl_map_at(&page->strings, text);
	if (!*at) {
		*at = page->texts.count;
		*SL_PUSH(&page->texts) = sl_map_intern(&page->strings, text);
	}
	return (uint32_t)*at;
}

static uint32_t frame_id(struct sl_page *page, const struct sl_stack_frame *frame)
{
	struct sl_page_frame key = {
		.function = sl_page_string(page, frame->function),
		.file = sl_page_string(page, frame->file),
		.module = sl_page_string(page, frame->module),
		.line = frame->line,
		.python = frame->python,
		.folded = frame->passes_on || sl_place_is_wrapper(frame),
		.own = frame->own,
	};
	char text[72], unnamed[32];
	uintptr_t *at;

	if (!key.function && !frame->python) { /* without symbols, module and offset tell frames apart */
		snprintf(unnamed, sizeof(unnamed), "+0x%llx", (unsigned long long)frame->offset);
		key.function = sl_page_string(page, unnamed);
	}
	snprintf(text, sizeof(text), "%x %x %x %x %x %x %x", key.function, key.file, key.module, key.line, key.python, key.folded,
		 key.own);
	at = sl_map_at(&page->frame_ids, text);
	if (!*at) {
		*SL_PUSH(&page->frames) = key;
		*at = page->frames.count;
	}
	return (uint32_t)*at - 1;
}

static uint32_t child(struct sl_page *page, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame;
	uint32_t node = sl_idmap_get(&page->node_ids, key, 0);

	if (node)
		return node;
	node = (uint32_t)page->node_parent.count;
	*SL_PUSH(&page->node_parent) = parent;
	*SL_PUSH(&page->node_frame) = frame;
	sl_idmap_set(&page->node_ids, key, node);
	return node;
}

uint32_t sl_page_frames(struct sl_page *page, uint32_t root, const struct sl_stack_frame *frames, unsigned count)
{
	while (count--)
		root = child(page, root, frame_id(page, &frames[count]));
	return root;
}

uint32_t sl_page_stack(struct sl_page *page, unsigned process, struct sl_stack stack)
{
	struct sl_stack_frame frames[SL_STACK_MAX];
	uint64_t key = (uint64_t)stack.python << 32 | stack.native;
	uint32_t node;
	unsigned count;

	node = key ? sl_idmap_get(&page->stack_nodes[process], key, UINT32_MAX) : UINT32_MAX;
	if (node != UINT32_MAX)
		return node;
	count = sl_process_stack(&page->report->processes[process], frames, stack);
	node = sl_page_frames(page, 0, frames, count);
	if (key)
		sl_idmap_set(&page->stack_nodes[process], key, node);
	return node;
}

uint32_t sl_page_site(struct sl_page *page, unsigned process, uint32_t index)
{
	const struct sl_model *model = page->report->processes[process].model;
	const struct sl_site *site;
	uint32_t *node;

	if (index >= model->sites.count)
		return 0;
	site = &model->sites.item[index];
	if (!page->site_nodes[process])
		page->site_nodes[process] = sl_memory_must(calloc(model->sites.count, sizeof(*node)));
	node = &page->site_nodes[process][index];
	if (!*node)
		*node = 1 + sl_page_stack(page, process, site->stack);
	return *node - 1;
}

uint32_t sl_page_note(struct sl_page *page, const char *text)
{
	struct sl_stack_frame frame = {.function = text};

	return child(page, 0, frame_id(page, &frame));
}

/* ---- values */

double sl_page_time(const struct sl_page *page, unsigned process, uint64_t ns)
{
	uint64_t unix_ns = sl_process_unix(&page->report->processes[process], ns);

	return unix_ns > page->t0_unix_ns ? (double)(unix_ns - page->t0_unix_ns) : 0;
}

void sl_page_key(struct sl_page *page, const char *key)
{
	sl_packed_string(&page->pack, key);
}

void sl_page_put_map(struct sl_page *page, const char *key, uint32_t pairs)
{
	sl_page_key(page, key);
	msgpack_pack_map(&page->pack.pk, pairs);
}

void sl_page_put_array(struct sl_page *page, const char *key, uint32_t items)
{
	sl_page_key(page, key);
	msgpack_pack_array(&page->pack.pk, items);
}

void sl_page_put_column(struct sl_page *page, const char *key, enum sl_packed_type type, const void *values, size_t count)
{
	sl_page_key(page, key);
	pack_column(&page->pack, type, values, count);
}

void sl_page_put_uint(struct sl_page *page, const char *key, uint64_t value)
{
	sl_page_key(page, key);
	msgpack_pack_uint64(&page->pack.pk, value);
}

void sl_page_put_double(struct sl_page *page, const char *key, double value)
{
	sl_page_key(page, key);
	if (isnan(value))
		msgpack_pack_nil(&page->pack.pk);
	else
		msgpack_pack_double(&page->pack.pk, value);
}

void sl_page_put_bool(struct sl_page *page, const char *key, int value)
{
	sl_page_key(page, key);
	sl_packed_bool(&page->pack, value);
}

void sl_page_put_time(struct sl_page *page, const char *key, unsigned process, uint64_t ns)
{
	sl_page_key(page, key);
	if (ns && ns != SL_UNKNOWN)
		msgpack_pack_double(&page->pack.pk, sl_page_time(page, process, ns));
	else
		msgpack_pack_nil(&page->pack.pk);
}

void sl_page_put_index(struct sl_page *page, const char *key, int64_t index)
{
	sl_page_key(page, key);
	if (index < 0)
		msgpack_pack_nil(&page->pack.pk);
	else
		msgpack_pack_int64(&page->pack.pk, index);
}

void sl_page_put_known(struct sl_page *page, const char *key, uint64_t value)
{
	sl_page_key(page, key);
	pack_known(&page->pack, value);
}

void sl_page_put_text(struct sl_page *page, const char *key, const char *text)
{
	sl_page_key(page, key);
	sl_packed_string(&page->pack, text);
}

void sl_page_row(struct sl_page *page, unsigned members, unsigned process)
{
	msgpack_pack_map(&page->pack.pk, members);
	sl_page_put_uint(page, "process", process);
	page->row_count++;
}

void sl_page_begin_rows(struct sl_page *page, const char *key)
{
	sl_page_key(page, key);
	page->rows_at = page->pack.size;
	page->row_count = 0;
}

void sl_page_end_rows(struct sl_page *page)
{
	sl_packed_array_at(&page->pack, page->rows_at, page->row_count);
}

void sl_page_put_unix(struct sl_page *page, const char *key, uint64_t unix_ns)
{
	sl_page_key(page, key);
	if (unix_ns)
		msgpack_pack_double(&page->pack.pk, unix_ns > page->t0_unix_ns ? (double)(unix_ns - page->t0_unix_ns) : 0);
	else
		msgpack_pack_nil(&page->pack.pk);
}

/* ---- the whole */

void sl_page_begin(struct sl_page *page, unsigned processes, const struct sl_page_budget *budget)
{
	*page = (struct sl_page){.process_count = processes, .budget = *budget};
	begin_packed(&page->pack);
	page->timelines = sl_memory_must(calloc(processes + 1, sizeof(*page->timelines)));
	page->site_nodes = sl_memory_must(calloc(processes + 1, sizeof(*page->site_nodes)));
	page->stack_nodes = sl_memory_must(calloc(processes + 1, sizeof(*page->stack_nodes)));
	page->order = sl_memory_must(calloc(processes + 1, sizeof(*page->order)));
	*SL_PUSH(&page->texts) = "";
	*SL_PUSH(&page->node_parent) = 0;
	*SL_PUSH(&page->node_frame) = 0;
}

void sl_page_open(struct sl_page *page, uint32_t keys, const char *source, const char *title, const char *run, const char *tag,
		  const char *dry)
{
	char number[32];

	msgpack_pack_map(&page->pack.pk, keys);
	sl_page_put_text(page, "schema", "stormlog.page");
	sl_page_put_index(page, "version", 1);
	sl_page_put_text(page, "generator", SL_VERSION);
	sl_page_put_text(page, "source", source);
	sl_page_put_text(page, "title", title);
	sl_page_put_text(page, "run", run);
	sl_page_put_text(page, "tag", tag);
	sl_page_put_text(page, "dry", dry);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)page->t0_unix_ns);
	sl_page_put_text(page, "t0_unix_ns", page->timeless ? NULL : number);
	sl_page_put_double(page, "duration_ns", (double)(page->t1_unix_ns - page->t0_unix_ns));
}

static void put_tables(struct sl_page *page)
{
	size_t count = page->frames.count;
	uint32_t *column = sl_memory_must(calloc(count + 1, sizeof(*column)));
	uint8_t *flag = sl_memory_must(calloc(count + 1, 1));

	sl_page_put_array(page, "strings", (uint32_t)page->texts.count);
	for (size_t i = 0; i < page->texts.count; i++)
		sl_packed_string(&page->pack, page->texts.item[i]);
	sl_page_put_map(page, "frames", 7);
#define COLUMN(name, to, type)                                                                                                     \
	for (size_t i = 0; i < count; i++)                                                                                         \
		to[i] = page->frames.item[i].name;                                                                                 \
	sl_page_put_column(page, #name, type, to, count)
	COLUMN(function, column, SL_PACKED_U32);
	COLUMN(file, column, SL_PACKED_U32);
	COLUMN(module, column, SL_PACKED_U32);
	COLUMN(line, column, SL_PACKED_U32);
	COLUMN(python, flag, SL_PACKED_U8);
	COLUMN(folded, flag, SL_PACKED_U8);
	COLUMN(own, flag, SL_PACKED_U8);
#undef COLUMN
	sl_page_put_map(page, "nodes", 2);
	sl_page_put_column(page, "parent", SL_PACKED_U32, page->node_parent.item, page->node_parent.count);
	sl_page_put_column(page, "frame", SL_PACKED_U32, page->node_frame.item, page->node_frame.count);
	free(column);
	free(flag);
}

void sl_page_put_warning(void *page, const char *text)
{
	sl_packed_string(&((struct sl_page *)page)->pack, text);
}

/* Says in words what was left out to stay below the size. */
static void put_given_up(struct sl_page *page)
{
	const struct sl_page_budget *b = &page->budget;
	unsigned count = page->process_count;
	bool diff = page->left_stacks || page->left_rows;
	char lines[4][256];
	uint32_t said = 0;

	if (b->bins < SL_TIMELINE_BINS)
		snprintf(lines[said++], sizeof(lines[0]),
			 "To keep this page small every line has %u bins instead of %u (each still knows its least and most).",
			 b->bins, SL_TIMELINE_BINS);
	if (b->detailed < count)
		snprintf(lines[said++], sizeof(lines[0]),
			 "To keep this page small %u of %u processes, those unlike the others, have their lines by kind and "
			 "library and their stacks; the others have their total.",
			 b->detailed, count);
	if (page->left_stacks)
		snprintf(lines[said++], sizeof(lines[0]),
			 "To keep this page small %zu stacks, those that changed least, are drawn as one.", page->left_stacks);
	if (page->left_rows)
		snprintf(lines[said++], sizeof(lines[0]),
			 "To keep this page small %zu rows, those that changed least, are left out.", page->left_rows);
	if (said)
		snprintf(lines[said++], sizeof(lines[0]), "--html-max-bytes SIZE allows a larger page; %s has every number.",
			 diff ? "diff --json" : "report.json");
	sl_page_put_array(page, "given_up", said);
	for (uint32_t i = 0; i < said; i++)
		sl_packed_string(&page->pack, lines[i]);
}

void sl_page_close(struct sl_page *page)
{
	put_given_up(page);
	put_tables(page); /* strings frames nodes */
}

void sl_page_free(struct sl_page *page)
{
	for (unsigned i = 0; i < page->process_count; i++) {
		free(page->site_nodes[i]);
		sl_idmap_free(&page->stack_nodes[i]);
	}
	free(page->site_nodes);
	free(page->stack_nodes);
	free(page->timelines);
	free(page->ranks);
	free(page->findings.item);
	free(page->order);
	free(page->texts.item);
	free(page->frames.item);
	free(page->node_parent.item);
	free(page->node_frame.item);
	sl_map_free(&page->strings);
	sl_map_free(&page->frame_ids);
	sl_idmap_free(&page->node_ids);
	free_packed(&page->pack);
}
