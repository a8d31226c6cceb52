/* SPDX-License-Identifier: MIT */
/* Longer than other files: each form that is written is beside the reading of it. */
#include "analyzer/summary/summary.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/pool.h"
#include "analyzer/trace/inner.h"

#define MAP_HEAD 3 /* of one with up to 65535 members */

/* ---- writing */

struct writer {
	msgpack_packer pk;
	const struct sl_model *model;
};

/* The next bytes of the buffer, for the caller to fill. */
static char *room_for(msgpack_sbuffer *out, size_t size)
{
	while (out->alloc - out->size < size) {
		out->alloc = out->alloc ? out->alloc * 2 : MSGPACK_SBUFFER_INIT_SIZE;
		out->data = sl_memory_must(realloc(out->data, out->alloc));
	}
	out->size += size;
	return out->data + out->size - size;
}

static void put_text(struct writer *w, const char *text)
{
	size_t size = text ? strlen(text) : 0;

	if (text) {
		msgpack_pack_str(&w->pk, size);
		msgpack_pack_str_body(&w->pk, text, size);
	} else {
		msgpack_pack_nil(&w->pk);
	}
}

static inline uint64_t number_at(const void *at, unsigned size)
{
	uint64_t number = 0;

	memcpy(&number, at, size); /* little-endian, as on every machine that stormlog supports */
	return number;
}

/* A map whose length is known when its members are there. */
static size_t begin_map(struct writer *w)
{
	room_for(w->pk.data, MAP_HEAD);
	return ((msgpack_sbuffer *)w->pk.data)->size - MAP_HEAD;
}

static void end_map(struct writer *w, size_t begin, unsigned members)
{
	char *head = ((msgpack_sbuffer *)w->pk.data)->data + begin;

	head[0] = (char)0xde;
	head[1] = (char)(members >> 8);
	head[2] = (char)members;
}

/* ---- columns: a loop for each pair of sizes, in which they are constants */

struct numbers {
	char *at;
	size_t stride;
	unsigned size;
};

#define INLINE static inline __attribute__((always_inline))

INLINE void copy_each(struct numbers to, struct numbers from, size_t count, unsigned to_size, unsigned from_size)
{
	for (; count; count--, to.at += to.stride, from.at += from.stride) {
		uint64_t number = number_at(from.at, from_size);

		memcpy(to.at, &number, to_size);
	}
}

INLINE void copy_from(struct numbers to, struct numbers from, size_t count, unsigned from_size)
{
	to.size == 1   ? copy_each(to, from, count, 1, from_size)
	: to.size == 2 ? copy_each(to, from, count, 2, from_size)
	: to.size == 4 ? copy_each(to, from, count, 4, from_size)
		       : copy_each(to, from, count, 8, from_size);
}

/* Sizes are 1, 2, 4 or 8. */
static void copy_numbers(struct numbers to, struct numbers from, size_t count)
{
	if (to.stride == from.size && from.stride == from.size && to.size == from.size) {
		memcpy(to.at, from.at, count * from.size);
		return;
	}
	from.size == 1	 ? copy_from(to, from, count, 1)
	: from.size == 2 ? copy_from(to, from, count, 2)
	: from.size == 4 ? copy_from(to, from, count, 4)
			 : copy_from(to, from, count, 8);
}

INLINE uint64_t bits_of(struct numbers from, size_t count, unsigned size)
{
	uint64_t all = 0;

	for (; count; count--, from.at += from.stride)
		all |= number_at(from.at, size);
	return all;
}

INLINE bool alike(struct numbers all, size_t count, unsigned size)
{
	uint64_t first = number_at(all.at, size);

	while (count && number_at(all.at, size) == first) {
		all.at += all.stride;
		count--;
	}
	return !count;
}

/* Each number is that of the first. */
static bool are_alike(struct numbers all, size_t count)
{
	return all.size == 1   ? alike(all, count, 1)
	       : all.size == 2 ? alike(all, count, 2)
	       : all.size == 4 ? alike(all, count, 4)
			       : alike(all, count, 8);
}

static int64_t signed_at(const void *at, unsigned size)
{
	unsigned unused = 64 - 8 * size;

	return (int64_t)(number_at(at, size) << unused) >> unused;
}

