/* SPDX-License-Identifier: MIT */
#include "agent/file/file.h"

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

void sl_sort(struct sl_sort_key *keys, struct sl_sort_key *scratch, uint32_t count)
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
