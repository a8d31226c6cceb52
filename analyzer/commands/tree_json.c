/* SPDX-License-Identifier: MIT */
#include "analyzer/commands/commands.h"

#include "analyzer/base/memory.h"
#include "analyzer/base/stats.h"

struct choice {
	const struct sl_owners *owners;
	const struct sl_tree_json *what;
	uint32_t *place; /* position of each share in order of bytes: the first `max_children` are written */
	size_t max_children, written;
};

/* Writes only the size classes that occur. */
static void put_lives(struct sl_json *j, const struct sl_tree_lives *lives)
{
	uint64_t ended = lives->made - lives->never_freed;

	sl_json_known(j, "made", lives->unknown ? -1 : (int64_t)lives->made);
	sl_json_known(j, "kept", lives->unknown ? -1 : (int64_t)lives->never_freed);
	sl_json_known(j, "temporary", lives->unknown ? -1 : (int64_t)lives->temporary);
	sl_json_known(j, "lifetime_ns", lives->unknown || lives->timeless || !ended ? -1 : (int64_t)(lives->ended_ns / ended));
	sl_json_array(j, "sizes");
	for (unsigned i = 0; i < SL_LIVES_CLASSES && !lives->unknown; i++) {
		if (!lives->sizes[i])
			continue;
		sl_json_object(j, NULL);
		sl_json_known(j, "up_to_bytes", i + 1 < SL_LIVES_CLASSES ? (int64_t)sl_lives_most(i) : -1);
		sl_json_uint(j, "blocks", lives->sizes[i]);
		sl_json_end(j);
	}
	sl_json_end(j);
}

static void put_children(struct sl_json *j, struct choice *choice, uint32_t parent, unsigned level)
{
	const struct sl_share *share = choice->owners->share.item;

	sl_json_array(j, "owners");
	for (uint32_t at = share[parent].child; at && level < choice->what->depth; at = share[at].sibling) {
		if (choice->place[at] >= choice->max_children || share[at].bytes < choice->what->min)
			continue;
		choice->written++;
		sl_json_object(j, NULL);
		sl_json_string(j, "name", share[at].name);
		sl_json_uint(j, "bytes", share[at].bytes);
		sl_json_uint(j, "blocks", share[at].blocks);
		if (choice->what->lives)
			put_lives(j, &choice->what->lives[at]);
		put_children(j, choice, at, level + 1);
		sl_json_end(j);
	}
	sl_json_end(j);
}

/* Owners down to the depth asked for; deeper ones do not count as omitted. */
static size_t count_of(const struct sl_owners *owners, uint32_t parent, unsigned depth)
{
	size_t count = 0;

	for (uint32_t at = owners->share.item[parent].child; at && depth; at = owners->share.item[at].sibling)
		count += 1 + count_of(owners, at, depth - 1);
	return count;
}

static void put(struct sl_json *j, struct choice *choice)
{
	const struct sl_tree_json *what = choice->what;

	choice->written = 0;
	sl_json_document(j, "stormlog.tree", 1);
	sl_json_string(j, "dry", what->dry_card);
	sl_json_string(j, "verb", what->verb);
	sl_json_string(j, "path", what->path);
	sl_json_string(j, "by", what->by);
	sl_json_string(j, "kind", what->kind);
	sl_json_string(j, "at", what->at);
	sl_json_string(j, "from", what->from);
	sl_json_string(j, "to", what->to);
	sl_json_string(j, "counted", what->lives ? what->until ? "moment" : "run" : NULL);
	sl_json_uint(j, "processes", what->processes);
	sl_json_uint(j, "bytes", choice->owners->share.item[0].bytes);
	put_children(j, choice, 0, 0);
	sl_json_uint(j, "left_out", count_of(choice->owners, 0, what->depth) - choice->written);
	sl_json_end(j);
}

/* Largest first.  Of equal ones the parent comes first, since it was made before its children. */
static int by_bytes(const void *a, const void *b, void *shares)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t first = ((struct sl_share *)shares)[x].bytes, second = ((struct sl_share *)shares)[y].bytes;

	return SL_FALLING(first, second) ?: SL_RISING(x, y);
}

static uint32_t *places_of(const struct sl_owners *owners)
{
	size_t count = owners->share.count;
	uint32_t *order = calloc(count, sizeof(*order)), *place = sl_memory_must(calloc(count, sizeof(*place)));

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), by_bytes, owners->share.item);
	for (size_t i = 0; i < count; i++)
		place[order[i]] = (uint32_t)i;
	free(order);
	return place;
}

bool sl_tree_json_put(const struct sl_owners *owners, const struct sl_tree_json *what)
{
	struct sl_json *trial = sl_json_new(NULL, SL_JSON_COMPACT), *out;
	/* an owner takes at least 30 bytes */
	size_t first = owners->share.count < SL_TREE_JSON_BYTES / 30 ? owners->share.count : SL_TREE_JSON_BYTES / 30, size;
	struct choice choice = {.owners = owners, .what = what, .place = places_of(owners), .max_children = first};

	for (;;) {
		sl_json_rewind(trial);
		put(trial, &choice);
		sl_json_text(trial, &size);
		if (size <= SL_TREE_JSON_BYTES || choice.max_children <= 1)
			break;
		choice.max_children -= choice.max_children / 16 + 1;
	}
	sl_json_close(trial);
	out = sl_json_new(stdout, SL_JSON_COMPACT);
	put(out, &choice);
	sl_json_newline(out);
	free(choice.place);
	return sl_json_close(out);
}