static uint64_t line_number(const struct sl_timeline *timeline, const struct sl_line *line)
{
	for (unsigned i = 0; line && i < timeline->line_count; i++)
		if (timeline->lines[i] == line)
			return i + 1;
	return 0;
}

static void put_object(struct writer *w, const struct sl_shape *shape, const char *object);

/* Where the items of a member lie, and how many there are: of a text its bytes and the zero behind them. */
static const char *items_of(const struct sl_member_of *m, const char *object, size_t *count)
{
	const char *at = m->kind == SL_SHAPE_FIXED ? object + m->at : *(const char *const *)(const void *)(object + m->at);

	*count = !at			    ? 0
		 : m->kind == SL_SHAPE_TEXT ? strlen(at) + 1
		 : m->count_size	    ? number_at(object + m->count, m->count_size)
					    : m->limit;
	return at;
}

static void put_member(struct writer *w, const struct sl_member_of *m, const char *object);

static bool is_number(const struct sl_member_of *m)
{
	return m->kind == SL_SHAPE_UNSIGNED || m->kind == SL_SHAPE_SIGNED;
}

static bool is_list(const struct sl_member_of *m)
{
	return m->kind == SL_SHAPE_VECTOR || m->kind == SL_SHAPE_LIST || m->kind == SL_SHAPE_KEPT || m->kind == SL_SHAPE_FIXED;
}

/* The smallest width of 1, 2, 4 and 8 bytes that holds every number of a column; signed numbers keep their width. */
static unsigned width_of(const struct sl_member_of *m, const char *items, size_t stride, size_t count)
{
	struct numbers from = {(char *)items + m->at, stride, m->size};
	uint64_t all;

	if (m->kind == SL_SHAPE_SIGNED || m->size == 1)
		return m->size;
	all = m->size == 2 ? bits_of(from, count, 2) : m->size == 4 ? bits_of(from, count, 4) : bits_of(from, count, 8);
	return all >> 32 ? 8 : all >> 16 ? 4 : all >> 8 ? 2 : 1;
}

/* One byte with the width, then the numbers, without a msgpack head for each. */
static void put_numbers(struct writer *w, const struct sl_member_of *m, const char *items, size_t stride, size_t count)
{
	unsigned width = width_of(m, items, stride, count);
	char *to;

	msgpack_pack_bin(&w->pk, 1 + count * width);
	to = room_for(w->pk.data, 1 + count * width);
	*to = (char)width;
	copy_numbers((struct numbers){to + 1, width, width}, (struct numbers){(char *)items + m->at, stride, m->size}, count);
}

static const struct sl_member_of byte = {.kind = SL_SHAPE_UNSIGNED, .size = 1}, length = {.kind = SL_SHAPE_UNSIGNED, .size = 4};

/* What the texts or lists of numbers of a column consist of; NULL: it has neither. */
static const struct sl_member_of *parts_of(const struct sl_member_of *m)
{
	const struct sl_member_of *of = m->kind == SL_SHAPE_TEXT ? &byte : m->kind == SL_SHAPE_KEPT ? m->shape->members : NULL;

	return of && !of->name && is_number(of) ? of : NULL;
}

/*
 * Writes all texts or lists of a column as one, beside the length of each: a reader then neither parses nor keeps each by
 * itself.
 */
static void put_lists(struct writer *w, const struct sl_member_of *m, const char *items, size_t stride, size_t count)
{
	const struct sl_member_of *of = parts_of(m);
	uint32_t *lengths = sl_memory_must(calloc(count + 1, sizeof(*lengths)));
	size_t begin = begin_map(w), one;
	msgpack_sbuffer all;

	msgpack_sbuffer_init(&all);
	for (size_t i = 0; i < count; i++) {
		const char *from = items_of(m, items + i * stride, &one);

		if (one)
			memcpy(room_for(&all, one * of->size), from, one * of->size);
		lengths[i] = (uint32_t)one;
	}
	put_text(w, "lengths");
	put_numbers(w, &length, (const char *)lengths, sizeof(*lengths), count);
	put_text(w, "values");
	put_numbers(w, of, all.data, of->size, all.size / of->size);
	end_map(w, begin, 2);
	msgpack_sbuffer_destroy(&all);
	free(lengths);
}

/* One value of each item; or the items themselves where they are plain values. */
static void put_column(struct writer *w, const struct sl_member_of *m, const char *items, size_t stride, size_t count)
{
	if (is_number(m)) {
		put_numbers(w, m, items, stride, count);
	} else if (parts_of(m)) {
		put_lists(w, m, items, stride, count);
	} else {
		msgpack_pack_array(&w->pk, count);
		for (size_t i = 0; i < count; i++)
			put_member(w, m, items + i * stride);
	}
}

/* True: the member is zero or empty, as reading leaves it where the file lacks it. */
static bool is_nothing(const struct sl_member_of *m, const char *object)
{
	size_t count;

	if (m->kind == SL_SHAPE_STRUCT)
		return false;
	if (is_list(m))
		return !items_of(m, object, &count) || !count;
	return !number_at(object + m->at, m->size ? m->size : sizeof(void *));
}

static bool are_nothing(const struct sl_member_of *m, const char *items, size_t stride, size_t count)
{
	for (; count && is_nothing(m, items); items += stride)
		count--;
	return !count;
}

static void put_items(struct writer *w, const struct sl_shape *shape, const char *items, size_t count)
{
	unsigned members = 1;
	size_t begin;

	if (!count) {
		msgpack_pack_nil(&w->pk);
		return;
	}
	if (!shape->members[0].name) {
		put_column(w, &shape->members[0], items, shape->size, count);
		return;
	}
	begin = begin_map(w);
	put_text(w, "length"); /* no member has this name */
	msgpack_pack_uint64(&w->pk, count);
	for (unsigned i = 0; i < shape->count; i++) {
		const struct sl_member_of *m = &shape->members[i];
		bool alike = i && is_number(m) && are_alike((struct numbers){(char *)items + m->at, shape->size, m->size}, count);

		if (i && are_nothing(m, items, shape->size, alike ? 1 : count)) /* the first says how many there are */
			continue;
		put_text(w, m->name);
		put_column(w, m, items, shape->size, alike ? 1 : count);
		members++;
	}
	end_map(w, begin, members);
}

static void put_member(struct writer *w, const struct sl_member_of *m, const char *object)
{
	const char *at = object + m->at, *items;
	const struct sl_track *track;
	size_t count;

	switch (m->kind) {
	case SL_SHAPE_UNSIGNED:
		msgpack_pack_uint64(&w->pk, number_at(at, m->size));
		break;
	case SL_SHAPE_SIGNED:
		msgpack_pack_int64(&w->pk, signed_at(at, m->size));
		break;
	case SL_SHAPE_DOUBLE:
		msgpack_pack_double(&w->pk, *(const double *)(const void *)at);
		break;
	case SL_SHAPE_TEXT:
	case SL_SHAPE_OWN:
		put_text(w, *(const char *const *)(const void *)at);
		break;
	case SL_SHAPE_STRUCT:
		put_object(w, m->shape, at);
		break;
	case SL_SHAPE_LINE:
		msgpack_pack_uint64(&w->pk, line_number(&w->model->timeline, *(struct sl_line *const *)(const void *)at));
		break;
	case SL_SHAPE_TRACK:
		track = *(const struct sl_track *const *)(const void *)at;
		msgpack_pack_uint64(&w->pk, track ? 1 + (uint64_t)(track - w->model->tracks.item) : 0);
		break;
	default:
		items = items_of(m, object, &count);
		put_items(w, m->shape, items, count);
	}
}

static void put_object(struct writer *w, const struct sl_shape *shape, const char *object)
{
	size_t begin = begin_map(w);
	unsigned members = 0;

	for (unsigned i = 0; i < shape->count; i++) {
		if (is_nothing(&shape->members[i], object))
			continue;
		put_text(w, shape->members[i].name);
		put_member(w, &shape->members[i], object);
		members++;
	}
	end_map(w, begin, members);
}

void sl_shape_write(msgpack_sbuffer *out, const struct sl_shape *shape, const void *object, const struct sl_model *model)
{
	struct writer w = {.model = model};

	msgpack_packer_init(&w.pk, out, msgpack_sbuffer_write);
	put_object(&w, shape, object);
}

/* ---- reading */

static void take_member(const msgpack_object *value, const struct sl_member_of *m, char *object, const struct sl_model *model);

static void take_text(const msgpack_object *value, const struct sl_member_of *m, char *at)
{
	void *text;

	if (value->type != MSGPACK_OBJECT_STR)
		return;
	if (m->kind == SL_SHAPE_TEXT)
		text = (void *)sl_pool_try(value->via.str.ptr, value->via.str.size);
	else
		text = strndup(value->via.str.ptr, value->via.str.size);
	memcpy(at, &text, sizeof(text));
}

/* Number of values in a column; SIZE_MAX: the column does not fit this member. */
static size_t values_in(const msgpack_object *column, const struct sl_member_of *m)
{
	const msgpack_object *lengths = parts_of(m) ? sl_object_get(column, "lengths") : NULL;
	uint8_t width;

	if (lengths)
		return values_in(lengths, &length);
	if (!is_number(m))
		return column->type == MSGPACK_OBJECT_ARRAY ? column->via.array.size : SIZE_MAX;
	if (column->type != MSGPACK_OBJECT_BIN || !column->via.bin.size)
		return SIZE_MAX;
	width = (uint8_t)column->via.bin.ptr[0];
	if ((width != 1 && width != 2 && width != 4 && width != 8) || (column->via.bin.size - 1) % width)
		return SIZE_MAX;
	return (column->via.bin.size - 1) / width;
}

/*
 * Number of items of a value; 0: its columns do not agree.  At least one column must have a value for each item, so the file's
 * size limits the count; a column of numbers may have one number for all.
 */
static size_t count_of(const msgpack_object *value, const struct sl_shape *shape)
{
	uint64_t count = sl_object_u64(value, "length", 0);
	bool any = false;
	size_t values;

	if (!shape->members[0].name) {
		count = values_in(value, &shape->members[0]);
		return count == SIZE_MAX ? 0 : count;
	}
	for (unsigned i = 0; i < shape->count && count; i++) {
		const msgpack_object *column = sl_object_get(value, shape->members[i].name);

		if (!column)
			continue;
		values = values_in(column, &shape->members[i]);
		if (values == SIZE_MAX || (values != count && (values != 1 || !is_number(&shape->members[i]))))
			return 0;
		any |= values == count;
	}
	return any ? count : 0;
}

static void put_number(const struct sl_member_of *m, char *at, uint64_t number)
{
	number = m->limit == 1 ? number != 0 : number; /* bool allows no other bytes */
	memcpy(at, &number, m->size);
}

/* step 0: all items get the first number. */
static void take_numbers(const msgpack_object *column, const struct sl_member_of *m, char *items, size_t stride, size_t count,
			 size_t step)
{
	unsigned width = (uint8_t)column->via.bin.ptr[0];
	char *from = (char *)column->via.bin.ptr + 1;
	bool widens = m->kind == SL_SHAPE_SIGNED && width != m->size;

	if (!widens && m->limit != 1)
		copy_numbers((struct numbers){items + m->at, stride, m->size}, (struct numbers){from, step * width, width}, count);
	for (size_t i = 0; i < count && (widens || m->limit == 1); i++, from += step * width)
		put_number(m, items + i * stride + m->at, widens ? (uint64_t)signed_at(from, width) : number_at(from, width));
}

/* count_of has checked the column. */
static void take_lists(const msgpack_object *column, const struct sl_member_of *m, char *items, size_t stride, size_t count)
{
	const struct sl_member_of *of = parts_of(m);
	const msgpack_object *values = sl_object_get(column, "values");
	size_t parts = values ? values_in(values, of) : SIZE_MAX, used = 0;
	uint32_t *sizes = sl_memory_must(calloc(count + 1, sizeof(*sizes)));
	const char **lists = sl_memory_must(calloc(count + 1, sizeof(*lists))), *from;
	char *all = parts == SIZE_MAX ? NULL : sl_memory_must(malloc((parts + 1) * of->size));

	take_numbers(sl_object_get(column, "lengths"), &length, (char *)sizes, sizeof(*sizes), count, 1);
	for (size_t i = 0; i < count; i++)
		used += sizes[i];
	count = used == parts ? count : 0;
	if (count)
		take_numbers(values, of, all, of->size, parts, 1);
	if (m->kind == SL_SHAPE_TEXT) {
		sl_pool_try_all(all, sizes, count, lists);
	} else if (count) {
		from = sl_pool_keep(all, parts * of->size);
		for (size_t i = 0; i < count; from += sizes[i++] * of->size)
			lists[i] = sizes[i] ? from : NULL;
		copy_numbers((struct numbers){items + m->count, stride, m->count_size}, (struct numbers){(char *)sizes, 4, 4},
			     count);
	}
	copy_numbers((struct numbers){items + m->at, stride, 8}, (struct numbers){(char *)lists, 8, 8}, count);
	free(all);
	free(lists);
	free(sizes);
}

static void take_column(const msgpack_object *column, const struct sl_member_of *m, char *items, size_t stride, size_t count,
			const struct sl_model *model)
{
	size_t values = column ? values_in(column, m) : SIZE_MAX;

	if (values == SIZE_MAX)
		return;
	if (is_number(m))
		take_numbers(column, m, items, stride, count, values == 1 ? 0 : 1);
	else if (column->type == MSGPACK_OBJECT_MAP)
		take_lists(column, m, items, stride, count);
	else
		for (size_t i = 0; i < count; i++)
			take_member(&column->via.array.ptr[i], m, items + i * stride, model);
}

static void take_items(const msgpack_object *value, const struct sl_shape *shape, char *items, size_t count,
		       const struct sl_model *model)
{
	if (!shape->members[0].name) {
		take_column(value, &shape->members[0], items, shape->size, count, model);
		return;
	}
	for (unsigned i = 0; i < shape->count; i++)
		take_column(sl_object_get(value, shape->members[i].name), &shape->members[i], items, shape->size, count, model);
}

static void take_list(const msgpack_object *value, const struct sl_member_of *m, char *object, const struct sl_model *model)
{
	size_t count = count_of(value, m->shape);
	char *items = object + m->at, *own = NULL;

	if (m->kind == SL_SHAPE_FIXED)
		count = count < m->limit ? count : m->limit;
	else
		items = own = count ? sl_memory_must(calloc(count, m->shape->size)) : NULL;
	if (count)
		take_items(value, m->shape, items, count, model);
	if (m->kind == SL_SHAPE_KEPT && items) {
		items = (char *)sl_pool_keep(items, count * m->shape->size);
		free(own);
	}
	if (m->kind != SL_SHAPE_FIXED)
		memcpy(object + m->at, &items, sizeof(items));
	if (m->count_size)
		memcpy(object + m->count, &count, m->count_size);
	if (m->kind == SL_SHAPE_VECTOR)
		memcpy(object + m->count + sizeof(size_t), &count, sizeof(size_t)); /* the vector's capacity */
}

static void take_member(const msgpack_object *value, const struct sl_member_of *m, char *object, const struct sl_model *model)
{
	char *at = object + m->at;
	uint64_t number;
	const void *pointer = NULL;

	switch (m->kind) {
	case SL_SHAPE_UNSIGNED:
	case SL_SHAPE_SIGNED:
		if (sl_object_number(value, &number))
			put_number(m, at, number);
		break;
	case SL_SHAPE_DOUBLE:
		if (value->type == MSGPACK_OBJECT_FLOAT64)
			memcpy(at, &value->via.f64, sizeof(double));
		break;
	case SL_SHAPE_TEXT:
	case SL_SHAPE_OWN:
		take_text(value, m, at);
		break;
	case SL_SHAPE_STRUCT:
		sl_shape_read(value, m->shape, at, model);
		break;
	case SL_SHAPE_LINE:
		if (sl_object_number(value, &number) && number && number <= model->timeline.line_count)
			pointer = model->timeline.lines[number - 1];
		memcpy(at, &pointer, sizeof(pointer));
		break;
	case SL_SHAPE_TRACK:
		if (sl_object_number(value, &number) && number && number <= model->tracks.count)
			pointer = &model->tracks.item[number - 1];
		memcpy(at, &pointer, sizeof(pointer));
		break;
	default:
		take_list(value, m, object, model);
	}
}

void sl_shape_read(const msgpack_object *map, const struct sl_shape *shape, void *object, const struct sl_model *model)
{
	for (unsigned i = 0; i < shape->count; i++) {
		const msgpack_object *value = sl_object_get(map, shape->members[i].name);

		if (value)
			take_member(value, &shape->members[i], object, model);
	}
}
